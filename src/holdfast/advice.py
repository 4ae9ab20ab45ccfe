"""Which method to retrain a deployed model with, where rules forbid what benchmarks allow, and what it would forget."""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import api
from holdfast.api import Comparison, StreamLike, as_net, as_stream, experiment_of
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner, methods
from holdfast.metrics import Interval, interval, paired, study
from holdfast.protocols import Protocol, name_of, protocols
from holdfast.report import advice as told
from holdfast.settings import Count, Positive, changed, defaults, expected, fits, provenance, settings_of
from holdfast.sweeps import Cell, Event, Failure, NetLike, claim_sweep, execute, locked, write_text
from holdfast.sweeps.command import command
from holdfast.sweeps.on_node import Recipe, recipe
from holdfast.sweeps.store import dumps, read_experiment, refuse_foreign
from holdfast.types import Record, Stream

REHEARSAL: Mapping[str, Any] = {  # of `realistic`: a small grid, for every method has to go through it
    "layers": (2,),
    "sizes": (200,),
    "lr": (1e-2, 1e-3),
    "later_lr": (1e-2, 1e-3, 1e-4),
    "momentum": 0.9,
    "steps": 1000,
    "test_batch": 200,  # the looks at tests on the way are for the report's curves alone; the scores are on all rows
}
NETS = ("mlp", "bayes")  # the second where a method needs it
GLANCE = 20  # rows per class of the glance at what a method keeps and takes
GLANCE_STEPS = 3
GLIMPSE: Mapping[str, Any] = {  # of `application`, which learns all tasks to the end: then what is kept is there
    "steps": GLANCE_STEPS,
    "score_every": GLANCE_STEPS,
    "lr": 1e-2,
    "later_lr": 1e-3,
    "weights_from": "last",
    "at_once": False,
    "alphas": 0,
}
GLANCES, FIRST, LARGER = 0.2, 0.7, 0.85  # shares of the time by which these are over; the rest is for further seeds
CONTENDER = 0.05  # accuracy that a method may lack of the best and still be tried with further seeds
UNKNOWN = 1e9  # seconds of a glance for which there was no time: less than of one that took too long
MEMORIES = "memories"  # the setting by which replay is made smaller or larger
ROOM = 0.98  # of the memory that is allowed, for rows: what is kept beside them differs by a few bytes
LARGE = 1.5  # times the usual number of rows that must fit before so many are tried
UNABLE = "cannot run here"
SWEEP = "advice"  # what the rehearsals are called in an output folder


@dataclass(frozen=True)
class Limits:
    """What is allowed."""

    memory: int | None = None  # bytes that are left behind after any task, the network included
    keep_data: bool = True  # whether rows of earlier tasks may be kept
    seconds: float | None = None  # for the advice


@dataclass(frozen=True)
class Tried:
    """A method that was rehearsed: the same tasks, learned in the same order, chosen as one has to who deploys it."""

    method: str
    settings: Mapping[str, Any]  # that are not the defaults
    net: str
    accuracy: Interval  # on the test rows of all tasks together, after the last one
    values: tuple[float, ...]  # by seed
    behind: Interval | None  # the best less this one, paired over seeds; None: it is the best
    bytes: int  # the most it left after a task
    rows: int  # of past tasks found in what it keeps
    generates: bool  # whether it keeps a generator of rows
    seconds: float  # of one rehearsal, trials included
    trained: bool  # on the first task; else no look at it was better than the one before its first step
    classes: Mapping[str, tuple[float | None, float]]  # accuracy when it was learned (None: last) and at the end

    @property
    def called(self) -> str:
        """'er (memories=200)'."""
        return _called(self.method, self.settings)

    def entry(self) -> dict[str, Any]:
        """As JSON."""
        behind = None if self.behind is None else self.behind._asdict()
        return {"called": self.called, **vars(self), "accuracy": self.accuracy._asdict(), "behind": behind}


