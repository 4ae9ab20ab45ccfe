"""Which method to retrain a deployed model with, where rules forbid what benchmarks allow, and what it would forget."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.api import Comparison, StreamLike, as_net, as_stream, experiment_of, run_cells
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner, methods
from holdfast.metrics import Interval, interval, paired, study
from holdfast.protocols import Protocol, name_of, protocols
from holdfast.settings import changed, hints, provenance, settings_of
from holdfast.sweeps import Cell, Event, NetLike, Watcher, write_text
from holdfast.sweeps.on_node import Recipe, recipe
from holdfast.sweeps.store import dumps
from holdfast.types import Record, Stream

REHEARSAL: Mapping[str, Any] = {  # of `realistic`: a small grid, for every method has to go through it
    "layers": (2,),
    "sizes": (200,),
    "lr": (1e-2, 1e-3),
    "later_lr": (1e-2, 1e-3, 1e-4),
    "momentum": 0.9,
    "steps": 1000,
}
NETS = ("mlp", "bayes")  # the second where a method needs it
GLANCE = 20  # rows per class of the glance at what a method keeps and takes
GLANCE_STEPS = 3
GLANCE_SHARE = 0.2  # of the time, at most
CONTENDER = 0.05  # accuracy that a method may lack of the best and still be tried with further seeds
MEMORIES = "memories"  # the setting by which replay is made smaller


@dataclass(frozen=True)
class Limits:
    """What is allowed."""

    memory: int | None = None  # bytes that are left behind after the last task, the network included
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
    bytes: int  # after the last task
    rows: int  # of past tasks found in what it keeps
    generates: bool  # whether it keeps a generator of rows
    seconds: float  # of one rehearsal, trials included
    classes: Mapping[str, tuple[float | None, float]]  # accuracy when it was learned (None: last) and at the end

    @property
    def called(self) -> str:
        """'er (memories=200)'."""
        told = ", ".join(f"{name}={value}" for name, value in self.settings.items())
        return f"{self.method} ({told})" if told else self.method

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
    left_out: Mapping[str, str]  # not tried, or not to the end: there was no time
    scenario: str
    seconds: float  # that it took
    comparison: Comparison = field(repr=False, compare=False, default_factory=lambda: Comparison(()))

    @property
    def best(self) -> Tried:
        return self.tried[0]

    @property
    def alike(self) -> tuple[Tried, ...]:
        """Those near the best of which these seeds do not tell whether they are worse."""
        return tuple(t for t in self.tried[1:] if t.behind is not None and _close(t.behind))

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "schema": 1,
            "limits": asdict(self.limits),
            "scenario": self.scenario,
            "recommended": self.best.called,
            "not_separable": [t.called for t in self.alike],
            "tried": [t.entry() for t in self.tried],
            "ruled_out": dict(self.ruled_out),
            "left_out": dict(self.left_out),
            "seconds": self.seconds,
        }

    def __str__(self) -> str:
        from holdfast.report.advice import advice_text

        return advice_text(self.summary())


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
    names: Sequence[str] = (),
    out: str | Path | None = None,
    watch: Callable[[str], None] | None = None,
) -> Advice:
    """Rehearse the stream with every method that the limits allow, cheapest first, and say which one to go on with.

    Each method is first glanced at on a few rows: what does it keep, how long does it take? Those that keep what is not
    allowed are ruled out before they see more. The others learn the stream under `realistic`: the model is chosen on
    the first task, each later one has its own data alone. Those close to the best are tried with further `seeds`.
    A replay that ends above `memory` is tried once more with a smaller one. The advice is chosen on the test rows that
    it is told by: what is measured after deployment may be a little lower. `names` are those of the stream's classes.

    >>> from holdfast.api import protocol as make
    >>> short = make("realistic", steps=100)
    >>> found = advise(as_stream("slt"), ["finetune", "er"], protocol=short, seeds=1, jobs=1)
    >>> found.best.method, sorted(found.ruled_out)
    ('er', [])
    >>> sorted(advise(as_stream("slt"), ["finetune", "er"], keep_data=False, protocol=short, seeds=1).ruled_out)
    ['er']
    """
    began = time.monotonic()
    shown = _with_validation(as_stream(stream))
    way = _rehearsal(protocols.make("realistic", {}) if protocol is None else protocol)
    limits = Limits(memory, keep_data, seconds)
    asked = [methods.make(name, {}) for name in methods.names()] if candidates is None else list(candidates)
    learners = [methods.make(one, {}) if isinstance(one, str) else one for one in asked]
    tell = watch or (lambda line: None)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out) / "rehearsals"
        deadline = None if seconds is None else began + seconds
        rehearsals = _Rehearsals(shown, way, net, limits, folder, jobs, deadline, tell)
        able = rehearsals.glanced(learners)
        rehearsals.first_round(able)
        rehearsals.further(range(1, seeds))
        advice = rehearsals.advice(time.monotonic() - began, names)
    if out is not None:
        write_text(Path(out) / "advice.json", dumps(advice.summary()))
        advice.comparison.keep(Path(out))
    return advice


def _rehearsal(way: Protocol) -> Protocol:
    """What nobody set is as small as a rehearsal wants it."""
    if name_of(way) != "realistic":
        raise BadInput(f"an advice is rehearsed under protocol 'realistic', not under {name_of(way)!r}")
    left = {name: value for name, value in REHEARSAL.items() if provenance(way)[name]["chosen_by"] == "default"}
    return changed(way, left, "default", "the rehearsal")


def _with_validation(stream: Stream) -> Stream:
    """`realistic` chooses on validation rows; a stream that keeps none is cut with a tenth of the rows."""
    made = recipe(stream)
    if all(len(task.val) for task in stream.tasks) or isinstance(made, Stream):
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
        folder: Path,
        jobs: int | None,
        deadline: float | None,
        tell: Callable[[str], None],
    ) -> None:
        self.stream, self.way, self.net, self.limits = stream, way, net, limits
        self.folder, self.jobs, self.deadline, self.tell = folder, jobs, deadline, tell
        self.ruled_out: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.cells: list[Cell] = []  # rehearsed, of all seeds
        self.records: dict[str, Record] = {}  # by the name of its cell

    def glanced(self, learners: Iterable[Learner]) -> list[Cell]:
        """The cells of those that may run and keep nothing that is not allowed, cheapest first."""
        costs: list[tuple[float, Cell]] = []
        few = _few(self.stream)
        short = changed(self.way, {"steps": GLANCE_STEPS, "score_every": GLANCE_STEPS}, "default", "the rehearsal")
        room = None if self.limits.seconds is None else GLANCE_SHARE * self.limits.seconds
        for learner in learners:
            name, began = name_of(learner), time.monotonic()
            try:
                cell = self._fitting(learner)
            except BadInput as error:
                self.ruled_out[name] = f"cannot run here: {error.faults[0]}"
                continue
            self.tell(f"a glance at {name}")
            glance = replace(cell, stream=few, protocol=short)
            found = self._run([glance], self.folder / "glances" / name, room and began + room / 4)
            record = found.get(glance.name)
            if record is None:
                self.left_out.setdefault(name, "a glance at it took too long")
            elif (why := self._forbidden(record)) is not None:
                self.ruled_out[name] = why
            else:
                costs.append((time.monotonic() - began, cell))
        return [cell for _, cell in sorted(costs, key=lambda pair: pair[0])]

    def first_round(self, able: Sequence[Cell]) -> None:
        """One seed of all; of those that ended above the memory once more with a smaller one."""
        self._round(able, 0)
        smaller = []
        for cell in able:
            record = self.records.get(cell.name)
            if record is None:
                continue
            if (why := self._forbidden(record)) is None:
                continue
            self.ruled_out[_called(cell)] = why
            if (less := self._with_less(cell, record)) is not None:
                smaller.append(less)
        self._round(smaller, 0)
        for cell in smaller:
            if cell.name in self.records and (why := self._forbidden(self.records[cell.name])) is not None:
                self.ruled_out[_called(cell)] = why

    def further(self, seeds: Iterable[int]) -> None:
        """More seeds of those near the best, the best first."""
        for seed in seeds:
            ranked = sorted(self._allowed(), key=lambda pair: -study.pooled(pair[1]))
            if len(ranked) < 2:
                return
            best = study.pooled(ranked[0][1])
            near = [cell for cell, record in ranked if study.pooled(record) >= best - CONTENDER]
            self._round([replace(cell, seed=seed) for cell in near], seed)

    def advice(self, seconds: float, names: Sequence[str]) -> Advice:
        """What was found; the mean over seeds decides."""
        mine: dict[str, list[tuple[Cell, Record]]] = {}
        for cell in self.cells:
            if cell.name in self.records and _called(cell) not in self.ruled_out:
                mine.setdefault(_called(cell), []).append((cell, self.records[cell.name]))
        if not mine:
            said = [f"{name}: {why}" for name, why in {**self.ruled_out, **self.left_out}.items()]
            raise RunFailed("no method could be rehearsed within these limits; " + "; ".join(said))
        ranked = sorted(mine.values(), key=lambda pairs: -float(np.mean([study.pooled(r) for _, r in pairs])))
        every = [(cell, self.records[cell.name]) for cell in self.cells if cell.name in self.records]
        cells, records = [cell for cell, _ in every], [record for _, record in every]
        return Advice(
            self.limits,
            tuple(_tried(pairs, ranked[0], names) for pairs in ranked),
            self.ruled_out,
            self.left_out,
            self.stream.scenario,
            round(seconds, 1),
            Comparison.of(cells, records, experiment_of(cells)),
        )

    def _allowed(self) -> list[tuple[Cell, Record]]:
        """Those of the first seed."""
        return [
            (cell, self.records[cell.name])
            for cell in self.cells
            if cell.seed == 0 and cell.name in self.records and _called(cell) not in self.ruled_out
        ]

    def _fitting(self, learner: Learner) -> Cell:
        """With the network it was asked for, or with the first that it can learn."""
        nets = NETS if self.net is None else (self.net,)
        for i, net in enumerate(nets):
            cell = Cell(learner, self.stream, as_net(net), self.way, 0)
            try:
                cell.check()
            except BadInput:
                if i == len(nets) - 1:
                    raise
            else:
                return cell
        raise AssertionError

    def _forbidden(self, record: Record) -> str | None:
        """Why what it kept is not allowed."""
        line, left = record.card["no_old_data"], record.resources["bytes"][-1]
        if not self.limits.keep_data and not line["met"]:
            return f"keeps rows of past tasks ({line['value']} were found)"
        if self.limits.memory is not None and left > self.limits.memory:
            return f"leaves {left:,} bytes behind, {self.limits.memory:,} are allowed"
        return None

    def _with_less(self, cell: Cell, record: Record) -> Cell | None:
        """With as small a memory as fits, taking all that it kept beside a bare network's weights for rows."""
        if MEMORIES not in hints(type(cell.method)) or self.limits.memory is None:
            return None
        had, left = getattr(cell.method, MEMORIES), record.resources["bytes"][-1]
        bare = 4 * record.net["parameters"]
        room = (self.limits.memory - bare) / max(left - bare, 1)
        fewer = int(0.97 * had * room)
        if fewer < len(self.stream.info.task_classes[0]):
            return None
        less = changed(cell.method, {MEMORIES: fewer}, "given", f"method {name_of(cell.method)!r}")
        return replace(cell, method=less)

    def _round(self, cells: Sequence[Cell], seed: int) -> None:
        if not cells:
            return
        self.tell(f"seed {seed}: {', '.join(_called(cell) for cell in cells)}")
        names = [_called(cell) for cell in cells]
        home = self.folder / f"seed-{seed}{'-less' if any(cell.name in self.records for cell in cells) else ''}"
        if home.exists():
            home = self.folder / f"seed-{seed}-smaller"
        found = self._run(cells, home, self.deadline)
        self.cells += cells
        self.records |= found
        for cell, name in zip(cells, names, strict=True):
            if cell.name not in found and name not in self.ruled_out:
                self.left_out.setdefault(name, "there was no time for it" if seed == 0 else f"not with seed {seed}")

    def _run(self, cells: Sequence[Cell], home: Path, deadline: float | None) -> dict[str, Record]:
        """What is finished in time."""

        def watch(event: Event) -> None:
            if deadline is not None and time.monotonic() > deadline:
                raise _TimeIsUp

        watcher: Watcher = watch
        try:
            found = run_cells(cells, home, self.jobs, watcher)
        except _TimeIsUp:
            found = Comparison.read(home)
        for failure in found.failures:
            name = next(_called(cell) for cell in cells if cell.name == failure.cell)
            self.ruled_out[name] = f"failed: {failure.reason}"
        return dict(zip(found.names, found.records, strict=True))


