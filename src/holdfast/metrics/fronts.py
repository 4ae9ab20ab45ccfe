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
    points = []
    for g in groups:
        spent, accuracy = interval(g.values(cost)).mean, interval(g.values("acc")).mean
        if g.complete and not g.mixed and spent is not None and accuracy is not None:
            points.append((spent, -accuracy, g))
    best = [
        (spent, lost, g)
        for spent, lost, g in points
        if not any(s <= spent and a <= lost and (s, a) != (spent, lost) for s, a, _ in points)
    ]
    return [g for _, _, g in sorted(best, key=lambda point: point[:2])]
