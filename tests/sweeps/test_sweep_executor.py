"""Running cells: in processes, keeping what is finished, surviving those that fail."""

import os
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.sweeps import Cell, Failure, execute
from holdfast.types import Record


@dataclass
class Fails(hf.Learner):
    """Goes wrong at one step of one task."""

    how: str = "raise"
    task: int = 1
    step: int = 3

    def begin(self, train, plan):
        self.steps = 0

    def observe(self, batch):
        self.steps += 1
        loss = self.descend(self.cross_entropy(batch))
        if batch.task == self.task and self.steps == self.step:
            if self.how == "raise":
                raise ZeroDivisionError("one by zero")
            if self.how == "die":
                os._exit(7)
            return loss * (torch.nan if self.how == "nan" else torch.inf)
        return loss


def same(a, b):
    arrays = [(a.R, b.R), (a.baseline, b.baseline), *zip(a.predictions, b.predictions, strict=True)]
    return all(map(np.array_equal, *zip(*arrays, strict=True))) and a.curves == b.curves


def costs(record):
    return {k: record.resources[k] for k in ("bytes", "flops", "updates")}


def test_processes_give_the_same_bits_in_the_same_order(cell):
    cells = [cell(name, seed) for seed in (0, 1) for name in ("er", "ewc")]
    cells.append(cell("finetune", net=hf.net("mlp", hidden=(8,), dropout=0.5)))
    here, there = execute(cells, jobs=1), execute(cells, jobs=2)
    assert all(isinstance(r, Record) for r in [*here, *there])
    assert [(r.method, r.seed) for r in there] == [(c.name.split("-")[0], c.seed) for c in cells]
    assert all(map(same, here, there))
    assert [costs(r) for r in here] == [costs(r) for r in there]
    assert not same(here[0], here[2])


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_method_that_raises_takes_no_other_down(jobs, cell, tmp_path):
    cells = [cell("finetune"), cell(Fails()), cell("er")]
    first, failed, last = execute(cells, tmp_path, jobs)
    assert isinstance(first, Record) and isinstance(last, Record)
    home = tmp_path / "cells" / cells[1].name
    assert failed.cell == cells[1].name
    where = rf"\({Path(__file__).name}, line \d+\) \(the traceback is in {re.escape(str(home / 'error.txt'))}\)"
    assert re.fullmatch(f"ZeroDivisionError: one by zero {where}", failed.reason)
    assert "in observe" in (home / "error.txt").read_text()
    assert not (home / "record.json").exists()


def test_a_process_that_dies_takes_no_other_down(cell):
    cells = [cell(Fails("die")), *(cell("finetune", seed) for seed in range(4))]
    died, *others = execute(cells, jobs=2)
    assert isinstance(died, Failure) and "its process died twice" in died.reason
    assert all(isinstance(r, Record) for r in others)


@pytest.mark.parametrize(("how", "word"), [("nan", "nan"), ("inf", "inf")])
def test_a_loss_that_is_not_finite_names_task_and_step(how, word, cell):
    (failed,) = execute([cell(Fails(how, task=1, step=4))])
    assert isinstance(failed, Failure)
    assert failed.reason.startswith(f"the loss became {word} in task 1 at step 4; try a smaller learning rate")


def test_finished_cells_are_not_run_again(cell, tmp_path, monkeypatch):
    cells = [cell("finetune"), cell(Fails())]
    record, failure = execute(cells, tmp_path, jobs=1)
    assert isinstance(failure, Failure)
    ran, run = [], Cell.run

    def counted(self, *told):
        ran.append(self.name)
        return run(self, *told)

    monkeypatch.setattr(Cell, "run", counted)
    again, failed_again = execute(cells, tmp_path, jobs=1)
    assert ran == [cells[1].name]  # what failed is tried again
    assert same(record, again)
    assert failed_again == failure
    execute([cell("finetune", seed=1)], tmp_path, jobs=1)
    assert len(ran) == 2


@pytest.mark.parametrize("jobs", [1, 2])
def test_watchers_hear_of_progress_and_of_every_outcome(jobs, cell):
    events = []
    cells = [cell("finetune"), cell("er")]
    execute(cells, jobs=jobs, watch=events.append)
    assert sorted(e.cell for e in events if e.outcome is not None) == [0, 1]
    for i in (0, 1):
        heard = [e.progress for e in events if e.cell == i and e.progress is not None]
        assert [(p.task, p.step) for p in heard if not p.scored] == [(0, 6), (1, 6)]  # 60 rows in batches of 10
        assert [(p.task, p.updates) for p in heard if p.scored] == [(0, 6), (1, 12)]


def test_compare_keeps_everything_in_its_folder(stream, tmp_path):
    out = tmp_path / "out"
    first = hf.compare(["finetune", Fails()], stream, seeds=2, out=out, jobs=1)
    assert (len(first.records), len(first.failures)) == (2, 2)
    assert sorted(p.name for p in out.iterdir()) == ["cells", "experiment.json", "report.html", "summary.json"]
    assert len(hf.Comparison.read(out).records) == len(hf.load(out)) == 2
    with pytest.raises(hf.BadInput, match=r"runs\[0\]\.protocol\.lr was 0\.1, is now 0\.2"):
        hf.compare(["finetune", Fails()], stream, seeds=2, out=out, protocol=hf.protocol("online", lr=0.2))
    with pytest.raises(hf.BadInput, match=r"seeds was \[0, 1\], is now \[0, 1, 2\]"):
        hf.compare(["finetune", Fails()], stream, seeds=3, out=out)
