"""How far the cells are: bars on a terminal, a line per finished cell elsewhere, nothing when quiet."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, TaskID, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Display

from holdfast.cli.words import tell
from holdfast.protocols import Progress, name_of
from holdfast.report import words
from holdfast.sweeps import Cell, Event, Failure, Watcher
from holdfast.types import Record


@contextmanager
def shown(cells: Sequence[Cell], kept: set[int], quiet: bool) -> Iterator[Watcher | None]:
    """The watcher of these cells; those in `kept` were finished by an earlier run."""
    if quiet:
        yield None
    elif sys.stderr.isatty():
        bars = _Bars(cells, kept)
        with bars.display:
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
    """A bar per method and scenario that counts tasks over all seeds, and one for all with the time that remains."""

    def __init__(self, cells: Sequence[Cell], kept: set[int]) -> None:
        self.cells = cells
        self.done = [float(len(cell.stream)) if i in kept else 0.0 for i, cell in enumerate(cells)]  # in tasks
        self.members = {row: [i for i, c in enumerate(cells) if _row(c) == row] for row in map(_row, cells)}
        if len(self.members) > 1:
            self.members["all"] = list(range(len(cells)))
        self.display = Display(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.completed:.0f}/{task.total:.0f} tasks"),
            TimeRemainingColumn(compact=True),
            console=Console(stderr=True),
            transient=True,
        )
        self.bars: dict[str, TaskID] = {}
        for row, members in self.members.items():
            total = sum(len(cells[i].stream) for i in members)
            self.bars[row] = self.display.add_task(row, total=total)
            self.display.update(self.bars[row], completed=self._sum(row))

    def __call__(self, event: Event) -> None:
        cell = self.cells[event.cell]
        if event.outcome is not None:
            self.done[event.cell] = float(len(cell.stream))
            if isinstance(event.outcome, Failure):
                self.display.console.print(_told(cell, event, kept=False), markup=False, highlight=False)
        elif event.progress is not None:
            self.done[event.cell] = max(self.done[event.cell], _tasks_done(cell, event.progress))
        for row in (_row(cell), "all"):
            if row in self.bars:
                self.display.update(self.bars[row], completed=self._sum(row))

    def _sum(self, row: str) -> float:
        return sum(self.done[i] for i in self.members[row])


def _row(cell: Cell) -> str:
    return f"{name_of(cell.method)} ({cell.stream.scenario})"


def _tasks_done(cell: Cell, progress: Progress) -> float:
    """A learner that mixes the tasks learns all of them in one go."""
    part = progress.step / progress.steps
    return part * progress.tasks if cell.method.mixes else progress.task + part
