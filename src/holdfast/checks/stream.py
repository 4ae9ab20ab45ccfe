"""Contracts that every stream must pass: pure in its seed, honest in its parts."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from holdfast.types import Part, Stream


def check_stream(stream: Stream) -> None:
    """Raise an AssertionError that says what is wrong with a stream.

    >>> from holdfast.streams import streams
    >>> check_stream(streams.make("split", {"val": 0.1}).cut("split", "digits", 0))
    """
    again, other = stream.reseed(stream.seed), stream.reseed(stream.seed + 1)
    info = stream.info
    _require(len(stream) == info.tasks, "info.tasks is not the number of tasks")
    _require(
        all(_same(a.train, b.train) and _same(a.test, b.test) for a, b in zip(stream.tasks, again.tasks, strict=True)),
        "the same seed gave another stream: draw only from generators seeded by seed_for",
    )
    _require(other.info.shape == info.shape, "another seed changed the shape of the examples")
    for task in stream.tasks:
        name = f"task {task.t}"
        _require(task.classes == info.task_classes[task.t], f"{name}: info has other classes than the task")
        _require(len(task.train) > 0 and len(task.test) > 0, f"{name} has no training or no test rows")
        for part in (task.train, task.val, task.test):
            inside = torch.isin(part.y, torch.tensor(task.classes)).all()
            _require(bool(inside), f"{name} has labels outside its classes {task.classes}")
            x = part.x(torch.arange(min(2, len(part))))
            shape = tuple(x.shape[1:])
            _require(shape == info.shape, f"{name}: examples have shape {shape}, not {info.shape}")
            _require(x.dtype == torch.float32, f"{name}: examples are {x.dtype}, not float32")
    for kept, trained in product(stream.tasks, stream.tasks):
        shared = torch.isin(_places(kept.val), _places(trained.train)).any()
        _require(not bool(shared), f"a validation row of task {kept.t} is a training row of task {trained.t}")


def _places(part: Part) -> Tensor:
    """Where each row lies in memory: in a table that tasks share, a row is the same however a task transforms it."""
    return part.pixels.data_ptr() + part.rows * part.pixels.stride(0) * part.pixels.element_size()


def _same(a: Part, b: Part) -> bool:
    some = torch.arange(min(16, len(a)))
    return len(a) == len(b) and torch.equal(a.y, b.y) and torch.equal(a.raw(some), b.raw(some))


def _require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)
