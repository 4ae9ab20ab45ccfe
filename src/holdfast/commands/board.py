"""A table of cells, for the terminal that runs them and for one that only looks."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from holdfast.report import words
from holdfast.sweeps.board import Row, Snapshot

ALL = 24  # cells that are all shown; of more, only those that run or failed, and how many there are of the others
STYLES = {"waiting": "dim", "running": "bold", "done": "green", "failed": "red"}


def drawn(now: Snapshot, lines: int | None = None) -> RenderableType:
    """The table and the line below it, in so many lines of a terminal."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for heading in ("cell", "state", "task", "step", "left"):
        table.add_column(heading, overflow="ellipsis", no_wrap=True)
    for row in shown_rows(now.rows, lines):
        table.add_row(*(Text(word, style=STYLES[row.state]) for word in _words(row)))
    return Group(table, Text(sentence(now)))


def shown_rows(rows: Sequence[Row], lines: int | None = None) -> list[Row]:
    """All cells where they fit, else those that run and the last that failed."""
    room = ALL if lines is None else max(min(ALL, lines - 3), 1)
    if len(rows) <= room:
        return list(rows)
    running = [row for row in rows if row.state == "running"][:room]
    failed = [row for row in rows if row.state == "failed"]
    return [*failed[max(0, len(failed) - (room - len(running))) :], *running] if len(running) < room else running


def sentence(now: Snapshot) -> str:
    """'24 cells: 12 waiting, 2 running, 9 done, 1 failed; about 3 min left'"""
    counts = ", ".join(f"{number} {state}" for state, number in now.counts.items() if number)
    left = f"; about {words.in_seconds(now.eta)} left" if now.eta is not None and now.runner == "running" else ""
    return f"{len(now.rows)} cell{'s' if len(now.rows) != 1 else ''}: {counts}{left}"


def _words(row: Row) -> tuple[str, ...]:
    if row.state == "failed":
        return (row.title, "failed", " ".join((row.reason or "").split()), "", "")
    if row.state == "done":
        return (row.title, "done", "" if row.acc is None else f"ACC {words.number(row.acc, 'acc')}", "", "")
    if row.state == "waiting":
        return (row.title, "waiting", "", "", "")
    left = "" if row.eta is None else words.in_seconds(row.eta)
    return (row.title, "running", f"{row.task + 1}/{row.tasks}", row.doing or f"{row.step}/{row.steps}", left)
