"""Tasks that have classes in common."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import final

from holdfast.settings import Fraction
from holdfast.streams._base import Plan, bounds
from holdfast.streams._classes import ClassGroups, named
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Overlapping(ClassGroups):
    """Classes occur in several tasks, at different frequencies (paper 001 §5: overlapping tasks).

    Every class is at home in one task and visits the others: of its rows, a task k tasks away has overlapᵏ times as
    many as its home. A row, whether to train or to test on, is in one task alone, so tests have the frequencies of
    training. All tasks have the same outputs, those of the data set, in any scenario; `task` masks those of classes
    that the task has no row of.

    >>> import holdfast as hf
    >>> stream = hf.stream("overlapping", tasks=3, order=(0, 1, 2), overlap=0.5)
    >>> [task.train.y.bincount().tolist() for task in stream.tasks]
    [[81, 36, 20], [41, 74, 41], [20, 36, 81]]
    """

    overlap: Fraction = 0.3  # rows of a class that a task has for each that the one nearer to its home has

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        counts = data.y.bincount(minlength=len(data.classes)).tolist()
        homes = {c: home for home, group in enumerate(self.groups(data, seed)) for c in group}
        shares = {c: self._shares(home) for c, home in homes.items()}
        plans = []
        for t in range(self.tasks):
            mine = [c for c in sorted(homes) if len(range(*bounds(counts[c], shares[c][t])))]
            at_home = [c for c in mine if homes[c] == t]
            share = tuple(shares[c][t] for c in mine)
            source = tuple(mine)
            plans.append(Plan(f"mostly {named(data, at_home)}", source, source, shares=share, test_shares=share))
        return self.scenario or "class", len(data.classes), plans

    def _shares(self, home: int) -> list[tuple[float, float]]:
        """What each task has of the rows of a class."""
        weights = [self.overlap ** abs(t - home) for t in range(self.tasks)]
        total = sum(weights)
        return list(pairwise(accumulate((w / total for w in weights), initial=0.0)))
