"""Incremental moment matching."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, fisher
from holdfast.engine.fisher import answers
from holdfast.errors import BadInput
from holdfast.methods._base import Merging
from holdfast.settings import BelowOne, Count, Fraction, NonNegative
from holdfast.types import Batch, StreamInfo

BATCH = 50  # examples whose gradients paper 003's code averages before it squares them
FLAT = 1e-8  # added to every importance: where no task cares, the mode is the mean


@final
@dataclass
class IMM(Merging):
    """Incremental moment matching (Lee et al., 2017; paper 003): one network per task, merged.

        mean:  θ = Σ_k α_k θ_k          mode:  θ = Σ_k α_k F_k θ_k / Σ_k α_k F_k   (elementwise)

    A task starts from the weights of the one before (weight transfer), may be pulled to them, + λ‖θ − θ_{k−1}‖² with
    θ_0 = 0 (L2-transfer), and trained with a random share p of the weights put back to them (drop-transfer):

        drop:  θ̂ = m θ_{k−1} + (1 − m)(θ − p θ_{k−1})/(1 − p),   m ~ Bernoulli(p)

    The newest task has the weight α, the merge before it 1 − α; by default all tasks weigh the same. Two vectors carry
    all earlier tasks. Scored in mid-task, the network under training answers; after it the merged one.

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("imm", merge="mode"), hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["value"]
    0
    """

    merge: Literal["mean", "mode"] = "mean"  # how networks are merged
    alpha: Fraction | None = None  # weight of the newest task; none: one part in as many as there were tasks
    strength: NonNegative = 0.0  # λ of L2-transfer
    drop: BelowOne = 0.0  # p of drop-transfer
    samples: Count = 200  # examples behind each Fisher estimate
    emulate: Literal["none", "batch sums"] = "none"  # importances as in paper 003's code: Σ over batches of (mean g)²

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        zeros = [torch.zeros_like(net.theta.detach()) for _ in range(4)]
        self.tasks = 0
        self.own, self.own_importance = zeros[:2]  # θ_{k−1} and F_{k−1}, of the last task
        self.weights, self.weighted = zeros[2:]  # Σ α F and Σ α F θ of the tasks before it, F = 1 for the mean
        self.merged = False  # θ holds the merge, not the network under training

    def observe(self, batch: Batch) -> Tensor:
        if self.merged:
            self.net.set(self.own)
            self.merged = False
        loss = self._dropped(batch) if self.drop and self.tasks else self.gradient(batch)
        if self.strength:
            self.net.grad.add_(self.net.theta.detach() - self.own, alpha=2 * self.strength)
        self.optimiser.step(self.net)
        return loss

    def finish(self, train: Lease) -> None:
        if self.tasks:
            self.weights, self.weighted = self._moments(self._share())
        self.tasks += 1
        self.own = self.net.theta.detach().clone()
        self.own_importance = self._importance(train)
        self.blend(self._share(), self.merge)

    def merges(self) -> list[str]:
        """What is kept for the mode of two tasks has their mean in it; of more, the earlier ones are one mode."""
        return ["mean", "mode"] if self.merge == "mode" and self.tasks <= 2 else [self.merge]

    def blend(self, alpha: float, merge: str) -> None:
        if merge not in self.merges():
            merged = f"{self.tasks} tasks merged by {self.merge}"
            raise BadInput(f"merge {merge!r} of method 'imm' is not to be had of {merged}; run it with merge={merge!r}")
        if merge == self.merge or self.tasks == 1:
            weights, weighted = self._moments(alpha)
            self.net.set(weighted / weights)
        else:
            self.net.set((1 - alpha) * self.weighted / self.weights + alpha * self.own)
        self.merged = True

    def _moments(self, alpha: float) -> tuple[Tensor, Tensor]:
        """Σ α F and Σ α F θ over all finished tasks."""
        F = self.own_importance
        return (1 - alpha) * self.weights + alpha * F, (1 - alpha) * self.weighted + alpha * F * self.own

    def _share(self) -> float:
        """Of the newest of the finished tasks."""
        return 1.0 if self.tasks == 1 else self.alpha if self.alpha is not None else 1 / self.tasks

    def _importance(self, train: Lease) -> Tensor:
        if self.merge == "mean":
            return torch.ones_like(self.own)
        batch = self.sample(train, self.samples)
        allowed = self.allowed(batch.task)
        if self.emulate == "none":
            return fisher(self.net, batch, allowed, "sampled", self.rng) + FLAT
        with self.net.evaluating():
            total = torch.zeros_like(self.own)
            y = answers(self.net, batch.x, allowed, "sampled", self.rng)
            for xs, ys in zip(batch.x.split(BATCH), y.split(BATCH), strict=True):
                masks = None if allowed is None else allowed[None]
                total.add_(self.net.gradients(xs[None], ys[None], masks)[0].square_())
        return total + FLAT  # about N/50² times the Fisher information: a task counts by its size

    def _dropped(self, batch: Batch) -> Tensor:
        """The loss at θ̂, and its gradient with respect to θ."""
        theta, p = self.net.theta.detach().clone(), self.drop
        kept = (torch.rand(len(theta), generator=self.rng) >= p).to(theta) / (1 - p)  # (1 − m)/(1 − p)
        m = 1 - (1 - p) * kept
        self.net.set(m * self.own + kept * (theta - p * self.own))
        loss = self.gradient(batch)
        self.net.set(theta)
        self.net.grad.mul_(kept)
        return loss
