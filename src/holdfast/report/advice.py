"""An advice as sentences and a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.metrics import Interval
from holdfast.report import words

HEADINGS = ("method", "accuracy on all classes", "seeds", "behind the best", "left behind", "old rows", "one rehearsal")
WORST = 5  # classes that lose most
LOSS = 0.005  # of accuracy; less is no loss
LABEL = {"class": "task label hidden", "domain": "task label hidden", "task": "task label given"}


def advice_text(advice: Mapping[str, Any]) -> str:
    """What to go on with, what it would forget, what else was tried, and why others were not."""
    paragraphs = [answer(advice), forgotten(advice), "\n".join(table(advice))]
    for title, found in (("Ruled out:", advice["ruled_out"]), ("Left out:", advice["left_out"])):
        if found:
            paragraphs.append("\n".join([title, *(f"  {names}: {why}" for names, why in _by_reason(found))]))
    paragraphs.append(
        "The model was chosen on the first task's validation rows, where each retraining stops on the new task's own; "
        "among methods the test rows chose, so what is measured after deployment may be a little lower."
    )
    return "\n\n".join(paragraphs)


def _by_reason(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is said of several in the same words, but for their name, is said once."""
    reasons: dict[str, list[str]] = {}
    for name, why in found.items():
        reasons.setdefault(why.replace(f"method {name!r}", "it"), []).append(name)
    return [(", ".join(names), why) for why, names in reasons.items()]


def answer(advice: Mapping[str, Any]) -> str:
    """In a sentence, with its uncertainty."""
    best = advice["tried"][0]
    seeds = len(best["values"])
    told = f"{advice['scenario']} scenario, {LABEL[advice['scenario']]}; {seeds} seed{'s' * (seeds > 1)}"
    said = f"Go on with {best['called']}: {_accuracy(best)} on all classes after retraining ({told})."
    if advice["not_separable"]:
        said += f" These runs do not tell it apart from {', '.join(advice['not_separable'])}."
    kept = [f"{best['rows']} old rows"] * bool(best["rows"]) + ["a generator of rows"] * bool(best["generates"])
    return f"{said} It leaves {words.in_bytes(best['bytes'])} behind, {' and '.join(kept) or 'no old row'} among them."


def forgotten(advice: Mapping[str, Any]) -> str:
    """The old classes that lose most, and how well the new ones are learned."""
    classes = advice["tried"][0]["classes"]
    old = {name: (before, after) for name, (before, after) in classes.items() if before is not None}
    new = [after for before, after in classes.values() if before is None]
    losses = sorted(old.items(), key=lambda item: item[1][1] - item[1][0])
    lost = [f"class {name} {before:.2f} → {after:.2f}" for name, (before, after) in losses if before - after > LOSS]
    more = f" and {len(lost) - WORST} more" if len(lost) > WORST else ""
    said = (
        f"It would forget of {', '.join(lost[:WORST])}{more}."
        if lost
        else "It would forget nothing of the old classes."
    )
    return f"{said} The new classes are known to {sum(new) / len(new):.2f}." if new else said


def table(advice: Mapping[str, Any]) -> list[str]:
    rows = [HEADINGS, *(_row(tried) for tried in advice["tried"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _row(tried: Mapping[str, Any]) -> Sequence[str]:
    behind = "" if tried["behind"] is None else words.spread(Interval(**tried["behind"]), "acc")
    rows = str(tried["rows"]) + (", a generator" if tried["generates"] else "")
    return (
        tried["called"],
        _accuracy(tried),
        str(len(tried["values"])),
        behind,
        words.in_bytes(tried["bytes"]),
        rows,
        words.in_seconds(tried["seconds"]),
    )


def _accuracy(tried: Mapping[str, Any]) -> str:
    return words.spread(Interval(**tried["accuracy"]), "acc")
