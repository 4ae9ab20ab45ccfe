"""An advice: as sentences and a table for a terminal, and as the first section of a report."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput
from holdfast.metrics import Interval
from holdfast.report import parts, words

FILE = "advice.json"
HEADINGS = ("method", "accuracy on all classes", "seeds", "behind the best", "left behind", "old rows", "one rehearsal")
WORST = 5  # classes that lose most
SHOWN = 6  # tasks that are named
LOSS = 0.005  # of accuracy; less is no loss
LABEL = {"class": "task label hidden", "domain": "task label hidden", "task": "task label given"}
WIDTH = 130  # of sentences; tables and commands are as wide as they must be
CHOSEN = (
    "The model was chosen on the first task's validation rows, where each retraining stops on the new task's own; "
    "among methods the test rows chose, so that what is measured after deployment may be a little lower."
)
UNTRAINED = (
    "was never trained: no look at it on the first task was better than the one before its first step, as with methods "
    "that know no class until their task is over. Its accuracy says nothing of what it can do."
)
Advice = Mapping[str, Any]  # the content of advice.json


def advice_in(folder: Path) -> Advice | None:
    """What an output folder advises; None where it belongs to another command."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text())
        text(found)
        section(found)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise BadInput(f"{path} is not one of Holdfast's; run `holdfast advise` again") from error
    return dict(found)


def text(advice: Advice) -> str:
    """What to go on with, what it would forget, how to train it, what else was tried, and why others were not."""
    paragraphs = [answer(advice), forgotten(advice)]
    if advice["command"]:
        paragraphs.append(f"Train it as it was rehearsed:\n  {advice['command']}")
    paragraphs.append("\n".join(table(advice)))
    for title, found in (("Ruled out:", advice["ruled_out"]), ("Left out:", advice["left_out"])):
        if found:
            paragraphs.append("\n".join([title, *(_item(names, why) for names, why in by_reason(found))]))
    paragraphs += [*untrained(advice), rehearsed(advice), CHOSEN]
    return "\n\n".join(part if "\n" in part else textwrap.fill(part, WIDTH) for part in paragraphs)


def section(advice: Advice) -> str:
    """The same for the page."""
    head = [(title, "" if i == 0 else "number") for i, title in enumerate(HEADINGS)]
    body = "".join(
        f'<tr><th scope="row">{escape(row[0])}</th>'
        + "".join(f'<td class="number">{escape(cell)}</td>' for cell in row[1:])
        + "</tr>"
        for row in map(_row, advice["tried"])
    )
    told = [f'<p class="finding">{escape(answer(advice))}</p>', f"<p>{escape(forgotten(advice))}</p>"]
    if advice["command"]:
        told.append(f"<p>Train it as it was rehearsed:</p><pre><code>{escape(advice['command'])}</code></pre>")
    told.append(parts.table("Methods that were rehearsed", head, body, "summary"))
    for title, found in (("Ruled out", advice["ruled_out"]), ("Left out", advice["left_out"])):
        if found:
            lines = "".join(
                f'<tr><th scope="row">{escape(names)}</th><td>{escape(why)}</td></tr>'
                for names, why in by_reason(found)
            )
            told.append(f"<h3>{title}</h3>" + parts.table(title, [("Method", ""), ("Why", "")], lines, "lines"))
    told += [f"<p>{escape(note)}</p>" for note in untrained(advice)]
    told.append(f'<p class="note small">{escape(rehearsed(advice))} {escape(CHOSEN)}</p>')
    return parts.section("Advice", "", told)


def question(advice: Advice) -> str:
    """What was asked, within which limits."""
    limits = limited(advice["limits"])
    return f"Which method to go on with when new data come{f', with {limits}' if limits else ''}?"


