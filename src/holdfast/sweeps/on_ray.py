"""Runs cells on a Ray cluster: each is a task of one thread, tried again when its worker or node is lost.

What a cell needs travels with it, data sets with a name by their name; its record comes back by value and is written
here, so the nodes need no common disk. They need the same Holdfast and, for named data sets, the same files.
"""

from __future__ import annotations

import copyreg
import functools
import importlib
import importlib.util
import logging
import os
import pickle
import re
import shutil
import socket
import sys
import sysconfig
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from holdfast.errors import BadInput, RunFailed
from holdfast.protocols import Progress
from holdfast.streams import StreamSpec
from holdfast.sweeps.cell import Cell, code_version, describe, pick_device
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.executor import Run
from holdfast.sweeps.store import read_record, write_record, write_text
from holdfast.types import Record, Stream

UNPICKLABLE = (TypeError, ValueError, AttributeError, pickle.PicklingError)
TRIES = 3  # of a cell whose worker or node was lost
PATIENCE = 0.25  # seconds between two messages about one cell, and between looks at all
_ADDRESS = re.compile(r"ray(://(auto|(?P<host>[^\s:/]+|\[[0-9a-fA-F:]+\]):(?P<port>\d{1,5})))?")


def faults(on: str | None) -> list[str]:
    """Why cells cannot be run there, as far as can be known before."""
    if on is None:
        return []
    address = _ADDRESS.fullmatch(on)
    if address is None:
        return [f"unknown executor {on!r}; write 'ray' for a cluster on this machine, or 'ray://HOST:PORT' to join one"]
    if importlib.util.find_spec("ray") is None:
        return ["running on Ray needs ray; install it with: pip install 'holdfast[ray]'"]
    return [] if address["host"] is None else _silent(address["host"], int(address["port"]))


def _silent(host: str, port: int) -> list[str]:
    """Ray itself would ask for most of a minute."""
    try:
        with socket.create_connection((host.strip("[]"), port), timeout=5):
            return []
    except (OSError, OverflowError) as error:
        return [f"no Ray cluster answers at ray://{host}:{port} ({error}); its client port is 10001 unless chosen"]


def execute_on_ray(
    cells: Sequence[Cell], folder: Path | None, on: str, jobs: int | None = None, watch: Watcher | None = None
) -> list[Record | Failure]:
    """Run every cell that is not finished in `folder`; results are in the order of the cells."""
    results: dict[int, Record | Failure] = {}
    tell = watch or (lambda event: None)
    homes = [None if folder is None else folder / "cells" / cell.name for cell in cells]
    for i, home in enumerate(homes):
        if home is not None and (home / "record.json").exists():
            results[i] = read_record(home)
            tell(Event(i, outcome=results[i]))
    waiting = [i for i in range(len(cells)) if i not in results]
    if waiting:
        with _connected(on, jobs, len(waiting)) as ray, _by_value(ray, [cells[i] for i in waiting]):
            for event in _Cluster(ray, cells, homes).run(waiting):
                if event.outcome is not None:
                    results[event.cell] = event.outcome
                tell(event)
    return [results[i] for i in range(len(cells))]


@contextmanager
def _connected(on: str, jobs: int | None, cells: int) -> Iterator[Any]:
    """A cluster on this machine, closed to others; or the one at an address; or the one this program is in already."""
    if wrong := faults(on):
        raise BadInput(*wrong)
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # its news of dead workers, which we tell ourselves
    if on == "ray":
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's way to say: listen on 127.0.0.1 only
    import ray

    if ray.is_initialized():
        yield ray
        return
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    home = tempfile.mkdtemp(prefix="holdfast-ray-") if on == "ray" else None
    try:
        if on == "ray":
            cpus = min(jobs or os.cpu_count() or 1, cells)
            ray.init(num_cpus=cpus, include_dashboard=False, _temp_dir=home, **quiet)
        else:
            with warnings.catch_warnings(action="ignore"):  # what is wrong is told below, in one line
                ray.init("auto" if on == "ray://auto" else on, **quiet)
    except (ConnectionError, TimeoutError, ValueError, RuntimeError) as error:
        raise BadInput(f"no Ray cluster answers at {on}: {str(error).splitlines()[0]}") from error
    try:
        yield ray
    finally:
        ray.shutdown()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)


