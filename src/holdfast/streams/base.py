"""A stream is a recipe: settings as dataclass fields, and `cut`, which cuts a data set into tasks."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from holdfast.data import as_dataset
from holdfast.errors import BadInput
from holdfast.seeds import generator
from holdfast.settings import Count, Fraction, Whole, expected, fits, provenance, settings_of
from holdfast.streams._images import CropFlip, scale_of
from holdfast.types import CENTRED, DataSet, Part, Scenario, Stream, StreamInfo, Task, Transform

BESIDES = {"data": str, "seed": Whole}  # what can be said of a stream besides the settings of its recipe


@dataclass(frozen=True)
class StreamSpec(ABC):
    """What all streams share: how many tasks, how much data each, and who knows the task."""

    tasks: Count = 5  # number of tasks
    examples: Count | None = None  # training rows per task; none: all there are
    test_examples: Count | None = None  # test rows per task; none: all there are
    val: Fraction = 0.0  # share of each class's training rows kept apart for validation, in all tasks
    scenario: Scenario | None = None  # class, domain or task; none: the stream's own default
    augment: bool = False  # training batches show random crops (padded by an eighth of the side) and mirror images
    scale: Literal["unit", "centred", "task"] = (
        "unit"  # bytes: from 0 to 1, from −1 to 1, or to the task's mean 0 and deviation 1
    )

    def faults(self, data: DataSet) -> list[str]:
        """What is impossible about these settings for this data set."""
        return []

    @abstractmethod
    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        """The scenario, the number of outputs, and what each task is made of."""

    def cut(self, name: str, given: Any, seed: int) -> Stream:
        """The stream for one seed, from a data set or whatever can be made one."""
        data = as_dataset(given, seed)
        faults = self.faults(data)
        if len(data.classes) < 2:
            faults.append(f"data set {data.name!r} has one class; a stream needs at least two")
        if self.val >= 1:
            faults.append(f"val must leave training rows: below 1, not {self.val:g}")
        if self.augment and len(data.shape) != 3:
            faults.append(f"augment needs images, but data set {data.name!r} has vectors of {data.shape[0]}")
        if self.scale == "task" and data.x.dtype != torch.uint8:
            faults.append(
                f"scale=task is for bytes, but data set {data.name!r} has floats, which are shown as they are"
            )
        if faults:
            raise BadInput(*faults)
        scenario, outputs, plans = self.plan(data, seed)
        faults = list(_faults_of_plan(name, scenario, outputs, plans, data))
        if self.scale == "task" and scenario != "task":
            faults.append(
                f"scale=task needs the task label to show test rows, and the {scenario!r} scenario hides it; "
                "use scenario 'task', or scale=centred"
            )
        if faults:
            raise BadInput(*faults)
        held = _held(data.y, self.val, seed)
        tasks = tuple(self._task(t, plan, data, held, seed) for t, plan in enumerate(plans))
        info = StreamInfo(name, scenario, tasks[0].train.shape, outputs, tuple(task.classes for task in tasks))
        chosen = {k: v["chosen_by"] for k, v in provenance(self).items()}
        settings = {"data": data.name, **settings_of(self), "tasks": len(tasks), "scenario": scenario}
        return Stream(info, tasks, seed, settings, data.fingerprint, partial(self.cut, name, given), chosen, self)

    def _task(self, t: int, plan: Plan, data: DataSet, held: Tensor, seed: int) -> Task:
        rng = generator(seed, "rows", task=t)
        rows = _rows_of(data.y, plan.source)
        rows = rows[torch.randperm(len(rows), generator=rng)]  # all, so that test rows are the same for any val
        train, val = rows[~held[rows]], rows[held[rows]]
        train = _capped(train, self.examples, f"examples of task {t}", len(val))
        test = _rows_of(data.y_test, plan.source)
        if self.test_examples is not None:
            test = _capped(test[torch.randperm(len(test), generator=rng)], self.test_examples, f"test rows of task {t}")
        if not len(train):
            raise BadInput(f"task {t} ({plan.name}) has no training rows{_after(len(val))}")
        if not len(test):
            raise BadInput(f"task {t} ({plan.name}) has no test rows")
        to_stream = torch.full((len(data.classes),), -1)
        to_stream[list(plan.source)] = torch.tensor(plan.classes)

        def part(pixels: Tensor, y: Tensor, rows: Tensor) -> Part:
            return Part(pixels, rows, to_stream[y[rows]], plan.transform)

        parts = part(data.x, data.y, train), part(data.x, data.y, val), part(data.x_test, data.y_test, test)
        return Task(t, plan.name, tuple(sorted(set(plan.classes))), *self._dressed(*parts))

    def _dressed(self, train: Part, val: Part, test: Part) -> tuple[Part, Part, Part]:
        """The parts of a task, augmented and scaled as the settings say."""
        scale = scale_of(train) if self.scale == "task" else CENTRED if self.scale == "centred" else None
        augment = CropFlip(min(train.shape[1:]) // 8) if self.augment else None
        return replace(train, augment=augment, scale=scale), replace(val, scale=scale), replace(test, scale=scale)


@dataclass(frozen=True)
class Plan:
    """What one task is made of."""

    name: str
    source: tuple[int, ...]  # classes of the data set
    classes: tuple[int, ...]  # the stream's class index for each of them
    transform: Transform | None = None


def _faults_of_plan(name: str, scenario: str, outputs: int, plans: list[Plan], data: DataSet) -> Iterator[str]:
    """What a stream of a user's may have planned that cannot be."""
    if not fits(Scenario, scenario):
        yield f"scenario of stream {name!r} must be {expected(Scenario)}, not {scenario!r}"
    if not plans:
        yield f"stream {name!r} plans no task"
    for t, plan in enumerate(plans):
        what = f"task {t} ({plan.name}) of stream {name!r}"
        if len(plan.source) != len(plan.classes):
            yield f"{what} has {len(plan.source)} classes of the data set, but {len(plan.classes)} of the stream"
        elif not plan.source:
            yield f"{what} has no classes"
        elif min(plan.source) < 0 or max(plan.source) >= len(data.classes):
            yield f"{what} needs class {max(plan.source)}, but data set {data.name!r} has {len(data.classes)} classes"
        elif min(plan.classes) < 0 or max(plan.classes) >= outputs:
            yield f"{what} has class {max(plan.classes)}, but the stream has {outputs} outputs, counted from 0"