@dataclass(frozen=True)
class Advice:
    """What to go on with, and on what evidence; prints as sentences and a table."""

    limits: Limits
    tried: tuple[Tried, ...]  # the best first
    ruled_out: Mapping[str, str]  # method -> why
    left_out: Mapping[str, str]  # not tried, or not with all seeds: there was no time
    scenario: str
    tasks: tuple[str, ...]  # what was learned, in this order
    seconds: float  # that it took
    command: str | None  # trains the best as it was rehearsed first; None where its parts have no names outside Python
    winner: Cell = field(repr=False, compare=False)  # the best one's first rehearsal
    comparison: Comparison = field(repr=False, compare=False)  # of all rehearsals that keep to the limits

    @property
    def best(self) -> Tried:
        return self.tried[0]

    @property
    def alike(self) -> tuple[Tried, ...]:
        """Those near the best of which these seeds do not tell whether they are worse."""
        return tuple(t for t in self.tried[1:] if t.behind is not None and _close(t.behind))

    def train(self, keep_model: str | Path | None = None) -> Record:
        """The best one's first rehearsal once more; `keep_model`: the folder where the model stays."""
        cell = self.winner
        stream = cell.stream.reseed(cell.seed)
        return api.run(cell.method, stream, cell.net, cell.protocol, cell.seed, keep_model=keep_model)

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": 1,
            "limits": asdict(self.limits),
            "scenario": self.scenario,
            "tasks": list(self.tasks),
            "recommended": self.best.called,
            "command": self.command,
            "not_separable": [t.called for t in self.alike],
            "tried": [t.entry() for t in self.tried],
            "ruled_out": dict(self.ruled_out),
            "left_out": dict(self.left_out),
            "seconds": self.seconds,
        }

    def report(self, path: str | Path) -> Path:
        """Write it as one self-contained HTML file, with all that was measured below."""
        return self.comparison.report(path)

    def __str__(self) -> str:
        return told.text(self.summary())


class _TimeIsUp(BaseException):
    """Ends a round; what is finished by then is kept. Not an error of the cell in which it is raised."""


def advise(
    stream: StreamLike,
    candidates: Sequence[str | Learner] | None = None,
    *,
    memory: int | None = None,
    keep_data: bool = True,
    seconds: float | None = None,
    net: str | NetLike | None = None,
    protocol: Protocol | None = None,
    seeds: int = 3,
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Callable[[str], None] | None = None,
) -> Advice:
    """Rehearse the stream with every method that the limits allow, cheapest first, and say which one to go on with.

    Each method is first glanced at on a few rows: what does it keep, how long does it take? Those that keep what is not
    allowed are ruled out before they see more. The others learn the stream under `realistic`: the model is chosen on
    the first task, each later one has its own data alone. Those close to the best are tried with further `seeds`.
    Replay keeps as many rows as fit into `memory` bytes; without that, as many as its method usually does. When the
    `seconds` are over, what is not finished is left out. The advice is chosen on the test rows that it is told by: what
    is measured after deployment may be a little lower. In the folder `out` the rehearsals stay, with a report; the next
    advice there goes on with them.

    >>> from holdfast.api import protocol as make
    >>> short = make("realistic", steps=100)
    >>> found = advise(as_stream("slt"), ["finetune", "er"], protocol=short, seeds=1, jobs=1)
    >>> found.best.method, sorted(found.ruled_out)
    ('er', [])
    >>> sorted(advise(as_stream("slt"), ["finetune", "er"], keep_data=False, protocol=short, seeds=1).ruled_out)
    ['er']
    """
    began = time.monotonic()
    _refuse(memory, seconds, seeds)
    asked = methods.names() if candidates is None else candidates
    learners = [methods.make(one, {}) if isinstance(one, str) else one for one in asked]
    way = _rehearsal(protocols.make("realistic", {}) if protocol is None else protocol)
    shown = _with_validation(as_stream(stream))
    limits = Limits(memory, keep_data, seconds)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out)
        rehearsals = _Rehearsals(
            shown, way, net, limits, home, out is not None, jobs, began, watch or (lambda line: None)
        )
        able = rehearsals.able(learners)
        if out is not None:
            stack.enter_context(locked(home, refuse))
        able = rehearsals.glanced(able)
        rehearsals.first_round(able)
        rehearsals.further(seeds)
        rehearsals.left_over(able)
        rehearsals.further(seeds)
        advice = rehearsals.advice()
        if out is not None:
            write_text(home / told.FILE, dumps(advice.summary()))
            advice.comparison.keep(home)
    return advice


