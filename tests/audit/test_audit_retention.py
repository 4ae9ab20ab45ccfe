"""The retention scan: old rows are found in whatever form they were kept bit for bit, and nothing else is."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.audit import Retention
from holdfast.engine import Net
from holdfast.types import Part

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
    "among others": (lambda p: torch.cat([torch.rand(5, *p.pixels.shape[1:]), p.x(SOME)]), 4),
}


def scanner(*parts):
    scan = Retention(tuple(parts[0].pixels.shape[1:]))
    for each in parts:
        scan.remember(each)
    return scan


@pytest.mark.parametrize("form", ["floats", "bytes", "halved"])
def test_rows_are_found_where_pixels_begin_at_minus_1(form, part, keeper):
    past = replace(part(12, (3, 4, 5)), centred=True)
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
