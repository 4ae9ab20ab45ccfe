"""Online elastic weight consolidation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, fisher
from holdfast.engine.fisher import Labels
from holdfast.engine.penalty import pull
from holdfast.methods._base import Learner
from holdfast.settings import Count, Fraction, NonNegative
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class OnlineEWC(Learner):
    """Online EWC (Schwarz et al., 2018): one anchor, the latest weights, and a decaying sum of Fishers.

        L(θ) = CE(θ) + λ/2 · Σ_i F̃_i (θ_i − θ*_i)²,   F̃ ← γ F̃ + F_t,   θ* ← θ_t

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("online_ewc", decay=0.9), hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["met"]
    True
    """

    strength: NonNegative = 10.0  # λ
    decay: Fraction = 1.0  # γ
    samples: Count = 200  # examples behind each Fisher estimate
    labels: Labels = "sampled"  # whose gradient is squared: the true, the predicted, or a sampled label

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.importance = torch.zeros_like(net.theta.detach())  # F̃, (P,)
        self.anchor = torch.zeros_like(net.theta.detach())  # θ*, (P,)

    def numbers_kept(self, tasks: int) -> int:
        """One Fisher matrix and one anchor, of shared weights; the paper leaves batch statistics out here."""
        return self.weight_count() + 2 * self.weight_count(shared=True)

    def observe(self, batch: Batch) -> Tensor:
        loss = self.gradient(batch)
        pull(self.net, self.importance, self.importance * self.anchor, self.strength)
        self.optimiser.step(self.net)
        return loss

    def finish(self, train: Lease) -> None:
        batch = self.sample(train, self.samples)
        F = self.of_shared(fisher(self.net, batch, self.allowed(batch.task), self.labels, self.rng))
        self.importance = self.decay * self.importance + F
        self.anchor = self.net.theta.detach().clone()