def refuse(folder: Path) -> None:
    """Results are kept in a new folder, or in that of another advice."""
    refuse_foreign(folder)
    if (folder / "experiment.json").exists() and read_experiment(folder).get("sweeps") != [SWEEP]:
        raise BadInput(f"{folder} holds results of another command; choose another --out")


def _refuse(memory: Any, seconds: Any, seeds: Any) -> None:
    kinds = {"memory": (memory, Count | None), "seconds": (seconds, Positive | None), "seeds": (seeds, Count)}
    faults = [
        f"{name} must be {expected(kind)}, not {value!r}"
        for name, (value, kind) in kinds.items()
        if isinstance(value, str) or not fits(kind, value)
    ]
    if faults:
        raise BadInput(*faults)


def _rehearsal(way: Protocol) -> Protocol:
    """What nobody set is as small as a rehearsal wants it."""
    if name_of(way) != "realistic":
        raise BadInput(f"an advice is rehearsed under protocol 'realistic', not under {name_of(way)!r}")
    left = {name: value for name, value in REHEARSAL.items() if provenance(way)[name]["chosen_by"] == "default"}
    return changed(way, left, "default", "the rehearsal")


def _with_validation(stream: Stream) -> Stream:
    """`realistic` chooses on validation rows; a stream that keeps none is cut with a tenth of the rows."""
    made = recipe(stream)
    if all(len(task.val) for task in stream.tasks) or not isinstance(made, Recipe):
        return stream
    spec = changed(made.spec, {"val": 0.1}, "default", f"stream {stream.name!r}")
    return replace(made, spec=spec).cut()


