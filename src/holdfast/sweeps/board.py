"""How far the cells of a run are: kept up to date from its events, and written down for a second terminal to read.

Times are differences of a monotonic clock, so that a jump of the wall clock changes nothing. A finished or
interrupted run leaves no progress.json; one that was killed leaves it with the number of a process that is gone.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from holdfast.errors import BadInput
from holdfast.sweeps import asked
from holdfast.sweeps.cell import Cell
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.store import cells_folder, read_experiment, write_text
from holdfast.types import Record

State = Literal["waiting", "running", "done", "failed"]
Runner = Literal["running", "gone", "none"]
FILE = "progress.json"
EVERY = 1.0  # seconds between two writes


@dataclass
class Row:
    """One cell: what it is called, its state, and while it runs where it is."""

    cell: str
    title: str
    state: State = "waiting"
    task: int = 0  # counted from 0, as everywhere
    tasks: int = 0
    step: int = 0
    steps: int = 0
    eta: float | None = None  # seconds
    acc: float | None = None
    reason: str | None = None
    doing: str = ""  # work beside the steps, and how far that is: 'coreset 50/200'


@dataclass(frozen=True)
class Snapshot:
    """All cells at one moment."""

    rows: tuple[Row, ...]
    runner: Runner
    seconds: float | None = None  # since the run began
    eta: float | None = None

    @property
    def counts(self) -> dict[State, int]:
        found = Counter(row.state for row in self.rows)
        states: tuple[State, ...] = ("waiting", "running", "done", "failed")
        return {state: found[state] for state in states}


class Board:
    """A watcher that knows how far every cell is, and tells `watch` what it hears."""

    def __init__(self, cells: Sequence[Cell], watch: Watcher | None = None) -> None:
        self.rows = [Row(c.name, title, tasks=len(c.stream)) for c, title in zip(cells, titles(cells), strict=True)]
        self.mixes = [cell.method.mixes for cell in cells]
        self.watch = watch
        self.kept: set[int] = set()  # finished by an earlier run
        self.began = time.monotonic()
        self.first: dict[int, tuple[float, float]] = {}  # cell -> when it was first heard of, and how far it was
        self.heard = 0

    def __call__(self, event: Event) -> None:
        row = self.rows[event.cell]
        if event.before:
            self.kept.add(event.cell)
        if isinstance(event.outcome, Record):
            row.state, row.acc = "done", event.outcome.acc
        elif isinstance(event.outcome, Failure):
            row.state, row.reason = "failed", event.outcome.reason
        elif event.progress is not None and row.state in ("waiting", "running"):
            now, p = time.monotonic(), event.progress
            if p.doing:  # its steps are not the task's
                step, steps, doing = row.step if p.task == row.task else 0, row.steps, f"{p.doing} {p.step}/{p.steps}"
            else:
                step, steps, doing = p.step, p.steps, ""
            row.state, row.task, row.step, row.steps, row.doing = "running", p.task, step, steps, doing
            since, done = self.first.setdefault(event.cell, (now, self.part(event.cell)))
            row.eta = _left(now - since, self.part(event.cell) - done, 1 - self.part(event.cell))
        self.heard += 1
        if self.watch is not None:
            self.watch(event)

    def part(self, i: int) -> float:
        """How much of a cell is done, from 0 to 1. A learner that mixes the tasks learns all of them in one go."""
        row = self.rows[i]
        if row.state != "running" or not row.steps:
            return float(row.state in ("done", "failed"))
        return row.step / row.steps if self.mixes[i] else (row.task + row.step / row.steps) / row.tasks

    def snapshot(self) -> Snapshot:
        seconds = time.monotonic() - self.began
        parts = [self.part(i) for i in range(len(self.rows)) if i not in self.kept]
        eta = _left(seconds, sum(parts), len(parts) - sum(parts))
        return Snapshot(tuple(self.rows), "running", seconds, eta)


@contextmanager
def posted(board: Board, out: Path) -> Iterator[None]:
    """What the board hears is in OUT/progress.json, at most a second later."""
    _write(board, out / FILE)
    over = threading.Event()
    writer = threading.Thread(target=_keep_written, args=(board, out / FILE, over), daemon=True)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()
        (out / FILE).unlink(missing_ok=True)


def _keep_written(board: Board, path: Path, over: threading.Event) -> None:
    """A thread, because the last word before a long silence must be written, too."""
    written = 0
    while not over.wait(EVERY):
        if board.heard > written:
            written = board.heard
            _write(board, path)


def _write(board: Board, path: Path) -> None:
    now = board.snapshot()
    content = {
        "schema": 1,
        "pid": os.getpid(),
        "born": _born(os.getpid()),
        "host": platform.node(),
        "seconds": now.seconds,
        "eta": now.eta,
        "cells": [asdict(row) for row in now.rows],
    }
    with suppress(OSError):  # a full disk is told by what must be kept
        write_text(path, json.dumps(content))


def read_board(folder: Path) -> Snapshot:
    """How far the cells of an output folder are: as its runner says, or, where none is, as its cells say."""
    names = read_experiment(folder).get("cells", [])
    home = cells_folder(folder).parent
    try:
        said = json.loads((home / FILE).read_text())
        rows = {row["cell"]: Row(**row) for row in said["cells"]}
        alive = said["host"] != platform.node() or (_born(said["pid"]) == said["born"] and _exists(said["pid"]))
        seconds, eta = said["seconds"], said["eta"]
    except FileNotFoundError:
        return Snapshot(tuple(_at_rest(name, home) for name in names), "none")
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise BadInput(f"{home / FILE} cannot be read: {type(error).__name__}: {error}") from error
    if home.resolve() == folder.resolve():
        names = list(rows)
    elif not any(name in rows for name in names):  # another sweep of the store is run
        return Snapshot(tuple(_at_rest(name, home) for name in names), "none")
    if alive:
        return Snapshot(tuple(rows.get(name) or _at_rest(name, home) for name in names), "running", seconds, eta)
    title = {name: row.title for name, row in rows.items()}
    return Snapshot(tuple(_at_rest(name, home, title.get(name)) for name in names), "gone")


def titles(cells: Sequence[Cell]) -> list[str]:
    """'ewc[strength=10] seed 0': its title, or the method and what tells it from its other cells, and the seed."""
    found = asked.titles([cell.settings() for cell in cells])
    return [f"{cell.title or title} seed {cell.seed}" for cell, title in zip(cells, found, strict=True)]


def _at_rest(name: str, home: Path, title: str | None = None) -> Row:
    cell = home / "cells" / name
    state: State = "waiting"
    if (cell / "record.json").exists():
        state = "done"
    elif (cell / "error.txt").exists():
        state = "failed"
    return Row(name, title or name, state, reason=f"see {cell / 'error.txt'}" if state == "failed" else None)


def _left(seconds: float, done: float, remaining: float) -> float | None:
    """The time that remains, at the pace so far."""
    return remaining * seconds / done if done > 0 else None


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's
        return True
    return True


def _born(pid: int) -> str | None:
    """When a process began, in the kernel's ticks, where that can be known: numbers of processes are used again."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
