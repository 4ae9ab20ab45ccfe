"""Experience replay as paper 000 has it: rows of earlier tasks alone, and a memory that is full when a task is over."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from holdfast.methods.er import ER

DATA = {"tasks": 3, "examples": 60, "val": 0.3, "scenario": "task"}


def watched(stream, protocol, **settings):
    joined, kept = [], []

    class Watched(ER):
        def fit(self, batch):
            joined.append(batch.task if isinstance(batch.task, torch.Tensor) else torch.full_like(batch.y, batch.task))
            return super().fit(batch)

        def finish(self, train):
            super().finish(train)
            kept.append((self.memory.y.clone(), self.memory.task.clone(), self.memory.x.clone()))

    hf.run(Watched(**settings), stream, net=hf.net("mlp", hidden=(8,)), protocol=protocol)
    return joined, kept


@pytest.mark.parametrize("rule", ["task class ring", "reservoir"])
def test_only_rows_of_past_tasks_are_replayed_and_each_finished_task_has_all_of_its_share(rule):
    """Also where the weights that are taken are those of the first look."""
    stream = hf.stream("split", **DATA)
    way = hf.protocol("crossval", lr=(1e-9,), decay=(0.0,), epochs=1, batch=20)
    joined, kept = watched(stream, way, memories=30, rule=rule, past_only=True)
    for t in range(3):
        mine = [tasks for tasks in joined if t in tasks and tasks.max() == t]
        assert mine and all((tasks == t).sum() == 20 and len(tasks) == (20 if t == 0 else 40) for tasks in mine)
    for t, (y, task, _) in enumerate(kept):
        assert task.unique().tolist() == [*range(t + 1)]
        if rule == "reservoir":
            assert len(y) == 30
        else:
            seen = [c for past in stream.tasks[: t + 1] for c in past.classes]
            assert y.bincount(minlength=10).tolist() == [3 if c in seen else 0 for c in range(10)]


def test_rows_that_come_to_the_memory_are_clean():
    stream = hf.stream("split", **DATA, augment=True, views=2)
    way = hf.protocol("epochs", epochs=1, batch=20)
    _, kept = watched(stream, way, memories=60, rule="task class ring", past_only=True)
    clean = stream.tasks[0].train.x()[:60]
    y, _, x = kept[0]
    assert len(y) == 6 * len(stream.tasks[0].classes) and all((clean == row).flatten(1).all(1).any() for row in x)


def test_by_default_batches_are_offered_as_they_pass():
    joined, kept = watched(hf.stream("split", **DATA), hf.protocol("online", batch=20), memories=30)
    assert [len(tasks) for tasks in joined[:2]] == [20, 40]  # from the second batch on, rows of the same task, too
    assert len(kept[0][0]) == 30
