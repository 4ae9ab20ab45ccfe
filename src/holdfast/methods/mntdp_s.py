"""MNTDP-S: a distribution over paths is learned together with the new modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.audit.lease import Lease
from holdfast.engine import Adam, Net, Optimiser, cross_entropy, restrict
from holdfast.methods._gamma import Gamma, halves, reinforce
from holdfast.methods._library import Modular, Path, tail_name
from holdfast.settings import Count, NonNegative, Positive
from holdfast.types import Batch, Lesson, StreamInfo

SURE = 0.99  # Γ of the likeliest path from which on it is the only one


@final
@dataclass
class MNTDPS(Modular):
    """Modular networks with a task-driven prior, stochastic (Veniat, Denoyer & Ranzato, 2021, paper 000, Alg. 1).

        Γ(π_d) = Π_{l<d} γ_l(old) · γ_d(new),   d = 0, ..., L
        θ: CE of a path π ~ Γ for each row of one half;   Γ: E_{π~Γ}[CE] − η H(Γ) on the other, by REINFORCE:
        ∇ = −mean_i (r_i − r̄) ∇ log Γ(π_i),   r_i = −CE_i

    Each layer has the nearest past path's module and a new one, which all paths share that have it. When a path has
    Γ > 0.99, or after half of the steps, the likeliest is the only one and learns from all rows. The halves are drawn
    class by class, once a task; each batch's rows of the one half make a step on θ, those of the other one on Γ, where
    Alg. 1 alternates between batches. Under protocols that lend no data when a task begins all modules are new.

    >>> import holdfast as hf
    >>> record = hf.run("mntdp_s", hf.stream("split", tasks=2, examples=50, val=0.2, scenario="task"),
    ...                 protocol=hf.protocol("epochs", epochs=2), seed=0)
    >>> record.bwt
    0.0
    """

    entropy: NonNegative = 1.0  # η
    path_lr: Positive = 0.01  # Adam's, on Γ
    neighbours: Count = 5  # of the k-NN classifier
    prior: Literal["nearest", "random"] = "nearest"  # by which a past path is taken; random: the paper's ablation

    by_rows = True

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.gamma = Net(Gamma(self.layers), device=net.device)
        self.gamma_optimiser = Adam(self.path_lr)
        self.old: Path = []  # the past path at hand; empty: all modules are new
        self.half = torch.zeros(0, dtype=torch.bool)  # rows that teach Γ
        self.left = 0  # steps until Γ is settled

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        super().begin(train, plan)
        if train is None or not self.paths:
            return
        (self.old,) = self.nearest(train, 1)
        self.gamma.set(torch.zeros(self.gamma.size))
        self.gamma_optimiser.reset()
        self.half, self.left = halves(train.y.cpu(), self.rng), plan.steps // 2

    def observe(self, batch: Batch) -> Tensor:
        self.open(batch.task)
        if not self.old or self.left <= 0:
            depths = torch.full((len(batch),), self.depth)
            return self.learn(batch, depths)
        self.left -= 1
        assert batch.rows is not None
        other = self.half[batch.rows.cpu()].to(batch.y.device)
        losses = [f(_rows(batch, of)) for f, of in ((self.explore, ~other), (self.judge, other)) if of.any()]
        logp = self.gamma.module().detach()  # (L + 1,)
        self.path = self.old[: int(logp.argmax())] + [self.task] * (self.layers - int(logp.argmax()))
        if logp.max().exp() > SURE:
            self.left = 0
        return losses[0]

    def explore(self, batch: Batch) -> Tensor:
        """A step on θ: each row takes a path of its own."""
        return self.learn(batch, self.drawn(len(batch)))

    def judge(self, batch: Batch) -> Tensor:
        """A step on Γ, the modules as they are."""
        depths = self.drawn(len(batch))
        with self.fresh.evaluating():
            logits = restrict(self.along(batch.x, depths), self.allowed(batch.task))
            reward = -F.cross_entropy(logits, batch.y, reduction="none")  # (B,)
        self.gamma.zero_grad()
        logp = self.gamma.module()
        (reinforce(logp, depths.to(logp.device), reward) - self.entropy * -(logp.exp() * logp).sum()).backward()
        self.gamma_optimiser.step(self.gamma)
        return -reward.mean()

    def learn(self, batch: Batch, depths: Tensor) -> Tensor:
        loss = cross_entropy(self.along(batch.x, depths), batch.y, self.allowed(batch.task))
        if loss.requires_grad:  # or all rows took the past network itself
            self.fresh.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step(self.fresh)
        return loss.detach()

    def drawn(self, n: int) -> Tensor:
        """(n,) depths of n paths from Γ."""
        return torch.multinomial(self.gamma.module().detach().exp().cpu(), n, replacement=True, generator=self.rng)

    def along(self, x: Tensor, depths: Tensor) -> Tensor:
        """(B, C): the logits of each row along its path. Rows with the same module go through it together."""
        order = depths.argsort(stable=True)
        depths, x = depths[order], x[order.to(x.device)]
        reused, new = x, x[:0]
        for layer in range(self.layers):
            joins = int((depths == layer).sum())  # they come first among those that were reused so far
            new, reused = _joined(new, reused[:joins]), reused[joins:]
            if len(new):
                new = self.fresh(new, [(tail_name(self.task, 0), layer)])
            if len(reused):
                reused = self.reused(reused, self.old[: layer + 1], layer)
        return _joined(new, reused)[order.argsort().to(x.device)]

    def whole(self, h: Tensor) -> Tensor:
        return self.fresh(h, [(tail_name(self.task, 0), layer) for layer in range(self.depth, self.layers)])

    def made(self) -> nn.Module:
        return nn.Sequential(*list(self.fresh.module.parts[tail_name(self.task, 0)])[self.depth :])  # type: ignore[union-attr,index,call-overload]

    def close(self) -> None:
        super().close()
        self.old, self.half, self.left = [], torch.zeros(0, dtype=torch.bool), 0


def _joined(a: Tensor, b: Tensor) -> Tensor:
    return torch.cat([a, b]) if len(a) and len(b) else a if len(a) else b


def _rows(batch: Batch, which: Tensor) -> Batch:
    return Batch(batch.x[which], batch.y[which], batch.task)
