"""`holdfast watch`: how far a run is, from a second terminal."""

import io
import json
import subprocess
import sys
import time

import pytest
from rich.console import Console

from holdfast.commands.progress import drawn, sentence, shown_rows
from holdfast.sweeps.board import Row, Snapshot

OWN = """
import os, time
import holdfast as hf

class Waits(hf.Learner):
    def observe(self, batch):
        while batch.task == 1 and not os.path.exists("go"):
            time.sleep(0.05)
        return self.descend(self.cross_entropy(batch))

class Breaks(hf.Learner):
    def observe(self, batch):
        raise ValueError("broken")
"""
TOML = """
stream = {tasks = 2, examples = 20}
method = ["finetune", "own.py:Breaks", "own.py:Waits"]
"""


def rows(**numbers):
    return [Row(f"{state}{i}", f"{state} {i}", state) for state, n in numbers.items() for i in range(n)]


def text(now, lines=None):
    console = Console(file=io.StringIO(), width=100)
    console.print(drawn(now, lines))
    return console.file.getvalue()


def test_few_cells_are_all_shown():
    found = rows(waiting=2, done=1)
    found.append(Row("x", "gem seed 0", "running", 1, 5, 30, 60, 75.0))
    now = Snapshot(tuple(found), "running", 10.0, 250.0)
    lines = text(now).splitlines()
    assert [line.split()[:2] for line in lines[1:3]] == [["waiting", "0"], ["waiting", "1"]]
    assert lines[4].split() == ["gem", "seed", "0", "running", "2/5", "30/60", "75", "s"]
    assert lines[5].rstrip() == "4 cells: 2 waiting, 1 running, 1 done; about 4.17 min left"


def test_work_beside_the_steps_stands_in_their_place():
    now = Snapshot((Row("x", "vcl seed 0", "running", 1, 5, 30, 60, 75.0, doing="coreset 50/200"),), "running", 10.0)
    assert text(now).splitlines()[1].split() == ["vcl", "seed", "0", "running", "2/5", "coreset", "50/200", "75", "s"]


def test_of_many_cells_those_that_run_or_failed_are_shown():
    found = rows(waiting=50, running=3, done=40, failed=30)
    assert [row.title for row in shown_rows(found, lines=11)] == [
        *(f"failed {i}" for i in range(25, 30)), "running 0", "running 1", "running 2"
    ]  # fmt: skip
    assert len(shown_rows(found)) == 24
    assert {row.state for row in shown_rows(rows(running=30), lines=2)} == {"running"}
    assert sentence(Snapshot(tuple(found), "none")) == "123 cells: 50 waiting, 3 running, 40 done, 30 failed"


def test_watching_a_sweep_from_its_beginning_to_its_end(holdfast, here):
    (here / "own.py").write_text(OWN)
    (here / "some.toml").write_text(TOML)
    command = [sys.executable, "-m", "holdfast", "sweep", "some.toml", "--out", "out", "--jobs", "1", "--quiet"]
    sweep = subprocess.Popen(command, stderr=subprocess.PIPE)
    board = here / "out" / "progress.json"
    while not (board.exists() and json.loads(board.read_text())["cells"][2]["state"] == "running"):
        assert sweep.poll() is None
        time.sleep(0.05)
    during = holdfast("watch out --once")
    assert during.code == 0
    lines = [line.split() for line in during.out.splitlines()]
    assert lines[1][:5] == ["finetune", "seed", "0", "done", "ACC"]
    assert lines[2][:6] == ["Breaks", "seed", "0", "failed", "ValueError:", "broken"]
    assert lines[3][:6] == ["Waits", "seed", "0", "running", "1/2", "2/2"]
    assert during.out.splitlines()[4].startswith("3 cells: 1 running, 1 done, 1 failed")
    watch = subprocess.Popen([sys.executable, "-m", "holdfast", "watch", "out"], stdout=subprocess.PIPE, text=True)
    assert watch.stdout.readline().startswith("3 cells: 1 running, 1 done, 1 failed")
    (here / "go").touch()
    assert sweep.wait() == 1 and b"Breaks" in sweep.stderr.read()
    said, _ = watch.communicate()
    assert said.splitlines()[-2:] == [
        "3 cells: 2 done, 1 failed", "nobody is working on it; the same command goes on with the rest"
    ]  # fmt: skip
    assert "error.txt" in holdfast("watch out --once").out


def test_watching_one_that_was_killed(holdfast, here):
    (here / "own.py").write_text(OWN)
    (here / "some.toml").write_text('method = ["own.py:Waits"]\nstream = {tasks = 2, examples = 20}')
    command = [sys.executable, "-m", "holdfast", "sweep", "some.toml", "--out", "out", "--jobs", "1", "--quiet"]
    sweep = subprocess.Popen(command)
    while not (here / "out" / "progress.json").exists():
        assert sweep.poll() is None
        time.sleep(0.05)
    sweep.kill()
    sweep.wait()
    done = holdfast("watch out")
    assert done.code == 0 and "its runner is gone" in done.out
    (here / "go").touch()
    assert holdfast("sweep some.toml --out out --jobs 1 --quiet").code == 0
    assert holdfast("watch out").out.splitlines() == ["1 cell: 1 done", "finished"]


@pytest.mark.parametrize("command", ["watch nowhere", "watch nowhere --once"])
def test_bad_input(holdfast, command):
    done = holdfast(command)
    assert done.code == 2 and "experiment.json" in done.complaints[0]
