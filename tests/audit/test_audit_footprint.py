"""The footprint: bytes of everything reachable, each storage once."""

import functools
from collections import OrderedDict, deque
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from holdfast.audit import footprint, reachable
from holdfast.engine import Net, Reservoir, optimiser
from holdfast.types import Batch

BYTES = 100


def tensor():
    return torch.zeros(BYTES // 4)


def closure():
    kept = tensor()
    return lambda: kept


def nested_closure():
    inner = closure()

    def outer():
        return inner()

    return outer


class Method:
    def __init__(self):
        self.kept = tensor()

    def call(self):
        return self.kept


class Slotted:
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = tensor()


class Derived(Slotted):
    __slots__ = "more"

    def __init__(self):
        super().__init__()
        self.more = None


class Shared:
    memory = (tensor(),)  # made in the class body, so kept by the class


def with_attribute():
    def function():
        pass

    function.kept = tensor()
    return function


def objects():
    array = np.empty(2, dtype=object)
    array[:] = [tensor(), None]
    return array


def default_arguments():
    kept = tensor()

    def positional(kept=kept): ...

    def keyword(*, kept=kept): ...

    return positional, keyword


def memory():
    ring = Reservoir(10)
    ring.add(Batch(torch.zeros(8, 5), torch.zeros(8, dtype=torch.long), 0), torch.Generator())
    return ring


PLACES = {
    "tensor": tensor,
    "list in tuple in dict": lambda: {"a": ([tensor()],)},
    "key of a dict": lambda: {bytes(BYTES): 0},
    "deque": lambda: deque([tensor()]),
    "ordered dict": lambda: OrderedDict(a=tensor()),
    "set": lambda: {tensor()},
    "object": lambda: SimpleNamespace(deep=SimpleNamespace(kept=tensor())),
    "closure": closure,
    "closure in a closure": nested_closure,
    "default argument": lambda: default_arguments()[0],
    "keyword default": lambda: default_arguments()[1],
    "attribute of a function": with_attribute,
    "bound method": lambda: Method().call,
    "partial": lambda: functools.partial(print, tensor()),
    "keyword of a partial": lambda: functools.partial(print, sep=tensor()),
    "slots": Slotted,
    "inherited slots": Derived,
    "class attribute": Shared,
    "module": lambda: nn.Linear(25, 1, bias=False),
    "array": lambda: np.zeros(25, dtype=np.float32),
    "bytes": lambda: bytes(BYTES),
    "bytearray": lambda: bytearray(BYTES),
}
SIZES = {
    "two tensors": (lambda: [tensor(), tensor()], 200),
    "array of two objects": (objects, 100 + 2 * 8),
    "buffers": (lambda: nn.BatchNorm1d(12, affine=False), 2 * 12 * 4 + 8),  # mean, variance, counter
    "memory": (memory, 8 * (5 * 4 + 8 + 8)),  # pixels, label and task of each row
    "sparse": (lambda: torch.ones(5, 1).to_sparse(), 5 * 4 + 2 * 5 * 8),
    "sparse rows": (lambda: torch.sparse_csr_tensor([0, 5], list(range(5)), torch.ones(5)), (2 + 5) * 8 + 5 * 4),
}


@pytest.mark.parametrize("place", PLACES)
def test_what_is_kept_is_found_wherever_it_is(place, keeper):
    assert footprint(keeper(PLACES[place]())) == BYTES


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("thing", SIZES)
def test_sizes(thing, keeper):
    make, size = SIZES[thing]
    assert footprint(keeper(make())) == size


def test_shared_storage_counts_once(keeper):
    t, a = torch.zeros(10, 10), np.zeros((10, 10), dtype=np.float32)
    assert footprint(keeper([t, t[2:], t.view(-1), t.t(), t.detach()])) == 400
    assert footprint(keeper([a[3:], a, a.T, a[:1]])) == footprint(keeper([a[:1], a])) == 400
    assert footprint(keeper([a, torch.from_numpy(a)])) == 400


@pytest.mark.parametrize("view", [lambda: torch.zeros(100)[:1], lambda: np.zeros(100, dtype=np.float32)[50:51]])
def test_a_view_counts_all_it_keeps_alive(view, keeper):
    assert footprint(keeper(view())) == 400


def test_weights_count_once_and_gradients_not_at_all(keeper):
    net = Net(nn.Linear(9, 10))
    assert footprint(keeper(net)) == 400
    net(torch.ones(2, 9)).sum().backward()
    assert footprint(keeper([net, net.theta, net.module])) == 400
    module = nn.Linear(9, 10)
    module(torch.ones(2, 9)).sum().backward()
    assert footprint(keeper(module)) == 400


def test_optimiser_state_counts(keeper):
    net, adam = Net(nn.Linear(9, 10)), optimiser("adam", 0.1)
    adam.step(net)
    assert 3 * 400 <= footprint(keeper([net, adam])) <= 3 * 400 + 64  # and a few listed numbers


def test_cycles_and_opaque_things_end(keeper):
    loop: list = [torch.Generator(), torch, int, "text", 3, torch.float32, None, tensor()]
    loop.append(loop)
    assert footprint(keeper(loop)) == BYTES + len("text") + 8
    assert len(list(reachable(keeper(loop)))) == 2  # the tensor; the word and the number together
