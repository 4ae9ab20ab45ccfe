"""Which results are worth their cost: those that no other beats in accuracy for the same cost or less."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.metrics.groups import Group
from holdfast.metrics.statistics import interval


def front(groups: Sequence[Group], cost: str) -> list[Group]:
    """The Pareto-optimal among groups of one arena, means over seeds of ACC against a cost, the cheapest first.

    As in rankings, a learner that saw all tasks at once is no rival, nor is one that lacks seeds. Of two with the same
    cost and the same ACC both are optimal.
    """
    rivals, points = [], []
    for g in groups:
        spent, accuracy = interval(g.values(cost)).mean, interval(g.values("acc")).mean
        if g.complete and not g.mixed and spent is not None and accuracy is not None:
            rivals.append(g)
            points.append((spent, accuracy))
    return [rivals[i] for i in optimal(points)]


def optimal(points: Sequence[tuple[float, float]]) -> list[int]:
    """Which points (cost, accuracy) no other beats in one without losing in the other, the cheapest first.

    >>> optimal([(3.0, 0.9), (1.0, 0.5), (2.0, 0.4), (3.0, 0.9)])
    [1, 0, 3]
    """
    best = [
        i
        for i, (cost, accuracy) in enumerate(points)
        if not any(c <= cost and a >= accuracy and (c, a) != (cost, accuracy) for c, a in points)
    ]
    return sorted(best, key=lambda i: points[i])
