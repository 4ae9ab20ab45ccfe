"""Trials: a task learned several times over, under other settings or to other steps, and what became of each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from holdfast.audit import Lease
from holdfast.engine import Net, State
from holdfast.errors import RunFailed
from holdfast.methods import Learner
from holdfast.protocols.session import Progress, Session, joined
from holdfast.protocols.showing import CHECK_EVERY, Showing
from holdfast.seeds import generator, seed_for, seeded
from holdfast.types import Part, Task

Quality = Callable[[list[float]], float]  # of the accuracies that a look at the learner gives


@dataclass(frozen=True)
class Kept:
    """The learner at one step of a trial."""

    step: int
    quality: float
    state: State


class Stop(ABC):
    """Decides, look by look, which steps of a trial may turn out to be the one whose weights are taken."""

    def __init__(self) -> None:
        self.kept: list[Kept] = []  # the first is the one to take when the trial is over

    @abstractmethod
    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        """The next look; `take` gives the learner's state."""


class Best(Stop):
    """The first step of the highest quality."""

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        if not self.kept or quality > self.kept[0].quality:
            self.kept = [Kept(step, quality, take())]


class Last(Stop):
    """The last step."""

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        self.kept = [Kept(step, quality, take())]


class Reach(Stop):
    """The first step whose quality reaches a share of the highest: argmin_t (q_t ≥ μ · max q).

    The highest is known only at the end, but the step is always one that was better than all before it, so few states
    are held: those of such steps that still reach the share.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def offer(self, step: int, quality: float, take: Callable[[], State]) -> None:
        if self.kept and quality <= self.kept[-1].quality:
            return
        self.kept = [k for k in self.kept if k.quality >= self.share * quality]
        self.kept.append(Kept(step, quality, take()))


@dataclass(frozen=True)
class Tried:
    """A finished trial: its number, and the learner at the step where it was stopped."""

    trial: int
    settings: Mapping[str, Any]
    kept: Kept
    looks: list[tuple[int, list[float]]]  # step, accuracies
    failed: str | None = None  # why it ended early: it is never chosen

    def at_stop(self) -> list[float]:
        """What the look at the step where it was stopped gave."""
        return next(found for step, found in self.looks if step == self.kept.step)

    def highest(self) -> float:
        """The best that the task was ever judged by."""
        return max(found[0] for _, found in self.looks)

    def packed(self) -> dict[str, State]:
        return {**vars(self), "kept": vars(self.kept)}

    @classmethod
    def unpacked(cls, state: dict[str, State]) -> Tried:
        return cls(**{**state, "kept": Kept(**state["kept"])})


class Trials:
    """Shows tasks to learners again and again, and notes every look at them in the session's study.

    A look is at the test sets of all tasks so far (`test_batch` rows of each, when given) and at their union.
    """

    def __init__(
        self,
        session: Session,
        batch: int,
        limit: int | None,
        passes: int,
        every: int,
        test_batch: int | None,
        on_val: bool,
    ) -> None:
        self.session = session
        self.batch, self.every, self.limit, self.passes = batch, every, limit, passes
        self.test_batch, self.on_val = test_batch, on_val
        self.rows: list[dict[str, Any]] = []
        self.curves: list[dict[str, Any]] = []
        session.study = {"trials": self.rows, "curves": self.curves}

    def train(
        self,
        learner: Learner,
        net: Net,
        task: Task,
        settings: Mapping[str, Any],
        quality: Quality,
        stop: Stop,
        began_from: int | None = None,
        progress: tuple[int, int] = (0, 1),
    ) -> Tried:
        """One trial: the task, looked at every so many steps. The learner is not finished with the task.

        `progress`: how many trials of this task are done, and how many there are.
        """
        session, number = self.session, len(self.rows)
        before = session.learner, session.net
        session.adopt(learner, net)
        lease = Lease(task.t, task.train, task.val)
        rng = generator(session.seed, "batches", task=task.t)
        showing = Showing(learner, lease, task.train, task.t, self.passes, self.batch, rng, self.limit)
        looks, failed = [], None
        with seeded(seed_for(session.seed, "trial", trial=number)):
            showing.begin(lease=True)
            try:
                for step in self._steps(showing, task.t, progress):
                    if step % self.every and step != showing.total:
                        continue
                    found = self._look(number, step, task)
                    looks.append((step, found))
                    stop.offer(step, quality(found), learner.state)
            except RunFailed as error:  # it diverged: the others go on
                if not looks:
                    raise
                failed = str(error)
        lease.close()
        session.adopt(*before)
        kept = stop.kept[0]
        self._note(showing, [task], settings, kept.step, began_from, failed)
        return Tried(number, dict(settings), kept, looks, failed)

    def finish(self, learner: Learner, task: Task, tried: Tried) -> None:
        """The learner takes the weights where the trial was stopped, and finishes the task."""
        learner.load(tried.kept.state)
        showing = Showing(learner, Lease(task.t, task.train, task.val), task.train, task.t, 1, self.batch, generator(0))
        with seeded(seed_for(self.session.seed, "finish", task=task.t)):
            showing.finish()
        self.session.note_looks([task], showing.lease.looks())
        row = self.rows[tried.trial]
        row["flops"] += showing.ends.flops
        row["seconds"] += showing.ends.seconds

    def choose(self, tried: Tried) -> None:
        """What this trial cost is the cost of its task."""
        row = self.rows[tried.trial]
        row["chosen"] = True
        self.session.spend(row["flops"], row["seconds"], row["updates"])

    def baseline(self, learner: Learner, net: Net, settings: Mapping[str, Any]) -> None:
        """All tasks at once, for as many steps as they have in all: what could be reached without forgetting."""
        session, number = self.session, len(self.rows)
        tasks = session.stream.tasks
        whole, val, which = joined(tasks)
        lease = Lease(0, whole, val, which)
        rng = generator(session.seed, "batches", task=len(tasks))
        limit = None if self.limit is None else self.limit * len(tasks)
        showing = Showing(learner, lease, whole, which, self.passes, self.batch, rng, limit)
        before = session.learner, session.net
        session.adopt(learner, net)
        failed = None
        try:
            with seeded(seed_for(session.seed, "trial", trial=number)):
                showing.begin(lease=True)
                for _ in self._steps(showing, len(tasks) - 1, (0, 1)):
                    pass
            self._look(number, showing.total, tasks[-1])
        except RunFailed as error:  # it diverged: the study itself is done
            failed = f"the baseline: {error}"
        lease.close()
        session.adopt(*before)
        self._note(showing, tasks, settings, showing.total, None, failed)

    def costs(self) -> dict[str, float]:
        """What the trials that were not chosen cost."""
        spent = [row for row in self.rows if not row["chosen"]]
        costs = {name: sum(row[name] for row in spent) for name in ("seconds", "flops")}
        return {"runs": len(spent), **costs} if spent else {}

    def state(self) -> dict[str, State]:
        return {"rows": self.rows, "curves": self.curves}

    def load(self, state: dict[str, State]) -> None:
        self.rows[:], self.curves[:] = state["rows"], state["curves"]

    def _steps(self, showing: Showing, task: int, progress: tuple[int, int]) -> Iterator[int]:
        """0, and then every step."""
        yield 0
        done, trials = progress
        for step in showing.steps():
            if self.session.watch is not None and (step % CHECK_EVERY == 0 or step == showing.total):
                steps = done * showing.total + step, trials * showing.total
                self.session.watch(Progress(task, len(self.session.stream), *steps))
            yield step

    def _look(self, trial: int, step: int, task: Task) -> list[float]:
        """Accuracies: on what the task is judged by, on each test set so far, and on their union."""
        so_far = self.session.stream.tasks[: task.t + 1]
        tests = [(t, self._drawn(t.test, trial, step, t.t)) for t in so_far]
        judged = [(task, task.val)] if self.on_val else []
        whole = self._of_union(so_far, trial, step) if self.test_batch is not None else []
        found = self.session.look([*judged, *tests, *whole])
        judge, each, rest = found[: len(judged)], found[len(judged) :][: len(tests)], found[len(judged) + len(tests) :]
        pooled = list(zip(rest, whole, strict=True)) or list(zip(each, tests, strict=True))
        rows = sum(len(part) for _, (_, part) in pooled)
        union = sum(accuracy * len(part) for accuracy, (_, part) in pooled) / rows
        for t, accuracy in (*((t.t, a) for t, a in zip(so_far, each, strict=True)), (None, union)):
            self.curves.append({"trial": trial, "step": step, "task": t, "accuracy": accuracy})
        return [judge[0] if judge else each[-1], *each, union]

    def _drawn(self, part: Part, trial: int, step: int, task: int) -> Part:
        """The whole test set, or one batch of it drawn anew."""
        if self.test_batch is None or self.test_batch >= len(part):
            return part
        rng = generator(self.session.seed, "test batch", trial=trial, step=step, task=task)
        return part.take(torch.randperm(len(part), generator=rng)[: self.test_batch])

    def _of_union(self, tasks: tuple[Task, ...], trial: int, step: int) -> list[tuple[Task, Part]]:
        """One batch of all test sets together, as the rows of it that each task has."""
        rng = generator(self.session.seed, "test batch", trial=trial, step=step, task="all")
        sizes = torch.tensor([len(task.test) for task in tasks])
        drawn = torch.randperm(int(sizes.sum()), generator=rng)[: self.test_batch]
        starts = sizes.cumsum(0) - sizes
        mine = [drawn[(drawn >= start) & (drawn < start + n)] - start for start, n in zip(starts, sizes, strict=True)]
        return [(task, task.test.take(rows)) for task, rows in zip(tasks, mine, strict=True) if len(rows)]

    def _note(
        self,
        showing: Showing,
        tasks: Sequence[Task],
        settings: Mapping[str, Any],
        stop: int,
        began_from: int | None,
        failed: str | None = None,
    ) -> None:
        """One more row; a trial that failed has cost what it took until then."""
        self.session.note_looks(tasks, showing.looks)
        self.rows.append(
            {
                "trial": len(self.rows),
                "task": tasks[0].t if len(tasks) == 1 else None,
                "began_from": began_from,
                "settings": dict(settings),
                "chosen": False,
                "stop": stop,
                "flops": showing.flops,
                "seconds": showing.seconds,
                "updates": showing.done,
                **({"failed": failed} if failed else {}),
            }
        )
