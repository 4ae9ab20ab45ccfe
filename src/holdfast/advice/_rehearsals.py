"""The rounds of an advice: a glance at every method, a rehearsal of each that may stay, more seeds of the best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.advice._found import CONTENDER, Advice, Limits, named, tried_of
from holdfast.api import Comparison, as_net, experiment_of
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner
from holdfast.metrics import study
from holdfast.protocols import Protocol, name_of, protocols
from holdfast.report import advice as told
from holdfast.settings import changed, provenance, settings_of
from holdfast.sweeps import Cell, Event, Failure, NetLike, claim_sweep, execute
from holdfast.sweeps.command import command
from holdfast.sweeps.on_node import Recipe, recipe
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
UNKNOWN = 1e9  # seconds of a glance for which there was no time: less than of one that took too long
MEMORIES = "memories"  # the setting by which replay is made smaller or larger
ROOM = 0.98  # of the memory that is allowed, for rows: what is kept beside them differs by a few bytes
LARGE = 1.5  # times the usual number of rows that must fit before so many are tried
UNABLE = "cannot run here"
SWEEP = "advice"  # what the rehearsals are called in an output folder


class _TimeIsUp(BaseException):
    """Ends a round; what is finished by then is kept. Not an error of the cell in which it is raised."""


def rehearsal(way: Protocol) -> Protocol:
    """What nobody set is as small as a rehearsal wants it."""
    if name_of(way) != "realistic":
        raise BadInput(f"an advice is rehearsed under protocol 'realistic', not under {name_of(way)!r}")
    left = {name: value for name, value in REHEARSAL.items() if provenance(way)[name]["chosen_by"] == "default"}
    return changed(way, left, "default", "the rehearsal")


def with_validation(stream: Stream) -> Stream:
    """`realistic` chooses on validation rows; a stream that keeps none is cut with a tenth of the rows."""
    made = recipe(stream)
    if all(len(task.val) for task in stream.tasks) or not isinstance(made, Recipe):
        return stream
    spec = changed(made.spec, {"val": 0.1}, "default", f"stream {stream.name!r}")
    return replace(made, spec=spec).cut()


class Rehearsals:
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
        names = [named(cell) for cell in found]
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
            self.tell(f"a glance at {named(cell)}")
            no_time, at = self._is_over(GLANCES), time.monotonic()
            glance = self._glance(cell, few)
            cost = time.monotonic() - at if glance is not None else UNKNOWN if no_time else math.inf
            if glance is not None and (why := self._keeps_rows(glance)) is not None:
                self.ruled_out[named(cell)] = why
            elif glance is not None and self._can_be_sized(cell):
                costs += [(cost, sized) for sized in self._sized(cell, few)]
            elif glance is not None and (why := self._too_large(glance)) is not None:
                self.ruled_out[named(cell)] = why
            elif named(cell) not in self.ruled_out:
                costs.append((cost, cell))
        return [cell for _, cell in sorted(costs, key=lambda pair: pair[0])]

    def first_round(self, able: Sequence[Cell]) -> None:
        """One seed of all; then more rows for those near the best that may keep more than they usually do."""
        self._round(able, FIRST)
        near = [named(cell) for cell in self._near()]
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
            cell for cell in self.cells.values() if named(cell) not in self.ruled_out or cell.name in self.failures
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
            tuple(tried_of(each, pairs[0], names) for each in pairs),
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
            if cell.name in self.records and named(cell) not in self.ruled_out:
                found.setdefault(named(cell), []).append(cell)
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
            name = named(cell)
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
        if self.limits.keep_data or line["met"]:
            return None
        if line["met"] is None:
            return "may keep rows of past tasks: what was found tells too little to say that it is there by chance"
        return "keeps rows of past tasks"

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
            self.ruled_out[named(cell)] = f"leaves {low:,} bytes behind with a row per class, {allowed:,} are allowed"
            return []
        if fit < had:
            return [_with(cell, _rounded(fit))]
        if min(fit, there) > LARGE * had:
            self.larger[named(cell)] = _with(cell, _rounded(min(fit, there)))
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
            self.ruled_out[named(cell)] = f"failed: {failure.reason}"
        return self.records.pop(glance.name, None)

    def _round(self, cells: Sequence[Cell], share: float) -> None:
        """Run those that are not over yet, until this share of the time is; all of it, while nothing is finished."""
        waiting = [cell for cell in cells if named(cell) not in self.ruled_out and cell.name not in self.records]
        self.cells |= {cell.name: cell for cell in waiting}
        until = None if self.limits.seconds is None else self._until(share)
        if not waiting or _over(until):
            return
        self._claim(list(self.cells.values()))
        seeds = sorted({cell.seed for cell in waiting})
        self.tell(f"rehearsing {', '.join(dict.fromkeys(map(named, waiting)))} (seed {', '.join(map(str, seeds))})")
        self._run(waiting, self.home, self.jobs, until, None if until is None else self._until(1.0))
        for cell in waiting:
            record, failure = self.records.get(cell.name), self.failures.get(cell.name)
            why = None if record is None else self._keeps_rows(record) or self._too_large(record)
            if failure is not None:
                why = f"failed with seed {cell.seed}: {failure.reason}"
            if why is not None:
                self.ruled_out.setdefault(named(cell), why)

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
                    self.tell(f"{named(cell)}: {study.pooled(event.outcome):.3f} on all classes, seed {cell.seed}")
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
