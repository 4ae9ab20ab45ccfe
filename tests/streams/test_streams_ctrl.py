"""The transfer streams of paper 000: what the tables say, what is shared between first and last task, and where rows
are few."""

import json
from collections import Counter
from dataclasses import replace

import pytest
import torch

import holdfast as hf
from holdfast.checks import check_stream
from holdfast.cli import main
from holdfast.data import at_hand, load
from holdfast.streams import _transfer, ctrl
from holdfast.streams._base import Rows
from holdfast.streams._images import CropFlip, scale_of
from holdfast.streams._transfer import TABLE_4, Wanted, allotted, dealt, drawn_long, published

KINDS = ("minus", "plus", "in", "out", "pl", "long")
PAPER = ("cifar-10", "cifar-100", "mnist", "fashion-mnist", "svhn", "dtd")
real = [
    pytest.mark.data,
    pytest.mark.skipif(not all(map(at_hand, PAPER)), reason="the paper's data sets are not in HOLDFAST_DATA"),
]


def small(kind, **settings):
    words = {"rows": 0.05, "test": 5, **({"tasks": 12} if kind == "long" else {}), **settings}
    return hf.stream("ctrl", kind=kind, data="synth", **words)


def per_class(part):
    return part.y.unique(return_counts=True)[1].unique().tolist()


def original(part):
    """Which rows of its data set a part has, augmented copies left out."""
    return part.parts[0].rows if hasattr(part, "parts") else part.rows


def sources(task):
    """Output -> class of the data set."""
    data = {load_by.x.data_ptr(): load_by for load_by in map(load, PAPER)}[task.train.pixels.data_ptr()]
    pairs = set(zip(task.train.y.tolist(), data.y[task.train.rows].tolist(), strict=True))
    assert len(pairs) == len(task.classes)
    return dict(pairs)


@pytest.mark.parametrize("kind", KINDS)
def test_the_contracts_hold(kind):
    stream = small(kind)
    check_stream(stream)
    assert stream.scenario == "task" and stream.info.classes == (5 if kind == "long" else 10)
    assert {task.classes for task in stream.tasks} == {tuple(range(stream.info.classes))}
    assert stream.info.shape == (3, 32, 32)
    check_stream(small(kind, disjoint=False))


@pytest.mark.parametrize("kind", KINDS)
def test_all_six_run_on_synth(kind):
    stream = small(kind, rows=0.02, test=2, **({"tasks": 3} if kind == "long" else {}))
    record = hf.run("finetune", stream, net=hf.net("mlp", hidden=(4,)), protocol=hf.protocol("epochs", batch=32))
    assert record.R.shape == (len(stream), len(stream)) and record.scenario == "task"
    assert [task["about"] for task in record.tasks] == [task.about for task in stream.tasks]
    assert [task["name"] for task in record.tasks] == [task.name for task in stream.tasks]


# Table 4: data sets, training and validation rows.
SIX = ["cifar-10", "mnist", "dtd", "fashion-mnist", "svhn", "cifar-10"]
PRINTED = {
    "minus": (SIX, [4000, 400, 400, 400, 400, 400], [2000, 200, 200, 200, 200, 200]),
    "plus": (SIX, [400, 400, 400, 400, 400, 4000], [200, 200, 200, 200, 200, 2000]),
    "in": (["mnist", *["cifar-10", *SIX[2:5]], "mnist"], [4000, *[400] * 4, 50], [2000, *[200] * 4, 30]),
    "out": (SIX, [4000, 400, 400, 400, 400, 400], [2000, 200, 200, 200, 200, 200]),
    "pl": ([*SIX[1:5], "cifar-10"], [400, 400, 400, 400, 4000], [200, 200, 200, 200, 2000]),
}


@pytest.mark.parametrize("kind", PRINTED)
def test_tasks_are_those_of_table_4(kind):
    data, train, val = PRINTED[kind]
    assert [task.data for task in TABLE_4[kind]] == data
    stream = hf.stream("ctrl", kind=kind, data="synth", test=7)
    assert [len(task.train) for task in stream.tasks] == train
    assert [len(original(task.val)) for task in stream.tasks] == val
    assert [len(task.test) for task in stream.tasks] == [70] * len(data)
    for task in stream.tasks:
        assert [len(per_class(part)) for part in (task.train, task.val, task.test)] == [1, 1, 1]  # the same of each
        assert task.note == ""
    assert stream.settings["data"] == ",".join(dict.fromkeys(ctrl.SYNTH[name].name for name in data))


