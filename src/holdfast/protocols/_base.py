"""A protocol: how a stream is shown to a learner, and when it is scored."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from holdfast import metrics
from holdfast.audit import card, shown
from holdfast.engine import Keeper, Net, Optimiser, OptimiserName, ScheduleName, optimiser
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner
from holdfast.protocols._boundaries import judged
from holdfast.protocols._images import images_of
from holdfast.protocols._session import Maker, Measured, Scored, Session, Watch, faults_of_hiding, name_of
from holdfast.settings import BelowOne, Count, NonNegative, Positive, Whole, provenance, settings_of
from holdfast.types import Record, Stream

Reshape = Callable[[tuple[int, ...]], Net]  # a fresh network of the run's kind with these hidden layers


@dataclass(frozen=True)
class Job:
    """What a protocol is given to run."""

    learner: Learner
    stream: Stream
    net: Net
    seed: int
    watch: Watch | None
    keep: Keeper | None
    reshape: Reshape | None
    score: Scored = "all"

    def session(self, optimiser: Optimiser, make: Maker | None = None) -> Session:
        """The session in which it is run, gone on with where it was interrupted. `make`: see `Session`."""
        given = self.learner, self.stream, self.net, optimiser, self.seed, self.watch, self.keep
        return Session(*given, scored=self.score, make=make)


@dataclass(frozen=True)
class Protocol(ABC):
    """What all protocols share: batches, the optimiser, and when to score."""

    chooses_shape: ClassVar[bool] = False  # chooses hidden layers where nobody has given them

    batch: Count = 10  # examples per mini-batch
    optimiser: OptimiserName = "sgd"  # sgd, momentum, adam or adamw
    momentum: BelowOne = 0.9  # of the momentum optimiser
    clip: NonNegative = 0.0  # the largest norm of the gradient; 0: no clipping
    schedule: ScheduleName = "constant"  # of the learning rate over the steps of each task: constant, cosine or step
    schedule_every: Count | None = None  # steps between two levels of the step schedule; none: a third of the task's
    schedule_factor: Positive = 0.1  # what each level of the step schedule leaves of the one before
    reset_optimiser: bool = False  # forget the optimiser's state between tasks
    score: Scored = "all"  # which tasks: all, seen (those so far and the next) or ends (each when learned, all at last)
    score_every: Whole = 0  # also score every so many steps; 0: only after each task

    def run(
        self,
        learner: Learner,
        stream: Stream,
        net: Net,
        seed: int,
        watch: Watch | None = None,
        keep: Keeper | None = None,
        reshape: Reshape | None = None,
    ) -> Session:
        """Show the stream to the learner and score it; what `keep` has of it is not done again.

        `reshape` is for protocols that choose the network's hidden layers; None where it has none to choose.
        """
        self.refuse(learner, stream)
        session = self.show(Job(learner, stream, net, seed, watch, keep, reshape, self.score))
        self._refuse_part(session)
        return session

    @abstractmethod
    def show(self, job: Job) -> Session:
        """What `run` does with a job that nothing speaks against."""

    @property
    def boundaries_are(self) -> str | None:
        """Told or detected; None for protocols that have no choice."""
        return None

    def faults(self, learner: Learner, stream: Stream) -> list[str]:
        """What is impossible about this protocol with this learner on this stream."""
        return []

    def faults_of_shape(self, open_to_choice: bool) -> list[str]:
        """What is impossible about this protocol with a network whose hidden layers may be chosen, or are given."""
        return []

    def refuse(self, learner: Learner, stream: Stream) -> None:
        """Raise the faults that would stop a run before its first step."""
        faults = faults_of_hiding(learner, stream, self.boundaries_are)
        faults += [*self._faults_of_schedule(), *self._faults_of_hiding(stream), *self.faults(learner, stream)]
        if faults:
            raise BadInput(*faults)

    @abstractmethod
    def descent(self) -> Optimiser:
        """The optimiser, freshly made."""

    def optimiser_of(self, lr: float, decay: float) -> Optimiser:
        """An optimiser with these settings, this learning rate and this weight decay."""
        schedule = self.schedule, self.schedule_every, self.schedule_factor
        return optimiser(self.optimiser, lr, self.momentum, decay, self.clip, *schedule)

    def _refuse_part(self, session: Session) -> None:
        """A protocol of a user's may have left something out."""
        if not isinstance(session, Session):
            what = type(session).__name__
            raise RunFailed(f"{type(self).__name__}.show returned a {what}; it must return the session")
        tasks, learned = len(session.stream), len(session.measured.bytes)
        if learned != tasks:
            raise RunFailed(f"protocol {name_of(self)!r} has learned {learned} of {tasks} tasks")
        scored = {scoring["after_task"] for scoring in session.measured.scorings}
        for t in range(tasks):
            if t not in scored:
                raise RunFailed(
                    f"protocol {name_of(self)!r} has not scored the learner after task {t}; "
                    "call session.score(task.t, step)"
                )

    def _faults_of_hiding(self, stream: Stream) -> list[str]:
        """What happens at the ends of tasks, and so would tell them."""
        telling = {"reset_optimiser": self.reset_optimiser, f"schedule={self.schedule}": self.schedule != "constant"}
        return [
            f"{what} of protocol {name_of(self)!r} needs to know where tasks end, which stream {stream.name!r} hides"
            for what, asked in telling.items()
            if asked and stream.info.hidden
        ]

    def _faults_of_schedule(self) -> list[str]:
        names = [] if self.schedule == "step" else ["schedule_every", "schedule_factor"]
        given = [name for name in names if provenance(self)[name]["chosen_by"] == "given"]
        return [
            f"{name} of protocol {name_of(self)!r} would be ignored: its schedule is {self.schedule!r}; "
            "try schedule=step"
            for name in given
        ]


