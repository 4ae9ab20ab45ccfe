"""What an advice is: its limits, each method that was rehearsed, and which of them to go on with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from holdfast import api
from holdfast.api import Comparison
from holdfast.methods import Learner
from holdfast.metrics import Interval, interval, paired, study
from holdfast.protocols import name_of
from holdfast.report import advice as told
from holdfast.settings import defaults, settings_of
from holdfast.sweeps import Cell
from holdfast.types import Record

CONTENDER = 0.05  # accuracy that a method may lack of the best and still be tried with further seeds


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
        return called(self.method, self.settings)

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


def _close(behind: Interval) -> bool:
    return behind.mean is not None and behind.mean <= CONTENDER and (behind.low is None or behind.low <= 0)


def named(cell: Cell) -> str:
    """A method with what is unusual about it."""
    return called(name_of(cell.method), unusual(cell.method))


def called(method: str, settings: Mapping[str, Any]) -> str:
    said = ", ".join(f"{name}={value}" for name, value in settings.items())
    return f"{method} ({said})" if said else method


def unusual(learner: Learner) -> dict[str, Any]:
    """Its settings that are not the defaults."""
    usual = defaults(type(learner))
    return {name: value for name, value in settings_of(learner).items() if usual.get(name) != value}


def tried_of(
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
        unusual(cell.method),
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
