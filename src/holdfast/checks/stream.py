"""Contracts that every stream must pass: pure in its seed, honest in its parts."""

from __future__ import annotations

from itertools import product

import torch
from torch import Tensor

from holdfast.types import Mixture, Part, Stream, Task


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
            _require(
                torch.equal(part.cut(slice(1, 3)), part.cut(slice(0, 3))[1:]),
                f"{name}: a row looks otherwise beside other rows; its transform must depend on the row alone",
            )
        _check_augmented(name, task)
    _check_segments(stream, again)
    for kept, trained in product(stream.tasks, stream.tasks):
        shared = torch.isin(_places(kept.val), _places(trained.train)).any()
        _require(not bool(shared), f"a validation row of task {kept.t} is a training row of task {trained.t}")


def _check_segments(stream: Stream, again: Stream) -> None:
    """What is shown is pure in the seed, looks like the tasks, and has none of their validation or test rows."""
    info = stream.info
    _require(len(stream.segments) == len(stream), "there must be as many segments as tasks")
    hidden = [segment.task is None for segment in stream.mixtures]
    _require(all(hidden) if info.hidden else not any(hidden), "info.hidden and the segments' tasks disagree")
    _require(not (info.hidden and info.task_given), "the task scenario tells what hidden boundaries hide")
    for segment, twin in zip(stream.mixtures, again.mixtures, strict=True):
        name, train = f"segment {segment.t}", segment.train
        _require(
            _same(train, twin.train) and _same(segment.val, twin.val) and _equal(segment.task, twin.task),
            f"the same seed gave another {name}: draw only from generators seeded by seed_for",
        )
        x = train.x(torch.arange(min(2, len(train))))
        shape = tuple(x.shape[1:])
        _require(shape == info.shape, f"{name}: examples have shape {shape}, not {info.shape}")
        _require(segment.val.augment is None, f"{name} augments validation rows")
        for task in stream.tasks:
            for kind, part in (("validation", task.val), ("test", task.test)):
                shared = torch.isin(_places(part), _places(train)).any()
                _require(not bool(shared), f"a {kind} row of task {task.t} is a training row of {name}")


def _equal(a: int | Tensor | None, b: int | Tensor | None) -> bool:
    return torch.equal(a, b) if isinstance(a, Tensor) and isinstance(b, Tensor) else a is b or a == b


def _check_augmented(name: str, task: Task) -> None:
    """Only training rows are, and less than the margin says: the audit finds them by their middle."""
    _require(task.val.augment is None and task.test.augment is None, f"{name} augments validation or test rows")
    augment = task.train.augment
    if augment is None:
        return
    image = task.train.raw(torch.arange(1))
    m, (height, width) = augment.margin, image.shape[2:]
    middle = image[:, :, m : height - m, m : width - m]
    _require(middle.numel() > 0, f"{name}: a margin of {m} leaves nothing of images of {height}×{width}")
    shown = augment(image.expand(20, -1, -1, -1), torch.Generator().manual_seed(0))
    found = torch.zeros(len(shown), dtype=torch.bool)
    for down, right in product(range(2 * m + 1), repeat=2):
        window = shown[:, :, down : down + height - 2 * m, right : right + width - 2 * m]
        found |= (window == middle).flatten(1).all(1) | (window == middle.flip(-1)).flatten(1).all(1)
    _require(bool(found.all()), f"{name}: augmented images lack their middle, which is all but a margin of {m}")


def _places(part: Part) -> Tensor:
    """Where each row lies in memory: in a table that tasks share, a row is the same however a task transforms it."""
    if isinstance(part, Mixture):
        return torch.cat([_places(each) for each in part.parts])[part.rows]
    return part.pixels.data_ptr() + part.rows * part.pixels.stride(0) * part.pixels.element_size()


def _same(a: Part, b: Part) -> bool:
    some = torch.arange(min(16, len(a)))
    return len(a) == len(b) and torch.equal(a.y, b.y) and torch.equal(a.raw(some), b.raw(some))


def _require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)
