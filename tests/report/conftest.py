"""Records that look like runs: accuracy rises with learning, then fades as the method lets it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


@pytest.fixture
def fake() -> Callable[..., Record]:
    return make


def many(methods: Sequence[str] = tuple(METHODS), scenarios=("class", "task"), seeds=range(3), tasks=5) -> list[Record]:
    return [make(m, s, seed, tasks) for s in scenarios for m in methods for seed in seeds]


@pytest.fixture
def records() -> list[Record]:
    """5 methods in 2 scenarios over 3 seeds."""
    return many()