class _Cluster:
    """Cells on their way through a cluster."""

    def __init__(self, ray: Any, cells: Sequence[Cell], homes: Sequence[Path | None]) -> None:
        self.ray, self.cells, self.homes = ray, cells, homes
        self.work = ray.remote(num_cpus=1, max_retries=0)(
            _work
        )  # tried again here, where tries can be told and counted
        self.mailbox = ray.remote(num_cpus=0, max_restarts=-1)(_Mailbox).remote()
        self.put: dict[int, Any] = {}  # id of what several cells share -> its place in the object store
        self.lost: Counter[int] = Counter()

    def run(self, waiting: Sequence[int]) -> Iterator[Event]:
        pending: dict[Any, int] = {}
        try:
            for i in waiting:
                try:
                    pending[self.submit(i)] = i
                except UNPICKLABLE as error:
                    yield Event(i, outcome=self.failed(i, f"it cannot be sent to a Ray worker: {error}"))
            while pending:
                ready, _ = self.ray.wait(list(pending), timeout=PATIENCE)
                yield from self.news()
                for task in ready:
                    i = pending.pop(task)
                    outcome = self.outcome(task, i)
                    if outcome is None:
                        pending[self.submit(i)] = i
                        yield Event(i, note="its Ray worker or node was lost; it is tried again from its beginning")
                    else:
                        yield Event(i, outcome=outcome)
        finally:
            for task in pending:
                self.ray.cancel(task, force=True)

    def submit(self, i: int) -> Any:
        cell = self.cells[i]
        shared = [self.shared(thing) for thing in (cell.method, cell.stream, cell.net, cell.protocol)]
        rest = (cell.seed, str(pick_device(cell.device)), cell.reseed, code_version())
        return self.work.remote(i, self.mailbox, rest, *shared)

    def shared(self, thing: Any) -> Any:
        if id(thing) not in self.put:
            packed = self.ray.cloudpickle.dumps(_recipe(thing) if isinstance(thing, Stream) else thing)
            self.put[id(thing)] = self.ray.put(packed)  # as bytes, which a Ray client's server does not look into
        return self.put[id(thing)]

    def news(self) -> Iterator[Event]:
        try:
            for i, progress in self.ray.get(self.mailbox.take.remote(), timeout=10 * PATIENCE):
                yield Event(i, progress)
        except self.ray.exceptions.RayError:
            return  # the mailbox was lost with its node, and is made anew on another

    def outcome(self, task: Any, i: int) -> Record | Failure | None:
        """What came of a task; None when it is to be tried again."""
        try:
            found = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            return self.failed(i, f"its Ray worker cannot run it: {str(error).strip().splitlines()[-1]}", str(error))
        except self.ray.exceptions.RayError as error:  # the worker, its node, or the object it left there is gone
            self.lost[i] += 1
            if self.lost[i] < TRIES:
                return None
            why = str(error).strip().splitlines()[0]
            return self.failed(i, f"its Ray worker was lost {TRIES} times, the last time: {why}")
        return self.kept(i, found) if isinstance(found, Record) else self.failed(i, *found)

    def kept(self, i: int, record: Record) -> Record:
        """Described here, where the source of the user's own network is, and written."""
        record = replace(record, net={**describe(self.cells[i].net), "parameters": record.net["parameters"]})
        if (home := self.homes[i]) is not None:
            write_record(record, home)
            Run(self.cells[i], home).tidy()
        return record

    def failed(self, i: int, reason: str, details: str | None = None) -> Failure:
        """Why there is no record; the traceback goes to error.txt."""
        home, name = self.homes[i], self.cells[i].name
        if home is None:
            return Failure(name, details or reason)
        write_text(home / "error.txt", details or f"{reason}\n")
        return Failure(name, f"{reason} (the traceback is in {home / 'error.txt'})" if details else reason)