def limited(limits: Mapping[str, Any]) -> str:
    """
    >>> limited({"memory": 5000000, "keep_data": False, "seconds": None})
    'at most 5 MB left behind and no old row kept'
    """
    memory = "" if limits["memory"] is None else f"at most {words.in_bytes(limits['memory'])} left behind"
    return " and ".join(filter(None, [memory, "" if limits["keep_data"] else "no old row kept"]))


def answer(advice: Advice) -> str:
    """In a sentence, with its uncertainty."""
    best = advice["tried"][0]
    seeds = len(best["values"])
    told = f"{advice['scenario']} scenario, {LABEL[advice['scenario']]}; {seeds} seed{'s' * (seeds > 1)}"
    said = f"Go on with {best['called']}: {_accuracy(best)} on all classes after retraining ({told})."
    if seeds == 1:
        said += " One seed does not say how much it varies."
    if advice["not_separable"]:
        said += f" These runs do not tell it apart from {_listed(advice['not_separable'])}."
    untried = set(advice["left_out"]) - {tried["called"] for tried in advice["tried"]}
    if untried:
        said += f" For {len(untried)} other{'s' * (len(untried) > 1)} there was no time, and any may be better."
    kept = [f"{best['rows']} old rows"] * bool(best["rows"]) + ["a generator of rows"] * bool(best["generates"])
    return f"{said} It leaves {words.in_bytes(best['bytes'])} behind, {' and '.join(kept) or 'no old row'} among them."


def forgotten(advice: Advice) -> str:
    """The old classes that lose most, and how well the new ones are learned."""
    classes = advice["tried"][0]["classes"]
    old = {name: (before, after) for name, (before, after) in classes.items() if before is not None}
    new = [after for before, after in classes.values() if before is None]
    losses = sorted(old.items(), key=lambda item: item[1][1] - item[1][0])
    lost = [f"{name} ({before:.2f} → {after:.2f})" for name, (before, after) in losses if before - after > LOSS]
    more = f" and {len(lost) - WORST} more" if len(lost) > WORST else ""
    which = "class" if len(lost) == 1 else "classes"
    said = f"It would forget of {which} {', '.join(lost[:WORST])}{more}." if lost else "It would forget no old class."
    return f"{said} What came last is known to {sum(new) / len(new):.2f}." if new else said


def untrained(advice: Advice) -> list[str]:
    """A warning where a method has not learned."""
    return [f"{tried['called']} {UNTRAINED}" for tried in advice["tried"] if not tried["trained"]]


def rehearsed(advice: Advice) -> str:
    """On what, within which limits, and how long it took."""
    tasks, limits = advice["tasks"], limited(advice["limits"])
    shown = [*tasks[: SHOWN - 1], f"{len(tasks) - SHOWN + 1} more"] if len(tasks) > SHOWN else tasks
    took, allowed = words.in_seconds(advice["seconds"]), advice["limits"]["seconds"]
    said = (
        f"Rehearsed, one after the other: {'; '.join(shown)}.{f' Allowed: {limits}.' if limits else ''} It took {took}"
    )
    return f"{said}, of {words.in_seconds(allowed)} allowed." if allowed is not None else f"{said}."


def table(advice: Advice) -> list[str]:
    """A line per method that was rehearsed, the best first."""
    rows = [HEADINGS, *map(_row, advice["tried"])]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def by_reason(found: Mapping[str, str]) -> list[tuple[str, str]]:
    """What is said of several in the same words, but for their name, is said once.

    >>> by_reason({"pnn": "method 'pnn' needs the label", "er": "too large", "hat": "method 'hat' needs the label"})
    [('pnn, hat', 'it needs the label'), ('er', 'too large')]
    """
    reasons: dict[str, list[str]] = {}
    for name, why in found.items():
        reasons.setdefault(why.replace(f"method {name!r}", "it"), []).append(name)
    return [(", ".join(names), why) for why, names in reasons.items()]


def _item(names: str, why: str) -> str:
    return textwrap.fill(f"{names}: {why}", WIDTH, initial_indent="  ", subsequent_indent="    ")


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


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