@pytest.mark.parametrize("kind", PRINTED)
def test_fewer_tasks_leave_out_some_between_the_first_and_the_last(kind):
    whole, fewer = small(kind), small(kind, tasks=3)
    check_stream(fewer)
    assert [task.name for task in fewer.tasks] == [whole.tasks[t].name for t in (0, 1, -1)]
    assert [len(task.train) for task in fewer.tasks] == [len(whole.tasks[t].train) for t in (0, 1, -1)]
    assert len(small(kind, tasks=2)) == 2


@pytest.mark.parametrize("kind", ["minus", "plus", "in", "out"])
def test_first_and_last_task_have_the_same_classes_in_the_same_order(kind):
    stream = small(kind)
    first, last = stream.tasks[0], stream.tasks[-1]
    assert first.train.pixels is last.train.pixels and first.test.pixels is last.test.pixels
    labels = {}  # of each test row: they are the same rows in both tasks
    for task in (first, last):
        labels[task.t] = dict(zip(task.test.rows.tolist(), task.test.y.tolist(), strict=True))
    assert labels[0].keys() == labels[last.t].keys()
    further = 1 if kind == "out" else 0
    assert all(labels[last.t][row] == (label + further) % 10 for row, label in labels[0].items())


def test_label_order_is_random_by_the_seed_and_differs_between_data_sets():
    def order(stream, t):
        task = stream.tasks[t]
        return task.about.split(": ")[1].split(";")[0].split(", ")

    one, other = small("minus"), small("minus", seed=1)
    numbers = [[int(name.split("/")[1]) for name in order(one, t)] for t in range(6)]
    assert numbers[0] == numbers[5] and all(sorted(each) == list(range(10)) for each in numbers)
    assert len({tuple(each) for each in numbers}) == 5
    assert order(one, 0) != order(other, 0)
    assert order(small("out"), 5) == [order(one, 0)[-1], *order(one, 0)[:-1]]  # label 0 is now the last concept


def test_rainbow_digits_are_white_on_two_colours():
    colours = set()
    for seed in range(4):
        stream = small("in", seed=seed)
        channels = []
        for task in (stream.tasks[0], stream.tasks[-1]):
            for part in (task.train, task.test):
                pixels = part.raw()
                full = [c for c in range(3) if bool((pixels[:, c] == 255).all())]
                others = [c for c in range(3) if c not in full]
                assert len(full) == 1 and torch.equal(pixels[:, others[0]], pixels[:, others[1]])
                channels += full
        assert channels[0] == channels[1] != channels[2] == channels[3]
        colours.add((channels[0], channels[2]))
        names = [f"synth-strokes on {('red', 'green', 'blue')[c]}" for c in (channels[0], channels[2])]
        assert [stream.tasks[0].name, stream.tasks[-1].name] == names
    assert len(colours) > 1
    assert not bool((small("in").tasks[1].train.raw()[:, 0] == 255).all())  # the other tasks are not


@pytest.mark.parametrize("kind", ["minus", "plus", "in", "out", "long"])
def test_tasks_have_no_row_in_common_unless_they_draw_for_themselves(kind):
    def taken(stream):
        used = Counter()
        for task in stream.tasks:
            rows = torch.cat([task.train.rows, original(task.val)])
            assert len(rows.unique()) == len(rows)
            used.update((task.train.pixels.data_ptr(), row) for row in rows.tolist())
        return used

    words = {"rows": 0.2, "tasks": 30} if kind == "long" else {"rows": 0.2}
    assert set(taken(small(kind, **words)).values()) == {1}
    assert max(taken(small(kind, disjoint=False, **words)).values()) > 1


def test_scale_is_that_of_the_tasks_training_rows_and_comes_after_augmentation():
    stream = small("minus", rows=0.1)
    for task in stream.tasks:
        own = scale_of(task.train)
        for part in (task.train, task.val, task.test):
            assert torch.equal(part.scale.divisor, own.divisor) and torch.equal(part.scale.offset, own.offset)
        x = task.train.x()
        assert x.mean((0, 2, 3)).abs().max() < 1e-4 and (x.std((0, 2, 3)) - 1).abs().max() < 1e-2
        assert task.train.augment == CropFlip(4) and task.val.augment is None and task.test.augment is None
        black = task.train.seen(task.train.augment(torch.full((50, 3, 32, 32), 255, dtype=torch.uint8), rng()))
        assert torch.allclose(black.amin((0, 2, 3)), -own.offset)  # what crops add is black before it is scaled
    scales = {tuple(task.train.scale.offset.tolist()) for task in stream.tasks}
    assert len(scales) == 6
    inputs = small("in")
    assert {task.train.scale for task in inputs.tasks} == {None} and inputs.settings["scale"] == "unit"
    assert inputs.chosen_by["scale"] == "default" and inputs.reseed(1).settings["scale"] == "unit"
    assert small("in", scale="task").tasks[0].train.scale is not None


