"""Tasks from several data sets: one size, rows per class, labels, one fingerprint; honest about what they share."""

import dataclasses
import re

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.checks import check_stream
from holdfast.data import as_dataset, load
from holdfast.errors import BadInput
from holdfast.streams import as_datasets
from holdfast.types import CENTRED

EMBEDDED = "digits,synth-shapes"


def rows(part):
    return set(part.rows.tolist())


def counts(part):
    return part.y.unique(return_counts=True)[1].tolist()


def test_every_task_is_a_data_set_of_its_own_at_one_size():
    stream = hf.stream("assorted", data="digits, synth,synth-shapes", size=16)
    assert [task.name for task in stream.tasks] == ["digits", "synth", "synth-shapes"]
    assert stream.info.shape == (3, 16, 16) and stream.scenario == "task"
    assert stream.settings["data"] == "digits,synth,synth-shapes" and stream.settings["tasks"] == 3
    for task, name in zip(stream.tasks, ("digits", "synth", "synth-shapes"), strict=True):
        data = load(name)
        assert task.train.pixels is data.x and task.test.pixels is data.x_test
        assert len(task.train) == len(data.x) and len(task.test) == len(data.x_test)
        assert task.train.raw(slice(3)).shape == (3, 3, 16, 16) and task.train.dtype == torch.uint8
    grey = hf.stream("assorted", data=EMBEDDED, size=8, channels=1)
    assert grey.info.shape == (1, 8, 8) and grey.tasks[0].train.transform is None  # as it is stored
    assert torch.equal(grey.tasks[0].test.raw(), load("digits").x_test[grey.tasks[0].test.rows])


@pytest.mark.parametrize("scenario", ["class", "domain", "task"])
@pytest.mark.parametrize("settings", [{"val": 0.2}, {"per_class": (20, 10, 5)}, {"per_class": (20, 0)}])
def test_it_passes_the_contracts(scenario, settings):
    labels, head = "natural" if scenario == "class" else "random", "task" if scenario == "task" else "shared"
    words = {"tasks": 5, "head": head, "size": 8, "scenario": scenario, "labels": labels, "augment": True, **settings}
    check_stream(hf.stream("assorted", data=EMBEDDED, **words))


def test_which_outputs_tasks_have():
    words = {"data": EMBEDDED, "tasks": 4, "size": 8}
    for scenario in ("task", "class"):
        assert [t.classes[0] for t in hf.stream("assorted", scenario=scenario, **words).tasks] == [0, 10, 0, 10]
    own = hf.stream("assorted", head="task", **words)
    assert [t.classes[0] for t in own.tasks] == [0, 10, 20, 30] and own.info.classes == 40
    same = hf.stream("assorted", scenario="domain", **words)
    assert {t.classes for t in same.tasks} == {tuple(range(10))} and same.info.classes == 10
    assert [t.name for t in same.tasks] == ["digits", "synth-shapes", "digits 2", "synth-shapes 2"]


def test_labels_are_permuted_as_a_whole_and_for_each_task_anew():
    words = {"data": "digits", "tasks": 3, "size": 8, "channels": 1, "scenario": "domain"}
    natural, random = (hf.stream("assorted", labels=labels, **words) for labels in ("natural", "random"))
    orders = []
    for a, b in zip(natural.tasks, random.tasks, strict=True):
        assert torch.equal(a.train.rows, b.train.rows)
        for name in ("train", "test"):
            pairs = set(zip(getattr(a, name).y.tolist(), getattr(b, name).y.tolist(), strict=True))
            assert len(pairs) == 10
            orders.append(tuple(sorted(pairs)))
    assert orders[0] == orders[1] and len(set(orders)) == 3
    other = hf.stream("assorted", labels="random", seed=1, **words)
    assert not torch.equal(other.tasks[0].test.y, random.tasks[0].test.y)


