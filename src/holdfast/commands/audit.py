"""What `holdfast audit` does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.api import Comparison
from holdfast.commands.terminal import FAILED, complain, print_json, print_table
from holdfast.errors import BadInput
from holdfast.metrics import Group, desiderata
from holdfast.report import words
from holdfast.report.card import blocks, line_of, lines, tally


def show_cards(folder: str, as_json: bool, require: str | None = None) -> int:
    """The card of every result in an output folder, and which results have none; 1 where a required line is not met."""
    wanted = [] if require is None else _required(require)
    found = Comparison.read(folder)
    groups, bare = found.groups(), [each for each in found.asked() if not each.records]
    lacking = desiderata.unmet(groups, wanted)
    if as_json:
        unmet = [{"label": g.label, "condition": key, "verdict": line_of(lines(g), key).met} for g, key in lacking]
        asked = {} if require is None else {"required": wanted, "unmet": unmet}
        print_json({"schema": 1, "cards": {g.label: _card(g) for g in groups}, **asked})
    else:
        _print_cards(groups)
        for each in bare:
            print(f"\n{each.title}: {words.finished(0, len(each.seeds))}, so there is no card.")
    missing = [f"{each.title}: has no card, so nothing that is required is met" for each in bare if wanted]
    complain(*(_complaint(g, key) for g, key in lacking), *missing)
    return FAILED if lacking or missing else 0


def _required(text: str) -> list[str]:
    given = [word.strip() for word in text.split(",") if word.strip()]
    if not given:
        raise BadInput(f"--require must name one or more conditions, e.g. no-old-data,causal, not {text!r}")
    return desiderata.required(given)


def _complaint(group: Group, key: str) -> str:
    line, name = line_of(lines(group), key), key.replace("_", "-")
    return f"{group.label}: {name} is required and {line.met} ({line.value}: {line.note})"


def _print_cards(groups: Sequence[Group]) -> None:
    for i, each in enumerate(groups):
        if i:
            print()
        card = lines(each)
        seeds = f"seed{'s' if len(each.seeds) > 1 else ''} {', '.join(map(str, each.seeds))}"
        seeds += "" if each.complete else f"; {words.finished(len(each.seeds), len(each.asked))}"
        print(f"{each.label} ({each.scenario} scenario, task label {words.label_given(each)}; {seeds})")
        for title, keys in blocks([each]):
            shown = [(name, line_of(card, key)) for key, name in keys.items()]
            rows = [[*([name] if any(keys.values()) else []), c.label, c.met, c.value, c.note] for name, c in shown]
            headings = [*(["desideratum"] if any(keys.values()) else []), "condition", "", "measured", "evidence"]
            print(f"\n{title}")
            print_table(headings, rows)
        print(f"\n{tally(card)}")


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
        "desiderata": _desiderata(group),
        "lines": {key: _line([record.card.get(key, {}) for record in group.records]) for key in keys},
    }


def _desiderata(group: Group) -> list[dict[str, Any]]:
    """Those of paper 001 in its order and words, all seeds together."""
    card, kinds = lines(group), {"minimal": desiderata.MINIMAL, "harder": desiderata.HARDER}
    named = [(kind, key, name) for kind, each in kinds.items() for key, name in each.items()]
    found = [(kind, name, line_of(card, key)) for kind, key, name in named]
    return [
        {
            "name": name,
            "kind": kind,
            "line": line.key,
            "verdict": line.met,
            "measured": line.value,
            "evidence": line.note,
        }
        for kind, name, line in found
    ]


def _line(seeds: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "label": seeds[0].get("label"),
        "unit": seeds[0].get("unit"),
        "values": [line.get("value") for line in seeds],
        "met": [line.get("met") for line in seeds],
        "notes": [line.get("note") for line in seeds],
    }
