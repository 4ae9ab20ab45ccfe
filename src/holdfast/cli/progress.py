"""How far the cells are: bars on a terminal, a line per finished cell elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from holdfast.cli.words import tell
from holdfast.protocols import name_of
from holdfast.report import words
from holdfast.sweep import Cell, Event, Failure, Watcher
from holdfast.types import Record


@contextmanager
def shown(cells: Sequence[Cell], kept: set[int], quiet: bool) -> Iterator[Watcher | None]:
    """The watcher of these cells; those in `kept` were finished by an earlier run."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        with _Bars(cells, kept) as bars:
            yield bars
    else:
        yield _Lines(cells, kept)


class _Lines:
    """[3/15] ewc seed 2: ACC 0.610 (class scenario, task label hidden) 1.2 s"""

    def __init__(self, cells: Sequence[Cell], kept: set[int]) -> None:
        self.cells, self.kept, self.done = cells, kept, 0

    def __call__(self, event: Event) -> None:
        if event.outcome is not None:
            self.done += 1
            tell(f"[{self.done}/{len(self.cells)}] {_told(self.cells[event.cell], event, event.cell in self.kept)}")


def _told(cell: Cell, event: Event, kept: bool) -> str:
    who = f"{name_of(cell.method)} seed {cell.seed}"
    label = "given" if cell.stream.info.task_given else "hidden"
    where = f"({cell.stream.scenario} scenario, task label {label})"
    if not isinstance(event.outcome, Record):
        return f"{who}: failed {where}"
    spent = event.outcome.resources
    seconds = sum(spent["train_seconds"]) + spent["eval_seconds"]
    time = "finished before" if kept else words.in_seconds(seconds)
    return f"{who}: ACC {words.number(event.outcome.acc, 'acc')} {where} {time}"


class _Bars:
    """A bar per method and scenario that counts tasks over all seeds, and one for all, with the time it will take."""

    def __init__(self, cells: Sequence[Cell], kept: set[int]) -> None:
        self.cells = cells
        self.done = [float(len(cell.stream)) if i in kept else 0.0 for i, cell in enumerate(cells)]  # in tasks
        self.display = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[tasks]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self.rows: dict[str, TaskID] = {}
        for key in [*dict.fromkeys(map(_row, cells)), "all"]:
            members = self._members(key)
            self.rows[key] = self.display.add_task(
                key, total=sum(len(cells[i].stream) for i in members), completed=sum(self.done[i] for i in members)
            )
