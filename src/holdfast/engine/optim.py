"""SGD, momentum, Adam and AdamW on the weight vector; tests hold them, schedules and clipping equal to torch's."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import ClassVar, Literal

import torch
from torch import Tensor

from holdfast.engine.state import Plain
from holdfast.engine.theta import Net

OptimiserName = Literal["sgd", "momentum", "adam", "adamw"]
ScheduleName = Literal["constant", "cosine", "step"]


class Optimiser(Plain):
    """One step on θ from net.grad. State persists over tasks until `reset`; frozen entries never move."""

    decoupled: ClassVar[bool] = False  # whether decay is taken off the weights in place of being added to the gradient

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
        g = net.grad if self.clip == 0 else _clipped(net.grad, net.frozen, self.clip)
        if self.decay != 0 and not self.decoupled:
            g = g + self.decay * net.theta
        if net.frozen is not None:
            g = torch.where(net.frozen, 0.0, g)  # masked_fill takes three times as long
        self.descend(net.theta, g, net.frozen)

    @abstractmethod
    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None) -> None: ...

    @abstractmethod
    def reset(self) -> None: ...


class SGD(Optimiser):
    """θ ← θ − ε g"""

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None) -> None:
        theta.add_(g, alpha=-self.rate)

    def reset(self) -> None:
        pass


class Momentum(Optimiser):
    """v ← μ v + g;  θ ← θ − ε v"""

    v: Tensor

    def __init__(self, lr: float, decay: float = 0.0, momentum: float = 0.9) -> None:
        super().__init__(lr, decay)
        self.momentum = momentum
        self.reset()

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None) -> None:
        self.v = _grown(self.v, theta)
        torch.add(g, self.v, alpha=self.momentum, out=self.v)  # one pass over (P,) instead of two
        if frozen is not None:
            self.v.masked_fill_(frozen, 0)
        theta.add_(self.v, alpha=-self.rate)

    def reset(self) -> None:
        self.v = torch.zeros(0)


class Adam(Optimiser):
    """m ← β₁m + (1−β₁)g;  v ← β₂v + (1−β₂)g²;  θ ← θ − ε m̂ / (√v̂ + 1e-8), bias-corrected by each entry's age."""

    m: Tensor
    v: Tensor
    steps: int
    births: list[tuple[int, int]]  # (first entry, step before its first)

    def __init__(self, lr: float, decay: float = 0.0, betas: tuple[float, float] = (0.9, 0.999)) -> None:
        super().__init__(lr, decay)
        self.betas = betas
        self.reset()

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None) -> None:
        b1, b2 = self.betas
        if len(self.m) > len(theta):  # a network was rolled back: its last entries are gone
            self.births = [(start, born) for start, born in self.births if start < len(theta)]
        if len(self.m) < len(theta):  # entries that a growing network added are younger than the rest
            self.births.append((len(self.m), self.steps))
        self.m = _grown(self.m, theta).lerp_(g, 1 - b1)
        self.v = _grown(self.v, theta).mul_(b2).addcmul_(g, g, value=1 - b2)
        if frozen is not None:
            self.m.masked_fill_(frozen, 0)
        self.steps += 1
        stops = [start for start, _ in self.births[1:]] + [len(theta)]
        for (start, born), stop in zip(self.births, stops, strict=True):
            age = self.steps - born
            denominator = self.v[start:stop].sqrt().div_((1 - b2**age) ** 0.5).add_(1e-8)
            theta[start:stop].addcdiv_(self.m[start:stop], denominator, value=-self.rate / (1 - b1**age))

    def reset(self) -> None:
        self.m, self.v = torch.zeros(0), torch.zeros(0)
        self.steps = 0
        self.births = []


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter, 2019): θ ← (1 − ελ) θ before each step."""

    decoupled = True

    def descend(self, theta: Tensor, g: Tensor, frozen: Tensor | None) -> None:
        if self.decay != 0:
            left = 1 - self.rate * self.decay
            theta.mul_(left if frozen is None else torch.where(frozen, 1.0, left))
        super().descend(theta, g, frozen)


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


def _clipped(g: Tensor, frozen: Tensor | None, largest: float) -> Tensor:
    """g, made shorter where its norm is too large; frozen entries do not count. As clip_grad_norm_ does it."""
    norm = torch.linalg.vector_norm(g if frozen is None else torch.where(frozen, 0.0, g))
    return g * (largest / (norm + 1e-6)).clamp(max=1.0)


def _grown(vector: Tensor, theta: Tensor) -> Tensor:
    """The vector at θ's length and device: zeros for entries that are new, cut where θ was rolled back."""
    if len(vector) == len(theta):
        return vector.to(theta.device)
    longer = torch.zeros_like(theta)
    longer[: len(vector)] = vector[: len(theta)]
    return longer
