"""Two things have one digest only if nothing in them differs that could change what they give."""

import functools
import sys
import types

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.identity import Unknown, digest

SCALE = 2.0
WEIGHTS = torch.ones(3)


def scaled(x):
    return x * SCALE


def nested(x):
    return [scaled(each) for each in x]


def weighted(x, by=1.0):
    return x * WEIGHTS * by


class Machine:
    bias = 0

    def __init__(self, weights):
        self.weights, self.me = weights, self

    def run(self, x):
        return scaled(x) + self.bias


def test_equal_content_has_one_digest():
    for make in (
        lambda: {"a": [1, 2.5, None, "x", b"y", (True,)], "b": {3, 1}},
        lambda: np.arange(6).reshape(2, 3),
        lambda: np.array(["a", None], object),
        lambda: torch.arange(3, dtype=torch.bfloat16),
        lambda: Machine(torch.ones(2)).run,
        lambda: functools.partial(weighted, by=2.0),
        lambda: nn.Sequential(nn.Linear(2, 2).requires_grad_(False), nn.ReLU()).apply(lambda m: torch.manual_seed(0)),
    ):
        torch.manual_seed(0)
        one = digest(make())
        torch.manual_seed(0)
        assert one == digest(make())


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0),
        ("1", b"1"),
        ([1, 2], [12]),
        (["ab", "c"], ["a", "bc"]),
        (torch.zeros(2), torch.zeros(2, 1)),
        (np.zeros(2), np.zeros(2, np.float32)),
        (functools.partial(weighted, by=1.0), functools.partial(weighted, by=2.0)),
        (lambda x: x + 1, lambda x: x + 2),
        (lambda x: x.max(), lambda x: x.min()),
        (Machine(1), Machine(2)),
    ],
)
def test_what_differs_has_another(one, two):
    assert digest(one) != digest(two)


@pytest.mark.parametrize("function", [nested, Machine(1), Machine(1).run])
def test_what_a_function_uses_is_part_of_it(function, monkeypatch):
    before = digest(function)
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert digest(function) != before


def test_weights_are_part_of_it_whether_global_captured_or_of_a_module():
    module = nn.Linear(2, 2)
    things = [weighted, lambda x: module(x), module, module.forward]
    before = [digest(thing) for thing in things]
    WEIGHTS[0] += 1
    with torch.no_grad():
        module.weight[0, 0] += 1
    assert all(digest(thing) != old for thing, old in zip(things, before, strict=True))


def test_whether_a_module_trains_is_no_part_of_it():
    module = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
    assert digest(module.train()) == digest(module.eval())


def test_what_cannot_be_told_is_named():
    mine = types.ModuleType("mine")
    for thing, what in ((object(), "object"), (iter([]), "list_iterator"), (mine, "the module mine")):
        with pytest.raises(Unknown, match=what):
            digest([thing])