def rng():
    return torch.Generator().manual_seed(0)


@pytest.mark.parametrize("kind", ["in", "long"])
def test_tiny_tasks_validate_on_augmented_copies_too(kind):
    for settings in ({"augment": True}, {"augment": False}):
        for task, wanted in zip(small(kind, **settings).tasks, tiny_of(kind), strict=True):
            rows = original(task.val)
            if not wanted or not settings["augment"]:
                assert len(task.val) == len(rows)
                continue
            n = len(rows)
            assert len(task.val) == 5 * n and torch.equal(task.val.y, task.val.y[:n].repeat(5))
            pixels = task.val.raw().view(5, n, 3, 32, 32)
            assert torch.equal(pixels[0], replace(task.train, rows=rows, _cache=None).raw())
            assert not any(torch.equal(pixels[0], copy) for copy in pixels[1:])
            middle = pixels[0, :, :, 4:28, 4:28]  # is in every copy, moved and perhaps mirrored
            found = torch.zeros(4, n, dtype=torch.bool)
            for down in range(9):
                for right in range(9):
                    window = pixels[1:, :, :, down : down + 24, right : right + 24]
                    found |= (window == middle).flatten(2).all(2) | (window == middle.flip(-1)).flatten(2).all(2)
            assert bool(found.all())
            assert task.val.scale is task.test.scale


def tiny_of(kind):
    tasks = published()[:12] if kind == "long" else TABLE_4[kind]
    return [task.rows == Rows(5, 3) for task in tasks]


def test_the_last_task_alone_is_the_last_task():
    for kind in ("minus", "in", "out"):
        stream = small(kind)
        alone, last = stream.only(-1), stream.tasks[-1]
        assert len(alone) == 1 and alone.info.tasks == 1 and alone.info.classes == 10 and alone.settings["only"] == 5
        (task,) = alone.tasks
        assert task.t == 0 and task.name == last.name
        for name in ("train", "val", "test"):
            mine, same = getattr(task, name), getattr(last, name)
            assert torch.equal(mine.x(), same.x()) and torch.equal(mine.y, same.y)
        again, whole = alone.reseed(3), stream.reseed(3)
        assert again.seed == 3 and torch.equal(again.tasks[0].train.x(), whole.tasks[5].train.x())
    with pytest.raises(ValueError, match="no task 6; the stream has 6"):
        stream.only(6)
    with pytest.raises(ValueError, match="cannot be shown alone"):
        hf.stream("blurred").only(0)


def test_one_seed_is_one_stream():
    for kind in KINDS:
        one, same, other = small(kind), small(kind), small(kind, seed=1)
        for a, b in zip(one.tasks, same.tasks, strict=True):
            for name in ("train", "val", "test"):
                assert torch.equal(getattr(a, name).raw(), getattr(b, name).raw())
                assert torch.equal(getattr(a, name).y, getattr(b, name).y)
        assert any(not torch.equal(a.train.rows, b.train.rows) for a, b in zip(one.tasks, other.tasks, strict=True))
        assert one.fingerprint == other.fingerprint and one.reseed(1).tasks[0].about == other.tasks[0].about
    prints = {small(kind).fingerprint for kind in ("minus", "in", "long")}
    assert len(prints) == 3


def test_rows_are_allotted_fairly():
    assert allotted([600, 60], 800) == [600, 60]
    assert allotted([1500, 8, 1500], 508) == [250, 8, 250]
    assert allotted([5, 5], 3) == [1, 2]
    assert allotted([], 3) == []


def test_where_rows_are_few_a_task_takes_what_there_is_and_keeps_the_ratio():
    y = torch.arange(4).repeat(90)
    large, tiny = ((0, 1), Rows(450, 50)), ((1, 2), Rows(5, 3))
    found = dealt(y, {0: large, 1: tiny}, True, rng())
    counts = {t: [part_counts(y, part) for part in parts] for t, parts in found.items()}
    assert counts == {0: [{0: 81, 1: 74}, {0: 9, 1: 8}], 1: [{1: 5, 2: 5}, {1: 3, 2: 3}]}
    found = dealt(y, {0: large, 1: tiny}, False, rng())
    counts = {t: [part_counts(y, part) for part in parts] for t, parts in found.items()}
    assert counts == {0: [{0: 81, 1: 81}, {0: 9, 1: 9}], 1: [{1: 5, 2: 5}, {1: 3, 2: 3}]}
    assert not set(found[0][0].tolist()) & set(found[1][1].tolist())  # nobody trains on what another validates on
    assert not set(found[0][1].tolist()) & set(found[1][0].tolist())


