"""What the past was worth to the last task: runs beside the same runs on that task alone (paper 000, eq. 3)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.metrics.groups import Group
from holdfast.metrics.scores import transfer
from holdfast.metrics.statistics import Interval, interval
from holdfast.types import Record


@dataclass(frozen=True)
class Transfer:
    """The last task of a stream, learned after all others and alone, by the same method with the same seeds."""

    whole: Group
    alone: Group
    seeds: tuple[int, ...]  # that both finished
    last: tuple[float | None, ...]  # accuracy on the last task after the stream, per seed
    isolated: tuple[float | None, ...]  # and where nothing came before it
    values: tuple[float | None, ...]  # T(S)

    @property
    def label(self) -> str:
        return self.whole.label

    @property
    def gain(self) -> Interval:
        """T(S): the mean over seeds and its 95% interval."""
        return interval(self.values)

    def entry(self) -> dict[str, Any]:
        """What summary.json says of it beside the metrics of the whole stream."""
        return {**self.gain._asdict(), "values": list(self.values)}


def transfers(groups: Iterable[Group]) -> list[Transfer]:
    """One for every group that has a twin which learned the last task and nothing else, in the order they come."""
    every = list(groups)
    lone = [each for each in every if each.alone is not None]
    twins: dict[frozenset[str], dict[str, list[Group]]] = {}
    found = []
    for whole in every:
        if whole.alone is not None or whole.mixed:
            continue
        if whole.tuned not in twins:
            twins[whole.tuned] = defaultdict(list)
            for each in lone:
                twins[whole.tuned][each.beside_alone(whole.tuned)].append(each)
        last = len(whole.first.tasks) - 1
        mine = twins[whole.tuned].get(whole.beside_alone(whole.tuned), [])
        found += [_transfer(whole, alone) for alone in mine if alone.alone == last]
    return found


def _transfer(whole: Group, alone: Group) -> Transfer:
    after, before = ({record.seed: record for record in g.records} for g in (whole, alone))
    seeds = tuple(seed for seed in after if seed in before)
    return Transfer(
        whole,
        alone,
        seeds,
        tuple(_end(after[seed]) for seed in seeds),
        tuple(_end(before[seed]) for seed in seeds),
        tuple(transfer(after[seed], before[seed]) for seed in seeds),
    )


def _end(record: Record) -> float | None:
    """What the last task ended at; None where it was not scored."""
    accuracy = float(record.final[-1, -1])
    return accuracy if math.isfinite(accuracy) else None
