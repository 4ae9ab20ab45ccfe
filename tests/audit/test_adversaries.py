"""Learners that cheat, one per hole that the books once had: each is caught or counted."""

from __future__ import annotations

import array
import io
import itertools
import logging
import queue
import random
from typing import ClassVar

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.methods._base import Learner
from holdfast.protocols import Session

HOARD: list[torch.Tensor] = []


class Plain(Learner):
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))


class KeepsValidationRows(Plain):
    """Replays rows that were never in a training batch."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.kept = torch.zeros(0)

    def finish(self, train):
        self.kept = torch.cat([self.kept, train.val_x.flatten(1)]) if len(self.kept) else train.val_x.flatten(1)


def test_validation_rows_that_are_kept_are_old_data():
    stream = hf.stream("split", tasks=3, examples=50, val=0.2)
    line = hf.run(KeepsValidationRows(), stream).card["no_old_data"]
    assert line["met"] is False and line["value"] == sum(len(task.val) for task in stream.tasks)


def test_a_stream_scored_on_validation_rows_does_not_lease_them():
    stream = hf.stream("split", tasks=2, examples=50, val=0.2).held_out()
    assert all(len(task.test) > 0 and len(task.val) == 0 for task in stream.tasks)


class HoardsTests(Plain):
    """Keeps all inputs that it is asked about before it learns."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.seen, self.phase = [], "start"

    def observe(self, batch):
        self.phase = "learning"
        return super().observe(batch)

    def ready(self):
        self.phase = "scoring"

    def predict(self, x, task):
        if self.phase == "start":
            self.seen.append(x.clone())
        return super().predict(x, task)


class HoardsTheNextTask(HoardsTests):
    """Keeps the rows of a task that it is asked about before the task begins."""

    def predict(self, x, task):
        if self.phase == "scoring" and len(x) <= 60:  # fewer than a chunk of tests
            self.seen.append(x.clone())
        return Plain.predict(self, x, task)


@pytest.mark.parametrize("cheat", [HoardsTests, HoardsTheNextTask])
def test_inputs_kept_from_the_first_scoring_or_from_the_look_at_a_new_task_stop_the_run(cheat):
    with pytest.raises(hf.RunFailed, match="predict changed the learner"):
        hf.run(cheat(), hf.stream("split", tasks=3, examples=60))


class Sly(Plain):
    """Changes something in `predict` without a trace in versions or attributes."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.notes = torch.zeros(8)
        self.table = np.zeros(8)
        self.text = bytearray(8)
        self.count = itertools.count()
        self.items = iter(range(10**9))
        self.own = torch.Generator().manual_seed(0)
        self.numpy = np.random.default_rng(0)
        self.legacy = np.random.RandomState(0)
        self.python = random.Random(0)
        self.told = _memory()
        next(self.told)

    def predict(self, x, task):
        self.cheat(x)
        return super().predict(x, task)


def _memory():
    kept = []
    while True:
        kept.append((yield len(kept)))


class WritesThroughData(Sly):
    def cheat(self, x):
        self.notes.data[0] += 1


class WritesWeightsThroughData(Sly):
    def cheat(self, x):
        self.net.theta.data[0] += 1e-3


class WritesToAnArray(Sly):
    def cheat(self, x):
        self.table[0] += 1


class WritesToBytes(Sly):
    def cheat(self, x):
        self.text[0] = (self.text[0] + 1) % 256


class Counts(Sly):
    def cheat(self, x):
        next(self.count)


class Iterates(Sly):
    def cheat(self, x):
        next(self.items)


class TellsAGenerator(Sly):
    def cheat(self, x):
        self.told.send(x.clone())


class DrawsFromItsRng(Sly):
    def cheat(self, x):
        torch.rand(1, generator=self.rng)


class DrawsFromItsOwnGenerator(Sly):
    def cheat(self, x):
        torch.rand(1, generator=self.own)


class DrawsFromTorch(Sly):
    def cheat(self, x):
        torch.rand(1)


class DrawsFromNumPy(Sly):
    def cheat(self, x):
        np.random.rand()


class DrawsFromItsNumPy(Sly):
    def cheat(self, x):
        self.numpy.random()


class DrawsFromItsOldNumPy(Sly):
    def cheat(self, x):
        self.legacy.rand()


class DrawsFromPython(Sly):
    def cheat(self, x):
        random.random()


class DrawsFromItsPython(Sly):
    def cheat(self, x):
        self.python.random()


class KeepsInTheModule(Sly):
    def cheat(self, x):
        HOARD.append(x[:1].clone())


CHEATS = list(Sly.__subclasses__())


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cls: cls.__name__)
def test_predicting_changes_nothing_and_draws_nothing(cheat):
    HOARD.clear()
    with pytest.raises(hf.RunFailed, match="predict changed the learner"):
        hf.run(cheat(), hf.stream("split", tasks=2, examples=30))


def test_a_learner_that_has_all_of_that_and_leaves_it_alone_may_run():
    class Honest(Sly):
        def cheat(self, x):
            pass

    HOARD.clear()
    assert hf.run(Honest(), hf.stream("split", tasks=2, examples=30)).acc is not None


class KeepsRowsInTheModule(Plain):
    def finish(self, train):
        HOARD.append(train.x)


def test_rows_kept_in_a_list_of_the_module_are_found():
    HOARD.clear()
    record = hf.run(KeepsRowsInTheModule(), hf.stream("split", tasks=2, examples=30))
    assert record.card["no_old_data"]["value"] == 60
    HOARD.clear()


class Votes(type(hf.method("er"))):  # type: ignore[misc]
    """All rows of a call are taken to be of the task that most of them seem to be of."""

    def predict(self, x, task):
        logits = super().predict(x, task)
        mine = torch.stack([logits[:, list(c)].logsumexp(-1) for c in self.info.task_classes], 1)  # (B, T)
        winner = int(mine.argmax(1).bincount(minlength=self.info.tasks).argmax())
        mask = torch.zeros(self.info.classes, dtype=torch.bool)
        mask[list(self.info.task_classes[winner])] = True
        return logits.masked_fill(~mask, -1e9)


@pytest.mark.parametrize("scenario", ["class", "domain"])
def test_where_the_task_is_hidden_no_call_of_predict_has_rows_of_one_task_only(scenario, monkeypatch):
    """Marked pixels tell each row's task; every call must hold about as many of each."""
    seen, asked = [], Session._predict

    def spy(self, x, task):
        seen.append(x.flatten(1)[:, 0].clone())
        return asked(self, x, task)

    monkeypatch.setattr(Session, "_predict", spy)
    x, y = np.zeros((4000, 4), np.float32), np.arange(4000) % 8
    x[:, 0] = y // 2  # the task
    stream = hf.stream("split", data=(x, y, x, y), tasks=4, examples=100, scenario=scenario)
    hf.run(Plain(), stream, protocol=hf.protocol("online", batch=50, score_first=2))
    for call in seen:
        if len(call) > 500:  # a look at tests
            shares = torch.stack([(call == t).float().mean() for t in range(4)])
            assert shares.max() < 0.6
            longest = max(len(list(group)) for _, group in itertools.groupby(call.tolist()))
            assert longest < 30  # and they do not stand side by side