def part_counts(y, rows):
    return dict(Counter(y[rows].tolist()))


def test_the_record_says_where_a_data_set_had_too_few_rows(monkeypatch, tmp_path):
    monkeypatch.setitem(TABLE_4, "pl", (Wanted("mnist", Rows(40, 20)), Wanted("cifar-10", Rows(40, 20))))
    made = ctrl.procedural
    monkeypatch.setattr(ctrl, "procedural", lambda *words: made(*words[:2], 30, *words[3:]))
    stream = hf.stream("ctrl", kind="pl", data="synth", test=2)
    note = "data set 'synth-strokes' has 20 of 40 training rows and 10 of 20 validation rows per class"
    assert stream.tasks[0].note == note and per_class(stream.tasks[0].train) == [20]
    found = hf.compare("finetune", stream, seeds=1, net=hf.net("mlp", hidden=(4,)), out=tmp_path)
    assert [task["note"] for task in found.records[0].tasks] == [note, note.replace("strokes", "shapes")]
    assert note.replace("'", "&#x27;") in (tmp_path / "report.html").read_text()
    monkeypatch.setattr(ctrl, "procedural", lambda *words: made(*words[:2], 1, *words[3:]))
    monkeypatch.setitem(TABLE_4, "pl", (Wanted("mnist", Rows(40, 20)), Wanted("mnist", Rows(40, 20))))
    with pytest.raises(hf.BadInput, match=r"no training row of one of its classes.*disjoint=no"):
        hf.stream("ctrl", kind="pl", data="synth")


def test_absent_data_sets_are_named_with_what_would_do(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    assert main(["run", "finetune", "--stream", "ctrl", "--set", "stream.kind=pl"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    for word in ("'mnist', 'dtd', 'fashion-mnist', 'svhn' and 'cifar-10'", str(tmp_path), "data=synth"):
        assert word in line
    monkeypatch.setattr(ctrl, "at_hand", lambda name: name != "dtd")
    with pytest.raises(hf.BadInput, match=r"needs data set 'dtd', not found in .*; put the folder there"):
        hf.stream("ctrl")


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"data": "digits"}, "data must be paper or synth, not 'digits'"),
        ({"data": (torch.zeros(4, 2), [0, 1, 0, 1])}, "data must be paper or synth, not a tuple"),
        ({"tasks": 7}, "kind 'minus' of stream 'ctrl' has 2 to 6 tasks, not 7"),
        ({"kind": "pl", "tasks": 1}, "kind 'pl' of stream 'ctrl' has 2 to 5 tasks, not 1"),
        ({"kind": "long", "tasks": 101}, "has 1 to 100 tasks, not 101"),
        ({"examples": 5}, "set rows or test in place of examples"),
        ({"val": 0.1}, "set rows or test in place of val"),
        ({"instance": 3}, "instance is for kind 'long'"),
        ({"scenario": "class"}, "use scenario 'task', or 'domain' with scale=unit"),
        ({"kind": "sideways"}, "kind of stream 'ctrl' must be one of minus, plus, in, out, pl, long"),
        ({"rows": 0}, "rows of stream 'ctrl' must be a number above 0 to 1"),
    ],
)
def test_what_cannot_be_is_refused(settings, fault):
    with pytest.raises(hf.BadInput, match=fault):
        hf.stream("ctrl", **{"data": "synth", "rows": 0.01, **settings})


def test_the_command_line_explains_each_kind(capsys):
    assert main(["list", "streams", "ctrl"]) == 0
    shown = capsys.readouterr().out
    for kind in KINDS:
        assert f"\n{kind}: S" in shown


def test_the_long_stream_is_that_of_tables_5_and_6():
    tasks = published()
    assert len(tasks) == 100
    assert tasks[0] == Wanted("mnist", Rows(5, 3), ("6", "3", "7", "5", "0"), 5, True)
    assert tasks[2] == Wanted("svhn", Rows(1000, 500), ("2", "0", "6", "1", "5"), 5)
    assert tasks[21] == Wanted("cifar-100", Rows(450, 50), ("kangaroo", "ray", "tank", "crocodile", "table"), 5)
    caterpillar = ("caterpillar", "can", "motorcycle", "rabbit", "wardrobe")
    assert tasks[49] == Wanted("cifar-100", Rows(5, 3), caterpillar, 5, True)
    last = ("Shirt", "Coat", "Dress", "Sandal", "Pullover")
    assert tasks[99] == Wanted("fashion-mnist", Rows(5, 3), last, 5, True)
    large = [t + 1 for t, task in enumerate(tasks) if not task.tiny]
    assert large == [3, 6, 11, 12, 17, 18, 19, 20, 22, 24, 26, 29, 30, 32, 33, 38, 49, 56, 60]
    counts = {"cifar-10": 18, "cifar-100": 24, "fashion-mnist": 15, "mnist": 21, "svhn": 22}
    assert Counter(task.data for task in tasks) == counts
    assert all(len(set(task.classes)) == 5 for task in tasks)


