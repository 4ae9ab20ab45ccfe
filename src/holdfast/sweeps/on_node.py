"""What runs on the nodes of a Ray cluster: a cell, and beside the driver the mailbox that hears from all of them."""

from __future__ import annotations

import functools
import pickle
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch

from holdfast.engine import Keeper, State
from holdfast.engine.state import Files, from_files
from holdfast.errors import BadInput, RunFailed
from holdfast.process import keep_memory
from holdfast.protocols import Progress
from holdfast.streams import StreamSpec
from holdfast.sweeps.cell import Cell, code_version
from holdfast.types import Stream

PATIENCE = 0.25  # seconds between two messages about one cell, and between looks at all
TRANSFER = 600.0  # seconds for a state on its way, which may be large and the net slow
Whose = tuple[int, int]  # a cell, and how often it had been lost before


class Mailbox:
    """An actor on the driver's node, so that what it holds outlives all others: the news since it was last asked.

    Of progress and states only the last of each cell is of use. States may be large and are fetched one by one.
    """

    def __init__(self) -> None:
        self.words: dict[Whose, Progress] = {}
        self.notes: list[tuple[Whose, str]] = []
        self.states: dict[Whose, Files] = {}

    def post(self, whose: Whose, progress: Progress) -> None:
        self.words[whose] = progress

    def note(self, whose: Whose, line: str) -> None:
        self.notes.append((whose, line))

    def keep(self, whose: Whose, files: Files) -> None:
        self.states[whose] = files

    def take(self) -> tuple[list[tuple[Whose, str]], list[tuple[Whose, Progress]], list[Whose]]:
        """Notes, the last progress of each cell, and whose states are here."""
        (notes, words), self.notes, self.words = (self.notes, self.words), [], {}
        return notes, list(words.items()), list(self.states)

    def state(self, whose: Whose) -> Files | None:
        """A state, which is not kept here any longer."""
        return self.states.pop(whose, None)


class Sent(Keeper):
    """Sends states and notes to the driver, who keeps them; the last state came along with the cell.

    The cell goes on when they have arrived, so that none is lost with a worker that is killed.
    """

    def __init__(self, mailbox: Any, whose: Whose, key: str, every: int | None, last: Files | None) -> None:
        super().__init__(key, every, lambda line: _arrived(mailbox.note.remote(whose, line)))
        self.mailbox, self.whose, self.last = mailbox, whose, last

    def write(self, state: State) -> None:
        _arrived(self.mailbox.keep.remote(self.whose, self.packed(state)))

    def read(self) -> State | None:
        last, self.last = self.last, None
        return None if last is None else from_files(last)["state"]


def _arrived(sent: Any) -> None:
    """Waits until the mailbox has it; where that was lost, and is made anew, what it had before must do."""
    from ray.exceptions import RayError

    with suppress(RayError, TimeoutError):
        sent.future().result(TRANSFER)  # ray.get would lend this cell's core to another cell meanwhile


@dataclass(frozen=True)
class Recipe:
    """A stream without its pixels: what it is cut from, by name where it has one."""

    spec: StreamSpec
    name: str
    given: Any
    seed: int
    fingerprint: str
    fixed: bool  # its seed was given, and is not that of the runs

    def cut(self) -> Stream:
        stream = self.spec.cut(self.name, self.given, self.seed)
        stream = stream.fixed(self.seed) if self.fixed else stream
        if stream.fingerprint != self.fingerprint:
            raise BadInput(f"data set {stream.settings['data']!r} of that node differs from the one here")
        return stream


def recipe(stream: Stream) -> Recipe | Stream:
    again, fixed = stream.reseed, "seed" in stream.settings
    if fixed and isinstance(again, functools.partial):
        again = again.args[0]
    spec = getattr(again.func, "__self__", None) if isinstance(again, functools.partial) else None
    if not isinstance(again, functools.partial) or not isinstance(spec, StreamSpec):
        return stream
    name, given = again.args
    return Recipe(spec, name, given, stream.seed, stream.fingerprint, fixed)


@dataclass(frozen=True)
class Order:
    """What a node is told about a cell, besides what several cells share."""

    whose: Whose
    seed: int
    device: str
    reseed: bool
    code: str
    key: str | None  # of its states; None where they are not kept
    every: int | None
    threads: int


def work(order: Order, mailbox: Any, last: Files | None, *packed: bytes) -> Any:
    """A cell on a worker, from its last state on: its record, or why there is none."""
    torch.set_num_threads(1)
    keep_memory()
    told = -PATIENCE

    def watch(progress: Progress) -> None:
        nonlocal told
        if time.monotonic() - told >= PATIENCE:
            told = time.monotonic()
            mailbox.post.remote(order.whose, progress)

    keep = None if order.key is None else Sent(mailbox, order.whose, order.key, order.every, last)
    try:
        if order.code != code_version():
            raise BadInput("that node has another version of Holdfast")
        method, stream, net, protocol = map(pickle.loads, packed)  # from the driver's memory, never from a disk
        cut = stream.cut() if isinstance(stream, Recipe) else stream
        cell = Cell(method, cut, net, protocol, order.seed, order.device, order.reseed, threads=order.threads)
        return cell.run(watch, keep)
    except (RunFailed, BadInput) as error:
        return str(error), None
    except (Exception, SystemExit) as error:  # a bug in a user's method must not take the other cells down
        return f"{type(error).__name__}: {error}", traceback.format_exc()
