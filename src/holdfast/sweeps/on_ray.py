"""Runs cells on a Ray cluster: each is a task of its threads, tried again when its worker or node is lost.

What a cell needs travels with it, data sets with a name by their name; its states and its record come back by value
and are written here, so the nodes need no common disk. They need the same Holdfast and, for named data sets, the same
files.
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
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from holdfast.engine.state import Files
from holdfast.errors import BadInput, RunFailed
from holdfast.metrics.groups import chosen
from holdfast.sweeps.cell import Cell, code_version, describe, pick_device
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.executor import Run, begin, default_jobs
from holdfast.sweeps.on_node import PATIENCE, TRANSFER, Mailbox, Order, Whose, recipe, work
from holdfast.sweeps.store import write_record
from holdfast.types import Record, Stream

UNPICKLABLE = (TypeError, ValueError, AttributeError, pickle.PicklingError)
TRIES = 3  # of a cell whose worker or node was lost
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
    cells: Sequence[Cell],
    folder: Path | None,
    on: str,
    jobs: int | None = None,
    watch: Watcher | None = None,
    checkpoint_every: int | None = None,
) -> list[Record | Failure]:
    """Run every cell that is not finished in `folder`; results are in the order of the cells.

    Unfinished cells are saved there as `execute` saves them, and each goes on with what the other left.
    """
    tell = watch or (lambda event: None)
    runs, results = begin(cells, folder, checkpoint_every, tell)
    waiting = [i for i in range(len(cells)) if i not in results]
    if waiting:
        todo = [cells[i] for i in waiting]
        threads = max(cell.threads for cell in todo)
        cpus = min(jobs or default_jobs(todo), len(todo)) * threads
        with _connected(on, cpus) as ray, _by_value(ray, todo):
            _refuse_threads(ray, threads)
            for event in _Cluster(ray, runs).run(waiting):
                if event.outcome is not None:
                    results[event.cell] = event.outcome
                tell(event)
    return [results[i] for i in range(len(cells))]


@contextmanager
def _connected(on: str, cpus: int) -> Iterator[Any]:
    """A cluster on this machine, closed to others; or the one at an address; or the one this program is in already."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_raylet_start_wait_time_s", "180")  # on a busy machine a node takes more than Ray's 30
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".")  # its news of dead workers, which we tell ourselves
    if on == "ray":
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")  # Ray's way to say: listen on 127.0.0.1 only
    import ray

    if ray.is_initialized():
        yield ray
        return
    home = tempfile.mkdtemp(prefix="holdfast-ray-") if on == "ray" else None
    try:
        _join(ray, on, cpus, home)
        yield ray
    finally:
        ray.shutdown()
        if home is not None:
            shutil.rmtree(home, ignore_errors=True)


