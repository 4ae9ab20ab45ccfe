"""One run in progress: a learner, its stream, and the measurements. Protocols are short programs over it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.audit import Lease, Retention, footprint, glance
from holdfast.engine import Net, Optimiser, Score, batches, count_flops, entropy, score
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner
from holdfast.seeds import generator
from holdfast.types import Part, Stream, Task

ENTROPY_ROWS = 500  # of a new task, to measure how confident predictions on it are before it is learned
CHECK_EVERY = 50  # steps between looks at the losses; looking at each would stall the loop


@dataclass(frozen=True)
class Progress:
    """Where a run is."""

    task: int
    tasks: int
    step: int
    steps: int


Watch = Callable[[Progress], None]


@dataclass
class _Spent:
    """Costs since the last task was closed, trials included."""

    flops: float = 0.0
    seconds: float = 0.0
    updates: int = 0


@dataclass
class Measured:
    """What a session has measured so far; per-task lists are in the order of learning."""

    baseline: list[float] = field(default_factory=list)
    R: list[list[float]] = field(default_factory=list)
    scorings: list[dict[str, int]] = field(default_factory=list)
    predictions: list[list[np.ndarray]] = field(default_factory=list)  # per scoring, per task
    curves: list[dict[str, Any]] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    old_rows: list[tuple[int, int]] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    flops: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    eval_seconds: float = 0.0
    rows_shown: int = 0


class Session:
    """Shows tasks to a learner, scores it, and measures; what it measured is in `measured`."""

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        net: Net,
        optimiser: Optimiser,
        seed: int,
        watch: Watch | None = None,
    ) -> None:
        self.learner, self.stream, self.seed, self.watch = learner, stream, seed, watch
        self.measured = Measured()
        self._spent = _Spent()
        self.steps = 0  # of the showing under way
        allowed = stream.info.allowed()
        self._allowed = None if allowed is None else allowed.to(net.device)
        self._retention = Retention(stream.info.shape)
        learner.start(net, optimiser, stream.info, generator(seed, "learner"))
        self.measured.baseline = [self._score(task, task.test).accuracy for task in stream.tasks]

    def learn(self, task: Task, passes: int, batch: int, *, lease_at_begin: bool) -> Iterator[int]:
        """Show one task and close its books. Yields the number of steps done: 0 before the first, then after each."""
        self.meet(task)
        yield from self.show(task, passes, batch, lease_at_begin=lease_at_begin)
        self.close(task)

    def meet(self, task: Task) -> None:
        """Before a task is learned: how confident are predictions on its data?"""
        if task.t > 0:
            given, allowed = self._head(task.t - 1)
            self.measured.entropies.append(entropy(self._predict, task.train, given, allowed, ENTROPY_ROWS))

    def show(self, task: Task, passes: int, batch: int, *, lease_at_begin: bool) -> Iterator[int]:
        """Begin, all batches, finish; then the lease is over. Protocols that select show a task several times."""
        lease = Lease(task.t, task.train, task.val)
        return self._train(lease, task.train, task.t, passes, batch, lease_at_begin)

    def close(self, task: Task) -> None:
        """The task is over: measure what the learner keeps, and book what was spent since the last task."""
        m = self.measured
        self._retention.remember(task.train)
        m.bytes.append(footprint(self.learner))
        m.old_rows.append(self._retention.scan(self.learner))
        m.flops.append(self._spent.flops)
        m.seconds.append(self._spent.seconds)
        m.updates.append(self._spent.updates)
        self._spent = _Spent()

    def learn_mixed(self, passes: int, batch: int, *, lease_at_begin: bool) -> Iterator[int]:
        """Show all tasks at once, mixed. Costs are shared out evenly between the tasks."""
        tasks = self.stream.tasks
        whole, val = _joined([task.train for task in tasks]), _joined([task.val for task in tasks])
        which = torch.cat([torch.full((len(task.train),), task.t) for task in tasks]).to(whole.y.device)
        yield from self._train(Lease(0, whole, val, which), whole, which, passes, batch, lease_at_begin)
        m, n, spent = self.measured, len(tasks), self._spent
        m.flops, m.seconds, m.updates = [spent.flops / n] * n, [spent.seconds / n] * n, [spent.updates / n] * n
        m.bytes, m.old_rows = [footprint(self.learner)] * n, [(0, 0)] * n

    def val_accuracy(self, task: Task) -> float:
        """Accuracy on the task's validation part, for protocols that select."""
        return self._score(task, task.val).accuracy

    def score(self, after_task: int, step: int) -> None:
        """Score every task: one more row of R."""
        self._ready()
        with self._unchanged():
            scores = self._timed_scores(after_task, step)
        self.measured.R.append([s.accuracy for s in scores])
        self.measured.scorings.append({"after_task": after_task, "step": step})
        self.measured.predictions.append([s.predicted for s in scores])
        for task, s in zip(self.stream.tasks, scores, strict=True):
            self._curve(after_task, step, task, s)

    def score_current(self, task: Task, step: int) -> None:
        """Score only the task being learned: one more point of its learning curve."""
        self._ready()
        with self._unchanged():
            self._curve(task.t, step, task, self._timed_score(task))

    def _train(
        self, lease: Lease, part: Part, task: int | Tensor, passes: int, batch: int, lease_at_begin: bool
    ) -> Iterator[int]:
        learner, t, m = self.learner, lease.task, self.measured
        clock, steps_clock = _Clock(), _Clock()
        with clock:
            _, flops = count_flops(lambda: learner.begin(lease if lease_at_begin else None))
        kept = lease.kept()
        n_rows = len(kept)
        rng = generator(self.seed, "batches", task=t)
        if n_rows == 0:
            raise RunFailed(
                f"the method withheld all {len(part)} training rows of task {t}, so there is nothing to learn"
            )
        steps = passes * -(-n_rows // batch)
        self.steps = steps
        counted = min(1, steps - 1)  # the step whose operations are counted, which is slow
        untimed = counted + 1 if steps > 2 else 0  # it and the warm-up before it are not timed
        losses: list[Tensor] = []
        yield 0
        done = 0
        for _ in range(passes):
            steps_clock.start(done >= untimed)
            for each in batches(part, batch, rng, task, kept if n_rows < len(part) else None):
                if done == counted:
                    loss, per_step = count_flops(lambda each=each: learner.observe(each))  # type: ignore[misc]
                else:
                    loss = learner.observe(each)
                if loss is None:
                    raise TypeError(f"{type(learner).__name__}.observe returned None; it must return the loss")
                losses.append(loss)
                done += 1
                if len(losses) == CHECK_EVERY or done == steps:
                    _check_finite(losses, t, done)
                    losses.clear()
                    if self.watch is not None:
                        self.watch(Progress(t, len(self.stream), done, steps))
                steps_clock.stop()
                yield done
                steps_clock.start(done >= untimed)
            steps_clock.stop()
        with clock:
            _, at_end = count_flops(lambda: learner.finish(lease))
        m.rows_shown += passes * n_rows + lease.rows_read
        lease.close()
        self._spent.flops += flops + per_step * steps + at_end
        self._spent.seconds += clock.seconds + steps_clock.seconds * steps / (steps - untimed)
        self._spent.updates += steps

    def _ready(self) -> None:
        clock = _Clock()
        with clock:
            self.learner.ready()
        self.measured.eval_seconds += clock.seconds

    def _timed_scores(self, after_task: int, step: int) -> list[Score]:
        """Every task's score, taken in a random order, so that a learner cannot count its way to the task."""
        rng = generator(self.seed, "scoring", after_task=after_task, step=step)
        order = torch.randperm(len(self.stream), generator=rng).tolist()
        scores = {t: self._timed_score(self.stream.tasks[t]) for t in order}
        return [scores[t] for t in range(len(self.stream))]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Scoring must leave the learner as it was."""
        before = glance(self.learner)
        yield
        if glance(self.learner) != before:
            raise RunFailed(
                f"{type(self.learner).__name__}.predict changed the learner (its weights, memory or counters); "
                "predicting must change nothing"
            )

    def _timed_score(self, task: Task) -> Score:
        clock = _Clock()
        with clock:
            result = self._score(task, task.test)
        self.measured.eval_seconds += clock.seconds
        return result

    def _score(self, task: Task, part: Part) -> Score:
        given, allowed = self._head(task.t)
        return score(self._predict, part, given, allowed)

    def _head(self, task: int) -> tuple[int | None, Tensor | None]:
        """The task index to predict with, None when hidden, and the outputs it may use."""
        given = task if self.stream.info.task_given else None
        return given, None if self._allowed is None else self._allowed[task]

    def _predict(self, x: Tensor, task: int | None) -> Tensor:
        logits = self.learner.predict(x, task)
        wanted = (len(x), self.stream.info.classes)
        if not isinstance(logits, Tensor) or tuple(logits.shape) != wanted or not logits.is_floating_point():
            got = f"{tuple(logits.shape)} {logits.dtype}" if isinstance(logits, Tensor) else type(logits).__name__
            name = type(self.learner).__name__
            raise TypeError(f"{name}.predict must return float logits of shape {wanted} (rows, classes), not {got}")
        return logits

    def _curve(self, after_task: int, step: int, task: Task, s: Score) -> None:
        if math.isnan(s.loss):
            raise RunFailed(
                f"the predictions on task {task.t} became NaN in task {after_task} by step {step}; "
                "try a smaller learning rate or strength"
            )
        loss = s.loss if math.isfinite(s.loss) else None
        row = {"after_task": after_task, "step": step, "task": task.t, "accuracy": s.accuracy, "loss": loss}
        self.measured.curves.append(row)


def refuse_hidden_task(learner: Learner, stream: Stream) -> None:
    """A learner that needs the task label cannot run where the scenario hides it."""
    if learner.needs_task and not stream.info.task_given:
        raise BadInput(
            f"method {name_of(learner)!r} needs the task label, which the {stream.scenario!r} scenario hides; "
            "use scenario 'task'"
        )


def name_of(learner: Learner) -> str:
    """The file name of a method of ours, the class name of a user's."""
    module = type(learner).__module__
    return module.rpartition(".")[2] if module.startswith("holdfast.methods.") else type(learner).__name__


class _Clock:
    """Adds up the seconds between start and stop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since: float | None = None

    def start(self, counts: bool = True) -> None:
        self._since = time.perf_counter() if counts else None

    def stop(self) -> None:
        if self._since is not None:
            self.seconds += time.perf_counter() - self._since

    def __enter__(self) -> _Clock:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _check_finite(losses: list[Tensor], t: int, done: int) -> None:
    values = torch.stack([torch.as_tensor(loss).detach() for loss in losses])
    if values.dim() != 1:
        raise TypeError(f"observe returned losses of shape {tuple(values.shape[1:])}; it must return one number")
    wrong = (~torch.isfinite(values)).nonzero().flatten().tolist()
    if wrong:
        step = done - len(losses) + wrong[0] + 1
        raise RunFailed(
            f"the loss became {values[wrong[0]].item()} in task {t} at step {step}; "
            "try a smaller learning rate or strength"
        )


def _joined(parts: list[Part]) -> Part:
    """The rows of several parts as one; transformed pixels are copied only where tasks have transforms."""
    if all(p.transform is None and p.pixels is parts[0].pixels for p in parts):
        return Part(parts[0].pixels, torch.cat([p.rows for p in parts]), torch.cat([p.y for p in parts]))
    pixels = torch.cat([p.raw() for p in parts])
    return Part(pixels, torch.arange(len(pixels), device=pixels.device), torch.cat([p.y for p in parts]))