class _Rehearsals:
    """The rounds of one advice, and what came of them."""

    def __init__(
        self,
        stream: Stream,
        way: Protocol,
        net: str | NetLike | None,
        limits: Limits,
        home: Path,
        kept: bool,
        jobs: int | None,
        began: float,
        tell: Callable[[str], None],
    ) -> None:
        self.stream, self.way, self.net, self.limits = stream, way, net, limits
        self.home, self.kept, self.jobs, self.began, self.tell = home, kept, jobs, began, tell
        self.ruled_out: dict[str, str] = {}
        self.cells: dict[str, Cell] = {}  # wanted, of all seeds
        self.begun: set[str] = set()  # of these
        self.records: dict[str, Record] = {}
        self.failures: dict[str, Failure] = {}
        self.larger: dict[str, Cell] = {}  # what else can be tried of a method, by what it is called

    def able(self, learners: Iterable[Learner]) -> list[Cell]:
        """The cells of those that can run at all."""
        found: list[Cell] = []
        for learner in learners:
            try:
                found.append(self._fitting(learner))
            except BadInput as error:
                self.ruled_out[name_of(learner)] = f"{UNABLE}: {error.faults[0]}"
        names = [_name(cell) for cell in found]
        if twice := [name for i, name in enumerate(names) if name in names[:i]]:
            raise BadInput(*(f"{name} is among the candidates twice; name it once" for name in dict.fromkeys(twice)))
        if not found:
            reasons = [f"{names}: {why}" for names, why in told.by_reason(self.ruled_out)]
            raise BadInput(*(reasons or ["there is no candidate; name at least one method"]))
        return found

    def glanced(self, cells: Sequence[Cell]) -> list[Cell]:
        """Those that keep nothing that is not allowed, cheapest first; last those whose glance took too long."""
        few = _few(self.stream)
        costs: list[tuple[float, Cell]] = []
        for cell in cells:
            self.tell(f"a glance at {_name(cell)}")
            no_time, at = self._is_over(GLANCES), time.monotonic()
            glance = self._glance(cell, few)
            cost = time.monotonic() - at if glance is not None else UNKNOWN if no_time else math.inf
            if glance is not None and (why := self._keeps_rows(glance)) is not None:
                self.ruled_out[_name(cell)] = why
            elif glance is not None and self._can_be_sized(cell):
                costs += [(cost, sized) for sized in self._sized(cell, few)]
            elif glance is not None and (why := self._too_large(glance)) is not None:
                self.ruled_out[_name(cell)] = why
            elif _name(cell) not in self.ruled_out:
                costs.append((cost, cell))
        return [cell for _, cell in sorted(costs, key=lambda pair: pair[0])]

    def first_round(self, able: Sequence[Cell]) -> None:
        """One seed of all; then more rows for those near the best that may keep more than they usually do."""
        self._round(able, FIRST)
        near = [_name(cell) for cell in self._near()]
        self._round([more for name, more in self.larger.items() if name in near], LARGER)

    def further(self, seeds: int) -> None:
        """More seeds of those near the best, the best first."""
        for seed in range(1, seeds):
            while more := [
                replace(cell, seed=s) for cell in self._near() for s in range(1, seed + 1) if self._is_new(cell, s)
            ]:
                self._round(more, 1.0)

    def left_over(self, able: Sequence[Cell]) -> None:
        """What was not finished when the first round had to end."""
        self._round([cell for cell in able if cell.name not in self.records], 1.0)

    def advice(self) -> Advice:
        """What was found; the mean over seeds decides."""
        ranked, left = self._ranked(), self._left_out()
        if not ranked:
            why = {name: why for name, why in self.ruled_out.items() if not why.startswith(UNABLE)} | left
            said = "; ".join(f"{names}: {why}" for names, why in told.by_reason(why))
            raise RunFailed(f"no method could be rehearsed within these limits: {said}")
        every = [
            cell for cell in self.cells.values() if _name(cell) not in self.ruled_out or cell.name in self.failures
        ]
        every = [cell for cell in every if cell.name in self.records or cell.name in self.failures]
        known: dict[str, Record | Failure] = {**self.failures, **self.records}
        results = [known[cell.name] for cell in every]
        self._claim(every)
        names = self._names()
        pairs = [[(cell, self.records[cell.name]) for cell in cells] for cells in ranked]
        winner = ranked[0][0]
        advice = Advice(
            self.limits,
            tuple(_tried(each, pairs[0], names) for each in pairs),
            self.ruled_out,
            left,
            self.stream.scenario,
            tuple(task.name for task in self.stream.tasks),
            round(time.monotonic() - self.began, 1),
            command(winner),
            winner,
            Comparison(()),
        )
        comparison = replace(Comparison.of(every, results, experiment_of(every)), advice=advice.summary())
        return replace(advice, comparison=comparison)

    # What came of them

    def _ranked(self) -> list[list[Cell]]:
        """The finished rehearsals of each method that keeps to the limits, first seeds first; the best method first."""
        found: dict[str, list[Cell]] = {}
        for cell in sorted(self.cells.values(), key=lambda cell: cell.seed):
            if cell.name in self.records and _name(cell) not in self.ruled_out:
                found.setdefault(_name(cell), []).append(cell)
        return sorted(found.values(), key=self._mean, reverse=True)

    def _mean(self, cells: Sequence[Cell]) -> float:
        return float(np.mean([study.pooled(self.records[cell.name]) for cell in cells]))

    def _near(self) -> Iterator[Cell]:
        """The first rehearsals of those near the best, the best first."""
        ranked = self._ranked()
        return (cells[0] for cells in ranked if self._mean(cells) >= self._mean(ranked[0]) - CONTENDER)

    def _is_new(self, cell: Cell, seed: int) -> bool:
        return replace(cell, seed=seed).name not in self.cells

    def _left_out(self) -> dict[str, str]:
        """What there was no time for."""
        found: dict[str, str] = {}
        for cell in self.cells.values():
            name = _name(cell)
            if cell.name in self.records or cell.name in self.failures or name in self.ruled_out:
                continue
            if cell.seed == 0:
                found[name] = (
                    "was begun and not finished in time" if cell.name in self.begun else "no time was left for it"
                )
            else:
                found[name] = (
                    f"{found[name]}, {cell.seed}" if name in found else f"no time was left for seed {cell.seed}"
                )
        return found

    def _names(self) -> dict[int, list[Mapping[int, str]]]:
        """What the classes of each task are called, by seed; a name that several tasks have tells of which it is."""
        found: dict[int, list[Mapping[int, str]]] = {}
        for seed in sorted({cell.seed for cell in self.cells.values()}):
            tasks = (self.stream if seed == self.stream.seed else self.stream.reseed(seed)).tasks
            called = [name for task in tasks for name in task.names]
            found[seed] = [
                {
                    c: name if called.count(name) == 1 else f"{name} of task {task.t + 1}"
                    for c, name in zip(task.classes, task.names, strict=True)
                }
                for task in tasks
            ]
        return found

    # What is allowed

    def _keeps_rows(self, record: Record) -> str | None:
        line = record.card["no_old_data"]
        return None if self.limits.keep_data or line["met"] else "keeps rows of past tasks"

    def _too_large(self, record: Record) -> str | None:
        left, allowed = max(record.resources["bytes"]), self.limits.memory
        return None if allowed is None or left <= allowed else f"leaves {left:,} bytes behind, {allowed:,} are allowed"

    def _can_be_sized(self, cell: Cell) -> bool:
        """Whether it keeps a number of rows that nobody has given, and there is a limit."""
        noted = provenance(cell.method).get(MEMORIES)
        return self.limits.memory is not None and noted is not None and noted["chosen_by"] == "default"

    def _sized(self, cell: Cell, few: Stream) -> list[Cell]:
        """With its usual number of rows, or with as many as fit; nothing where none do.

        What it leaves grows in a straight line with them, so two small memories tell of all others.
        """
        least, allowed, had = sum(map(len, self.stream.info.task_classes)), self.limits.memory, _memories(cell)
        small, large = (self._glance(_with(cell, n), few) for n in (least, 2 * least))
        if small is None or large is None or allowed is None:  # no time: the rehearsal will tell
            return [cell]
        low, high = (max(record.resources["bytes"]) for record in (small, large))
        each = max((high - low) / least, 1)
        per_task = max(round(each / self._row), 1)  # whether so many are kept of each task
        there = sum(len(task.train) for task in self.stream.tasks) // per_task
        fit = least + math.floor((ROOM * allowed - low) / each)
        if fit < least:
            self.ruled_out[_name(cell)] = f"leaves {low:,} bytes behind with a row per class, {allowed:,} are allowed"
            return []
        if fit < had:
            return [_with(cell, _rounded(fit))]
        if min(fit, there) > LARGE * had:
            self.larger[_name(cell)] = _with(cell, _rounded(min(fit, there)))
        return [cell]

    @property
    def _row(self) -> int:
        """Bytes of a row that is kept: floats, its label and its task."""
        return 4 * math.prod(self.stream.info.shape) + 16

    # How they are run

    def _fitting(self, learner: Learner) -> Cell:
        """With the network it was asked for, or with the first that it can learn."""
        faults: list[str] = []
        for net in NETS if self.net is None else (self.net,):
            cell = Cell(learner, self.stream, as_net(net), self.way, 0)
            try:
                cell.check()
            except BadInput as error:
                faults = faults or list(error.faults)
            else:
                return cell
        raise BadInput(*faults)

    def _glance(self, cell: Cell, few: Stream) -> Record | None:
        """A few steps on a few rows; None where there is no time for it, or it fails."""
        whole = self.limits.seconds
        until = None if whole is None else min(self._until(GLANCES), time.monotonic() + GLANCES / 4 * whole)
        short = protocols.make("application", {})
        alike = {name: value for name, value in settings_of(self.way).items() if name in settings_of(short)}
        short = changed(short, {**alike, **GLIMPSE}, "default", "the glance")
        glance = replace(cell, stream=few, protocol=short)
        self._run([glance], None, 1, until, until)
        failure = self.failures.pop(glance.name, None)
        if failure is not None:
            self.ruled_out[_name(cell)] = f"failed: {failure.reason}"
        return self.records.pop(glance.name, None)

    def _round(self, cells: Sequence[Cell], share: float) -> None:
        """Run those that are not over yet, until this share of the time is; all of it, while nothing is finished."""
        waiting = [cell for cell in cells if _name(cell) not in self.ruled_out and cell.name not in self.records]
        self.cells |= {cell.name: cell for cell in waiting}
        until = None if self.limits.seconds is None else self._until(share)
        if not waiting or _over(until):
            return
        self._claim(list(self.cells.values()))
        seeds = sorted({cell.seed for cell in waiting})
        self.tell(f"rehearsing {', '.join(dict.fromkeys(map(_name, waiting)))} (seed {', '.join(map(str, seeds))})")
        self._run(waiting, self.home, self.jobs, until, None if until is None else self._until(1.0))
        for cell in waiting:
            record, failure = self.records.get(cell.name), self.failures.get(cell.name)
            why = None if record is None else self._keeps_rows(record) or self._too_large(record)
            if failure is not None:
                why = f"failed with seed {cell.seed}: {failure.reason}"
            if why is not None:
                self.ruled_out.setdefault(_name(cell), why)

    def _run(
        self, cells: Sequence[Cell], home: Path | None, jobs: int | None, until: float | None, last: float | None
    ) -> None:
        """What is finished in time is in the records, or in the failures. `last`: until when, while nothing is."""
        if _over(until):
            return

        def watch(event: Event) -> None:
            cell = cells[event.cell]
            self.begun.add(cell.name)
            if isinstance(event.outcome, Record):
                self.records[cell.name] = event.outcome
                if home is not None:
                    self.tell(f"{_name(cell)}: {study.pooled(event.outcome):.3f} on all classes, seed {cell.seed}")
            elif event.outcome is not None:
                reason = event.outcome.reason if self.kept else event.outcome.reason.partition(" (the traceback")[0]
                self.failures[cell.name] = replace(event.outcome, reason=reason.strip().splitlines()[-1])
            if _over(last) or (_over(until) and self.records):
                raise _TimeIsUp

        with suppress(_TimeIsUp):
            execute(cells, home, jobs, watch)

    def _is_over(self, share: float) -> bool:
        return self.limits.seconds is not None and _over(self._until(share))

    def _until(self, share: float) -> float:
        return self.began + share * (self.limits.seconds or math.inf)

    def _claim(self, cells: Sequence[Cell]) -> None:
        """The output folder is that of these cells."""
        if self.kept:
            claim_sweep(self.home, SWEEP, experiment_of(cells))


