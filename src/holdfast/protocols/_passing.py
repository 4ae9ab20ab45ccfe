"""Protocols that pass over each task's data and choose nothing."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Literal

from holdfast.engine import Optimiser
from holdfast.methods import Learner
from holdfast.protocols._base import Job, Protocol
from holdfast.protocols._session import Session, name_of
from holdfast.settings import Count, NonNegative, Positive, Whole, provenance
from holdfast.types import Stream, Task


@dataclass(frozen=True)
class Passing(Protocol):
    """Passes over each task's data with one learning rate."""

    lr: Positive = 0.1  # learning rate
    decay: NonNegative = 0.0  # weight decay: L2, added to the gradient; adamw: taken off the weights
    boundaries: Literal["told", "detected"] = "told"  # detected: from the loss, on streams that hide where tasks end
    boundary_window: Count = 10  # newest batches whose mean loss is compared with that before them
    boundary_rise: Positive = 1.0  # of that mean, in deviations of the loss before, that makes a boundary
    boundary_rows: Count = 1000  # rows before the newest batches with which a task that has ended is finished, at most
    score_first: Whole = 0  # also score the current task after each of its first batches (LCA)

    @property
    @abstractmethod
    def passes(self) -> int:
        """Passes over each task's data."""

    @property
    def single_pass(self) -> bool:
        """Whether the learner sees every example once, so that it gets no lease when a task begins."""
        return False

    def passes_over(self, task: Task) -> int:
        """Passes over one task's data; where tasks are mixed, `passes` counts."""
        return self.passes

    @property
    def boundaries_are(self) -> str:
        return self.boundaries

    def faults(self, learner: Learner, stream: Stream) -> list[str]:
        few = {t.t: n for t in stream.tasks if not isinstance(n := self.passes_over(t), int) or n < 1}
        found = [
            f"protocol {name_of(self)!r} passes {n!r} times over task {t}; once is the least" for t, n in few.items()
        ][:1]
        return found + self._faults_of_boundaries(stream)

    def _faults_of_boundaries(self, stream: Stream) -> list[str]:
        name, told = name_of(self), self.boundaries == "told"
        if not told and not stream.info.hidden:
            return [
                f"boundaries=detected of protocol {name!r} is for streams that hide where tasks end, and stream "
                f"{stream.name!r} tells; leave it out, or try stream 'blurred'"
            ]
        settings = ("boundary_window", "boundary_rise", "boundary_rows") if told else ()
        given = [field for field in settings if provenance(self)[field]["chosen_by"] == "given"]
        return [
            f"{field} of protocol {name!r} would be ignored: boundaries are told; try boundaries=detected"
            for field in given
        ]

    def descent(self) -> Optimiser:
        return self.optimiser_of(self.lr, self.decay)

    def show(self, job: Job) -> Session:
        session = job.session(self.descent())
        if job.learner.mixes:
            if session.next < len(session.stream):
                self._show_mixed(session)
            return session
        if self.boundaries == "detected":
            session.detect_boundaries(self.boundary_window, self.boundary_rise, self.boundary_rows)
        for task in session.remaining():
            if self.reset_optimiser:
                session.learner.optimiser.reset()
            step = 0
            for step in session.learn(task, self.passes_over(task), self.batch, lease_at_begin=not self.single_pass):
                if self.score_first and step <= self.score_first:
                    session.score_current(task, step)
                if self.score_every and 0 < step < session.steps and step % self.score_every == 0:
                    session.score(task.t, step)
            session.score(task.t, step)
        return session

    def _show_mixed(self, session: Session) -> None:
        """The learner is scored at T equal points of training."""
        tasks = len(session.stream)
        rows = sum(len(segment.train) for segment in session.stream.segments)
        steps = self.passes * -(-rows // self.batch)
        due = [-(-steps * (t + 1) // tasks) for t in range(tasks - 1)]
        for step in session.learn_mixed(self.passes, self.batch, lease_at_begin=not self.single_pass):
            for t in (t for t, at in enumerate(due) if at == step):
                session.score(t, step)
        session.score(tasks - 1, steps)
