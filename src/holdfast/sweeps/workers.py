"""One process per cell, so many at once: a process that dies costs its cell one more try and no other cell anything."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
import threading
from collections import Counter, deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path

import torch

from holdfast.errors import NotKept
from holdfast.process import keep_memory
from holdfast.sweeps.events import Event, Watcher

Work = Callable[[int, Watcher], None]  # runs a cell and tells what happens; the last thing is its outcome
Lost = Callable[[int, str], Event]  # the outcome of a cell whose process died for the last time, and of what

TRIES = 2
PATIENCE = 1.0  # seconds between looks at processes whose end nobody told: their own children may hold the pipe open
PARTING = 5.0  # seconds for a process whose cell is done to end by itself
HARMLESS = ("jemalloc_bg_thd",)  # threads that nobody waits for: pyarrow's memory has one
_PARENT_DEATH = 1  # PR_SET_PDEATHSIG


def in_processes(work: Work, waiting: Sequence[int], jobs: int, lost: Lost) -> Generator[Event]:
    """Run `work` for every waiting cell, each in a process of its own; closing the iterator ends them all."""
    queue, deaths = deque(waiting), Counter[int]()
    running: dict[int, _Worker] = {}
    try:
        while queue or running:
            while queue and len(running) < jobs:
                cell = queue.popleft()
                with _uninterrupted():
                    running[cell] = _Worker(work, cell)
            wait([worker.inbox for worker in running.values()], PATIENCE)
            for cell, worker in list(running.items()):
                over = worker.process.exitcode is not None  # looked at before its last words are read
                yield from worker.heard()
                if worker.done:
                    running.pop(cell).dismiss()
                elif over:
                    running.pop(cell).dismiss()
                    deaths[cell] += 1
                    if deaths[cell] < TRIES:
                        queue.appendleft(cell)
                        yield Event(cell, note=f"its process {worker.fate()}; it is tried once more")
                    else:
                        yield lost(cell, f"its process died twice, the last time it {worker.fate()}")
    finally:
        for worker in running.values():
            worker.process.kill()
            worker.dismiss()


def has_strange_threads() -> bool:
    """Whether threads run here that Python did not start, as torch's pool: a process forked from here has lost them.

    It may run with one thread. With several it would wait forever for those it has lost.
    """
    try:
        names = [(thread / "comm").read_text().strip() for thread in Path("/proc/self/task").iterdir()]
    except OSError:  # not Linux, or one has just ended
        return True
    return sum(name not in HARMLESS for name in names) > threading.active_count()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C waits: between a fork and the note of it, it would leave a process behind that nobody ends."""
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():  # nothing to hold back, or not ours
        yield
        return
    caught: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: caught.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        signal.raise_signal(signal.SIGINT)


class _Worker:
    """A process at work on one cell, and the pipe it talks through."""

    def __init__(self, work: Work, cell: int) -> None:
        context = multiprocessing.get_context("fork")
        self.done = False
        self.inbox, outbox = context.Pipe(duplex=False)
        self.process = context.Process(target=_serve, args=(work, cell, outbox, os.getpid()))
        self.process.start()
        outbox.close()  # so that the pipe ends with the process

    def heard(self) -> Iterator[Event]:
        """What it has said so far."""
        while not self.done and (said := self._word()) is not None:
            if isinstance(said, NotKept):
                raise said
            self.done = said.outcome is not None
            yield said

    def _word(self) -> Event | NotKept | None:
        try:
            return self.inbox.recv() if self.inbox.poll() else None
        except (EOFError, OSError):  # it is dead, or about to be, perhaps in the middle of a word
            self.process.join()
            return None

    def dismiss(self) -> None:
        self.process.join(PARTING)
        self.process.kill()
        self.process.join()
        self.inbox.close()

    def fate(self) -> str:
        """How it died, as part of a sentence."""
        code = self.process.exitcode or 0
        if code == -signal.SIGKILL:
            return "was killed (signal 9; out of memory?)"
        return f"was killed (signal {-code})" if code < 0 else f"ended with exit code {code}"


def _serve(work: Work, cell: int, outbox: Connection, parent: int) -> None:
    torch.set_num_threads(1)  # before anything else: the parent's threads were not forked along, waiting for them hangs
    keep_memory()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's business; it ends its workers
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DEATH, signal.SIGKILL)  # a killed parent takes its workers along
        if os.getppid() != parent:  # it was killed before that
            return
    try:
        work(cell, outbox.send)
    except NotKept as error:
        outbox.send(error)