def _over(until: float | None) -> bool:
    return until is not None and time.monotonic() > until


def _close(behind: Interval) -> bool:
    return behind.mean is not None and behind.mean <= CONTENDER and (behind.low is None or behind.low <= 0)


def _few(stream: Stream) -> Stream:
    """Some rows of it, where it can be cut anew and stays what it is."""
    made = recipe(stream)
    if not isinstance(made, Recipe):
        return stream
    most = max(len(task.classes) for task in stream.tasks) * GLANCE
    rows = {"examples": min(len(task.train) for task in stream.tasks)}
    rows["test_examples"] = min(len(task.test) for task in stream.tasks)
    sizes = {name: min(most, there) for name, there in rows.items()}
    try:
        few = replace(made, spec=changed(made.spec, sizes, "default", f"stream {stream.name!r}")).cut()
    except BadInput:  # its rows are not counted so
        return stream
    return few if few.info.shape == stream.info.shape else stream  # fewer rows of a table may have fewer words


def _memories(cell: Cell) -> int:
    return int(settings_of(cell.method)[MEMORIES])


def _with(cell: Cell, memories: int) -> Cell:
    method = changed(cell.method, {MEMORIES: memories}, "given", f"method {name_of(cell.method)!r}")
    return replace(cell, method=method)


