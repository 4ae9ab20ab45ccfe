"""Runs cells, here or in processes; finished ones are kept when another fails."""

from __future__ import annotations

import os
import shutil
import traceback
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from holdfast.disk import write_text
from holdfast.engine import Checkpoint
from holdfast.errors import BadInput, NotKept, RunFailed, said_of
from holdfast.protocols import Session
from holdfast.sweeps import model_folder
from holdfast.sweeps.cell import Cell, pick_device
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.model import Model
from holdfast.sweeps.store import cells_with, read_record, write_record
from holdfast.sweeps.workers import has_strange_threads, in_processes
from holdfast.types import Record

MODEL = "model"  # in a cell's folder: what its run left behind


def execute(
    cells: Sequence[Cell],
    folder: Path | None = None,
    jobs: int | None = None,
    watch: Watcher | None = None,
    checkpoint_every: int | None = None,
    keep_model: bool = False,
) -> list[Record | Failure]:
    """Run every cell that is not finished in `folder`; results are in the order of the cells.

    There, unfinished cells are saved after every task, and every so many steps when asked, and go on from that. With
    `keep_model` finished ones leave their model there, and those that have none are run again.
    """
    tell = watch or (lambda event: None)
    runs, results = begin(cells, folder, checkpoint_every, tell, keep_model)
    waiting = [i for i in range(len(cells)) if i not in results]
    todo = [cells[i] for i in waiting]
    jobs = min(jobs or default_jobs(todo), len(waiting))
    if jobs > 1 and (why := _why_here(todo)):
        tell(Event(waiting[0], note=f"the cells are run in this process, one after the other: {why}"))
        jobs = 1
    try:
        if jobs > 1:
            with closing(_in_processes(runs, waiting, jobs)) as events:
                for event in events:
                    if event.outcome is not None:
                        results[event.cell] = event.outcome
                    tell(event)
        else:
            for i in waiting:
                results[i] = runs[i].perform(i, tell)
                tell(Event(i, outcome=results[i]))
    finally:
        for i in waiting:
            runs[i].clear_half_written()
    return [results[i] for i in range(len(cells))]


def default_jobs(cells: Sequence[Cell]) -> int:
    """As many processes as there are cores for their threads."""
    return max((os.cpu_count() or 1) // max((cell.threads for cell in cells), default=1), 1)


def _why_here(cells: Sequence[Cell]) -> str | None:
    """Why these cells cannot be run in processes that are forked from this one."""
    if any(cell.threads > 1 for cell in cells) and has_strange_threads():
        return "it has threads running, and processes forked from it could not have several of their own"
    if torch.cuda.is_initialized() and any(pick_device(cell.device).type == "cuda" for cell in cells):
        return "it has begun to use CUDA, and processes forked from it could not"
    return None


def begin(
    cells: Sequence[Cell], folder: Path | None, checkpoint_every: int | None, tell: Watcher, keep_model: bool = False
) -> tuple[list[Run], dict[int, Record | Failure]]:
    """The runs of these cells, and the results of those that are finished in the folder, told already."""
    results: dict[int, Record | Failure] = {}
    homes = [None if folder is None else folder / "cells" / cell.name for cell in cells]
    runs = [Run(cell, home, checkpoint_every, keep_model) for cell, home in zip(cells, homes, strict=True)]
    for i, run in enumerate(runs):
        if (record := run.finished()) is not None:
            run.tidy()
            results[i] = record
            tell(Event(i, outcome=record, before=True))
    return runs, results


def read_failures(folder: Path) -> list[Failure]:
    """The cells of an output folder that failed and were not run again since."""
    found = [cell for cell in cells_with(folder, "error.txt") if not (cell / "record.json").exists()]
    return [Failure(cell.name, (cell / "error.txt").read_text().strip().splitlines()[-1]) for cell in found]


def _in_processes(runs: Sequence[Run], waiting: list[int], jobs: int) -> Generator[Event]:
    def work(i: int, tell: Watcher) -> None:
        done = runs[i].finished()  # by a process that was killed before it could tell
        tell(Event(i, outcome=runs[i].perform(i, tell) if done is None else done))

    def lost(i: int, reason: str) -> Event:
        return Event(i, outcome=runs[i].failed(reason))

    return in_processes(work, waiting, jobs, lost)


@dataclass(frozen=True)
class Run:
    """A cell and the folder that keeps its results, if any does. Every executor runs cells through this."""

    cell: Cell
    home: Path | None = None
    checkpoint_every: int | None = None  # steps, besides every task
    keep_model: bool = False  # in its folder, in `model`

    def finished(self) -> Record | None:
        """The record, if the cell was finished before, and its model is there if it is wanted."""
        if self.home is None or not (self.home / "record.json").exists():
            return None
        return None if self.keep_model and not model_folder.is_model(self.home / MODEL) else read_record(self.home)

    def perform(self, i: int, tell: Watcher) -> Record | Failure:
        """Run the cell, as number `i`, and keep its record; a bug in a user's method becomes a Failure."""
        try:
            keep = self.checkpoint(lambda note: tell(Event(i, note=note)))
            record = self.cell.run(lambda progress: tell(Event(i, progress)), keep, self._leave)
        except NotKept:
            raise
        except RunFailed as error:
            return replace(self.failed(str(error)), seconds=error.seconds, flops=error.flops)
        except BadInput as error:
            return self.failed(str(error))
        except (Exception, SystemExit) as error:
            return self.failed(said_of(error), traceback.format_exc())
        if self.home is not None:
            write_record(record, self.home)
            self.tidy()
        return record

    def _leave(self, session: Session, record: Record) -> None:
        if self.home is not None and self.keep_model:
            model_folder.save(Model.of(self.cell, session, record), self.home / MODEL)

    def tidy(self) -> None:
        """Remove what a finished cell does not need: its checkpoint and what earlier tries left behind."""
        if self.home is None:
            return
        (self.home / "error.txt").unlink(missing_ok=True)
        shutil.rmtree(self.home / "checkpoint", ignore_errors=True)
        self.clear_half_written()

    def clear_half_written(self) -> None:
        """Remove what processes left that were killed while they wrote; none may be at work on this cell."""
        if self.home is None:
            return
        for part in self.home.glob(".*.*"):
            part.unlink(missing_ok=True)
        for part in self.home.glob("checkpoint/*.part"):
            shutil.rmtree(part, ignore_errors=True)

    def checkpoint(self, say: Callable[[str], None]) -> Checkpoint | None:
        """Where its states are kept while it is not finished; `say` hears what becomes of them."""
        if self.home is None:
            return None
        return Checkpoint(self.home / "checkpoint", self.cell.hash, self.checkpoint_every, say)

    def failed(self, reason: str, details: str | None = None) -> Failure:
        """Note why the cell failed; details, a traceback, go to its error.txt or, without a folder, with the reason."""
        if self.home is None:
            return Failure(self.cell.name, (details or reason).strip())
        write_text(self.home / "error.txt", details or f"{reason}\n")
        where = f" (the traceback is in {self.home / 'error.txt'})" if details else ""
        return Failure(self.cell.name, f"{reason}{where}")
