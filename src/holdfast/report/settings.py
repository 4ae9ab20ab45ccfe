"""The settings of all labels as one table: what they share first, then what is a label's own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from holdfast.metrics import Group
from holdfast.report import parts, words

SHARED = "all"
COLUMNS = [("Label", ""), ("Setting", ""), ("Value", ""), ("Chosen by", "")]


@dataclass(frozen=True)
class Row:
    owner: str  # a label, or 'all'
    name: str
    value: str
    chosen_by: str


def rows(groups: Sequence[Group]) -> list[Row]:
    """One row per setting; a setting that all labels have alike is written once."""
    each = {g.label: _of(g) for g in groups}
    first, *others = each.values()
    shared = {name: found for name, found in first.items() if others and all(o.get(name) == found for o in others)}
    own = [
        Row(label, name, *text) for label, found in each.items() for name, text in found.items() if name not in shared
    ]
    return [Row(SHARED, name, *text) for name, text in shared.items()] + own


def tables(groups: Sequence[Group]) -> str:
    """What somebody chose, and, folded, what was left at its default."""
    found = rows(groups) if groups else []
    chosen, defaults = ([row for row in found if (row.chosen_by == "default") == by] for by in (False, True))
    left = f"<details><summary>{len(defaults)} settings at their defaults</summary>{_table(defaults)}</details>"
    return (_table(chosen) if chosen else "") + (left if defaults else "")


def _table(found: Sequence[Row]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(row.owner)}</th><td><code>{escape(row.name)}</code></td>'
        f'<td>{escape(row.value)}</td><td class="quiet">{escape(row.chosen_by)}</td></tr>'
        for row in found
    )
    return parts.table("Settings", COLUMNS, body, "lines")


def _of(group: Group) -> dict[str, tuple[str, str]]:
    """name -> (value, chosen by); values that differ between seeds are all named."""
    names = dict.fromkeys(name for record in group.records for name in record.settings)
    return {name: _one(group, name) for name in names}


def _one(group: Group, name: str) -> tuple[str, str]:
    seeds: dict[str, list[str]] = defaultdict(list)
    chosen: dict[str, None] = {}
    for record in group.records:
        if name in record.settings:
            seeds[words.value(record.settings[name]["value"])].append(str(record.seed))
            chosen[str(record.settings[name]["chosen_by"])] = None
    if len(seeds) == 1:
        return next(iter(seeds)), ", ".join(chosen)
    values = (f"{value} (seed{'s' if len(who) > 1 else ''} {', '.join(who)})" for value, who in seeds.items())
    return "; ".join(values), ", ".join(chosen)