def test_drawn_instances_are_as_frequent_as_the_paper_says():
    drawn = [drawn_long(100, seed) for seed in range(40)]
    assert drawn[0] == drawn_long(100, 0) and drawn[0] != drawn[1] and drawn_long(20, 0) == drawn[0][:20]
    large = torch.tensor([[not task.tiny for task in tasks] for tasks in drawn]).float().mean(0)
    assert abs(large[:33].mean() - 0.5) < 0.05 and abs(large[33:66].mean() - 0.25) < 0.05
    assert large[66:].sum() == 0
    data = Counter(task.data for tasks in drawn for task in tasks)
    assert data.keys() == set(_transfer.LONG_DATA) and all(abs(n / 4000 - 0.2) < 0.02 for n in data.values())
    sizes = {(task.data == "cifar-100", task.tiny): task.rows for tasks in drawn for task in tasks}
    assert sizes[True, False] == (450, 50, None) and sizes[False, False] == (1000, 500, None)
    assert sizes[True, True] == sizes[False, True] == (5, 3, None)


def test_which_instance_a_long_stream_is():
    def names(**settings):
        return [task.name for task in small("long", **settings).tasks]

    assert names(instance="drawn") != names(instance="drawn", seed=1)
    assert names(instance=1) == names(instance=1, seed=1) == names(instance="drawn", seed=1)
    classes = Counter(c for name in names(instance="drawn") for c in name.split()[1:])
    assert len(classes) > 20  # drawn anew for each task
    assert [name.split()[0] for name in names()] == [ctrl.SYNTH[task.data].name for task in published()[:12]]


class TestOnTheRealDataSets:
    pytestmark = real

    def test_the_transfer_streams_have_all_rows_that_table_4_asks_for(self):
        for kind, (data, train, val) in PRINTED.items():
            stream = hf.stream("ctrl", kind=kind)
            assert [task.name.split()[0] for task in stream.tasks] == data
            assert [len(task.train) for task in stream.tasks] == train
            assert [len(original(task.val)) for task in stream.tasks] == val
            assert all(int(task.test.y.bincount().max()) <= 1000 for task in stream.tasks)
            assert {task.note for task in stream.tasks} == {""}
            assert stream.settings["data"] == ",".join(dict.fromkeys(data))
            assert hf.stream("ctrl", kind=kind, data=stream.settings["data"]).fingerprint == stream.fingerprint

    def test_s_out_moves_labels_on_by_one(self):
        tasks = hf.stream("ctrl", kind="out").tasks
        first, last = sources(tasks[0]), sources(tasks[5])
        assert {(label + 1) % 10: c for label, c in first.items()} == last
        assert tasks[5].name == "cifar-10 relabelled"

    def test_rainbow_mnist_is_mnist_in_two_channels(self):
        task = hf.stream("ctrl", kind="in").tasks[0]
        digits = load("mnist").x[task.train.rows[:8]]
        bigger = torch.nn.functional.interpolate(digits.float(), (32, 32), mode="bilinear").round().byte()[:, 0]
        shown = task.train.raw(slice(8))
        assert sum(torch.equal(shown[:, c], bigger) for c in range(3)) == 2

    def test_the_long_stream_has_the_published_classes_and_tests(self):
        stream, rows = hf.stream("ctrl", kind="long"), json.loads(PUBLISHED.read_text())
        assert len(stream) == 100
        for task, row in zip(stream.tasks, rows, strict=True):
            data, *classes = task.name.replace("_", " ").replace("-", " ").split()
            said = " ".join([row["data"], *row["classes"]]).replace("_", " ").replace("-", " ").split()
            assert [data, *classes] == said
            if row["data"] in ("mnist", "fashion-mnist"):  # whole here; the others may be cut
                assert len(task.test) == row["test"]
            short = len(task.train) < row["train"] or len(original(task.val)) < row["val"]
            assert bool(task.note) == short
        assert stream.tasks[0].note == "" and len(stream.tasks[0].val) == 75


PUBLISHED = _transfer.Path(_transfer.__file__).with_name("ctrl_long.json")
