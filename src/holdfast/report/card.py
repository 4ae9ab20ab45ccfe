"""The audit card of a label: the cards of its seeds as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.metrics import Group, desiderata
from holdfast.report import words

MET = {True: "met", False: "not met", None: "not applicable"}
UNJUDGED = "not judged"  # measured, but without a verdict
UNMEASURED = "not measured"  # of a run that was made before the card had the line
SOME = "met by some seeds"


@dataclass(frozen=True)
class Line:
    """One condition: what was measured, and whether it was met."""

    key: str
    label: str
    value: str
    met: str  # 'met', 'not met', 'not applicable', 'not judged', 'not measured', or 'met by 2 of 3 seeds'
    note: str


def lines(group: Group) -> list[Line]:
    """The card's lines in the order of the first record that has them."""
    cards = [record.card for record in group.records if record.card]
    keys = list(dict.fromkeys(key for card in cards for key in card))
    return [_line(key, {r.seed: r.card[key] for r in group.records if key in r.card}) for key in keys]


def blocks(groups: Sequence[Group]) -> list[tuple[str, dict[str, str]]]:
    """The lines of these groups' cards in three blocks: the paper's conditions, its harder ones, and all others.

    Each has a title and, per line, what the paper calls it; empty where the paper is silent.
    """
    there = dict.fromkeys(line.key for g in groups for line in lines(g))
    named = {**desiderata.MINIMAL, **desiderata.HARDER}
    if not any(key in named for key in there):
        return [("All conditions", dict.fromkeys(there, ""))]
    return [
        ("The five conditions of paper 001 (§5)", desiderata.MINIMAL),
        ("Its six harder ones, which an evaluation may leave out if it says so", desiderata.HARDER),
        ("Besides", {key: "" for key in there if key not in named}),
    ]


def line_of(found: Sequence[Line], key: str) -> Line:
    """This line; one that a run does not have was not measured in it."""
    missing = Line(key, key.replace("_", " "), words.UNDEFINED, UNMEASURED, "the run did not measure it")
    return next((line for line in found if line.key == key), missing)


def tally(found: Sequence[Line]) -> str:
    """'6 met, 2 not met, 1 not applicable'."""
    counts = Counter(line.met if line.met in (*MET.values(), UNJUDGED, UNMEASURED) else SOME for line in found)
    return ", ".join(f"{n} {word}" for word, n in counts.items())


def _line(key: str, by_seed: Mapping[int, Mapping[str, Any]]) -> Line:
    seeds = list(by_seed.values())
    verdicts = [seed.get("met") for seed in seeds]
    same = len(set(verdicts)) == 1
    measured = any(seed.get("value") is not None for seed in seeds)
    word = UNJUDGED if verdicts[0] is None and measured else MET[verdicts[0]]
    return Line(
        key=key,
        label=str(seeds[0].get("label") or key.replace("_", " ")),
        value=_together([seed.get("value") for seed in seeds], seeds[0].get("unit")),
        met=word if same else f"met by {verdicts.count(True)} of {len(verdicts)} seeds",
        note=_note({seed: str(line.get("note") or "") for seed, line in by_seed.items()}),
    )


def _note(notes: Mapping[int, str]) -> str:
    seed, note = next(iter(notes.items()))
    return note if len(set(notes.values())) == 1 else f"{note} (seed {seed})"


def _together(values: list[Any], unit: str | None) -> str:
    """The values of all seeds as one text: the value they share, or a mean and its range.

    A unit may name what one part of the value is: 'bytes; slope per task'.
    """
    unit, _, said = (unit or "").partition("; ")
    if all(isinstance(value, Mapping) for value in values):
        keys = list(dict.fromkeys(key for value in values for key in value))
        parts = ((key, [value[key] for value in values if key in value]) for key in keys)
        names = {key: said if said.startswith(str(key)) else str(key).replace("_", " ") for key in keys}
        return ", ".join(f"{names[key]}: {_together(found, unit)}" for key, found in parts)
    shown = list(dict.fromkeys(_with_unit(value, unit) for value in values))
    if len(shown) == 1:
        return shown[0]
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        mean = _with_unit(sum(values) / len(values), unit)
        return f"{mean} ({_with_unit(min(values), unit)} to {_with_unit(max(values), unit)})"
    return " / ".join(shown)


def _with_unit(value: Any, unit: str | None) -> str:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if plain and unit in ("bytes", "B"):
        return words.in_bytes(value)
    if plain and unit in ("FLOPs", "flops"):
        return f"{words.in_flops(value)} FLOPs"
    if plain and unit in ("seconds", "s"):
        return words.in_seconds(value)
    text = words.value(value)
    return f"{text} {unit}" if unit and value is not None else text