@pytest.mark.parametrize("per_class", [(30, 12, 7), (30, 0, 7), (30, 12)])
def test_rows_per_class(per_class):
    train, val, *test = per_class
    stream = hf.stream("assorted", data=EMBEDDED, tasks=5, size=8, per_class=per_class)
    for task in stream.tasks:
        assert counts(task.train) == [train] * 10 and counts(task.val) == [val] * (10 if val else 0)
        assert counts(task.test) == [*test] * 10 or not test
        assert len(set(task.train.y[:60].tolist())) > 5  # classes are mixed, whoever looks at the first rows
    first, again = stream.tasks[0], stream.tasks[2]
    assert rows(first.train) != rows(again.train) and (not test or rows(first.test) != rows(again.test))
    for a in stream.tasks:
        for b in stream.tasks:
            if a.train.pixels is b.train.pixels:
                assert not rows(a.val) & rows(b.train)


def test_more_rows_of_a_class_than_there_are():
    few = as_dataset((np.zeros((33, 4, 4), np.uint8), [0] * 20 + [1] * 13), seed=0)
    for per_class, complaint in [
        ((11, 0), "training rows of task 1 .arrays.: 11 per class asked for, at most 10 there are of class '1'"),
        ((5, 11), "training rows of task 1 .arrays.: 5 per class asked for, at most 0 there are of class '1'"),
        ((5, 2, 4), "test rows of task 1 .arrays.: 4 per class asked for, at most 3 there are of class '1'"),
    ]:
        with pytest.raises(BadInput, match=complaint):
            hf.stream("assorted", data=["digits", few], size=4, per_class=per_class)


def test_the_seed_decides_and_nothing_else():
    words = {"data": EMBEDDED, "size": 8, "per_class": (20, 5, 5), "labels": "random", "augment": True, "scale": "task"}
    one, again, other = (hf.stream("assorted", seed=seed, **words) for seed in (0, 0, 1))
    for a, b, c in zip(one.tasks, again.tasks, other.tasks, strict=True):
        for name in ("train", "val", "test"):
            mine, same, not_mine = (getattr(task, name) for task in (a, b, c))
            assert torch.equal(mine.x(), same.x()) and torch.equal(mine.y, same.y)
            assert not torch.equal(mine.x(), not_mine.x())
    assert one.fingerprint == other.fingerprint


def test_one_fingerprint_covers_all_data_sets():
    prints = [
        hf.stream("assorted", data=d, size=8).fingerprint for d in ("digits", EMBEDDED, "synth-shapes,digits", "synth")
    ]
    assert len(set(prints)) == 4 and prints[0] == load("digits").fingerprint
    x, y = np.random.default_rng(0).integers(0, 256, (40, 4, 4)).astype(np.uint8), [0, 1] * 20
    changed = x.copy()
    changed[0, 0, 0] ^= 1
    made = [hf.stream("assorted", data=["digits", as_dataset((z, y), 0)], size=8).fingerprint for z in (x, x, changed)]
    assert made[0] == made[1] != made[2]


def test_validation_rows_are_those_of_streams_of_one_data_set():
    alone = hf.stream("split", data="digits", val=0.2, seed=3, scenario="class")
    held = set().union(*(rows(task.val) for task in alone.tasks))
    among = hf.stream("assorted", data=EMBEDDED, tasks=4, size=8, val=0.2, seed=3)
    assert rows(among.tasks[0].val) == rows(among.tasks[2].val) == held


@pytest.mark.parametrize(
    ("settings", "complaints"),
    [
        ({"data": "digits,snyth"}, ["unknown data set 'snyth'; did you mean 'synth'?"]),
        ({"data": "digist,snyth"}, ["unknown data set 'digist'", "unknown data set 'snyth'"]),
        ({"tasks": 1}, ["2 data sets make at least 2 tasks, not 1; leave tasks out"]),
        ({"per_class": (3,)}, ["per_class must be rows for train, val and, where not all are wanted, test, not 3"]),
        ({"per_class": (0, 1)}, ["per_class must leave rows to train and to test on, not 0,1"]),
        ({"per_class": (5, 1, 0)}, ["per_class must leave rows to train and to test on, not 5,1,0"]),
        ({"per_class": (5, 1), "val": 0.1, "examples": 9}, ["leave examples out", "leave val out"]),
        ({"scale": "task", "scenario": "class"}, ["scale=task needs the task label"]),
        ({"labels": "random", "tasks": 3}, ["labels=random would give .* two classes; use head=task"]),
        (
            {"data": [load("digits"), (np.zeros((20, 5)), [0, 1] * 10)]},
            ["needs images of bytes .* has floats of shape"],
        ),
        (
            {"data": "digits,synth", "stream": "split"},
            ["stream 'split' is cut from one data set, not from digits, synth"],
        ),
    ],
)
def test_what_cannot_be_is_told_in_one_line_each(settings, complaints):
    words = {"data": EMBEDDED, **settings}
    with pytest.raises(BadInput) as refused:
        hf.stream(words.pop("stream", "assorted"), **words)
    assert len(refused.value.faults) == len(complaints)
    for fault, complaint in zip(refused.value.faults, complaints, strict=True):
        assert "\n" not in fault
        assert re.search(complaint, fault)


