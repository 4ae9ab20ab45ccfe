"""Disjoint classes, some per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch

from holdfast.seeds import generator
from holdfast.settings import Count, Whole
from holdfast.streams._base import Plan, StreamSpec
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Split(StreamSpec):
    """The classes are dealt out to the tasks: Split MNIST, incremental CIFAR-100 (papers 001, 002).

    In the `class` scenario one output vector covers all classes; `task` masks it to the task's own; in `domain`
    every task uses the same outputs 0, 1, ... for its first, second, ... class.
    """

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
        if self.scenario == "domain" and len(set(self._sizes(n))) > 1:
            found.append(
                f"the domain scenario needs tasks of equal size, not {', '.join(map(str, self._sizes(n)))} classes"
            )
        return found

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        order = self._order(len(data.classes), seed)
        sizes = self._sizes(len(order))
        scenario = self.scenario or "class"
        plans, first = [], 0
        for size in sizes:
            source = tuple(order[first : first + size])
            classes = tuple(range(size)) if scenario == "domain" else source
            plans.append(Plan("classes " + " ".join(data.classes[c] for c in source), source, classes))
            first += size
        outputs = sizes[0] if scenario == "domain" else len(data.classes)
        return scenario, outputs, plans

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
