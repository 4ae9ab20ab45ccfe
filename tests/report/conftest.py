"""Records that look like runs: accuracy rises with learning, then fades as the method lets it."""

from __future__ import annotations

import os
import shutil
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.types import Record

# name: (how much of a task is left after the next one, accuracy when just learned, cost, bytes per task, settings)
METHODS = {
    "finetune": (0.45, 0.97, 1.0, 0, {}),
    "ewc": (0.62, 0.94, 1.6, 180_000, {"strength": 100.0, "samples": 200}),
    "gem": (0.93, 0.95, 9.0, 260_000, {"memories": 256, "margin": 0.5}),
    "er": (0.92, 0.96, 2.1, 40_000, {"memories": 500}),
    "iid": (1.0, 0.96, 1.1, 0, {}),
}


def make(method: str, scenario: str = "class", seed: int = 0, tasks: int = 5, **fields) -> Record:
    keeps, peak, cost, kept, settings = METHODS.get(method, METHODS["gem"])
    rng = np.random.default_rng([seed, len(method), tasks, len(scenario)])
    chance = 0.5 if scenario == "task" else 0.1
    keeps = keeps + (1 - keeps) * 0.6 if scenario == "task" else keeps
    R = np.empty((tasks, tasks))
    for i in range(tasks):
        for j in range(tasks):
            R[i, j] = chance + (peak - chance) * keeps ** (i - j) if j <= i else chance
    R = np.clip(R + rng.normal(0, 0.012, R.shape) + rng.normal(0, 0.01), 0, 1)
    values = {
        "method": method,
        "seed": seed,
        "settings": {
            **{name: {"value": value, "chosen_by": "default"} for name, value in settings.items()},
            "net.hidden": {"value": [100, 100], "chosen_by": "default"},
            "stream.tasks": {"value": tasks, "chosen_by": "given"},
            "protocol.batch": {"value": 10, "chosen_by": "default"},
            "protocol.lr": {"value": 0.1 if seed else 0.03, "chosen_by": "val:first-task"},
        },
        "stream": {"name": "split", "data": "digits", "tasks": tasks, "examples": None, "seed": seed},
        "scenario": scenario,
        "protocol": {"name": "online", "batch": 10, "lr": 0.1 if seed else 0.03, "optimiser": "sgd"},
        "net": {"name": "mlp", "hidden": [100, 100]},
        "tasks": tuple(
            {
                "name": f"digits {2 * t}-{2 * t + 1}",
                "classes": [2 * t, 2 * t + 1],
                "n_train": 288,
                "n_val": 0,
                "n_test": 72,
            }
            for t in range(tasks)
        ),
        "R": R if method != "iid" else R[-1:],
        "scorings": tuple({"after_task": t, "step": 29} for t in (range(tasks) if method != "iid" else [tasks - 1])),
        "baseline": np.full(tasks, chance),
        "curves": (),
        "resources": {
            "bytes": [89_610 + kept * (t + 1) for t in range(tasks)],
            "flops": [2.1e9 * cost * (1 + 0.05 * rng.random())] * tasks,
            "train_seconds": [0.08 * cost * (1 + 0.2 * rng.random()) for _ in range(tasks)],
            "eval_seconds": 0.12 + 0.02 * rng.random(),
        },
        "card": audit(scenario, seed, kept, tasks),
        "mixed": method == "iid",
    }
    return Record(**{**values, **fields})


def audit(scenario: str, seed: int, kept: int, tasks: int) -> dict:
    def line(label, value, met, unit=None, note=""):
        return {"label": label, "value": value, "unit": unit, "met": met, "note": note}

    return {
        "resemblance": line("Tasks resemble each other", 0.61 + 0.02 * seed, True, "bits", "entropy before learning"),
        "shared_head": line("Shared head", scenario != "task", scenario != "task"),
        "task_label": line("No task label at test", "hidden" if scenario != "task" else "given", scenario != "task"),
        "old_data": line(
            "No old data kept",
            {"rows": 256 if kept else 0, "size": kept},
            not kept,
            note="a lower bound: rows matched by hash",
        ),
        "tasks": line("More than two tasks", tasks, tasks > 2),
        "causal": line("Causal selection", "val:first-task", True),
        "memory": line(
            "Memory constant", {"final": 89_610 + kept * tasks, "slope": kept}, not kept, "bytes; slope per task"
        ),
        "time": line("Time per update constant", 0.0011 + 0.0001 * seed, seed != 1, "s"),
        "passes": line("Passes over the data", None, None, note="not measured under this protocol"),
    }


CARD = {
    "resemblance": ("The network is confident on a new task before learning it", True),
    "shared_head": ("One output vector for all tasks", True),
    "no_task_label": ("No task label at test", True),
    "no_old_data": ("No old data kept", None),
    "more_than_two_tasks": ("More than two tasks", True),
    "memory": ("Memory does not grow", None),
}


def large(methods: int, seeds: int, tasks: int, every: int = 1) -> list[Record]:
    """As many as a page must bear; `every`: scorings per task."""
    return [_made(method, seed, tasks, every) for method in range(methods) for seed in range(seeds)]


