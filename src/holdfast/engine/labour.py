"""Long work that a method does outside its protocol's steps: generators, coresets, maximum-likelihood starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor

from holdfast.engine.count import count_flops, uncounted
from holdfast.errors import RunFailed

CHECK_EVERY = 50  # steps between looks at the losses; looking at each would stall the loop
LONG = 500  # steps from which on more of them are counted

Observer = Callable[[str, int, int], None]  # what is done, steps done, steps in all

_observed: ContextVar[tuple[Observer | None, str]] = ContextVar("observed", default=(None, ""))


@contextmanager
def observed(observer: Observer | None, where: str = "") -> Iterator[None]:
    """Whoever watches is told how far work of `repeat` in here is; `where` is said of work that fails: ' in task 3'."""
    token = _observed.set((observer, where))
    try:
        yield
    finally:
        _observed.reset(token)


def repeat(steps: int, step: Callable[[int], Tensor], what: str) -> None:
    """step(0), step(1), ..., each of which returns its loss: training that is not the protocol's.

    Operations are counted at a few of the steps, which stand for all; counting every one would take several times as
    long. Whoever watches the run sees how far it is, and a loss that is not finite ends the run.

    >>> from holdfast.engine.count import count_flops
    >>> a = torch.ones(2, 3)
    >>> count_flops(lambda: repeat(1000, lambda i: (a @ a.T).sum(), "products"))[1]  # 2·2·2·3 each
    24000
    """
    samples, done = Samples(steps), 0
    losses: list[Tensor] = []
    observer, where = _observed.get()
    with uncounted() as counter:
        try:
            for i in range(steps):
                losses.append(samples.count(i, partial(step, i)))
                done += 1
                if done % CHECK_EVERY == 0 or done == steps:
                    check_finite(losses, done, f" of {what}", where)
                    losses.clear()
                    if observer is not None:
                        observer(what, done, steps)
        finally:  # work that fails is not free
            if counter is not None:
                counter.total += samples.total(done)


class Samples:
    """Operations of many steps, counted at a few; a step that was not counted costs what the nearest one did.

    >>> samples = Samples(10)
    >>> samples.at
    (1, 5)
    >>> samples.found = {1: 10, 5: 20}
    >>> samples.total(10)  # steps 0 to 2 like step 1, the others like step 5
    170
    """

    def __init__(self, steps: int) -> None:
        last = max(steps - 1, 0)
        some = (0, 1, steps // 4, steps // 2, 3 * steps // 4, last) if steps >= LONG else (min(1, last), steps // 2)
        self.at = tuple(sorted({min(at, last) for at in some}))
        self.found: dict[int, int] = {}

    def count(self, step: int, work: Callable[[], Tensor]) -> Tensor:
        """Do the work of a step, counted if it is one of those; gives its loss."""
        if step not in self.at:
            return work()
        result, self.found[step] = count_flops(work)
        return result

    def total(self, steps: int) -> int:
        """Of the first so many steps."""
        known = sorted(self.found)
        if not known:
            return 0
        ends = [(a + b + 1) // 2 for a, b in pairwise(known)]  # where the next one is as near
        each = zip(known, pairwise([0, *ends, max(steps, 0)]), strict=True)
        return sum(self.found[at] * max(min(stop, steps) - start, 0) for at, (start, stop) in each)


def check_finite(losses: list[Tensor], done: int, of: str = "", where: str = "") -> None:
    """Stop where a loss was not finite; the last of them is that of step `done`."""
    who = f"a step{of}" if of else "observe"
    if any(loss is None for loss in losses):
        raise TypeError(f"{who} returned None; it must return the loss")
    values = torch.stack([torch.as_tensor(loss).detach() for loss in losses])
    if values.dim() != 1:
        raise TypeError(f"{who} returned losses of shape {tuple(values.shape[1:])}; it must return one number")
    wrong = (~torch.isfinite(values)).nonzero().flatten().tolist()
    if wrong:
        step = done - len(losses) + wrong[0] + 1
        raise RunFailed(
            f"the loss{of} became {values[wrong[0]].item()}{where} at step {step}; "
            "try a smaller learning rate or strength"
        )