def test_voting_over_a_call_gains_nothing():
    stream = hf.stream("split", tasks=5)
    plain, votes = (hf.run(learner, stream, protocol="epochs", seed=0).acc for learner in (hf.method("er"), Votes()))
    assert plain > 0.6 and votes < plain


class HidesPasses(Plain):
    """Withholds half of the rows, and sees the other half as often as nobody would notice."""

    def begin(self, train, plan):
        train.withhold(torch.arange(len(train) // 2))


class ReadsAgain(Plain):
    """Under a single-pass protocol: half of the rows are withheld in the end, the rest is read once more."""

    def finish(self, train):
        train.withhold(torch.arange(len(train) // 2))
        train.take(torch.arange(len(train) // 2, len(train)))


def test_withheld_rows_hide_no_pass():
    stream = hf.stream("split", tasks=2, examples=60)
    line = hf.run(HidesPasses(), stream, protocol=hf.protocol("epochs", epochs=2)).card["single_pass"]
    assert line["value"] == 2.0 and line["met"] is False
    line = hf.run(ReadsAgain(), stream).card["single_pass"]
    assert line["value"] == 1.5 and line["met"] is False
    assert hf.run(Plain(), stream).card["single_pass"]["value"] == 1.0


def test_validation_rows_read_once_are_no_second_pass_and_read_twice_are():
    class Reads(Plain):
        times = 1

        def finish(self, train):
            for _ in range(self.times):
                train.val_x  # noqa: B018

    class ReadsTwice(Reads):
        times = 2

    stream = hf.stream("split", tasks=2, examples=60, val=0.2)
    assert hf.run(Reads(), stream).card["single_pass"]["met"] is True
    assert hf.run(ReadsTwice(), stream).card["single_pass"]["met"] is False


def test_a_class_cannot_name_its_way_out_of_the_output_folder(tmp_path):
    evil = type("../../evil", (Plain,), {})
    out = tmp_path / "a" / "b" / "out"
    found = hf.compare([evil()], hf.stream("split", tasks=2, examples=30), seeds=1, out=out)
    assert not found.failures
    assert [path.name for path in tmp_path.iterdir()] == ["a"] and len(list((out / "cells").iterdir())) == 1
    assert not list(tmp_path.glob("**/evil*"))


class Store:
    """Something of a user's that holds things."""

    def __init__(self):
        self.kept = []

    shared: ClassVar[list] = []


class Tagged(list):
    pass


SHELF, BOX = [], Store()


def put_away(rows):
    SHELF.append(rows)


def keeps_in_a_default(self, rows, kept=[]):  # noqa: B006
    kept.append(rows)


def keeps_in_a_closure():
    kept = []

    def put(self, rows):
        kept.append(rows)

    return put


def keeps_in_numbers(self, rows):
    vars(self).setdefault("numbers", []).append(np.float32(rows.sum()))


def keeps_in_a_tensors_attribute(self, rows):
    self.notes.hoard = [*vars(self.notes).get("hoard", []), rows]


def keeps_in_a_gradient(self, rows):
    leaf = torch.zeros_like(rows, requires_grad=True)
    leaf.grad = rows.clone()
    vars(self).setdefault("leaves", []).append(leaf)


def keeps_in_a_view(self, rows):
    vars(self).setdefault("views", []).append(rows.clone().flatten(1)[:0])


def keeps_in_a_storage(self, rows):
    vars(self).setdefault("storages", []).append(rows.clone().untyped_storage())


def keeps_beside_label_and_task(self, rows):
    beside = torch.cat([rows.flatten(1), torch.ones(len(rows), 2)], 1)
    vars(self).setdefault("tables", []).append(beside)


def keeps_in_an_array(self, rows):
    vars(self).setdefault("arrays", []).append(array.array("f", rows.flatten().tolist()))


def keeps_in_a_file_in_memory(self, rows):
    vars(self).setdefault("files", []).append(io.BytesIO(rows.numpy().tobytes()))


def keeps_in_a_queue(self, rows):
    vars(self).setdefault("queue", queue.SimpleQueue()).put(rows)


def keeps_in_a_bound_builtin(self, rows):
    vars(self).setdefault("put", [].append)(rows)


def keeps_in_a_tagged_list(self, rows):
    vars(self).setdefault("tagged", Tagged())
    self.tagged.hoard = [*vars(self.tagged).get("hoard", []), rows]


def keeps_in_halves(self, rows):
    vars(self).setdefault("halves", []).append(rows.bfloat16())


PUTS = {
    "default argument": keeps_in_a_default,
    "closure of a method": keeps_in_a_closure(),
    "global function": lambda self, rows: put_away(rows),
    "global object": lambda self, rows: BOX.kept.append(rows),
    "list of a class": lambda self, rows: Store.shared.append(rows),
    "attribute of a tensor": keeps_in_a_tensors_attribute,
    "attribute of a list": keeps_in_a_tagged_list,
    "gradient": keeps_in_a_gradient,
    "view": keeps_in_a_view,
    "storage": keeps_in_a_storage,
    "array": keeps_in_an_array,
    "file in memory": keeps_in_a_file_in_memory,
    "queue": keeps_in_a_queue,
    "bound builtin": keeps_in_a_bound_builtin,
    "label and task beside": keeps_beside_label_and_task,
    "bfloat16": keeps_in_halves,
}


@pytest.fixture
def tidy():
    yield
    for kept in (SHELF, BOX.kept, Store.shared, HOARD, keeps_in_a_default.__defaults__[0]):
        kept.clear()


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize("place", PUTS)
def test_rows_are_found_wherever_they_are_kept(place):
    class Keeps(Plain):
        put = PUTS[place]

        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.notes = torch.zeros(1)

        def finish(self, train):
            self.put(train.x)

    record = hf.run(Keeps(), hf.stream("split", tasks=2, examples=30))
    assert record.card["no_old_data"]["value"] == 60
    assert record.resources["bytes"][1] - record.resources["bytes"][0] >= 30 * 64 * (1 if place == "bfloat16" else 4)


@pytest.mark.usefixtures("tidy")
@pytest.mark.parametrize("place", [*PUTS, "numbers"])
def test_what_predict_puts_there_is_noticed(place):
    class Keeps(Plain):
        put = keeps_in_numbers if place == "numbers" else PUTS[place]

        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.notes = torch.zeros(1)

        def predict(self, x, task):
            self.put(x.clone())
            return super().predict(x, task)

    with pytest.raises(hf.RunFailed, match="predict changed the learner"):
        hf.run(Keeps(), hf.stream("split", tasks=2, examples=30))


def test_a_million_numbers_and_a_logger_are_no_trouble():
    class Honest(Plain):
        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.log = logging.getLogger("honest")
            self.numbers = [0.5] * 10**6
            self.odd = [torch.empty(2, device="meta"), memoryview(bytes(8))[::2], torch.zeros(2).to(torch.float8_e5m2)]

        def predict(self, x, task):
            self.log.debug("asked")
            return super().predict(x, task)

    record = hf.run(Honest(), hf.stream("split", tasks=2, examples=30))
    assert record.resources["bytes"][0] > 8 * 10**6