def _made(method: int, seed: int, tasks: int, every: int) -> Record:
    rng = np.random.default_rng([method, seed])
    keeps, peak = 0.9 + 0.1 * np.sin(method) ** 2, 0.7 + 0.25 * np.cos(method) ** 2
    i, j = np.ogrid[:tasks, :tasks]
    R = np.where(j <= i, 0.1 + (peak - 0.1) * keeps ** np.maximum(i - j, 0), 0.1)
    R = np.repeat(np.clip(R + rng.normal(0, 0.015, R.shape), 0, 1), every, axis=0)
    scorings = tuple({"after_task": t, "step": 10 * (k + 1)} for t in range(tasks) for k in range(every))
    kept = 2000 * (method % 3)
    given = {"strength": {"value": float(method), "chosen_by": "given"}}
    card = {
        key: {"label": label, "value": 1, "unit": None, "met": not kept if met is None else met, "note": ""}
        for key, (label, met) in CARD.items()
    }
    return Record(
        method=f"method_{method:02d}" + "_with_a_long_name" * (method % 7 == 5),
        seed=seed,
        settings={**given, "protocol.batch": {"value": 10, "chosen_by": "default"}},
        stream={"name": "permuted", "data": "digits", "tasks": tasks, "seed": seed, "fingerprint": "5a" * 32},
        scenario="domain",
        protocol={"name": "online", "batch": 10, "lr": 0.1},
        net={"name": "mlp"},
        tasks=tuple(
            {"name": f"task {t}", "classes": [0, 1], "n_train": 100, "n_val": 0, "n_test": 50} for t in range(tasks)
        ),
        R=R,
        scorings=scorings,
        baseline=np.full(tasks, 0.1),
        curves=(),
        resources={
            "bytes": [90_000 + kept * (t + 1) for t in range(tasks)],
            "flops": [1e9 * (1 + method % 5)] * tasks,
            "train_seconds": [0.1 * (1 + method % 4) * (1 + 0.2 * rng.random())] * tasks,
            "eval_seconds": 0.1,
            "updates": [10 * every] * tasks,
        },
        card=card,
    )


@pytest.fixture(scope="session")
def fake() -> Callable[..., Record]:
    return make


@pytest.fixture(scope="session")
def crowd() -> Callable[..., list[Record]]:
    return large


def many(methods: Sequence[str] = tuple(METHODS), scenarios=("class", "task"), seeds=range(3), tasks=5) -> list[Record]:
    return [make(m, s, seed, tasks) for s in scenarios for m in methods for seed in seeds]


@pytest.fixture
def records() -> list[Record]:
    """5 methods in 2 scenarios over 3 seeds."""
    return many()


FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run --disable-quic --hide-scrollbars --enable-unsafe-swiftshader"
).split()
SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
DRAW = """
for (const event of ["beforeprint", "afterprint"]) dispatchEvent(new Event(event));
const places = [...document.querySelectorAll(".plot")].filter((place) => place.offsetParent);
return [places.length, places.filter((place) => place.data).length];
"""


class Browser:
    """Chromium with one page."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, size: tuple[int, int] = (1280, 900), *, dark: bool = False) -> None:
        """A page as it is seen in a window of this size."""
        width, height = size
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < height / 2,
        )
        self.see("screen", dark=dark)
        self.driver.get(page.as_uri())

    def see(self, media: str, *, dark: bool = False) -> None:
        """As on 'print', or on a screen."""
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.command("Emulation.setEmulatedMedia", media=media, features=[scheme])

    def command(self, name: str, **values: Any) -> dict[str, Any]:
        return self.driver.execute_cdp_cmd(name, values)

    def run(self, script: str, *values: Any) -> Any:
        """What a script returns; a promise is waited for."""
        return self.driver.execute_script(script, *values)

    def draw_all(self) -> list[int]:
        """Draw the figures that are not folded, as printing does; how many there are, and how many are drawn."""
        return self.run(DRAW)

    def print(self) -> None:
        """As it looks on paper, which is as wide as the window."""
        self.run("dispatchEvent(new Event('beforeprint'))")
        self.see("print")

    def point_at(self, selector: str) -> None:
        from selenium.webdriver import ActionChains

        target = self.find(selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", target)
        ActionChains(self.driver).move_to_element(target).perform()
        self.wait("return document.querySelector('.hovertext')")

    def wait(self, script: str) -> None:
        """Until a script returns something true."""
        from selenium.webdriver.support.wait import WebDriverWait

        WebDriverWait(self.driver, 30, poll_frequency=0.05).until(lambda driver: driver.execute_script(script))

    def complaints(self) -> list[str]:
        """The errors on the page's console since this was last asked."""
        return [line["message"] for line in self.driver.get_log("browser") if line["level"] == "SEVERE"]

    def find(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def shoot(self, name: str) -> None:
        """Keep a picture of the page down to 8000 pixels, to be looked at by people."""
        SHOTS.mkdir(parents=True, exist_ok=True)
        size = self.run("const page = document.documentElement; return [page.clientWidth, page.scrollHeight]")
        whole = {"x": 0, "y": 0, "width": size[0], "height": min(size[1], 8000), "scale": 1}
        made = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=whole)
        (SHOTS / f"{name}.png").write_bytes(b64decode(made["data"]))


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """One for all tests. Where there is none they skip, but in `make test-browser`."""
    absent = pytest.fail if os.environ.get("HOLDFAST_BROWSER") else pytest.skip
    chromium, chromedriver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or chromedriver is None:
        absent("Chromium is not here; on Debian: apt-get install chromium chromium-driver")
    try:
        from selenium import webdriver
    except ImportError:
        absent("Selenium is not here; pip install 'holdfast[browser]'")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
