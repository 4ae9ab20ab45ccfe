"""A command looks for faults and for finished cells once, has one board, and takes one lock."""

from collections import Counter

import pytest

from holdfast.cli import main
from holdfast.sweeps import lock
from holdfast.sweeps.board import Board
from holdfast.sweeps.cell import Cell
from holdfast.sweeps.executor import Run

TINY = "--tasks 2 --examples 20 --set stream.test_examples=20 --seeds 0,1 --jobs 1"
SWEEP = """
method = ["finetune", "er"]
stream = {name = "split", tasks = 2, examples = 20, test_examples = 20}
seeds = 2
"""


@pytest.fixture
def counted(monkeypatch, tmp_path):
    """How often these were done."""
    monkeypatch.chdir(tmp_path)
    found = Counter()

    def count(owner, name, word):
        done = getattr(owner, name)

        def counting(*given, **named):
            found[word] += 1
            return done(*given, **named)

        monkeypatch.setattr(owner, name, counting)

    count(Cell, "check", "checks")
    count(Run, "finished", "looks")
    count(Board, "__init__", "boards")
    count(lock, "_taken", "locks")
    return found


@pytest.mark.parametrize("command", [f"compare finetune,er {TINY}", "sweep file.toml --jobs 1"])
def test_once_per_command(command, counted, tmp_path):
    """Two methods with two seeds: a method's seeds have the same faults."""
    (tmp_path / "file.toml").write_text(SWEEP)
    for _ in ("new", "finished before"):
        counted.clear()
        assert main([*command.split(), "--out", "out", "--quiet"]) == 0
        assert counted == {"checks": 2, "looks": 4, "boards": 1, "locks": 1}


def test_a_recipe_that_chooses_settings_has_one_lock_over_its_trials_and_runs(counted):
    assert main("reproduce gem/table3 --scale smoke --jobs 1 --quiet --out out".split()) == 0
    assert counted["locks"] == 1 and counted["boards"] == 2  # of the trials, and of the runs that they decide
    assert counted["checks"] <= counted["looks"]
