"""Means, 95% intervals and verdicts over seeds, and the content of summary.json."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes half a second to import

from holdfast.errors import BadInput
from holdfast.metrics.groups import Asked, Group, group
from holdfast.metrics.scores import METRICS
from holdfast.types import Record

CONFIDENCE = 0.95
DUST = 1e-12  # what rounding leaves of equal numbers, as a share of them or, below 1, as it is


class Interval(NamedTuple):
    """A mean and its 95% interval; None where undefined."""

    mean: float | None
    low: float | None
    high: float | None

    @property
    def half(self) -> float | None:
        """The ± of the interval."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2


def interval(values: Sequence[float | None]) -> Interval:
    """Mean and Student's 95% interval over seeds: x̄ ± t(0.975, n−1) · s/√n.

    One value has no interval, nor have values that are all the same: they do not say how much others would vary. A
    missing value leaves all three undefined: a mean over the seeds that happened to have a number would not be
    comparable.

    >>> interval([0.5]), interval([0.25, 0.25])
    (Interval(mean=0.5, low=None, high=None), Interval(mean=0.25, low=None, high=None))
    """
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Interval(None, None, None)
    n, mean = len(known), float(np.mean(known))
    if max(known) - min(known) <= DUST * max(1.0, abs(mean)):
        return Interval(mean, None, None)
    half = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2) * np.std(known, ddof=1) / math.sqrt(n))
    return Interval(mean, mean - half, mean + half)


def paired(a: Sequence[float | None], b: Sequence[float | None]) -> Interval:
    """The interval of a − b, seed by seed: a[i] and b[i] must come from the same seed."""
    return interval(differences(a, b))


def differences(a: Sequence[float | None], b: Sequence[float | None]) -> list[float | None]:
    """a − b, seed by seed; None where either is undefined."""
    if len(a) != len(b):
        raise BadInput(f"paired values must come from the same seeds, not {len(a)} and {len(b)} of them")
    return [None if x is None or y is None else x - y for x, y in zip(a, b, strict=True)]


def verdict(
    a: Sequence[float | None], b: Sequence[float | None], larger_is_better: bool = True
) -> Literal["a", "b", "tie"]:
    """Who is better: a winner only when the interval of the paired difference excludes 0.

    >>> verdict([0.9, 0.8, 0.9], [0.5, 0.5, 0.6])
    'a'
    >>> verdict([0.9], [0.5])
    'tie'
    """
    _, low, high = paired(a, b)
    if low is None or high is None or low <= 0 <= high:
        return "tie"
    return "a" if (low > 0) == larger_is_better else "b"


def standings(groups: Sequence[Group], metric: str) -> dict[str, Literal["best", "tie"]]:
    """Which labels lead in a metric, among groups of one arena.

    'best' is a winner over every other; otherwise the leader and all that cannot be told from it are 'tie'. Pairs
    are formed over common seeds. Nobody leads with one seed or without a rival. A learner that saw all tasks at once
    is no rival, nor is one that lacks seeds: those that failed might have changed its mean.
    """
    larger = METRICS[metric].larger_is_better
    able = [g for g in groups if g.complete and not g.mixed]
    means = {g.label: mean for g in able if (mean := interval(g.values(metric)).mean) is not None}
    rivals = {g.label: g.by_seed for g in able if g.label in means}
    if len(rivals) < 2 or max(len(seeds) for seeds in rivals.values()) < 2:
        return {}
    leader = (max if larger else min)(means, key=lambda label: means[label])
    lead = rivals.pop(leader)
    level = []
    for label, other in rivals.items():
        common = [seed for seed in lead if seed in other]
        if verdict([lead[s][metric] for s in common], [other[s][metric] for s in common], larger) == "tie":
            level.append(label)
    return dict.fromkeys([leader, *level], "tie") if level else {leader: "best"}


def summarise(records: Iterable[Record], asked: Sequence[Asked] = (), names: Sequence[str] = ()) -> dict[str, Any]:
    """The content of summary.json: per label every metric with its interval and its values, in order of seeds.

    What was asked for and has no record at all is under `unfinished`.
    """
    methods = {
        g.label: {**who(g), **{metric: over_seeds(g.values(metric)) for metric in g.metrics()}}
        for g in group(records, names, asked)
    }
    return {"schema": 1, "methods": methods, **unfinished(asked)}


def unfinished(asked: Sequence[Asked]) -> dict[str, Any]:
    """What summary.json says of what was asked for and has no record at all, if there is such."""
    bare = [each for each in asked if not each.records]
    told = [{"label": each.title, "asked": len(each.seeds), "failed": list(each.failed)} for each in bare]
    return {"unfinished": told} if told else {}


def over_seeds(values: Sequence[float | None]) -> dict[str, Any]:
    """What summary.json says of a metric: its interval and its values, in order of seeds."""
    return {**interval(values)._asdict(), "values": list(values)}


def who(g: Group) -> dict[str, Any]:
    """What summary.json says of a label beside its metrics."""
    return {
        "label": g.label,
        "method": g.first.method,
        "scenario": g.scenario,
        "task_label_given": g.task_label_given,
        "net": g.net,
        "seeds": g.seeds,
        "asked": len(g.asked),
        "failed": list(g.failed),
    }
