"""What `holdfast audit` does."""

from __future__ import annotations

from typing import Any

from holdfast.api import Comparison
from holdfast.commands.terminal import print_json, print_table
from holdfast.metrics import Group
from holdfast.report import words
from holdfast.report.card import lines, tally


def show_cards(folder: str, as_json: bool) -> None:
    """The card of every result in an output folder, and which results have none."""
    found = Comparison.read(folder)
    groups = found.groups()
    if as_json:
        print_json({"schema": 1, "cards": {g.label: _card(g) for g in groups}})
        return
    for i, each in enumerate(groups):
        if i:
            print()
        card = lines(each)
        seeds = f"seed{'s' if len(each.seeds) > 1 else ''} {', '.join(map(str, each.seeds))}"
        seeds += "" if each.complete else f"; {words.finished(len(each.seeds), len(each.asked))}"
        print(f"{each.label} ({each.scenario} scenario, task label {words.label_given(each)}; {seeds})")
        print_table(["condition", "measured", "", "note"], [[c.label, c.value, c.met, c.note] for c in card])
        print(tally(card))
    for asked in (each for each in found.asked() if not each.records):
        print(f"\n{asked.title}: {words.finished(0, len(asked.seeds))}, so there is no card.")


def _card(group: Group) -> dict[str, Any]:
    """Every line with its value and verdict for each seed, in order of seeds."""
    keys = dict.fromkeys(key for record in group.records for key in record.card)
    return {
        "method": group.first.method,
        "scenario": group.scenario,
        "task_label_given": group.task_label_given,
        "seeds": group.seeds,
        "asked": len(group.asked),
        "failed": list(group.failed),
        "lines": {key: _line([record.card.get(key, {}) for record in group.records]) for key in keys},
    }


def _line(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "label": seeds[0].get("label"),
        "unit": seeds[0].get("unit"),
        "values": [line.get("value") for line in seeds],
        "met": [line.get("met") for line in seeds],
        "notes": [line.get("note") for line in seeds],
    }
