"""demo, list, report, audit, data, help, and the two ways to start."""

import json
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from holdfast import data as datasets
from holdfast.data import FileCheck, Verdict


def test_alone_it_prints_help(holdfast):
    for command in ("", "--help"):
        done = holdfast(command)
        assert done.code == 0 and done.err == ""
        for word in ("demo", "run", "compare", "list", "report", "audit", "data"):
            assert f"\n  {word} " in done.out
        assert "╭" not in done.out


def test_version(holdfast):
    assert holdfast("--version").out == f"holdfast {version('holdfast')}\n"


@pytest.mark.parametrize(
    "command", ["run", "compare", "demo", "list", "report", "audit", "metrics", "data", "data fetch"]
)
def test_every_command_has_help(holdfast, command):
    done = holdfast(f"{command} --help")
    assert done.code == 0 and done.out.startswith(f"Usage: holdfast {command} ")


def test_python_m_holdfast_and_a_closed_pipe(here):
    """A reader that leaves early causes no noise."""
    command = [sys.executable, "-m", "holdfast", "list", "--settings"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.close()
    assert process.stderr.read() == b""
    process.wait()


@pytest.mark.parametrize("kind", ["methods", "streams", "nets", "protocols", "data"])
def test_list_names_everything(holdfast, kind):
    names = [entry["name"] for entry in json.loads(holdfast(f"list {kind} --json").out)]
    text = holdfast(f"list {kind}").out
    assert len(names) >= 2 and all(f"{name} " in text for name in names)
    if kind != "data":
        room = Path(datasets.__file__).parents[1] / kind
        assert set(names) <= {path.stem for path in room.glob("*.py")}


def test_list_shows_the_settings_of_one(holdfast):
    (gem,) = json.loads(holdfast("list methods gem --json").out)
    assert gem["settings"][0] == {
        "name": "memories",
        "default": 256,
        "expected": "a whole number >= 1",
        "about": "stored examples per task",
    }
    text = holdfast("list methods gem").out
    assert "memories" in text and "256" in text and "a whole number >= 1" in text and "stored examples per task" in text
    assert ">>>" not in text
    assert "hidden" in holdfast("list nets --settings").out


def test_report_is_written_anew(holdfast, here):
    holdfast("run gem TINY --out out --quiet")
    (here / "out" / "report.html").unlink()
    done = holdfast("report out")
    assert done.code == 0 and done.out == f"report: {here / 'out' / 'report.html'}\n"
    assert "<html" in (here / "out" / "report.html").read_text()[:200]
    assert holdfast("report out --out elsewhere/mine.html").code == 0
    assert (here / "elsewhere" / "mine.html").is_file()


def test_audit_shows_every_line_of_every_card(holdfast, here):
    holdfast("compare er,joint TINY --scenario task --seeds 0,1 --out out --quiet")
    cards = json.loads(holdfast("audit out --json").out)["cards"]
    text = holdfast("audit out").out
    assert list(cards) == ["er", "joint"]
    assert "er (task scenario, task label given; seeds 0, 1)" in text
    for card in cards.values():
        assert card["scenario"] == "task" and card["task_label_given"] is True and card["seeds"] == [0, 1]
        for line in card["lines"].values():
            assert line["label"] in text
            assert len(line["values"]) == len(line["met"]) == 2
    kept = cards["er"]["lines"]["no_old_data"]
    assert kept["met"] == [False, False] and min(kept["values"]) > 0
    assert "not met" in text and "saw later tasks' data" in text


def test_data_status(holdfast):
    rows = {row["name"]: row for row in json.loads(holdfast("data status --json").out)}
    assert rows["digits"]["present"] and rows["digits"]["embedded"] and rows["digits"]["train"] == 1438
    assert not rows["mnist"]["present"]
    text = holdfast("data status").out
    assert "digits" in text and "holdfast data fetch mnist" in text


def test_data_fetch_says_what_it_does(holdfast, monkeypatch):
    assert "embedded" in holdfast("data fetch digits").out

    def fetch(name, progress):
        for done in (1, 2, 3):
            progress(done, 3, "images.gz")
        return [Path("data/images.gz")]

    monkeypatch.setattr(datasets, "fetch", fetch)
    done = holdfast("data fetch mnist")
    assert (done.code, done.out) == (0, "data/images.gz\n")
    assert done.err == "downloading images.gz (3 bytes)\n"


@pytest.mark.parametrize(
    ("state", "reads", "code", "said"),
    [
        ("published", True, 0, "reads: 3 rows"),
        ("differs", True, 1, "differs from the published file"),
        ("published", False, 1, "cannot read images.gz"),
        ("absent", False, 1, "holdfast data fetch mnist"),
    ],
)
def test_data_verify(holdfast, monkeypatch, state, reads, code, said):
    files = (FileCheck(Path("images.gz"), state, f"{state} from the published file"),)
    verdict = Verdict("mnist", files, reads, "reads: 3 rows" if reads else "cannot read images.gz: found nothing")
    monkeypatch.setattr(datasets, "verify", lambda name: verdict)
    done = holdfast("data verify mnist")
    assert done.code == code and said in done.out and done.err == ""


def test_data_verify_embedded(holdfast):
    done = holdfast("data verify digits")
    assert done.code == 0 and "embedded" in done.out and "1438 train" in done.out


@pytest.fixture
def shells(here):
    """A folder `shells` with an npz of 20 rows."""
    home = here.parent / "data" / "shells"
    home.mkdir(parents=True)
    np.savez(home / "rows.npz", x=np.arange(20 * 6, dtype=np.uint8).reshape(20, 3, 2), y=np.arange(20) % 2)
    return home


def test_a_folder_is_a_data_set_by_name(holdfast, here, shells):
    (row,) = (row for row in json.loads(holdfast("data status --json").out) if row["name"] == "shells")
    assert (row["train"], row["test"], row["note"], row["where"]) == (16, 4, "npz", str(shells))
    assert (
        "shells" in holdfast("list data").out and "here: 16 train and 4 test rows" in holdfast("list data shells").out
    )
    done = holdfast("data verify shells")
    assert done.code == 0 and "a folder of yours" in done.out and "16 train and 4 test" in done.out
    assert "nothing to download" in holdfast("data fetch shells").out
    assert holdfast("run finetune --data shells --tasks 2 --jobs 1 --out out --quiet").code == 0
    written = json.loads((here / "out" / "experiment.json").read_text())
    assert verified(done.out) in json.dumps(written)


def verified(text: str) -> str:
    return text.split("sha256 ")[1].strip()


def test_a_folder_that_is_no_data_set_is_refused_in_a_line(holdfast, here, shells):
    assert holdfast("run gem --data shels --out out").complaints == [
        "unknown data set 'shels'; did you mean 'shells'?",
    ]
    (line,) = holdfast("run gem --data ../data/shels --out out").complaints
    assert line == "there is no file or folder '../data/shels'; did you mean '../data/shells'?"
    np.savez(shells / "rows.npz", x=np.zeros((4, 2)), y=np.array([0, 1, 0, None], object))
    done = holdfast("run gem --data shells --out out")
    assert done.code == 2 and "Python objects" in done.complaints[0] and len(done.complaints) == 1
    assert holdfast("data verify shells").code == 1
    assert "cannot be read" in holdfast("list data shells").out
    assert not list(here.iterdir())


def test_fetch_of_what_is_got_by_hand_says_where(holdfast, here):
    done = holdfast("data fetch notmnist")
    (line,) = done.complaints
    assert done.code == 2 and "http" in line and str(here.parent / "data" / "notmnist") in line
    assert not (here.parent / "data").exists()
    assert "licence: see the source" in holdfast("list data notmnist").out


@pytest.mark.slow
def test_demo_tells_its_story(holdfast, here):
    """In the class scenario finetune forgets and memories hold; in the task scenario EWC is above finetune."""
    done = holdfast("demo")
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"report: {here / 'runs' / 'demo' / 'report.html'}"
    acc = {k: e["acc"]["mean"] for k, e in json.loads(Path("runs/demo/summary.json").read_text())["methods"].items()}
    assert acc["finetune/class"] < 0.25 and acc["ewc/class"] < 0.25
    assert min(acc["er/class"], acc["gem/class"]) > 0.75
    assert acc["ewc/task"] > acc["finetune/task"] + 0.02
    assert min(acc["joint/class"], acc["joint/task"]) > 0.9


def test_demo_leaves_another_version_alone(holdfast, here, monkeypatch):
    """runs/demo is taken: the demo goes to a folder of its own."""
    taken = here / "runs" / "demo" / "experiment.json"
    taken.parent.mkdir(parents=True)
    taken.write_text("{}")
    monkeypatch.setattr("holdfast.sweeps.executor.Cell.run", None)  # nothing is trained: every cell fails at once
    done = holdfast("demo --quiet")
    assert done.code == 1
    assert taken.read_text() == "{}"
    assert any(path.name.startswith("finetune+ewc+er+gem+joint-split-digits-") for path in (here / "runs").iterdir())


SHAKY = """
from dataclasses import dataclass
import torch
import holdfast as hf

@dataclass
class Shaky(hf.Learner):
    share: float = 0.65  # the luck of seeds 0, 1 and 2 is 0.02, 0.62 and 0.69

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.luck = torch.rand(1, generator=rng).item()

    def observe(self, batch):
        loss = self.fit(batch)
        return loss * torch.nan if self.luck < self.share else loss
"""


def test_seeds_that_failed_are_told_wherever_a_folder_is_read(holdfast, here):
    Path("mine.py").write_text(SHAKY)
    done = holdfast("compare finetune,er,mine.py:Shaky TINY --seeds 0,1,2 --out out")
    lost = "Shaky: 1 of 3 seeds finished, not ranked."
    assert done.code == 1 and lost in done.out and "  1/3  " in done.out
    page = (here / "out" / "report.html").read_text()
    assert lost in page
    holdfast("report out")
    assert (here / "out" / "report.html").read_text().count(lost) == page.count(lost) == 1
    assert lost in holdfast("export out --latex").out
    assert "Shaky (class scenario, task label hidden; seed 2; 1 of 3 seeds finished)" in holdfast("audit out").out
    card = json.loads(holdfast("audit out --json").out)["cards"]["Shaky"]
    assert (card["seeds"], card["asked"], card["failed"]) == ([2], 3, [0, 1])


def test_a_method_without_any_result_is_told_wherever_a_folder_is_read(holdfast, here):
    Path("mine.py").write_text(SHAKY)
    done = holdfast("compare er,mine.py:Shaky TINY --set Shaky.share=1 --seeds 0,1 --out out")
    lost = "Shaky: 0 of 2 seeds finished, not ranked."
    assert done.code == 1 and lost in done.out and lost in (here / "out" / "report.html").read_text()
    assert lost in holdfast("export out --latex").out
    assert "Shaky: 0 of 2 seeds finished, so there is no card." in holdfast("audit out").out