def _join(ray: Any, on: str, cpus: int, home: str | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if on == "ray":
            ray.init(num_cpus=cpus, include_dashboard=False, _temp_dir=home, **quiet)
        else:
            with warnings.catch_warnings(action="ignore"):  # what is wrong is told below, in one line
                ray.init("auto" if on == "ray://auto" else on, **quiet)
    except Exception as error:  # Ray raises bare Exceptions, too, e.g. when a node takes too long to start
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        reason = (
            f"{lines[0]} {lines[-1].strip()}" if lines[0].endswith(":") else lines[0]
        )  # a traceback follows a colon
        if on == "ray":
            raise RunFailed(f"Ray cannot start a cluster on this machine: {reason}") from error
        raise BadInput(f"no Ray cluster answers at {on}: {reason}") from error


def _refuse_threads(ray: Any, threads: int) -> None:
    """A cell that no node has the cores for would wait forever."""
    most = max((node["Resources"].get("CPU", 0) for node in ray.nodes() if node["Alive"]), default=0)
    if threads > max(most, 1):
        raise BadInput(
            f"no node of the Ray cluster has {threads} cores for a cell of {threads} threads; ask for at most {most:g}"
        )


class _Cluster:
    """Cells on their way through a cluster."""

    def __init__(self, ray: Any, runs: Sequence[Run]) -> None:
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        self.ray, self.runs = ray, runs
        # Tried again here and not by Ray, so that tries can be told and counted.
        self.work = ray.remote(num_cpus=1, max_retries=0)(work)
        here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
        made = ray.remote(num_cpus=0, max_restarts=-1, scheduling_strategy=here)(Mailbox)
        self.mailbox, self.asked = made.remote(), None
        self.put: dict[int, Any] = {}  # id of what several cells share -> its place in the object store
        self.pending: dict[Any, int] = {}  # task -> cell
        self.lost: Counter[int] = Counter()
        self.said: list[Event] = []

    def run(self, waiting: Sequence[int]) -> Iterator[Event]:
        try:
            yield from self.events(waiting)
        except ConnectionError as error:  # what Ray's client raises once the cluster is gone
            raise RunFailed(
                "the Ray cluster was lost; what is finished is kept, and the same command goes on from there"
            ) from error

    def events(self, waiting: Sequence[int]) -> Iterator[Event]:
        try:
            for i in waiting:
                try:
                    self.submit(i)
                except UNPICKLABLE as error:
                    yield Event(i, outcome=self.runs[i].failed(f"it cannot be sent to a Ray worker: {error}"))
            while self.pending:
                ready, _ = self.ray.wait(list(self.pending), timeout=PATIENCE)
                # The last state of a worker that was lost is there by now; an answer under way may be older.
                if ready and self.asked is not None:
                    yield from self.news(TRANSFER)
                yield from self.news(TRANSFER if ready else 10 * PATIENCE)
                for task in ready:
                    i = self.pending.pop(task)
                    outcome = self.outcome(task, i)
                    if outcome is None:
                        yield Event(i, note="its Ray worker or node was lost; it is tried again")
                        self.submit(i)
                    else:
                        yield Event(i, outcome=outcome)
        finally:
            if self.ray.is_initialized():  # a cluster that is gone would be begun anew only to be told to stop
                for task in self.pending:
                    self.ray.cancel(task, force=True)
            for i in waiting:
                self.runs[i].clear_half_written()

    def submit(self, i: int) -> None:
        run, cell = self.runs[i], self.runs[i].cell
        shared = [self.shared(thing) for thing in (cell.method, cell.stream, cell.net, cell.protocol)]
        keep = run.checkpoint(lambda line: self.said.append(Event(i, note=line)))
        order = Order(
            whose=(i, self.lost[i]),
            seed=cell.seed,
            device=str(pick_device(cell.device)),
            reseed=cell.reseed,
            code=code_version(),
            key=None if keep is None else keep.key,
            every=run.checkpoint_every,
            threads=cell.threads,
        )
        last = None if keep is None else keep.files()
        work = self.work.options(num_cpus=cell.threads)
        self.pending[work.remote(order, self.mailbox, last, *shared)] = i

    def shared(self, thing: Any) -> Any:
        if id(thing) not in self.put:
            packed = self.ray.cloudpickle.dumps(recipe(thing) if isinstance(thing, Stream) else thing)
            self.put[id(thing)] = self.ray.put(packed)  # as bytes, which a Ray client's server does not look into
        return self.put[id(thing)]

    def news(self, patience: float) -> Iterator[Event]:
        """What the nodes said, and what became of states found here; new states are kept on the way."""
        told, self.said = self.said, []
        yield from told
        self.asked = self.asked or self.mailbox.take.remote()
        if not self.ray.wait([self.asked], timeout=patience)[0]:
            return
        asked, self.asked = self.asked, None
        try:
            notes, words, states = self.ray.get(asked)
            for whose in states:
                files = self.ray.get(self.mailbox.state.remote(whose), timeout=TRANSFER)
                if files is not None and self.is_current(whose):
                    self.keep(whose[0], files)
        except self.ray.exceptions.RayError:
            return  # the mailbox was lost, and is made anew
        yield from (Event(whose[0], note=line) for whose, line in notes if self.is_current(whose))
        yield from (Event(whose[0], progress) for whose, progress in words if self.is_current(whose))

    def is_current(self, whose: Whose) -> bool:
        """Whether news are of a cell's present try; a node that was given up may still be at work on the last."""
        i, lost = whose
        return self.lost[i] == lost and i in self.pending.values()

    def keep(self, i: int, files: Files) -> None:
        keep = self.runs[i].checkpoint(lambda line: None)
        if keep is not None:
            keep.put(files)

    def outcome(self, task: Any, i: int) -> Record | Failure | None:
        """What came of a task; None when it is to be tried again."""
        try:
            found = self.ray.get(task)
        except self.ray.exceptions.RayTaskError as error:
            reason = str(error).strip().splitlines()[-1]
            return self.runs[i].failed(f"its Ray worker cannot run it: {reason}", str(error))
        except self.ray.exceptions.RayError as error:  # the worker, its node, or the object it left there is gone
            self.lost[i] += 1
            if self.lost[i] < TRIES:
                return None
            why = str(error).strip().splitlines()[0]
            return self.runs[i].failed(f"its Ray worker was lost {TRIES} times, the last time: {why}")
        return self.kept(i, found) if isinstance(found, Record) else self.runs[i].failed(*found)

    def kept(self, i: int, record: Record) -> Record:
        """Described here, where the source of the user's own network is, and written."""
        run = self.runs[i]
        found = {name: record.net[name] for name in record.net if name == "parameters" or chosen(record, f"net.{name}")}
        record = replace(record, net={**describe(run.cell.net), **found})
        if run.home is not None:
            write_record(record, run.home)
            run.tidy()
        return record


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
    ours = (cell.method, cell.protocol, cell.stream.spec)
    things = [*parts, *(cls for thing in ours for cls in type(thing).__mro__)]
    names = {getattr(thing, "__module__", None) for thing in things}
    return [sys.modules[name] for name in sorted(filter(None, names)) if name in sys.modules]


def _is_users(module: ModuleType) -> bool:
    if module.__name__.partition(".")[0] in ("holdfast", "__main__"):
        return False  # what is in __main__ always travels
    file = getattr(module, "__file__", None)
    installed = [Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")]
    return file is not None and not any(Path(file).is_relative_to(place) for place in installed)
