"""The retention scan: old rows are found in whatever form they were kept bit for bit, and nothing else is."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.audit import Retention
from holdfast.engine import Net
from holdfast.streams._images import CropFlip
from holdfast.types import CENTRED, Part, Scale

SHAPES = pytest.mark.parametrize("shape", [(1, 4, 4), (3, 4, 5), (16,)])
SOME = torch.tensor([2, 3, 7, 11])

FORMS = {
    "floats": (lambda p: p.x(SOME), 4),
    "bytes": (lambda p: p.raw(SOME), 1),
    "flattened": (lambda p: p.x(SOME).flatten(1), 4),
    "per task": (lambda p: p.x(SOME).view(2, 2, *p.pixels.shape[1:]), 4),
    "doubles": (lambda p: p.x(SOME).double(), 8),
    "integers": (lambda p: p.raw(SOME).long(), 8),
    "arrays": (lambda p: p.x(SOME).numpy(), 4),
    "double arrays": (lambda p: p.x(SOME).numpy().astype(np.float64), 8),
    "big-endian arrays": (lambda p: p.x(SOME).numpy().astype(">f4"), 4),
    "reversed arrays": (lambda p: p.x(SOME).numpy()[::-1], 4),
    "a list of rows": (lambda p: list(p.x(SOME)), 4),
    "a deque of arrays": (lambda p: deque(row.numpy() for row in p.raw(SOME)), 1),
    "not contiguous": (lambda p: p.x(SOME).flatten(1).t().contiguous().t(), 4),
    "flat": (lambda p: p.x(SOME).flatten(), 4),
    "transposed": (lambda p: p.x(SOME).flatten(1).T.contiguous(), 4),
    "halved": (lambda p: p.x(SOME).half(), 2),
    "with labels": (lambda p: torch.cat([p.x(SOME).flatten(1), torch.ones(4, 1)], 1), 4),
    "a byte string": (lambda p: p.x(SOME).numpy().tobytes(), 4),
    "a slice of a longer one": (lambda p: torch.cat([torch.rand(1), p.x(SOME).flatten()])[1:], 4),
    "among others": (lambda p: torch.cat([torch.rand(5, *p.pixels.shape[1:]), p.x(SOME)]), 4),
}


def scanner(*parts):
    scan = Retention(tuple(parts[0].pixels.shape[1:]))
    for each in parts:
        scan.remember(each)
    return scan


@pytest.mark.parametrize("form", ["floats", "bytes", "halved"])
def test_rows_are_found_where_pixels_begin_at_minus_1(form, part, keeper):
    past = replace(part(12, (3, 4, 5)), scale=CENTRED)
    kept, size = FORMS[form]
    assert scanner(past).scan(keeper(kept(past))) == (4, 4 * 60 * size)


@SHAPES
@pytest.mark.parametrize("form", FORMS)
def test_rows_are_found_in_any_form(form, shape, part, keeper):
    past = part(12, shape)
    make, width = FORMS[form]
    assert scanner(past).scan(keeper(make(past))) == (4, 4 * width * past.pixels[0].numel())


def test_float_data_are_found_too(part, keeper):
    past = part(12, floats=True)
    assert scanner(past).scan(keeper(past.x(SOME)))[0] == 4


@SHAPES
def test_other_rows_are_not_found(shape, part, keeper):
    past, new = part(12, shape), part(12, shape, seed=1)
    nudged = past.x()
    nudged[:, ..., -1] += 1e-4
    one_byte = past.raw().clone()
    one_byte[:, ..., 0] ^= 1
    for kept in (new.x(), new.raw(), nudged, one_byte, past.x().flip(-1)):
        assert scanner(past).scan(keeper(kept)) == (0, 0)


def test_weights_as_wide_as_the_input_hold_no_rows(part, keeper):
    past = part(12)
    net = Net(nn.Sequential(nn.Flatten(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)))
    assert scanner(past).scan(keeper([net, torch.zeros(16, 16), torch.ones(16), net.copy()])) == (0, 0)


def test_a_row_of_one_colour_is_no_proof(part, keeper):
    past = part(12)
    past.pixels[:3] = 0
    assert scanner(past).scan(keeper([torch.zeros(100, 16), past.x()])) == (9, 9 * 64)


@pytest.mark.parametrize("looked_at", [1, 16, 10**6])
@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.float16, torch.bfloat16])
def test_rows_are_found_among_gradients_that_are_all_positive(kind, looked_at, part, keeper, monkeypatch):
    monkeypatch.setattr("holdfast.audit.retention._LOOKED_AT", looked_at)
    past = part(12)
    gradients = torch.rand(50, 1, 4, 4, generator=torch.Generator().manual_seed(1))
    assert scanner(past).scan(keeper(torch.cat([gradients, past.x()]).to(kind)))[0] == 12


def test_rows_count_once_however_often_they_are_kept(part, keeper):
    past = part(12)
    rows, size = scanner(past).scan(keeper([past.x(SOME), past.raw(SOME), past.x(SOME[:2]).clone()]))
    assert rows == 4
    assert size == 16 * (4 * 4 + 4 * 1 + 2 * 4)


def test_rows_of_all_past_tasks_and_none_of_the_present(part, keeper):
    first, second, present = part(12), part(12, seed=1), part(12, seed=2)
    scan = Retention((1, 4, 4))
    kept = keeper([p.x(SOME) for p in (first, second, present)])
    assert scan.scan(kept) == (0, 0)
    scan.remember(first)
    assert scan.scan(kept)[0] == 4
    scan.remember(second)
    assert scan.scan(kept)[0] == 8


def test_rows_are_looked_for_as_the_task_showed_them(part, keeper):
    past = part(12)
    turned = Part(past.pixels, past.rows[:6], past.y[:6], transform=lambda pixels: pixels.flip(-1))
    scan = scanner(turned)
    assert scan.scan(keeper(past.x()))[0] == 0
    assert scan.scan(keeper(turned.x()))[0] == 6


def test_things_that_are_no_numbers_do_not_stop_the_scan(part, keeper):
    past = part(12)
    odd = [np.array([["a"] * 16]), np.zeros((2, 16), dtype=complex), torch.zeros(2, 16, dtype=torch.cfloat), b"x" * 16]
    odd += [np.empty((1, 16), dtype=object), torch.zeros(0, 16), torch.tensor(1.0), torch.eye(16).to_sparse()]
    odd += [np.zeros((1, 16), dtype=np.longdouble), np.zeros((1, 16), dtype="M8[s]")]
    assert scanner(past).scan(keeper(odd)) == (0, 0)
    assert scanner(past).scan(keeper([*odd, past.x(SOME)]))[0] == 4


# Narrow tables

NARROW = {
    "one number": lambda n, rng: torch.randn(n, 1, generator=rng),
    "two columns that are equal": lambda n, rng: torch.randn(n, 1, generator=rng).repeat(1, 2),
    "a number and a constant": lambda n, rng: torch.cat([torch.randn(n, 1, generator=rng), torch.zeros(n, 1)], 1),
}
narrow = pytest.mark.parametrize("make", NARROW.values(), ids=NARROW)


def vectors(x):
    return Part(x, torch.arange(len(x)), torch.arange(len(x)) % 3)


@narrow
def test_rows_of_a_narrow_table_are_found(make, keeper):
    past = vectors(make(200, torch.Generator().manual_seed(0)))
    scan = scanner(past)
    for kept in (past.x(slice(50)), torch.cat([past.x(slice(50)), torch.zeros(950, past.shape[0])])):
        assert scan.scan(keeper(kept))[0] == 50
        assert scan.by_chance == 0


@narrow
def test_weights_beside_a_narrow_table_hold_no_rows(make, keeper):
    past, width = vectors(make(200, torch.Generator().manual_seed(0))), 1
    torch.manual_seed(0)
    net = Net(nn.Sequential(nn.Linear(width, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 4)))
    plain = [torch.zeros(100, 1), torch.ones(100, 1), torch.eye(2), torch.full((9, 2), 0.5), torch.arange(9.0)]
    assert scanner(past).scan(keeper([net, net.copy(), torch.randn(1000, 1), *plain])) == (0, 0)


@pytest.mark.parametrize(
    ("rows", "kept"),
    [
        ([[0.0, 1.0], [1.0, 0.0]], torch.eye(2)),  # the places of two words, and a mask
        ([[1.0], [2.0], [3.0]], torch.arange(5.0)),
        ([[0.1], [0.2], [0.7]], torch.full((1000, 1), 0.1)),
    ],
)
def test_rows_that_may_stand_there_by_chance_are_told_apart(rows, kept, keeper):
    scan = scanner(vectors(torch.tensor(rows)))
    found = scan.scan(keeper(kept))[0]
    assert found == scan.by_chance > 0
    assert scan.scan(keeper(torch.zeros(10, len(rows[0])))) == (0, 0) and scan.by_chance == 0


@pytest.mark.parametrize("twice", [False, True])
def test_replay_on_a_narrow_table_is_old_data_and_fine_tuning_is_not(twice):
    y = np.arange(200) % 4
    x = np.random.default_rng(0).normal(y, 0.1)[:, None].astype("float32")
    stream = hf.stream("split", data=(np.hstack([x, x]) if twice else x, y), tasks=2)
    line = hf.run(hf.method("er", memories=20), stream).card["no_old_data"]
    assert line["value"] >= 10 and line["met"] is False
    for seed in range(3):
        line = hf.run("finetune", stream, seed=seed).card["no_old_data"]
        assert line["value"] == 0 and line["met"] is True


# Augmented rows

AUGMENT = CropFlip(2)
FORMS_OF_IMAGES = {
    "bytes": lambda p, shown: shown,
    "floats": lambda p, shown: p.seen(shown),
    "halved": lambda p, shown: p.seen(shown).half(),
    "flattened": lambda p, shown: p.seen(shown).flatten(1),
    "with labels": lambda p, shown: torch.cat([p.seen(shown).flatten(1), torch.ones(len(shown), 1)], 1),
    "arrays": lambda p, shown: p.seen(shown).numpy(),
}


@pytest.mark.parametrize("scale", [None, CENTRED, Scale.of([0.3, 0.4, 0.5], [0.2, 0.3, 0.4])])
@pytest.mark.parametrize("form", FORMS_OF_IMAGES)
def test_augmented_rows_are_found_wherever_they_were_moved(form, scale, part, keeper):
    past, new = (replace(part(40, (3, 8, 9), seed=s), augment=AUGMENT, scale=scale) for s in (0, 1))
    rng = torch.Generator().manual_seed(0)
    scan, make = scanner(past), FORMS_OF_IMAGES[form]
    assert scan.scan(keeper(make(past, AUGMENT(past.raw(), rng))))[0] == 40
    assert scan.scan(keeper(make(past, past.raw())))[0] == 40
    assert scan.scan(keeper(make(new, AUGMENT(new.raw(), rng)))) == (0, 0)


def test_a_row_counts_once_however_often_it_was_augmented(part, keeper):
    past, rng = replace(part(12, (3, 8, 8)), augment=AUGMENT), torch.Generator().manual_seed(0)
    shown = torch.cat([AUGMENT(past.raw(SOME), rng) for _ in range(5)] + [past.raw(SOME)])
    assert scanner(past).scan(keeper(shown)) == (4, 6 * 4 * 3 * 64)


def test_a_middle_of_one_colour_is_no_proof(part, keeper):
    past = part(12, (1, 8, 8))
    past.pixels[:6, :, 2:-2, 2:-2] = 0
    scan = scanner(replace(past, augment=AUGMENT))
    assert scan.scan(keeper(torch.zeros(100, 64))) == (0, 0)
    assert scan.scan(keeper(past.x()))[0] == 12  # whole rows are


def test_rows_that_were_not_augmented_are_found_only_as_they_were(part, keeper):
    past = part(12, (3, 8, 8))
    moved = AUGMENT(past.raw(), torch.Generator().manual_seed(0))
    assert 0 < scanner(replace(past, augment=AUGMENT)).scan(keeper(moved))[0] == 12
    assert scanner(past).scan(keeper(moved))[0] < 3


@pytest.mark.parametrize("scale", ["unit", "task"])
def test_an_episodic_memory_of_augmented_rows_is_old_data(scale):
    """The reservoir holds rows as batches showed them: cropped, mirrored and scaled."""
    stream = hf.stream("split", data="synth", tasks=3, examples=60, augment=True, scale=scale, scenario="task")
    line = hf.run(hf.method("er", memories=30), stream).card["no_old_data"]
    assert line["value"] == 30 and not line["met"]
    assert hf.run("finetune", stream).card["no_old_data"]["met"]