class _Mailbox:
    """An actor that keeps the last word about each cell until it is asked for."""

    def __init__(self) -> None:
        self.words: dict[int, Progress] = {}

    def post(self, i: int, progress: Progress) -> None:
        self.words[i] = progress

    def take(self) -> list[tuple[int, Progress]]:
        words, self.words = self.words, {}
        return list(words.items())


@dataclass(frozen=True)
class _Recipe:
    """A stream without its pixels: what it is cut from, by name where it has one."""

    spec: StreamSpec
    name: str
    given: Any
    seed: int
    fingerprint: str

    def cut(self) -> Stream:
        stream = self.spec.cut(self.name, self.given, self.seed)
        if stream.fingerprint != self.fingerprint:
            raise BadInput(f"data set {stream.settings['data']!r} of that node differs from the one here")
        return stream


def _recipe(stream: Stream) -> _Recipe | Stream:
    again = stream.reseed
    spec = getattr(again.func, "__self__", None) if isinstance(again, functools.partial) else None
    if not isinstance(again, functools.partial) or not isinstance(spec, StreamSpec):
        return stream
    name, given = again.args
    return _Recipe(spec, name, given, stream.seed, stream.fingerprint)


def _work(i: int, mailbox: Any, rest: Any, *packed: bytes) -> Any:
    """A cell on a worker: its record, or why there is none."""
    seed, device, reseed, code = rest
    torch.set_num_threads(1)
    last = -PATIENCE

    def watch(progress: Progress) -> None:
        nonlocal last
        if time.monotonic() - last >= PATIENCE:
            last = time.monotonic()
            mailbox.post.remote(i, progress)

    try:
        if code != code_version():
            raise BadInput("that node has another version of Holdfast")
        method, stream, net, protocol = map(pickle.loads, packed)  # from the driver's memory, never from a disk
        cut = stream.cut() if isinstance(stream, _Recipe) else stream
        return Cell(method, cut, net, protocol, seed, device, reseed).run(watch)
    except (RunFailed, BadInput) as error:
        return str(error), None
    except (Exception, SystemExit) as error:  # a bug in a user's method must not take the other cells down
        return f"{type(error).__name__}: {error}", traceback.format_exc()


@contextmanager
def _by_value(ray: Any, cells: Sequence[Cell]) -> Iterator[None]:
    """A user's own code travels along; what is installed is imported on the node."""
    modules = {module.__name__: module for cell in cells for module in _modules(cell) if _is_users(module)}
    # A network that reads info.classes would take torch.classes along, which cannot be pickled.
    copyreg.pickle(type(torch.classes), _torch_classes)
    for module in modules.values():
        ray.cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules.values():
            ray.cloudpickle.unregister_pickle_by_value(module)


def _torch_classes(_: Any) -> Any:
    return importlib.import_module, ("torch.classes",)


def _modules(cell: Cell) -> list[ModuleType]:
    net = cell.net.func if isinstance(cell.net, functools.partial) else cell.net
    parts = [*(type(part) for part in net.modules())] if isinstance(net, nn.Module) else [type(net), net]
    things = [*type(cell.method).__mro__, *parts, type(cell.protocol)]
    names = {getattr(thing, "__module__", None) for thing in things}
    return [sys.modules[name] for name in sorted(filter(None, names)) if name in sys.modules]


def _is_users(module: ModuleType) -> bool:
    if module.__name__.partition(".")[0] in ("holdfast", "__main__"):
        return False  # what is in __main__ always travels
    file = getattr(module, "__file__", None)
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    return file is not None and not any(Path(file).is_relative_to(place) for place in installed)
