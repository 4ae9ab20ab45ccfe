"""How far the cells are: a live table on a terminal, a line per finished cell elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live

from holdfast.commands.board import drawn
from holdfast.commands.terminal import tell
from holdfast.report import words
from holdfast.sweeps import Cell, Event, Watcher
from holdfast.sweeps.board import Board, titles
from holdfast.types import Record


@contextmanager
def shown(cells: Sequence[Cell], kept: set[int], quiet: bool) -> Iterator[Watcher | None]:
    """The watcher of these cells; those in `kept` were finished by an earlier run."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        board, console = Board(cells, kept), Console(stderr=True)

        def watch(event: Event) -> None:
            board(event)
            if event.note is not None:
                console.print(f"{board.rows[event.cell].title}: {event.note}", markup=False, highlight=False)

        with Live(
            get_renderable=lambda: drawn(board.snapshot(), console.height),
            console=console,
            transient=True,
            redirect_stdout=False,  # a worker forked while the table is drawn would wait for it forever
            redirect_stderr=False,
        ):
            yield watch
    else:
        yield _Lines(cells, kept)


class _Lines:
    """[3/15] ewc seed 2: ACC 0.610 (class scenario, task label hidden) 1.2 s"""

    def __init__(self, cells: Sequence[Cell], kept: set[int]) -> None:
        self.cells, self.kept, self.done, self.titles = cells, kept, 0, titles(cells)

    def __call__(self, event: Event) -> None:
        if event.outcome is not None:
            self.done += 1
            told = _told(self.cells[event.cell], event, event.cell in self.kept)
            tell(f"[{self.done}/{len(self.cells)}] {self.titles[event.cell]}: {told}")
        elif event.note is not None:
            tell(f"{self.titles[event.cell]}: {event.note}")


def _told(cell: Cell, event: Event, kept: bool) -> str:
    label = "given" if cell.stream.info.task_given else "hidden"
    where = f"({cell.stream.scenario} scenario, task label {label})"
    if not isinstance(event.outcome, Record):
        return f"failed {where}"
    spent = event.outcome.resources
    seconds = sum(spent["train_seconds"]) + spent["eval_seconds"]
    if cell.trials is None:  # a study's trials are part of its run; those of settings chosen before it are not
        seconds += spent.get("trials", {}).get("seconds", 0.0)
    time = "finished before" if kept else words.in_seconds(seconds)
    return f"ACC {words.number(event.outcome.acc, 'acc')} {where} {time}"
