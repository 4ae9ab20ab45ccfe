"""Runs cells in processes, one thread each; finished ones are kept when another fails."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from queue import Empty
from typing import Any

import torch

from holdfast.errors import BadInput, RunFailed
from holdfast.protocols import Progress
from holdfast.sweep.cell import Cell
from holdfast.sweep.store import read_record, write_record, write_text
from holdfast.types import Record


@dataclass(frozen=True)
class Failure:
    """A cell that went wrong, and why, in one sentence."""

    cell: str
    reason: str


@dataclass(frozen=True)
class Event:
    """Something happened to cell number `cell`: it moved on, or it is done."""

    cell: int
    progress: Progress | None = None
    outcome: Record | Failure | None = None


Watcher = Callable[[Event], None]


def execute(
    cells: Sequence[Cell], folder: Path | None = None, jobs: int | None = None, watch: Watcher | None = None
) -> list[Record | Failure]:
    """Run every cell that is not finished in `folder`; results are in the order of the cells."""
    results: dict[int, Record | Failure] = {}
    tell = watch or (lambda event: None)
    for i, cell in enumerate(cells):
        if folder is not None and (folder / "cells" / cell.name / "record.json").exists():
            results[i] = read_record(folder / "cells" / cell.name)
            tell(Event(i, outcome=results[i]))
    waiting = [i for i in range(len(cells)) if i not in results]
    jobs = min(jobs or os.cpu_count() or 1, len(waiting))
    if torch.get_num_threads() > 1:  # torch was loaded before us with a pool of threads, which a fork would break
        jobs = 1
    events = _in_processes(cells, waiting, jobs, folder) if jobs > 1 else _here(cells, waiting, folder, tell)
    for event in events:
        if event.outcome is not None:
            results[event.cell] = event.outcome
        tell(event)
    return [results[i] for i in range(len(cells))]


def read_failures(folder: Path) -> list[Failure]:
    """The cells of an output folder that failed and were not run again since."""
    found = sorted(
        path for path in (folder / "cells").glob("*/error.txt") if not (path.parent / "record.json").exists()
    )
    return [Failure(path.parent.name, path.read_text().strip().splitlines()[-1]) for path in found]


def _here(cells: Sequence[Cell], waiting: list[int], folder: Path | None, tell: Watcher) -> Iterator[Event]:
    for i in waiting:
        outcome = _run_cell(cells[i], folder, lambda progress, i=i: tell(Event(i, progress)))  # type: ignore[misc]
        yield Event(i, outcome=outcome)


def _in_processes(cells: Sequence[Cell], waiting: list[int], jobs: int, folder: Path | None) -> Iterator[Event]:
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    pool = ProcessPoolExecutor(jobs, context, _initialise, (cells, folder, queue))
    again: list[int] = []
    try:
        futures: dict[Future[Any], int] = {pool.submit(_work, i): i for i in waiting}
        while futures:
            done, _ = wait(futures, timeout=0.1, return_when=FIRST_COMPLETED)
            yield from _drained(queue)
            for future in done:
                i = futures.pop(future)
                error = future.exception()
                if isinstance(error, BrokenProcessPool) and len(waiting) > 1:
                    again.append(i)
                    continue
                outcome = Failure(cells[i].name, f"its process died: {error}") if error else future.result()
                yield Event(i, outcome=outcome)
    except BaseException:
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
    for i in again:  # one process died and took the pool along: each alone, so that only that one is lost
        yield from _in_processes(cells, [i], 1, folder)


def _drained(queue: Any) -> Iterator[Event]:
    while True:
        try:
            i, progress = queue.get_nowait()
        except Empty:
            return
        yield Event(i, progress)


_PARENT_DEATH = 1  # PR_SET_PDEATHSIG
_shared: tuple[Sequence[Cell], Path | None, Any]


def _initialise(cells: Sequence[Cell], folder: Path | None, queue: Any) -> None:
    global _shared
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it ends its workers
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)  # a killed parent takes its workers along
    _shared = (cells, folder, queue)


def _work(i: int) -> Record | Failure:
    cells, folder, queue = _shared
    return _run_cell(cells[i], folder, lambda progress: queue.put((i, progress)))


def _run_cell(cell: Cell, folder: Path | None, watch: Callable[[Progress], None]) -> Record | Failure:
    home = None if folder is None else folder / "cells" / cell.name
    try:
        record = cell.run(watch)
        if home is not None:
            write_record(record, home)
            (home / "error.txt").unlink(missing_ok=True)  # of an earlier try
        return record
    except (RunFailed, BadInput) as error:
        if home is not None:
            write_text(home / "error.txt", f"{error}\n")
        return Failure(cell.name, str(error))
    except (Exception, SystemExit) as error:  # a bug in a user's method must not take the other cells down
        text = traceback.format_exc()
        if home is None:
            return Failure(cell.name, text.strip())
        write_text(home / "error.txt", text)
        return Failure(cell.name, f"{type(error).__name__}: {error} (the traceback is in {home / 'error.txt'})")