def _rounded(number: int) -> int:
    """
    >>> _rounded(4523), _rounded(87)
    (4500, 87)
    """
    digits = 10 ** max(len(str(number)) - 2, 0)
    return number // digits * digits


def _name(cell: Cell) -> str:
    return _called(name_of(cell.method), _unusual(cell.method))


def _called(method: str, settings: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{method} ({said})" if said else method


def _unusual(learner: Learner) -> dict[str, Any]:
    """Its settings that are not the defaults."""
    usual = defaults(type(learner))
    return {name: value for name, value in settings_of(learner).items() if usual.get(name) != value}


def _tried(
    pairs: Sequence[tuple[Cell, Record]],
    best: Sequence[tuple[Cell, Record]],
    names: Mapping[int, Sequence[Mapping[int, str]]],
) -> Tried:
    records = [record for _, record in pairs]
    values = tuple(study.pooled(record) for record in records)
    behind = None
    if pairs is not best:
        both = {record.seed: study.pooled(record) for _, record in best}
        mine = {record.seed: study.pooled(record) for record in records}
        shared = [seed for seed in both if seed in mine]
        behind = paired([both[seed] for seed in shared], [mine[seed] for seed in shared])
    cell, record = pairs[0]
    return Tried(
        name_of(cell.method),
        _unusual(cell.method),
        record.net["name"],
        interval(values),
        values,
        behind,
        max(int(max(r.resources["bytes"])) for r in records),
        max(int(r.card["no_old_data"]["value"]) for r in records),
        not record.card["no_generator"]["met"],
        float(np.median([r.metrics["train_seconds"] or 0.0 for r in records])),
        any(r.settings["protocol.stop"]["value"][0] for r in records),
        _by_class(records, names),
    )


def _by_class(
    records: Sequence[Record], names: Mapping[int, Sequence[Mapping[int, str]]]
) -> dict[str, tuple[float | None, float]]:
    """Per class the accuracy when its task was over and at the end, as means over the seeds."""
    found: dict[str, list[tuple[float | None, float]]] = {}
    for record in records:
        last = len(record.tasks) - 1
        for t, task in enumerate(record.tasks):
            predicted, labels = record.predictions[t], record.labels[t]
            for c in task["classes"]:
                rows = labels == c
                if not rows.any():
                    continue
                at_end = float((predicted[-1][rows] == c).mean())
                before = None if t == last else float((predicted[_first(record, t)][rows] == c).mean())
                found.setdefault(names[record.seed][t][c], []).append((before, at_end))
    return {
        name: (_mean([a for a, _ in pairs]), float(np.mean([b for _, b in pairs]))) for name, pairs in found.items()
    }


def _first(record: Record, t: int) -> int:
    """Which of a task's scorings came when it was over."""
    scored = [i for i, row in enumerate(record.scorings) if not np.isnan(record.R[i, t])]
    return next(k for k, i in enumerate(scored) if record.scorings[i]["after_task"] >= t)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None
