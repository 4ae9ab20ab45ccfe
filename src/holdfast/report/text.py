"""The summary as plain text for a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from holdfast.metrics import Asked, Group, gaps, transfers
from holdfast.report import scenarios, table, words
from holdfast.report import transfers as transferred
from holdfast.types import Record

COLUMNS = ("acc", "bwt", "forgetting", "bytes", "train_seconds")
WIDTH = 130  # of sentences; tables are as wide as they must be
HEADINGS = ("label", "scenario", "task label", "seeds", "ACC", "BWT", "forgetting", "memory", "training")


def text(records: Sequence[Record], asked: Sequence[Asked] = (), names: Sequence[str] = ()) -> str:
    """One line per label, a paragraph per stream and scenario; 'best' and 'tie' stand behind the numbers.

    Below stands what the scenario alone is worth to each method that was run in several, and what the past was worth
    to the last task where that was also learned alone.

    `asked` says which seeds there should be, `names` are labels of the records' own.
    """
    found = table.arenas_of(records, names, asked)
    groups = [g for arena in found for g in arena]
    lines: list[list[str]] = [list(HEADINGS)]
    breaks = {}  # line number -> what is written above it
    for arena in found:
        breaks[len(lines)] = words.described(words.told(arena[0], "stream"))
        for row in table.rows(arena, COLUMNS):
            cells = [f"{cell.text} {cell.mark}".rstrip() for cell in row.cells.values()]
            lines.append([row.group.label, row.group.scenario, words.label_given(row.group), row.seeds, *cells])
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    drawn = []
    for i, line in enumerate(lines):
        if i in breaks:
            drawn += ["", breaks[i]]
        drawn.append("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    at_once = [g.label for g in groups if g.mixed]
    notes = [f"{', '.join(at_once)}: all tasks at once, not ranked."] if at_once else []
    notes += table.lacking(groups, asked)
    compared = [*map(scenarios.sentence, gaps(groups)), *map(transferred.sentence, transfers(groups))]
    between = [textwrap.fill(sentence, WIDTH, subsequent_indent="  ") for sentence in compared]
    paragraphs = [drawn, between, notes, [_note(groups)]]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def _note(groups: Sequence[Group]) -> str:
    if max(len(g.seeds) for g in groups) < 2:
        return "One seed: no intervals, and no winner."
    return (
        "± is a 95% interval over seeds, absent where they agree; "
        "best: the paired difference to every other excludes 0; else tie."
    )
