"""One showing of a task: begin, all batches, finish. It can be saved between two steps and taken up again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from itertools import islice

import torch
from torch import Tensor

from holdfast.audit import Lease
from holdfast.engine import CHECK_EVERY, Optimiser, Samples, State, batches, check_finite, counting
from holdfast.errors import RunFailed
from holdfast.methods import Learner
from holdfast.protocols._boundaries import Detector
from holdfast.protocols._slips import refuse_slips
from holdfast.types import Batch, Lesson, Part


class Showing:
    """What a learner is shown under one lease, and what that costs. `task`: one index, one per row, or None."""

    def __init__(
        self,
        learner: Learner,
        lease: Lease,
        part: Part,
        task: int | Tensor | None,
        passes: int,
        batch: int,
        rng: torch.Generator,
        limit: int | None = None,
        *,
        full: int | None = None,
        ordered: bool = False,
        rows: bool = False,
    ) -> None:
        """`limit`: so many steps, in as many passes as they take, instead of whole passes; `full`: of how many these
        are the first. `ordered`: rows as they lie, in place of shuffled. `rows`: batches say which rows they have."""
        self.learner, self.lease, self.part, self.task = learner, lease, part, task
        self.passes, self.batch, self.rng, self.limit, self._full = passes, batch, rng, limit, full
        self.ordered, self.rows = ordered, rows and part.augment is None
        self.done = 0  # steps
        self.begun = False
        self.lesson: Lesson | None = None  # what `begin` is told; none: what this showing has
        self.detector: Detector | None = None  # finds where tasks end, where that is hidden
        self.clock, self.steps_clock = Clock(), Clock()
        self._beside = 0  # operations of all that is not a step
        self._dice = rng.get_state()  # when the pass under way began
        self._losses: list[Tensor] = []  # not looked at yet

    @cached_property
    def kept(self) -> Tensor:
        """The rows that are shown, known when `begin` is over."""
        kept = self.lease.kept()
        if len(kept) == 0:
            raise RunFailed(
                f"the method withheld all {len(self.part)} training rows of task {self.lease.task}, "
                "so there is nothing to learn"
            )
        return kept

    @property
    def per_pass(self) -> int:
        """Steps of one pass."""
        return -(-len(self.kept) // self.batch)

    @cached_property
    def total(self) -> int:
        """Steps in all."""
        return self.passes * self.per_pass if self.limit is None else self.limit

    @property
    def full(self) -> int:
        """Steps in all when it is gone on with: schedules and looks go by them."""
        return self.total if self._full is None else self._full

    @property
    def flops(self) -> int:
        """Of what was done so far."""
        return self._beside + (self._samples.total(self.done) if self.done else 0)

    @property
    def seconds(self) -> float:
        """Of what was done so far; steps that were not timed took as long as the others."""
        timed = self.done - (sum(at < self.done for at in self._untimed) if self.done else 0)
        return self.clock.seconds + (self.steps_clock.seconds * self.done / timed if timed > 0 else 0.0)

    @property
    def looks(self) -> Tensor:
        """How often each row was seen so far, in batches and through the lease: training rows, then validation rows."""
        looks, passes = self.lease.looks(), divmod(self.done, self.per_pass)
        looks[self.kept] += passes[0] + min(passes[1] * self.batch / len(self.kept), 1.0)
        return looks

    def whole(self, *, lease: bool, finish: bool = True) -> Iterator[int]:
        """Begin, all batches, finish; or what is left of them. Yields 0 and then the number of steps done."""
        if not self.begun:
            self.begin(lease=lease)
            yield 0
        yield from self.steps()
        if finish:
            self.finish()

    def begin(self, *, lease: bool) -> None:
        """`lease`: the learner may read the task's data."""
        self._pace(0, 0)
        with self.beside():
            if self.rows:
                self.learner.share(self.lease)
            self.learner.begin(self.lease if lease else None, self.lesson or self._lesson())
        self.begun = True

    def steps(self) -> Iterator[int]:
        """Go on, batch by batch; yields the number of steps done."""
        clock, untimed, total = self.steps_clock, self._untimed, self.total
        only = self.kept if len(self.kept) < len(self.part) else None
        per_pass = self.per_pass
        self.rng.set_state(self._dice)
        for this in range(max(self.done - 1, 0) // per_pass, -(-total // per_pass)):
            self._dice = self.rng.get_state()
            clock.start(self.done not in untimed)
            rows = self.rows or self.learner.by_rows or self.detector is not None
            cut = batches(self.part, self.batch, self.rng, self.task, only, ordered=self.ordered, rows=rows)
            for each in islice(cut, self.done - this * per_pass, total - this * per_pass):
                self._losses.append(loss := self._observe(each))
                self.done += 1
                if self.done % CHECK_EVERY == 0 or self.done == total:
                    self.check()
                clock.stop()
                if self.done in (1, total):
                    refuse_slips(self.learner)
                if self.detector is not None and self.detector.ended(self.lease.task, each, float(loss)):
                    self._pass_boundary(self.detector)
                yield self.done
                clock.start(self.done not in untimed)
            clock.stop()

    def finish(self) -> None:
        """The learner finishes the task, and its lease is over."""
        if self.detector is None:
            self._finish(self.lease)
            return
        with self.detector.leased(over=True) as lease:
            self._finish(lease)

    def _finish(self, lease: Lease) -> None:
        self._pace(0, 0)
        with self.beside():
            self.learner.finish(lease)
        lease.close()
        refuse_slips(self.learner)

    def _pass_boundary(self, detector: Detector) -> None:
        """The learner finishes one task and begins the next, of which it is told as much as of the first."""
        with detector.leased(over=False) as lease:
            self._finish(lease)
        detector.pass_boundary()
        whole = self.lesson or self._lesson()
        with self.beside():
            self.learner.begin(None, replace(whole, steps=whole.steps - detector.steps))

    @contextmanager
    def beside(self) -> Iterator[None]:
        """Work of the learner's that is not a step, but counts as training."""
        with self.clock, counting() as counter:
            try:
                yield
            finally:
                self._beside += counter.total

    def check(self) -> None:
        """Stop where a loss was not finite."""
        if self._losses:
            check_finite(self._losses, self.done, where=f" in task {self.lease.task}")
            self._losses.clear()

    def state(self) -> dict[str, State]:
        return {
            "done": self.done,
            "dice": self._dice,
            "lease": self.lease.state(),
            "flops": (self._beside, dict(self._samples.found)),
            "seconds": (self.clock.seconds, self.steps_clock.seconds),
        }

    def load(self, state: dict[str, State]) -> None:
        """Take up a showing of the same part; `begin` is over, and what it shared is made again, free of charge."""
        if self.rows:
            self.learner.share(self.lease)
        self.begun, self.done, self._dice = True, state["done"], state["dice"]
        self.lease.load(state["lease"])
        self._beside, self._samples.found = state["flops"]
        self.clock.seconds, self.steps_clock.seconds = state["seconds"]

    @cached_property
    def _samples(self) -> Samples:
        """The steps whose operations are counted, which is slow."""
        return Samples(self.total)

    @cached_property
    def _untimed(self) -> tuple[int, ...]:
        """They are not timed, where there are others to take their time from."""
        return self._samples.at if self.total > len(self._samples.at) + 1 else ()

    def _lesson(self) -> Lesson:
        per_pass = -(-len(self.part) // self.batch)
        steps = self._full or (self.passes * per_pass if self.limit is None else self.limit)
        return Lesson(steps, -(-steps // per_pass), self.batch)

    def _pace(self, step: int, steps: int) -> None:
        """Where the learning rate's schedule is; a learner that keeps no optimiser has none."""
        descent = vars(self.learner).get("optimiser")
        if isinstance(descent, Optimiser):
            descent.pace(step, steps)

    def _observe(self, batch: Batch) -> Tensor:
        self._pace(self.done, self.full)
        if self.detector is not None:
            batch = self.detector.labelled(batch)
        if self.done in self._samples.at:
            loss = self._samples.count(self.done, lambda: self.learner.observe(batch))
        else:
            loss = self.learner.observe(batch)
        if loss is None:
            raise TypeError(f"{type(self.learner).__name__}.observe returned None; it must return the loss")
        return loss


class Clock:
    """Adds up the seconds between start and stop."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._since: float | None = None

    def start(self, counts: bool = True) -> None:
        self._since = time.perf_counter() if counts else None

    def stop(self) -> None:
        if self._since is not None:
            self.seconds += time.perf_counter() - self._since

    def __enter__(self) -> Clock:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