def test_data_sets_that_are_not_there_are_named(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    with pytest.raises(BadInput) as refused:
        hf.stream("assorted", data="digits,svhn,dtd")
    assert [fault.split("'")[1] for fault in refused.value.faults] == ["svhn", "svhn", "dtd"]


def test_unequal_classes_cannot_share_outputs():
    data = ["digits", as_dataset((np.zeros((40, 4, 4), np.uint8), [0, 1] * 20), 0)]
    with pytest.raises(BadInput, match="the domain scenario needs tasks of equal size, not 10, 2 classes"):
        hf.stream("assorted", data=data, scenario="domain")
    assert hf.stream("assorted", data=data, size=4).info.classes == 12


def test_what_is_given_as_several_data_sets():
    x, y = np.zeros((20, 4, 4), np.uint8), [0, 1] * 10
    assert [d.name for d in as_datasets(["synth", (x, y), load("digits")], 0)] == ["synth", "arrays", "digits"]
    assert [d.name for d in as_datasets((x, y), 0)] == ["arrays"]
    assert [d.name for d in as_datasets([x, y, x, y], 0)] == ["arrays"]
    assert [d.name for d in as_datasets("digits", 0)] == ["digits"]


class Uneven(hf.StreamSpec):
    """A user's stream whose tasks have images of different sizes."""

    def plan(self, data, seed):
        classes = tuple(range(len(data.classes)))
        return "domain", 10, [hf.Plan(str(k), classes, classes, lambda p, k=k: p[:, :, k:]) for k in range(2)]


def test_tasks_must_have_one_shape():
    with pytest.raises(BadInput, match=r"task 1 of stream 'Uneven' has examples of \(1, 7, 8\) uint8, but task 0 has"):
        hf.stream(Uneven)


@dataclasses.dataclass(frozen=True)
class Mine(hf.StreamSpec):
    """A user's stream: the data set that is given, then one of its own choice, each shown in its own way."""

    same: bool = False

    def plan(self, data, seed):
        classes, other = tuple(range(10)), load("synth-shapes")
        small = lambda pixels: pixels[:, :1, ::4, ::4]  # noqa: E731
        return "task", 10, [
            hf.Plan("first", classes, classes, rows=hf.Rows(8, 2, 5)),
            hf.Plan("second", classes, classes, small, other, hf.Rows(6), augment=not self.same, scale="task"),
        ]  # fmt: skip


def test_a_plan_names_its_own_data_set_and_how_it_is_shown():
    stream = hf.stream(Mine, scale="centred")
    check_stream(stream)
    first, second = stream.tasks
    assert stream.settings["data"] == "digits,synth-shapes"
    assert stream.fingerprint == hf.stream("assorted", data="digits,synth-shapes").fingerprint
    assert [len(part) for part in (first.train, first.val, first.test)] == [80, 20, 50]
    assert [len(part) for part in (second.train, second.val)] == [60, 0] and second.test.pixels is not first.test.pixels
    assert first.train.augment is None and second.train.augment is not None
    assert first.train.scale is CENTRED and abs(second.train.x().mean()) < 1e-4
    assert hf.run("er", stream).R.shape == (2, 2)


def test_tasks_that_are_augmented_in_different_ways_cannot_be_shown_at_once():
    with pytest.raises(hf.RunFailed, match="augmented in different ways, and cannot be shown at once"):
        hf.run("joint", hf.stream(Mine))
    assert hf.run("joint", hf.stream(Mine, same=True)).R.shape == (2, 2)
