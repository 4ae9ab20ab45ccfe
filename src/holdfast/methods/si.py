"""Synaptic intelligence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser
from holdfast.engine.penalty import pull
from holdfast.methods._base import Learner
from holdfast.settings import NonNegative, Positive
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class SI(Learner):
    """Synaptic intelligence (Zenke et al., 2017): a weight matters as much as its path lowered the loss.

        L(θ) = CE(θ) + c · Σ_i Ω_i (θ_i − θ̃_i)²
        ω_i ← ω_i − g_i Δθ_i  at every step,   Ω_i ← Ω_i + ω_i / ((θ_i − θ̃_i)² + ξ)  after every task

    θ̃ are the weights at the end of the previous task. g is the gradient of the whole loss.

    >>> import holdfast as hf
    >>> record = hf.run("si", hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["met"]
    True
    """

    strength: NonNegative = 0.1  # c
    damping: Positive = 0.1  # ξ

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.anchor = net.theta.detach().clone()  # θ̃, (P,)
        self.path = torch.zeros_like(self.anchor)  # ω, (P,)
        self.importance = torch.zeros_like(self.anchor)  # Ω, (P,)

    def observe(self, batch: Batch) -> Tensor:
        loss = self.gradient(batch)
        pull(self.net, self.importance, self.importance * self.anchor, 2 * self.strength)
        before = self.net.theta.detach().clone()
        self.optimiser.step(self.net)
        self.path -= self.net.grad * (self.net.theta.detach() - before)
        return loss

    def finish(self, train: Lease) -> None:
        θ = self.net.theta.detach()
        self.importance += self.path / ((θ - self.anchor) ** 2 + self.damping)
        self.anchor = θ.clone()
        self.path.zero_()