def same_classes(data: DataSet, transforms: Iterable[tuple[str, Transform | None]]) -> list[Plan]:
    """Tasks that all have the data set's classes and differ by a (named) transform of the pixels."""
    classes = tuple(range(len(data.classes)))
    return [Plan(name, classes, classes, transform) for name, transform in transforms]


def _rows_of(y: Tensor, classes: tuple[int, ...]) -> Tensor:
    return torch.isin(y, torch.tensor(classes)).nonzero().flatten()


def _held(y: Tensor, share: float, seed: int) -> Tensor:
    """(N,) which rows are kept for validation: a share of each class, at least one row of two or more.

    Drawn once for all tasks. Tasks that show the same images, permuted or rotated, would otherwise train on each
    other's validation rows. Shares are rounded such that they add up: 1/12 of MNIST is 5,000 rows.
    """
    held = torch.zeros(len(y), dtype=torch.bool)
    if not share:
        return held
    counts = y.bincount()
    ends = (counts.cumsum(0).double() * share).round().long()
    sizes = ends.diff(prepend=ends.new_zeros(1)).clamp(min=1) * (counts > 1)
    order = torch.randperm(len(y), generator=generator(seed, "validation"))
    classes = y[order]
    for c, size in enumerate(sizes.tolist()):
        held[order[classes == c][:size]] = True
    return held


def _capped(rows: Tensor, cap: int | None, what: str, held: int = 0) -> Tensor:
    if cap is None:
        return rows
    if cap > len(rows):
        raise BadInput(f"{what}: {cap} asked for, at most {len(rows)} there are{_after(held)}")
    return rows[:cap]


def _after(held: int) -> str:
    return f" (after {held} rows for validation)" if held else ""
