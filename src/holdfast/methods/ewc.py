"""Elastic weight consolidation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, fisher
from holdfast.engine.fisher import Labels
from holdfast.engine.penalty import pull
from holdfast.methods._base import Terms, Weighing
from holdfast.settings import Count, NonNegative
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class EWC(Weighing):
    """Elastic weight consolidation (Kirkpatrick et al., 2017).

        L(θ) = CE(θ) + λ/2 · Σ_k Σ_i F_ki (θ_i − θ*_ki)²

    The sum over tasks is one quadratic, ½ Σ_i (A_i θ_i² − 2 B_i θ_i) + const with A = ΣF_k and B = ΣF_kθ*_k, so a
    step costs the same however many tasks there were. With `anchor=latest` (Huszár, 2018; paper 001) all of it pulls to
    the weights that the last task left, which the penalties of the tasks before are in already: B = A θ*_t.

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("ewc", strength=100), hf.stream("split", tasks=2, examples=50), seed=0)
    >>> len(record.resources["bytes"])
    2
    """

    strength: NonNegative | Literal["1/lr"] = 10.0  # λ; 1/lr: the inverse of the learning rate (papers 003, 004)
    samples: Count = 200  # examples behind each Fisher estimate
    anchor: Literal["each", "latest"] = "each"  # θ*: those that each task left, or the last one's for all
    labels: Labels = "sampled"  # whose gradient is squared: the true, the predicted, or a sampled label
    one_by_one: bool = False  # a penalty per past task, as paper 002's authors do: the same result, slower
    emulate: Literal["none", "batch mean"] = "none"  # paper 002's code squares the gradient of the batch's mean loss

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.importance = torch.zeros_like(net.theta.detach())  # A = Σ_k F_k, (P,)
        self.anchored = torch.zeros_like(net.theta.detach())  # B = Σ_k F_k θ*_k, (P,)
        self.apart: list[list[Tensor]] = []  # F_k and θ*_k of every task, where they are not summed

    def numbers_kept(self, tasks: int) -> int:
        """A Fisher matrix and an anchor per task, of shared weights; the paper leaves batch statistics out here."""
        return self.weight_count() + 2 * tasks * self.weight_count(shared=True)

    def observe(self, batch: Batch) -> Tensor:
        loss = self.gradient(batch)
        self._pull()
        self.optimiser.step(self.net)
        return loss

    def terms(self, batch: Batch) -> Terms:
        self.gradient(batch)
        likelihood = self.output_layer(self.net.grad)
        self.net.zero_grad()
        self._pull()
        return Terms(likelihood, self.output_layer(self.net.grad))

    def _pull(self) -> None:
        """net.grad ← net.grad + the gradient of the penalty."""
        strength = 1 / self.optimiser.lr if self.strength == "1/lr" else self.strength
        pull(self.net, self.importance, self.anchored, strength)
        for F, old in self.apart:
            pull(self.net, F, F * old, strength)

    def finish(self, train: Lease) -> None:
        batch = self.sample(train, self.samples)
        allowed = self.allowed(batch.task)
        if self.emulate == "batch mean":
            g = self.net.gradients(batch.x[None], batch.y[None], None if allowed is None else allowed[None])[0]
            F = g**2  # not the Fisher information: it shrinks as the batch grows
        else:
            F = fisher(self.net, batch, allowed, self.labels, self.rng)
        F, now = self.of_shared(F), self.net.theta.detach()
        if self.one_by_one:
            each = self.apart if self.anchor == "each" else [[old, now.clone()] for old, _ in self.apart]
            self.apart = [*each, [F, now.clone()]]
            return
        self.importance += F
        self.anchored = self.importance * now if self.anchor == "latest" else self.anchored + F * now
