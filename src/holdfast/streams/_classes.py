"""Classes dealt out to tasks: what several streams share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import torch

from holdfast.seeds import generator
from holdfast.settings import Count, Whole
from holdfast.streams._base import Plan, StreamSpec
from holdfast.types import DataSet, Scenario


@dataclass(frozen=True)
class ClassGroups(StreamSpec):
    """Every task has a group of classes that is its own."""

    order: Literal["natural", "random"] | tuple[Whole, ...] = "natural"  # of the classes: natural, random or listed
    sizes: tuple[Count, ...] | None = None  # classes of each task; none: equal shares

    def faults(self, data: DataSet) -> list[str]:
        found, n = [], len(data.classes)
        if isinstance(self.order, tuple):
            wrong = [c for c in self.order if c >= n]
            if wrong:
                found.append(f"order names class {wrong[0]}, but data set {data.name!r} has classes 0 to {n - 1}")
            if len(set(self.order)) < len(self.order):
                found.append("order names a class twice; every class can be in one task only")
            n = len(self.order)
        if self.sizes is not None and len(self.sizes) != self.tasks:
            found.append(f"sizes must give one number per task ({self.tasks}), not {len(self.sizes)}")
        elif self.sizes is not None and sum(self.sizes) > n:
            found.append(f"sizes ask for {sum(self.sizes)} classes, but there are {n}")
        elif self.sizes is None and self.tasks > n:
            found.append(f"{self.tasks} tasks cannot be cut from {n} classes; at most {n} tasks of one class each")
        return found

    def groups(self, data: DataSet, seed: int) -> list[tuple[int, ...]]:
        """The classes of the data set that each task has."""
        order = self._order(len(data.classes), seed)
        ends = torch.tensor([0, *self._sizes(len(order))]).cumsum(0).tolist()
        return [tuple(order[first:end]) for first, end in pairwise(ends)]

    def _order(self, n: int, seed: int) -> list[int]:
        if isinstance(self.order, tuple):
            return list(self.order)
        if self.order == "random":
            return torch.randperm(n, generator=generator(seed, "split", "order")).tolist()
        return list(range(n))

    def _sizes(self, n: int) -> list[int]:
        """Equal shares; what does not divide goes one each to the first tasks."""
        if self.sizes is not None:
            return list(self.sizes)
        each, rest = divmod(n, self.tasks)
        return [each + (t < rest) for t in range(self.tasks)]


@dataclass(frozen=True)
class DisjointClasses(ClassGroups):
    """Its group is all that a task has.

    In the `class` scenario one output vector covers all classes; `task` masks it to the task's own; in `domain`
    every task uses the same outputs 0, 1, ... for its first, second, ... class. With `outputs=common` so it does in
    `task`, as in paper 000, where the task may choose a head or a leg, and all others share the outputs.
    """

    outputs: Literal["own", "common"] = "own"  # of a task in the task scenario: of its classes, or those of all tasks

    def faults(self, data: DataSet) -> list[str]:
        found = super().faults(data)
        if self.outputs == "common" and (self.scenario or "class") == "class":
            found.append("outputs=common needs the task label, which the 'class' scenario hides; use scenario 'task'")
        sizes = self._sizes(len(self.order) if isinstance(self.order, tuple) else len(data.classes))
        if self._common and len(set(sizes)) > 1:
            what = "the domain scenario" if self.scenario == "domain" else "outputs=common"
            found.append(f"{what} needs tasks of equal size, not {', '.join(map(str, sizes))} classes")
        return found

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        scenario = self.scenario or "class"
        groups = self.groups(data, seed)
        plans = [
            Plan(named(data, group), group, tuple(range(len(group))) if self._common else group) for group in groups
        ]
        return scenario, len(groups[0]) if self._common else len(data.classes), plans

    @property
    def _common(self) -> bool:
        """Whether all tasks have the same outputs."""
        return self.scenario == "domain" or self.outputs == "common"


def named(data: DataSet, classes: Sequence[int]) -> str:
    """What a task of these classes is called."""
    return "classes " + " ".join(data.classes[c] for c in classes)
