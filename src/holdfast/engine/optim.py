"""SGD, momentum, Adam and AdamW on the weight vector; tests hold them, schedules and clipping equal to torch's."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal

import torch
from torch import Tensor

from holdfast.engine.state import Plain
from holdfast.engine.theta import Net, Span

OptimiserName = Literal["sgd", "momentum", "adam", "adamw"]
ScheduleName = Literal["constant", "cosine", "step"]


class Optimiser(Plain):
    """One step on θ from net.grad. State persists over tasks until `reset`; frozen entries never move, nor have any."""

    decoupled: ClassVar[bool] = False  # whether decay is taken off the weights in place of being added to the gradient
    heads: Sequence[tuple[int, int, int]] = ()  # outputs that each task has for itself: `Net.rows_of_outputs`

    def __init__(self, lr: float, decay: float = 0.0) -> None:
        self.lr = lr  # ε as it was given; a schedule makes `rate` of it
        self.decay = decay  # weight decay
        self.clip = 0.0  # the largest norm of the gradient; 0: whatever it is
        self.schedule: ScheduleName = "constant"
        self.schedule_every: int | None = None
        self.schedule_factor = 0.1
        self.share = 1.0  # of lr, at the step to come

    @property
    def rate(self) -> float:
        """The learning rate of the step to come."""
        return self.lr * self.share

    def pace(self, step: int, steps: int) -> None:
        """So many of a task's steps are done. Before the first and after the last, the rate is lr.

        cosine: ε (1 + cos(π t/T)) / 2;  step: ε · factor^⌊t / every⌋, three levels where `every` is not given
        """
        if self.schedule == "constant" or step >= steps:
            self.share = 1.0
        elif self.schedule == "cosine":
            self.share = (1 + math.cos(math.pi * step / steps)) / 2
        else:
            every = -(-steps // 3) if self.schedule_every is None else self.schedule_every
            self.share = self.schedule_factor ** (step // every)

    @torch.no_grad()
    def step(self, net: Net) -> None:
        if not net.collects():
            raise RuntimeError("the gradients are not in net.grad: call net.zero_grad(), not the module's zero_grad()")
        spans = net.moving
        shrink = None if self.clip == 0 else _shrink(spans, self.clip)
        self.follow(spans)
        first = 0
        for span in spans:
            theta, g, frozen = span.theta, span.grad, self._resting(span)
            if shrink is not None:
                g = g * shrink
            if self.decay != 0 and not self.decoupled:
                g = g + self.decay * theta
            if frozen is not None:
                g = torch.where(frozen, 0.0, g)  # masked_fill takes three times as long
            self.descend(theta, g, frozen, first)
            first += len(theta)

    def _resting(self, span: Span) -> Tensor | None:
        """What does not move: what is frozen, and outputs without a gradient where each task has its own. Neither decay
        nor what is left of earlier steps moves a head that was not shown."""
        inside = [place for place in self.heads if span.start <= place[0] and place[1] <= span.stop]
        if not inside:
            return span.frozen
        resting = torch.zeros_like(span.grad, dtype=torch.bool) if span.frozen is None else span.frozen.clone()
        for start, stop, rows in inside:
            mine = slice(start - span.start, stop - span.start)
            idle = (span.grad[mine].view(rows, -1) == 0).all(1, keepdim=True)
            resting[mine].view(rows, -1).logical_or_(idle)
        return resting

    def follow(self, spans: Sequence[Span]) -> None:
        """Before each step: what is kept of each entry goes where the entry is now among those that move."""

    @abstractmethod
    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None, first: int) -> None:
        """One slice of θ; `first`: how many entries that move are before it."""

    @abstractmethod
    def reset(self) -> None: ...


class SGD(Optimiser):
    """θ ← θ − ε g"""

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None, first: int) -> None:
        theta.add_(g, alpha=-self.rate)

    def reset(self) -> None:
        pass


class Momentum(Optimiser):
    """v ← μ v + g;  θ ← θ − ε v"""

    v: Tensor  # (M,) of the entries that move
    places: dict[int, int]  # where in θ they are: first entry -> behind the last

    def __init__(self, lr: float, decay: float = 0.0, momentum: float = 0.9) -> None:
        super().__init__(lr, decay)
        self.momentum = momentum
        self.reset()

    def follow(self, spans: Sequence[Span]) -> None:
        places = {span.start: span.stop for span in spans}
        if places != self.places:
            self.v, self.places = _moved(self.v, _overlaps(self.places, places)), places
        self.v = _beside(self.v, spans)

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None, first: int) -> None:
        v = self.v[first : first + len(theta)]
        torch.add(g, v, alpha=self.momentum, out=v)  # one pass instead of two
        if frozen is not None:
            v.masked_fill_(frozen, 0)
        theta.add_(v, alpha=-self.rate)

    def reset(self) -> None:
        self.v, self.places = torch.zeros(0), {}


class Adam(Optimiser):
    """m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  θ ← θ − ε m̂ / (√v̂ + 1e-8), bias-corrected by each entry's age."""

    m: Tensor  # (M,) of the entries that move
    v: Tensor  # (M,)
    places: dict[int, int]  # where in θ they are: first entry -> behind the last
    steps: int
    births: list[tuple[int, int]]  # (first of the M, step before its first)

    def __init__(self, lr: float, decay: float = 0.0, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        super().__init__(lr, decay)
        self.betas = betas
        self.reset()

    def follow(self, spans: Sequence[Span]) -> None:
        places = {span.start: span.stop for span in spans}
        if places != self.places:
            overlaps = _overlaps(self.places, places)
            self.births = _reborn(self.births, overlaps, self.steps)
            self.m, self.v = _moved(self.m, overlaps), _moved(self.v, overlaps)
            self.places = places
        self.m, self.v = _beside(self.m, spans), _beside(self.v, spans)
        self.steps += 1

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None, first: int) -> None:
        b1, b2 = self.betas
        end = first + len(theta)
        m = self.m[first:end].lerp_(g, 1 - b1)
        v = self.v[first:end].mul_(b2).addcmul_(g, g, value=1 - b2)
        if frozen is not None:
            m.masked_fill_(frozen, 0)
        stops = [start for start, _ in self.births[1:]] + [len(self.m)]
        for (start, born), stop in zip(self.births, stops, strict=True):
            here = slice(max(start, first) - first, min(stop, end) - first)
            if here.start < here.stop:
                age = self.steps - born
                denominator = v[here].sqrt().div_((1 - b2**age) ** 0.5).add_(1e-8)
                theta[here].addcdiv_(m[here], denominator, value=-self.rate / (1 - b1**age))

    def reset(self) -> None:
        self.m, self.v, self.places = torch.zeros(0), torch.zeros(0), {}
        self.steps = 0
        self.births = []


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019): θ ← (1 − ελ) θ before each step."""

    decoupled = True

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None, first: int) -> None:
        if self.decay != 0:
            left = 1 - self.rate * self.decay
            theta.mul_(left if frozen is None else torch.where(frozen, 1.0, left))
        super().descend(theta, g, frozen, first)


def optimiser(
    name: OptimiserName,
    lr: float,
    momentum: float = 0.9,
    decay: float = 0.0,
    clip: float = 0.0,
    schedule: ScheduleName = "constant",
    schedule_every: int | None = None,
    schedule_factor: float = 0.1,
) -> Optimiser:
    made: Optimiser
    if name == "sgd":
        made = SGD(lr, decay)
    elif name == "momentum":
        made = Momentum(lr, decay, momentum)
    else:
        made = Adam(lr, decay) if name == "adam" else AdamW(lr, decay)
    made.clip, made.schedule = clip, schedule
    made.schedule_every, made.schedule_factor = schedule_every, schedule_factor
    return made


def _shrink(spans: Sequence[Span], largest: float) -> Tensor:
    """What to multiply the gradient with where its norm is too large; frozen entries do not count.

    As clip_grad_norm_ does it, which takes the norm of the slices' norms.
    """
    norms = [torch.linalg.vector_norm(g if frozen is None else torch.where(frozen, 0.0, g)) for _, g, frozen in spans]
    norm = norms[0] if len(norms) == 1 else torch.linalg.vector_norm(torch.stack(norms or [torch.zeros(())]))
    return (largest / (norm + 1e-6)).clamp(max=1.0)


Overlap = tuple[int | None, int]  # where entries were among those that moved, None where they are new; how many


def _overlaps(old: dict[int, int], new: dict[int, int]) -> list[Overlap]:
    """All entries of new slices of θ, in order: those that old slices have, too, and those that they have not."""
    found: list[Overlap] = []
    for start, stop in new.items():
        first = 0  # of the old slice, among those that moved
        for a, b in old.items():
            if max(a, start) < min(b, stop):
                found += [(None, a - start)] if a > start else []
                found.append((first + max(start - a, 0), min(b, stop) - max(a, start)))
                start = min(b, stop)
            first += b - a
        found += [(None, stop - start)] if start < stop else []
    return found


def _moved(vector: Tensor, overlaps: list[Overlap]) -> Tensor:
    """The entries of a vector at their new places, and zeros for new ones."""
    pieces = [vector.new_zeros(n) if first is None else vector[first : first + n] for first, n in overlaps]
    return torch.cat(pieces) if pieces else vector.new_zeros(0)


def _reborn(births: list[tuple[int, int]], overlaps: list[Overlap], now: int) -> list[tuple[int, int]]:
    """Births at the entries' new places; entries that are new are born now."""
    found: list[tuple[int, int]] = []
    at = 0
    for first, n in overlaps:
        if first is None:
            found.append((at, now))
        else:
            inside = [(max(start, first), born) for start, born in births if start < first + n]
            begun = max((i for i, (start, _) in enumerate(inside) if start == first), default=0)
            found += [(at + start - first, born) for start, born in inside[begun:]]
        at += n
    return [birth for i, birth in enumerate(found) if i == 0 or birth[1] != found[i - 1][1]]


def _beside(vector: Tensor, spans: Sequence[Span]) -> Tensor:
    """On the device of the weights."""
    return vector.to(spans[0].theta.device) if spans else vector