def record_of(
    session: Session,
    protocol: Protocol,
    net: dict[str, Any],
    chosen: dict[str, dict[str, Any]],
    trials: Mapping[str, float] | None = None,
) -> Record:
    """The record of a finished session. `net` describes the network; `chosen`: the method's, net's and run's
    settings; `trials`: what choosing them cost."""
    m, stream, learner = session.measured, session.stream, session.learner
    settings = {
        **chosen.get("", {}),
        **{f"{place}.{k}": v for place in ("net", "run") for k, v in chosen.get(place, {}).items()},
        **{f"protocol.{k}": v for k, v in provenance(protocol).items()},
        **{
            f"stream.{k}": {"value": v, "chosen_by": stream.chosen_by.get(k, "given")}
            for k, v in stream.settings.items()
        },
        **session.chosen,
    }
    found = None if session.detector is None else judged(session.detector.found, m.updates)
    looks, seen, most = zip(*m.looks.values(), strict=True)
    record = Record(
        method=name_of(learner),
        seed=session.seed,
        settings=settings,
        stream={"name": stream.name, **stream.settings, "seed": stream.seed, "fingerprint": stream.fingerprint},
        scenario=stream.scenario,
        protocol={"name": name_of(protocol), **settings_of(protocol)},
        net={**net, **{k: session.chosen[f"net.{k}"]["value"] for k in net if f"net.{k}" in session.chosen}},
        tasks=tuple(
            {
                "name": task.name,
                "classes": list(task.classes),
                "n_train": len(task.train),
                "n_val": len(task.val),
                "n_test": len(task.test),
                **{name: value for name, value in (("about", task.about), ("note", task.note)) if value},
            }
            for task in stream.tasks
        ),
        R=np.array(m.R, dtype=np.float64),
        scorings=tuple(m.scorings),
        baseline=np.array(m.baseline, dtype=np.float64),
        curves=tuple(m.curves),
        resources={
            "bytes": m.bytes,
            "numbers": m.numbers,
            "flops": m.flops,
            "train_seconds": m.seconds,
            "eval_seconds": m.eval_seconds,
            "updates": m.updates,
            **({"trials": spent} if (spent := _added(trials, session.trials)) else {}),
        },
        card=card(
            info=stream.info,
            entropies=m.entropies,
            old_rows=m.old_rows,
            settings=settings,
            bytes_per_task=m.bytes,
            seconds_per_update=[s / u for s, u in zip(m.seconds, m.updates, strict=True)],
            flops_per_update=[f / u for f, u in zip(m.flops, m.updates, strict=True)],
            passes=sum(looks) / sum(seen),
            most_looks=max(most),
            mixed=learner.mixes,
            shown=shown(stream),
            generators=m.generators,
            informations=_informations(m),
            boundaries=found,
        ),
        mixed=learner.mixes,
        boundaries=found or {},
        study=session.study,
        predictions=tuple(np.stack(column) for column in _columns(m, m.predictions)),
        uncertainties=tuple(np.stack(column).astype(np.float16) for column in _columns(m, m.uncertainties)),
        labels=tuple(task.test.y.cpu().numpy().astype(np.uint16) for task in stream.tasks),
        images=images_of(stream),
    )
    return replace(record, metrics=metrics.summary(record))


def _informations(measured: Measured) -> list[float]:
    """Between predictions and weights, per task of the last scoring; nothing where predictions are no samples."""
    last = measured.scorings[-1]
    rows = [row for row in measured.curves if (row["after_task"], row["step"]) == (last["after_task"], last["step"])]
    return [row["information"] for row in rows if "information" in row]


def _columns(measured: Measured, rows: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Per task what the scorings that asked about it found; nothing where no scoring has such a row."""
    columns: list[list[np.ndarray]] = [[] for _ in measured.baseline]
    for accuracies, row in zip(measured.R, rows, strict=True):
        asked = [t for t, accuracy in enumerate(accuracies) if not math.isnan(accuracy)]
        for t, found in zip(asked, row, strict=bool(row)):
            columns[t].append(found)
    return columns if all(columns) else []


def _added(before: Mapping[str, float] | None, during: Mapping[str, float]) -> dict[str, float]:
    """What choosing settings cost before the run and during it."""
    both = [cost for cost in (before, during) if cost]
    return {name: sum(cost[name] for cost in both) for name in (both[0] if both else ())}


def fresh(learner: Learner) -> Learner:
    """A learner of its own with the same settings, so that a method can be run many times."""
    return copy.deepcopy(learner)
