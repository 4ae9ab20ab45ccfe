"""The summary table before it is drawn: who has which number, and who leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.errors import BadInput
from holdfast.metrics import METRICS, Asked, Group, Interval, arenas, group, interval, paired, standings
from holdfast.report import words
from holdfast.types import Record

RANKED = ("acc", "bwt", "fwt", "forgetting", "lca")  # cheapness alone is no merit, so costs are not ranked


@dataclass(frozen=True)
class Cell:
    metric: str
    found: Interval
    mark: str  # 'best', 'tie' or ''

    @property
    def text(self) -> str:
        """The number; costs without ±, which says little about them."""
        if self.metric in RANKED:
            return words.spread(self.found, self.metric)
        return words.number(self.found.mean, self.metric)


@dataclass(frozen=True)
class Row:
    group: Group
    cells: dict[str, Cell]

    @property
    def seeds(self) -> str:
        """'1/3': those that finished, of those that were asked for."""
        return f"{len(self.group.seeds)}/{len(self.group.asked)}"


def arenas_of(records: Sequence[Record], names: Sequence[str] = (), asked: Sequence[Asked] = ()) -> list[list[Group]]:
    """Records as arenas of groups; groups of different arenas are never ranked against each other."""
    if not records:
        raise BadInput("there are no records to report; run something first")
    return arenas(group(records, names, asked))


def rows(arena: Sequence[Group], metrics: Sequence[str]) -> list[Row]:
    """One row per label of an arena."""
    marks = {metric: standings(arena, metric) if metric in RANKED else {} for metric in metrics}
    return [Row(g, {m: Cell(m, interval(g.values(m)), marks[m].get(g.label, "")) for m in metrics}) for g in arena]


def ranked(rows: Sequence[Row]) -> list[Row]:
    """The highest ACC first; those that are not ranked follow."""

    def place(row: Row) -> tuple[bool, bool, float]:
        mean = row.cells["acc"].found.mean
        return row.group.mixed, not row.group.complete, float("inf") if mean is None else -mean

    return sorted(rows, key=place)


def behind(best: Group, other: Group) -> Interval:
    """By how much the ACC of the best is higher, over the seeds that both have."""
    common = [seed for seed in best.by_seed if seed in other.by_seed]
    return paired(*([g.by_seed[seed]["acc"] for seed in common] for g in (best, other)))


def lacking(groups: Sequence[Group], asked: Sequence[Asked] = ()) -> list[str]:
    """A sentence for each label that is not ranked because it lacks seeds, and for what was asked for in vain."""
    some = [(g.label, len(g.seeds), len(g.asked)) for g in groups if not g.complete]
    none = [(each.title, 0, len(each.seeds)) for each in asked if not each.records]
    return [f"{label}: {words.finished(done, wanted)}, not ranked." for label, done, wanted in some + none]


def title(metric: str) -> str:
    """A column's heading; the arrow says which way is better."""
    if metric not in RANKED:
        return METRICS[metric].label
    return f"{METRICS[metric].label} {'↑' if METRICS[metric].larger_is_better else '↓'}"
