"""How far the cells are: a live table on a terminal, a line per finished cell elsewhere, nothing when quiet.

The table is also that of a terminal which only looks: `holdfast watch`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from holdfast.commands.terminal import tell
from holdfast.report import words
from holdfast.sweeps import Cell, Event
from holdfast.sweeps.board import Board, Row, Snapshot
from holdfast.types import Record

ALL = 24  # cells that are all shown; of more, only those that run or failed, and how many there are of the others
STYLES = {"waiting": "dim", "running": "bold", "done": "green", "failed": "red"}


@contextmanager
def shown(cells: Sequence[Cell], quiet: bool) -> Iterator[Board]:
    """The board of these cells, for all to see."""
    board = Board(cells)
    if quiet:
        yield board
    elif sys.stderr.isatty():
        console = Console(stderr=True)

        def note(event: Event) -> None:
            if event.note is not None:
                console.print(f"{board.rows[event.cell].title}: {event.note}", markup=False, highlight=False)

        board.watch = note
        with Live(
            get_renderable=lambda: drawn(board.snapshot(), console.height),
            console=console,
            transient=True,
            redirect_stdout=False,  # a worker forked while the table is drawn would wait for it forever
            redirect_stderr=False,
        ):
            yield board
    else:
        board.watch = _Lines(cells, [row.title for row in board.rows])
        yield board


class _Lines:
    """[3/15] ewc seed 2: ACC 0.610 (class scenario, task label hidden) 1.2 s"""

    def __init__(self, cells: Sequence[Cell], titles: Sequence[str]) -> None:
        self.cells, self.titles, self.done = cells, titles, 0

    def __call__(self, event: Event) -> None:
        if event.outcome is not None:
            self.done += 1
            told = _told(self.cells[event.cell], event)
            tell(f"[{self.done}/{len(self.cells)}] {self.titles[event.cell]}: {told}")
        elif event.note is not None:
            tell(f"{self.titles[event.cell]}: {event.note}")


def _told(cell: Cell, event: Event) -> str:
    label = "given" if cell.stream.info.task_given else "hidden"
    where = f"({cell.stream.scenario} scenario, task label {label})"
    if not isinstance(event.outcome, Record):
        return f"failed {where}"
    spent = event.outcome.resources
    seconds = sum(spent["train_seconds"]) + spent["eval_seconds"]
    if cell.choice_cost is None:  # a study's trials are part of its run; those of settings chosen before it are not
        seconds += spent.get("trials", {}).get("seconds", 0.0)
    time = "finished before" if event.before else words.in_seconds(seconds)
    return f"ACC {words.number(event.outcome.acc, 'acc')} {where} {time}"


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
