"""Many small tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import final

import torch

from holdfast.seeds import generator
from holdfast.settings import Count
from holdfast.streams._base import Plan, StreamSpec
from holdfast.streams._classes import named
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Long(StreamSpec):
    """Many small tasks of a few classes each, drawn at random (paper 001 §5: long task sequences).

    Classes are drawn like cards: none comes again before all have come, and none twice in a task. Each time other
    training rows of it come; tests have all rows of a task's classes. In the `domain` scenario every task uses the
    outputs 0, 1, ... for its first, second, ... class.

    >>> import holdfast as hf
    >>> stream = hf.stream("long", tasks=100, examples=8)
    >>> len(stream), {len(task.classes) for task in stream.tasks}
    (100, {2})
    """

    tasks: Count = 50  # number of tasks
    width: Count = 2  # classes of each task
    repeat: bool = True  # classes come again when all have come; no: each is in one task at most

    def faults(self, data: DataSet) -> list[str]:
        n = len(data.classes)
        if self.width > n:
            return [f"width asks for {self.width} classes in each task, but data set {data.name!r} has {n}"]
        needed = self.tasks * self.width
        if not self.repeat and needed > n:
            return [
                f"{self.tasks} tasks of {self.width} classes need {needed} without repetition, but data set "
                f"{data.name!r} has {n}; at most {n // self.width} tasks, or repeat=true"
            ]
        return []

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        scenario = self.scenario or "class"
        hands = self._hands(len(data.classes), seed)
        times = Counter(c for hand in hands for c in hand)
        come: Counter[int] = Counter()
        plans = []
        for hand in hands:
            shares = tuple((come[c] / times[c], (come[c] + 1) / times[c]) for c in hand)
            come.update(hand)
            classes = tuple(range(self.width)) if scenario == "domain" else hand
            plans.append(Plan(named(data, hand), hand, classes, shares=shares))
        return scenario, self.width if scenario == "domain" else len(data.classes), plans

    def _hands(self, n: int, seed: int) -> list[tuple[int, ...]]:
        """The classes of each task, from packs of all classes."""
        rng = generator(seed, "long", "classes")
        hands: list[tuple[int, ...]] = []
        pack: list[int] = []
        for _ in range(self.tasks):
            hand: list[int] = []
            while len(hand) < self.width:
                pack = pack or torch.randperm(n, generator=rng).tolist()
                card = next(c for c in pack if c not in hand)
                pack.remove(card)
                hand.append(card)
            hands.append(tuple(hand))
        return hands
