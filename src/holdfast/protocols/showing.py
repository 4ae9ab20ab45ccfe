"""One showing of a task: begin, all batches, finish. It can be saved between two steps and taken up again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import torch
from torch import Tensor

from holdfast.audit import Lease
from holdfast.engine import Optimiser, State, batches, count_flops
from holdfast.errors import RunFailed
from holdfast.methods import Learner
from holdfast.protocols._slips import refuse_slips
from holdfast.types import Batch, Part

CHECK_EVERY = 50  # steps between looks at the losses; looking at each would stall the loop


class Showing:
    """What a learner is shown under one lease, and what that costs. `task`: one index, or one per row."""

    def __init__(
        self,
        learner: Learner,
        lease: Lease,
        part: Part,
        task: int | Tensor,
        passes: int,
        batch: int,
        rng: torch.Generator,
        limit: int | None = None,
    ) -> None:
        """`limit`: so many steps, in as many passes as they take, instead of whole passes."""
        self.learner, self.lease, self.part, self.task = learner, lease, part, task
        self.passes, self.batch, self.rng, self.limit = passes, batch, rng, limit
        self.done = 0  # steps
        self.clock, self.steps_clock = Clock(), Clock()
        self._at_ends, self._per_step = 0, 0  # operations of begin and finish, and of one step
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
    def ends(self) -> Cost:
        """What `begin` and `finish` cost."""
        return Cost(self._at_ends, self.clock.seconds)

    @property
    def flops(self) -> int:
        """Of what was done so far."""
        return self._at_ends + self._per_step * self.done

    @property
    def seconds(self) -> float:
        """Of what was done so far; the step that was not timed took as long as the others."""
        timed = self.done - (self._untimed is not None and self.done > self._untimed)
        return self.clock.seconds + (self.steps_clock.seconds * self.done / timed if timed > 0 else 0.0)

    @property
    def looks(self) -> Tensor:
        """How often each row was seen so far, in batches and through the lease: training rows, then validation rows."""
        looks, passes = self.lease.looks(), divmod(self.done, self.per_pass)
        looks[self.kept] += passes[0] + min(passes[1] * self.batch / len(self.kept), 1.0)
        return looks

    def begin(self, *, lease: bool) -> None:
        self._pace(0, 0)
        with self.clock:
            _, flops = count_flops(lambda: self.learner.begin(self.lease if lease else None))
        self._at_ends += flops

    def steps(self) -> Iterator[int]:
        """Go on, batch by batch; yields the number of steps done."""
        clock, untimed, total = self.steps_clock, self._untimed, self.total
        only = self.kept if len(self.kept) < len(self.part) else None
        per_pass = self.per_pass
        self.rng.set_state(self._dice)
        for this in range(max(self.done - 1, 0) // per_pass, -(-total // per_pass)):
            self._dice = self.rng.get_state()
            clock.start(self.done != untimed)
            cut = batches(self.part, self.batch, self.rng, self.task, only)
            for each in islice(cut, self.done - this * per_pass, total - this * per_pass):
                self._losses.append(self._observe(each))
                self.done += 1
                if self.done % CHECK_EVERY == 0 or self.done == total:
                    self.check()
                clock.stop()
                if self.done in (1, total):
                    refuse_slips(self.learner)
                yield self.done
                clock.start(self.done != untimed)
            clock.stop()

    def finish(self) -> None:
        """The learner finishes the task, and its lease is over."""
        self._pace(0, 0)
        with self.clock:
            _, flops = count_flops(lambda: self.learner.finish(self.lease))
        self._at_ends += flops
        self.lease.close()
        refuse_slips(self.learner)

    def check(self) -> None:
        """Stop where a loss was not finite."""
        if self._losses:
            _check_finite(self._losses, self.lease.task, self.done)
            self._losses.clear()

    def state(self) -> dict[str, State]:
        return {
            "done": self.done,
            "dice": self._dice,
            "lease": self.lease.state(),
            "flops": (self._at_ends, self._per_step),
            "seconds": (self.clock.seconds, self.steps_clock.seconds),
        }

    def load(self, state: dict[str, State]) -> None:
        """Take up a showing of the same part; `begin` is over."""
        self.done, self._dice = state["done"], state["dice"]
        self.lease.load(state["lease"])
        self._at_ends, self._per_step = state["flops"]
        self.clock.seconds, self.steps_clock.seconds = state["seconds"]

    @cached_property
    def _counted(self) -> int:
        """The step whose operations are counted, which is slow."""
        return min(1, self.total - 1)

    @cached_property
    def _untimed(self) -> int | None:
        """It is not timed, where there are others to take its time from."""
        return self._counted if self.total > 2 else None

    def _pace(self, step: int, steps: int) -> None:
        """Where the learning rate's schedule is; a learner that keeps no optimiser has none."""
        descent = vars(self.learner).get("optimiser")
        if isinstance(descent, Optimiser):
            descent.pace(step, steps)

    def _observe(self, batch: Batch) -> Tensor:
        self._pace(self.done, self.total)
        if self.done == self._counted:
            loss, self._per_step = count_flops(lambda: self.learner.observe(batch))
        else:
            loss = self.learner.observe(batch)
        if loss is None:
            raise TypeError(f"{type(self.learner).__name__}.observe returned None; it must return the loss")
        return loss


class Cost(NamedTuple):
    flops: int
    seconds: float


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