def _close(behind: Interval) -> bool:
    return behind.mean is not None and behind.mean <= CONTENDER and (behind.low is None or behind.low <= 0)


def _few(stream: Stream) -> Stream:
    """Some rows of it, where it can be cut anew."""
    made = recipe(stream)
    if not isinstance(made, Recipe):
        return stream
    most = max(len(task.classes) for task in stream.tasks) * GLANCE
    fewest = min(len(task.train) for task in stream.tasks)
    sizes = {"examples": min(most, fewest), "test_examples": min(most, min(len(task.test) for task in stream.tasks))}
    try:
        return replace(made, spec=changed(made.spec, sizes, "default", f"stream {stream.name!r}")).cut()
    except BadInput:  # its rows are not counted so
        return stream


def _called(cell: Cell) -> str:
    told = _unusual(cell.method)
    name = name_of(cell.method)
    return f"{name} ({', '.join(f'{k}={v}' for k, v in told.items())})" if told else name


def _unusual(learner: Learner) -> dict[str, Any]:
    """Its settings that are not the defaults."""
    usual = settings_of(type(learner)())
    return {name: value for name, value in settings_of(learner).items() if usual.get(name) != value}


def _tried(pairs: Sequence[tuple[Cell, Record]], best: Sequence[tuple[Cell, Record]], names: Sequence[str]) -> Tried:
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
        max(int(r.resources["bytes"][-1]) for r in records),
        max(int(r.card["no_old_data"]["value"]) for r in records),
        not record.card["no_generator"]["met"],
        float(np.median([_seconds(r) for r in records])),
        _by_class(records, names),
    )


def _seconds(record: Record) -> float:
    """Of all training, trials that were not taken included."""
    return float(record.metrics["train_seconds"] or 0.0)


def _by_class(records: Sequence[Record], names: Sequence[str]) -> dict[str, tuple[float | None, float]]:
    """Per class the accuracy when its task was over and at the end, as means over the seeds."""
    found: dict[str, list[tuple[float | None, float]]] = {}
    for record in records:
        last = len(record.tasks) - 1
        for t, task in enumerate(record.tasks):
            predicted, labels = record.predictions[t], record.labels[t]
            for c in task["classes"]:
                rows = labels == c
                at_end = float((predicted[-1][rows] == c).mean())
                before = None if t == last else float((predicted[_first(record, t)][rows] == c).mean())
                found.setdefault(names[c] if names else str(c), []).append((before, at_end))
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
