"""run and compare: what they print, what they write, and what they find again."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

RECORD = {
    "schema", "method", "seed", "settings", "stream", "scenario", "protocol", "net", "tasks", "R", "baseline", "curves",
    "resources", "card", "metrics",
}  # fmt: skip
METRICS = {"acc", "bwt", "fwt", "forgetting", "bytes", "flops", "train_seconds"}


def record_in(folder: Path) -> dict:
    (path,) = folder.glob("cells/*/record.json")
    return json.loads(path.read_text())


def test_run_prints_a_table_and_says_where_the_report_is(holdfast, here):
    done = holdfast("run gem TINY --out out")
    assert done.code == 0
    assert "ACC" in done.out and "class" in done.out and "hidden" in done.out
    progress, report = done.err.splitlines()
    assert re.fullmatch(r"\[1/1\] gem seed 0: ACC 0\.\d+ \(class scenario, task label hidden\) [\d.]+ .?s", progress)
    assert report == f"report: {here / 'out' / 'report.html'}"
    assert {p.name for p in (here / "out").iterdir()} == {"experiment.json", "cells", "summary.json", "report.html"}


def test_json_is_the_summary_and_nothing_else(holdfast, here):
    done = holdfast("compare finetune,er TINY --seeds 0,1 --out out --json")
    summary = json.loads(done.out)
    assert done.code == 0
    assert summary == json.loads((here / "out" / "summary.json").read_text())
    assert summary["schema"] == 1
    assert list(summary["methods"]) == ["finetune", "er"]
    for label, entry in summary["methods"].items():
        assert entry["label"] == label and entry["scenario"] == "class" and entry["net"] == "mlp"
        assert entry.keys() >= METRICS
        assert entry["acc"].keys() == {"mean", "low", "high", "values"}
        assert len(entry["acc"]["values"]) == 2


def test_record_has_the_keys_other_programs_rely_on(holdfast, here):
    holdfast("run ewc TINY --seeds 3 --set strength=2 --out out --quiet")
    record = record_in(here / "out")
    assert record.keys() >= RECORD
    assert record["method"] == "ewc" and record["seed"] == 3 and record["scenario"] == "class"
    assert record["settings"]["strength"] == {"value": 2.0, "chosen_by": "given"}
    assert record["settings"]["samples"]["chosen_by"] == "default"
    assert [task["n_train"] for task in record["tasks"]] == [20, 20]
    assert len(record["R"]) == 2 and len(record["baseline"]) == 2
    assert record["resources"].keys() >= {"bytes", "flops", "train_seconds", "eval_seconds"}
    assert record["curves"][0].keys() == {"after_task", "step", "task", "accuracy", "loss", "entropy", "calibration"}


def test_every_option_reaches_the_record(holdfast, here):
    holdfast(
        "run gem --stream rotated --data digits --tasks 3 --examples 30 --scenario task --net mlp --protocol epochs "
        "--set memories=7 --set margin=0.25 --set net.hidden=12,8 --set stream.angles=0,90 "
        "--set protocol.score_every=2 --lr 0.05 --batch 5 --epochs 2 --optimiser adam --seeds 4 --device cpu "
        "--jobs 1 --out out --quiet"
    )
    record = record_in(here / "out")
    assert record["stream"]["name"] == "rotated" and record["stream"]["angles"] == [0.0, 90.0]
    assert record["stream"]["examples"] == 30 and len(record["tasks"]) == 3 and record["scenario"] == "task"
    assert record["settings"]["memories"]["value"] == 7 and record["settings"]["margin"]["value"] == 0.25
    assert record["net"]["hidden"] == [12, 8]
    assert record["protocol"]["name"] == "epochs" and record["protocol"]["epochs"] == 2
    assert (record["protocol"]["lr"], record["protocol"]["batch"], record["protocol"]["optimiser"]) == (0.05, 5, "adam")
    assert len(record["R"]) > 3  # score_every adds rows
    assert record["seed"] == 4


def test_a_long_stream_may_be_scored_at_its_ends_only(holdfast, here):
    words = "er TINY --stream permuted --tasks 4 --seeds 0,1 --out out --set protocol.score=ends"
    assert holdfast(f"compare finetune,{words} --quiet").code == 0
    for path in (here / "out" / "cells").glob("*/record.json"):
        known = [[value is not None for value in row] for row in json.loads(path.read_text())["R"]]
        assert known == [[i in (j, 3) for j in range(4)] for i in range(4)]
    summary = json.loads((here / "out" / "summary.json").read_text())["methods"]["er"]
    assert summary["bwt"]["mean"] is not None and summary["fwt"]["values"] == [None, None]
    for command in ("report out", "export out --csv --scores", "export out --latex", "audit out"):
        done = holdfast(command)
        assert done.code == 0 and "nan" not in done.out.lower().replace("finetune", "")


def test_the_stream_may_have_a_seed_of_its_own(holdfast, here):
    assert holdfast("run er TINY --stream permuted --set stream.seed=3 --seeds 0,1 --out out --quiet").code == 0
    records = [json.loads(p.read_text()) for p in here.glob("out/cells/*/record.json")]
    assert sorted(r["seed"] for r in records) == [0, 1]
    assert [r["stream"]["seed"] for r in records] == [3, 3]
    assert [r["settings"]["stream.seed"] for r in records] == [{"value": 3, "chosen_by": "given"}] * 2
    (entry,) = json.loads((here / "out" / "summary.json").read_text())["methods"].values()
    assert entry["seeds"] == [0, 1]


def test_defaults_are_those_of_the_contract(holdfast, here):
    holdfast("run finetune --jobs 1 --out out --quiet")
    record = record_in(here / "out")
    assert record["stream"]["name"] == "split" and record["stream"]["data"] == "digits"
    assert len(record["tasks"]) == 5 and record["scenario"] == "class" and record["seed"] == 0
    assert record["net"]["name"] == "mlp" and record["net"]["hidden"] == [100, 100]
    protocol = record["protocol"]
    assert (protocol["name"], protocol["batch"], protocol["lr"], protocol["optimiser"]) == ("online", 10, 0.1, "sgd")


@pytest.mark.parametrize(
    ("options", "name", "passes"),
    [("", "online", 1), ("--epochs 1", "online", 1), ("--epochs 3", "epochs", 3), ("--protocol epochs", "epochs", 5)],
)
def test_more_than_one_epoch_means_the_epochs_protocol(holdfast, here, options, name, passes):
    holdfast(f"run finetune TINY {options} --out out --quiet")
    record = record_in(here / "out")
    assert record["protocol"]["name"] == name
    assert record["card"]["single_pass"]["value"] == passes


def test_quiet_is_silent(holdfast):
    done = holdfast("run finetune TINY --quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_quiet_json_prints_json_only(holdfast):
    done = holdfast("run finetune TINY --quiet --json")
    assert json.loads(done.out)["methods"].keys() == {"finetune"}
    assert done.err == ""


def test_plain_setting_goes_to_every_method_that_has_it(holdfast, here):
    done = holdfast("compare gem,er,finetune TINY --set memories=6 --set er.memories=9 --out out --quiet")
    assert done.code == 0
    records = [json.loads(p.read_text()) for p in here.glob("out/cells/*/record.json")]
    found = {r["method"]: r["settings"].get("memories", {}).get("value") for r in records}
    assert found == {"gem": 6, "er": 9, "finetune": None}


def test_several_scenarios_give_several_streams(holdfast):
    done = holdfast("compare finetune,joint TINY --scenario class,task --json")
    entries = json.loads(done.out)["methods"]
    assert set(entries) == {"finetune/class", "finetune/task", "joint/class", "joint/task"}
    assert [e["task_label_given"] for e in entries.values()] == [e["scenario"] == "task" for e in entries.values()]
    assert sum("task scenario, task label given" in line for line in done.err.splitlines()) == 2


def test_scenarios_stand_side_by_side_with_the_gap_between_them(holdfast, here):
    done = holdfast("compare finetune,ewc TINY --scenario class,task --seeds 0,1,2 --out out")
    text = " ".join(done.out.split())
    summary = json.loads((here / "out" / "summary.json").read_text())
    page = " ".join((here / "out" / "report.html").read_text().split())
    assert [gap["label"] for gap in summary["gaps"]] == ["finetune", "ewc"]
    for gap in summary["gaps"]:
        assert gap["scenarios"] == ["task", "class"] and gap["seeds"] == [0, 1, 2]
        task, classes = (summary["methods"][label]["acc"]["values"] for label in gap["labels"])
        assert gap["acc"]["values"] == [a - b for a, b in zip(task, classes, strict=True)]
        start = (
            f"{gap['label']}: ACC is {gap['acc']['mean']:.3f} higher in the task scenario (task label given) than in"
        )
        assert start in text and start in page
    assert "finetune/class seed 0: ACC" in done.err and "ewc/task seed 2: ACC" in done.err
    assert "gaps" not in json.loads(holdfast("run ewc TINY --json").out)


def test_run_takes_several_scenarios_too(holdfast):
    done = holdfast("run finetune TINY --scenario class,task,domain")
    assert done.code == 0 and " ".join(done.out.split()).count("one seed has no interval") == 3


def test_the_same_command_finds_its_results_again(holdfast, here):
    first = holdfast("compare finetune,er TINY --seeds 0,1")
    (folder,) = (here / "runs").iterdir()
    assert re.fullmatch(r"finetune\+er-split-digits-[0-9a-f]{8}", folder.name)
    stamps = {p: p.stat().st_mtime_ns for p in folder.glob("cells/*/*")}
    second = holdfast("compare finetune,er TINY --seeds 0,1")
    assert {p: p.stat().st_mtime_ns for p in folder.glob("cells/*/*")} == stamps  # no cell ran again
    assert second.err.count("finished before") == 4
    assert second.out == first.out


def test_only_unfinished_cells_run(holdfast, here):
    holdfast("compare finetune,er TINY --out out")
    for path in next((here / "out").glob("cells/er-*")).iterdir():
        path.unlink()
    done = holdfast("compare finetune,er TINY --out out")
    assert [("finished before" in line) for line in done.err.splitlines()[:2]] == [True, False]


def test_another_experiment_is_refused_and_leaves_the_folder_alone(holdfast, here):
    holdfast("run gem TINY --out out --quiet")
    before = {p: p.read_bytes() for p in (here / "out").rglob("*") if p.is_file()}
    done = holdfast("run gem TINY --out out --lr 0.2")
    assert done.code == 2
    (line,) = done.complaints
    assert "another experiment" in line and "lr was 0.1, is now 0.2" in line
    assert {p: p.read_bytes() for p in (here / "out").rglob("*") if p.is_file()} == before


def test_fresh_starts_over(holdfast, here):
    holdfast("run gem TINY --out out --quiet")
    done = holdfast("run finetune TINY --out out --fresh --json")
    assert json.loads(done.out)["methods"].keys() == {"finetune"}
    assert [p.name.split("-")[0] for p in (here / "out" / "cells").iterdir()] == ["finetune"]


def test_fresh_does_not_touch_what_is_not_ours(holdfast, here):
    (here / "thesis").mkdir()
    (here / "thesis" / "chapter.tex").write_text("years of work")
    done = holdfast("run finetune TINY --out thesis --fresh")
    assert done.code == 2 and "experiment.json" in done.complaints[0]
    holdfast("run finetune TINY --out out --quiet")
    (here / "out" / "notes.txt").write_text("mine")
    done = holdfast("run finetune TINY --out out --fresh --lr 0.2")
    assert done.code == 2 and "notes.txt" in done.complaints[0]
    assert (here / "out" / "summary.json").exists()
    assert (here / "thesis" / "chapter.tex").read_text() == "years of work"


def test_a_failed_run_is_told_and_the_others_are_kept(holdfast, here):
    Path("mine.py").write_text(BUGGY)
    done = holdfast("compare finetune,mine.py:Buggy TINY --out out --json")
    assert done.code == 1
    assert json.loads(done.out)["methods"].keys() == {"finetune"}
    (line,) = [line for line in done.err.splitlines() if line.startswith("holdfast: ")]
    assert "Buggy-s0" in line and "ZeroDivisionError" in line
    assert "Traceback" not in done.err + done.out
    assert "Traceback" in next(here.glob("out/cells/Buggy-*/error.txt")).read_text()


def test_a_run_that_diverges_says_where(holdfast):
    done = holdfast("run finetune TINY --lr 1e30 --json --quiet")
    assert done.code == 1
    summary = json.loads(done.out)
    assert summary["methods"] == {} and "task 0" in summary["failed"][0]["reason"]
    assert "task 0" in done.complaints[0] and "learning rate" in done.complaints[0]


def test_own_method_and_own_nets_run(holdfast, here):
    Path("mine.py").write_text(OWN)
    done = holdfast("compare mine.py:Mine,finetune TINY --net mine.py:linear --set Mine.scale=0.5 --out out --json")
    assert done.code == 0
    assert {label: e["net"] for label, e in json.loads(done.out)["methods"].items()} == {
        "Mine": "linear",
        "finetune": "linear",
    }
    assert holdfast(f"run {here}/mine.py:Mine TINY --net mine.py:Linear --quiet").code == 0


def test_own_protocol_and_own_stream_run(holdfast, here):
    Path("mine.py").write_text(OWN)
    command = "compare mine.py:Mine,finetune --protocol mine.py:Twice --stream mine.py:Pairs --examples 20 --jobs 1"
    done = holdfast(f"{command} --lr 0.05 --set protocol.more=3 --set stream.swapped=yes --seeds 0,1 --out out --json")
    assert done.code == 0
    assert [entry["label"] for entry in json.loads(done.out)["methods"].values()] == ["Mine", "finetune"]
    record = json.loads(next(here.glob("out/cells/finetune-s0-*/record.json")).read_text())
    assert (
        record["protocol"]["name"] == "Twice" and record["protocol"]["more"] == 3 and record["protocol"]["lr"] == 0.05
    )
    assert record["stream"]["name"] == "Pairs" and record["settings"]["stream.swapped"]["value"] is True
    assert record["card"]["single_pass"]["value"] == 2
    again = holdfast(f"{command} --lr 0.05 --set protocol.more=3 --set stream.swapped=yes --seeds 0,1 --out out")
    assert again.err.count("finished before") == 4
    Path("mine.py").write_text(OWN.replace("class Mine(", "# another thought\n\n\nclass Mine("))
    said = holdfast(f"{command} --lr 0.05 --set protocol.more=3 --set stream.swapped=yes --seeds 0,1 --out out")
    assert said.err.count("finished before") == 4
    Path("mine.py").write_text(OWN + "MORE = 1\n")
    changed = holdfast(f"{command} --lr 0.05 --set protocol.more=3 --set stream.swapped=yes --seeds 0,1 --out out")
    assert changed.code == 2 and changed.complaints == [
        "out holds another experiment: the code of Mine in mine.py changed since; "
        "choose another --out, or --fresh to start over"
    ]


def test_after_an_interrupt_the_same_command_goes_on(holdfast, monkeypatch):
    said = []

    def interrupt(line):
        said.append(line)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.commands.progress.tell", interrupt)  # at the first finished cell
        done = holdfast("compare finetune,er TINY --out out")
    assert done.code == 130 and len(said) == 1
    assert done.complaints == ["stopped; finished runs are kept in out, and the same command goes on from there"]
    done = holdfast("compare finetune,er TINY --out out")
    assert done.code == 0 and done.err.count("finished before") == 1


def test_ctrl_c_stops_all_processes_with_one_line(here):
    command = [sys.executable, "-m", "holdfast", "compare", "finetune,ewc", "--epochs", "400", "--seeds", "0,1"]
    command += ["--jobs", "2", "--set", "stream.test_examples=20", "--quiet", "--out", "out"]
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # tests run in the background ignore Ctrl-C
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, preexec_fn=heeding)
    while not (here / "out" / "experiment.json").exists():
        assert process.poll() is None
        time.sleep(0.05)
    time.sleep(0.5)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=600)
    assert process.returncode == 130
    assert out == ""
    assert err == "holdfast: stopped; finished runs are kept in out, and the same command goes on from there\n"


OWN = '''
from dataclasses import dataclass
import holdfast as hf
from torch import nn

@dataclass
class Mine(hf.Learner):
    """Scaled finetuning."""
    scale: float = 1.0

    def observe(self, batch):
        return self.descend(self.scale * self.cross_entropy(batch))

@dataclass(frozen=True)
class Twice(hf.Passing):
    """Two passes."""
    passes = 2
    more: int = 1

@dataclass(frozen=True)
class Pairs(hf.StreamSpec):
    """Two tasks of two classes."""
    swapped: bool = False

    def plan(self, data, seed):
        plans = [hf.Plan("low", (0, 1), (0, 1)), hf.Plan("high", (2, 3), (2, 3))]
        return "class", 4, plans[::-1] if self.swapped else plans

def linear(info):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, info.classes))

class Linear(nn.Sequential):
    def __init__(self, info):
        super().__init__(nn.Flatten(), nn.Linear(64, info.classes))
'''
BUGGY = """
import holdfast as hf

class Buggy(hf.Learner):
    def observe(self, batch):
        return 1 / 0
"""
