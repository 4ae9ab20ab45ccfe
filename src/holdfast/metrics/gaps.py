"""What the scenario alone is worth: the same runs in two scenarios, paired over seeds (paper 001, figures 5 and 6)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from holdfast.metrics.groups import Group
from holdfast.metrics.statistics import Interval, differences, interval

EASE = ("task", "domain", "class")  # from what is usually the easiest to the hardest


@dataclass(frozen=True)
class Gap:
    """The difference in ACC between two groups that differ in their scenario alone."""

    easier: Group  # the one with the task label, else with the fewer outputs to choose from
    harder: Group
    seeds: tuple[int, ...]  # that both finished
    differences: tuple[float | None, ...]  # of ACC, easier − harder, per seed

    @property
    def acc(self) -> Interval:
        """The mean difference and its 95% interval."""
        return interval(self.differences)

    @property
    def label(self) -> str:
        """What both are called without their scenario: 'ewc' for 'ewc/task' and 'ewc/class'."""
        bare = {g.label.replace(f"/{g.scenario}", "", 1) for g in (self.easier, self.harder)}
        return bare.pop() if len(bare) == 1 else f"{self.easier.label} and {self.harder.label}"

    @property
    def whole(self) -> bool:
        """Whether no seed of either is missing."""
        return self.easier.complete and self.harder.complete and len(self.seeds) == len(self.easier.seeds)

    def entry(self) -> dict[str, Any]:
        """What summary.json says of it."""
        return {
            "label": self.label,
            "scenarios": [self.easier.scenario, self.harder.scenario],
            "labels": [self.easier.label, self.harder.label],
            "seeds": list(self.seeds),
            "acc": {**self.acc._asdict(), "values": list(self.differences)},
        }


def gaps(groups: Iterable[Group]) -> list[Gap]:
    """One for every two groups that differ in nothing but their scenario, in the order of the first of them."""
    alike: dict[str, list[Group]] = defaultdict(list)
    for each in groups:
        alike[each.beside_scenario].append(each)
    pairs = (sorted(pair, key=_ease) for twins in alike.values() for pair in combinations(twins, 2))
    return [_gap(*pair) for pair in pairs if pair[0].scenario != pair[1].scenario]


def _ease(group: Group) -> int:
    return EASE.index(group.scenario)


def _gap(easier: Group, harder: Group) -> Gap:
    common = tuple(seed for seed in easier.seeds if seed in harder.by_seed)
    first, second = ([g.by_seed[seed]["acc"] for seed in common] for g in (easier, harder))
    return Gap(easier, harder, common, tuple(differences(first, second)))
