"""SGD, momentum and Adam on the weight vector; tests hold them equal to `torch.optim`."""

from __future__ import annotations

from abc import abstractmethod
from typing import Literal

import torch
from torch import Tensor

from holdfast.engine.state import Plain
from holdfast.engine.theta import Net

OptimiserName = Literal["sgd", "momentum", "adam"]


class Optimiser(Plain):
    """One step on θ from net.grad. State persists over tasks until `reset`; frozen entries never move."""

    def __init__(self, lr: float, decay: float = 0.0) -> None:
        self.lr = lr
        self.decay = decay  # L2 weight decay, added to the gradient

    @torch.no_grad()
    def step(self, net: Net) -> None:
        if not net.collects():
            raise RuntimeError("the gradients are not in net.grad: call net.zero_grad(), not the module's zero_grad()")
        g = net.grad if self.decay == 0 else net.grad + self.decay * net.theta
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
        theta.add_(g, alpha=-self.lr)

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
        theta.add_(self.v, alpha=-self.lr)

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
            theta[start:stop].addcdiv_(self.m[start:stop], denominator, value=-self.lr / (1 - b1**age))

    def reset(self) -> None:
        self.m, self.v = torch.zeros(0), torch.zeros(0)
        self.steps = 0
        self.births = []


def optimiser(name: OptimiserName, lr: float, momentum: float = 0.9, decay: float = 0.0) -> Optimiser:
    if name == "sgd":
        return SGD(lr, decay)
    return Momentum(lr, decay, momentum) if name == "momentum" else Adam(lr, decay)


def _grown(vector: Tensor, theta: Tensor) -> Tensor:
    """The vector at θ's length and device: zeros for entries that are new, cut where θ was rolled back."""
    if len(vector) == len(theta):
        return vector.to(theta.device)
    longer = torch.zeros_like(theta)
    longer[: len(vector)] = vector[: len(theta)]
    return longer
