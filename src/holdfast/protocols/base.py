"""A protocol: how a stream is shown to a learner, and when it is scored."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast import metrics
from holdfast.audit import card
from holdfast.engine import Keeper, Net, Optimiser, OptimiserName, optimiser
from holdfast.methods import Learner
from holdfast.protocols.session import Session, Watch, name_of, refuse_hidden_task
from holdfast.settings import Count, Fraction, NonNegative, Positive, Whole, provenance, settings_of
from holdfast.types import Record, Stream


@dataclass(frozen=True)
class Protocol(ABC):
    """What all protocols share: batches, the optimiser, and when to score."""

    batch: Count = 10  # examples per mini-batch
    lr: Positive = 0.1  # learning rate
    optimiser: OptimiserName = "sgd"  # sgd, momentum or adam
    momentum: Fraction = 0.9  # of the momentum optimiser
    decay: NonNegative = 0.0  # L2 weight decay
    reset_optimiser: bool = False  # forget the optimiser's state between tasks
    score_every: Whole = 0  # also score all tasks every so many steps; 0: only after each task
    score_first: Whole = 0  # also score the current task after each of its first batches (LCA)

    @property
    @abstractmethod
    def passes(self) -> int:
        """Passes over each task's data."""

    @property
    def single_pass(self) -> bool:
        """Whether the learner sees every example once, so that it gets no lease when a task begins."""
        return False

    def descent(self) -> Optimiser:
        """The optimiser, freshly made."""
        return optimiser(self.optimiser, self.lr, self.momentum, self.decay)

    def run(
        self,
        learner: Learner,
        stream: Stream,
        net: Net,
        seed: int,
        watch: Watch | None = None,
        keep: Keeper | None = None,
    ) -> Session:
        """Show the stream to the learner and score it after every task; what `keep` has of it is not done again."""
        refuse_hidden_task(learner, stream)
        session = Session(learner, stream, net, self.descent(), seed, watch, keep)
        if learner.mixes:
            self._show_mixed(session)
        else:
            self._show_in_order(session)
        return session

    def _show_in_order(self, session: Session) -> None:
        for task in session.remaining():
            if self.reset_optimiser:
                session.learner.optimiser.reset()
            step = 0
            for step in session.learn(task, self.passes, self.batch, lease_at_begin=not self.single_pass):
                if self.score_first and step <= self.score_first:
                    session.score_current(task, step)
                if self.score_every and 0 < step < session.steps and step % self.score_every == 0:
                    session.score(task.t, step)
            session.score(task.t, step)

    def _show_mixed(self, session: Session) -> None:
        """The learner is scored at T equal points of training."""
        tasks = len(session.stream)
        rows = sum(len(task.train) for task in session.stream.tasks)
        steps = self.passes * -(-rows // self.batch)
        due = [-(-steps * (t + 1) // tasks) for t in range(tasks - 1)]
        for step in session.learn_mixed(self.passes, self.batch, lease_at_begin=not self.single_pass):
            for t in (t for t, at in enumerate(due) if at == step):
                session.score(t, step)
        session.score(tasks - 1, steps)


def record_of(
    session: Session,
    protocol: Protocol,
    net: dict[str, Any],
    chosen: dict[str, dict[str, Any]],
    trials: Mapping[str, float] | None = None,
) -> Record:
    """The record of a finished session. `net` describes the network; `chosen`: the method's and net's settings;
    `trials`: what choosing them cost."""
    m, stream, learner = session.measured, session.stream, session.learner
    settings = {
        **chosen.get("", {}),
        **{f"net.{k}": v for k, v in chosen.get("net", {}).items()},
        **{f"protocol.{k}": v for k, v in provenance(protocol).items()},
        **{
            f"stream.{k}": {"value": v, "chosen_by": stream.chosen_by.get(k, "given")}
            for k, v in stream.settings.items()
        },
    }
    rows = sum(len(task.train) for task in stream.tasks)
    record = Record(
        method=name_of(learner),
        seed=session.seed,
        settings=settings,
        stream={"name": stream.name, **stream.settings, "seed": stream.seed, "fingerprint": stream.fingerprint},
        scenario=stream.scenario,
        protocol={"name": type(protocol).__name__.lower(), **settings_of(protocol)},
        net=net,
        tasks=tuple(
            {
                "name": task.name,
                "classes": list(task.classes),
                "n_train": len(task.train),
                "n_val": len(task.val),
                "n_test": len(task.test),
            }
            for task in stream.tasks
        ),
        R=np.array(m.R, dtype=np.float64),
        scorings=tuple(m.scorings),
        baseline=np.array(m.baseline, dtype=np.float64),
        curves=tuple(m.curves),
        resources={
            "bytes": m.bytes,
            "flops": m.flops,
            "train_seconds": m.seconds,
            "eval_seconds": m.eval_seconds,
            "updates": m.updates,
            **({} if trials is None else {"trials": dict(trials)}),
        },
        card=card(
            info=stream.info,
            entropies=m.entropies,
            old_rows=m.old_rows,
            settings=settings,
            bytes_per_task=m.bytes,
            seconds_per_update=[s / u for s, u in zip(m.seconds, m.updates, strict=True)],
            flops_per_update=[f / u for f, u in zip(m.flops, m.updates, strict=True)],
            passes=m.rows_shown / rows,
            mixed=learner.mixes,
        ),
        mixed=learner.mixes,
        predictions=tuple(np.stack(column) for column in zip(*m.predictions, strict=True)),
        labels=tuple(task.test.y.cpu().numpy().astype(np.uint16) for task in stream.tasks),
    )
    return replace(record, metrics=metrics.summary(record))


def fresh(learner: Learner) -> Learner:
    """A learner of its own with the same settings, so that a method can be run many times."""
    return copy.deepcopy(learner)
