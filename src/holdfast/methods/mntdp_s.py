"""MNTDP-S: a distribution over paths is learned together with the new modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.audit.lease import Lease
from holdfast.engine import Adam, Net, Optimiser, cross_entropy, restrict
from holdfast.methods._base import Option
from holdfast.methods._gamma import SURE, Gamma, beginnings, halves, reinforce, rows_of
from holdfast.methods._library import Modular, Path, tail_name
from holdfast.settings import Count, NonNegative, Positive
from holdfast.types import Batch, Lesson, StreamInfo


@final
@dataclass
class MNTDPS(Modular):
    """Modular networks with a task-driven prior, stochastic (Veniat, Denoyer & Ranzato, 2021, paper 000, Alg. 1).

        Γ(π_d) = Π_{l<d} γ_l(old) · γ_d(new),   d = 0, ..., L, for each of the nearest past paths
        θ: CE of a path π ~ Γ for each row of one half;   Γ: E_{π~Γ}[CE] − η H(Γ) on the other, by REINFORCE:
        ∇ = −mean_i (r_i − r̄) ∇ log Γ(π_i),   r_i = −CE_i

    Each layer has the modules of the nearest past paths and a new one, which all paths share that have it; γ is a
    softmax where paths part, and behind a new module all are new. When a path has Γ > 0.99, or after half of the steps,
    the likeliest is the only one and learns from all rows. The halves are drawn class by class, once a task; each
    batch's rows of the one half make a step on θ, those of the other one on Γ, where Alg. 1 alternates between batches.
    Under protocols that lend no data when a task begins all modules are new.

    >>> import holdfast as hf
    >>> record = hf.run("mntdp_s", hf.stream("split", tasks=2, examples=50, val=0.2, scenario="task"),
    ...                 protocol=hf.protocol("epochs", epochs=2), seed=0)
    >>> record.bwt
    0.0
    """

    entropy: NonNegative = 1.0  # η
    path_lr: Positive = 0.01  # Adam's, on Γ
    nearest_paths: Count | None = 1  # past paths from which new ones branch off, the nearest; none: all
    neighbours: Count = 5  # of the k-NN classifier
    prior: Literal["nearest", "random"] = "nearest"  # by which past paths are taken; random: the paper's ablation

    by_rows = True

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.gamma = Net(Gamma(), device=net.device)
        self.gamma_optimiser = Adam(self.path_lr)
        self.old: list[Path] = []  # the past paths at hand; empty: all modules are new
        self.half = torch.zeros(0, dtype=torch.bool)  # rows that teach Γ
        self.left = 0  # steps until Γ is settled

    def options(self, train: Lease) -> list[Option]:
        """No choice of its own, but where several settings are tried, the nearest paths are looked for once."""
        if self.paths:
            self.begin_anew()
            self.branch(self.nearest(train, self.nearest_paths))
        return [None]

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        super().begin(train, plan)
        if train is None or not self.paths:
            return
        if not self.old:
            self.branch(self.nearest(train, self.nearest_paths))
        self.half, self.left = halves(train.y.cpu(), train.own_rows, self.rng), plan.steps // 2

    def branch(self, old: list[Path]) -> None:
        """Γ of all paths that branch off these begins anew."""
        self.old = old
        self.gamma = Net(Gamma(), device=self.net.device)
        self.gamma.grow(str(old), seed=0)
        self.gamma_optimiser.reset()

    def observe(self, batch: Batch) -> Tensor:
        self.open(batch.task)
        if self.left <= 0:
            return self.learn(batch, self.whole(self.reused(batch.x, self.path[: self.depth])))
        self.left -= 1
        assert batch.rows is not None
        other = self.half[batch.rows.cpu()].to(batch.y.device)
        losses = [f(rows_of(batch, of)) for f, of in ((self.explore, ~other), (self.judge, other)) if of.any()]
        logp = self.gamma.module().detach()  # of each path
        reused = beginnings(self.old)[int(logp.argmax())]
        self.path = [*reused] + [self.task] * (self.layers - len(reused))
        if logp.max().exp() > SURE:
            self.left = 0
        return losses[0]

    def explore(self, batch: Batch) -> Tensor:
        """A step on θ: each row takes a path of its own."""
        return self.learn(batch, self.along(batch.x, self.drawn(len(batch))))

    def judge(self, batch: Batch) -> Tensor:
        """A step on Γ, the modules as they are."""
        taken = self.drawn(len(batch))
        with self.fresh.evaluating():
            logits = restrict(self.along(batch.x, taken), self.allowed(batch.task))
            reward = -F.cross_entropy(logits, batch.y, reduction="none")  # (B,)
        self.gamma.zero_grad()
        logp = self.gamma.module()
        (reinforce(logp, taken.to(logp.device), reward) - self.entropy * -(logp.exp() * logp).sum()).backward()
        self.gamma_optimiser.step(self.gamma)
        return -reward.mean()

    def learn(self, batch: Batch, logits: Tensor) -> Tensor:
        loss = cross_entropy(logits, batch.y, self.allowed(batch.task))
        if loss.requires_grad:  # or all rows took past networks as they are
            self.fresh.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step(self.fresh)
        return loss.detach()

    def drawn(self, n: int) -> Tensor:
        """(n,) paths from Γ, by their places in it."""
        return torch.multinomial(self.gamma.module().detach().exp().cpu(), n, replacement=True, generator=self.rng)

    def along(self, x: Tensor, taken: Tensor) -> Tensor:
        """(B, C): the logits of each row along its path. Rows with the same module go through it together."""
        order, ends = taken.argsort(stable=True), beginnings(self.old)
        rows = x[order.to(x.device)].split(taken.bincount(minlength=len(ends)).tolist())
        reused = {end: h for end, h in zip(ends, rows, strict=True) if len(h)}  # by what they will reuse in all
        new = x[:0]
        for layer in range(self.layers):
            joins = [reused.pop(end) for end in list(reused) if len(end) == layer]
            if joins or len(new):
                new = torch.cat([*([new] if len(new) else []), *joins])
                new = self.fresh(new, [(tail_name(self.task, 0), layer)])
            for path in dict.fromkeys(end[: layer + 1] for end in reused):
                mates = [end for end in reused if end[: layer + 1] == path]
                h = self.reused(torch.cat([reused[end] for end in mates]), path, layer)
                reused |= zip(mates, h.split([len(reused[end]) for end in mates]), strict=True)
        return torch.cat([*([new] if len(new) else []), *reused.values()])[order.argsort().to(x.device)]

    def whole(self, h: Tensor) -> Tensor:
        return self.fresh(h, [(tail_name(self.task, 0), layer) for layer in range(self.depth, self.layers)])

    def made(self) -> nn.Module:
        return nn.Sequential(*list(self.fresh.module.parts[tail_name(self.task, 0)])[self.depth :])  # type: ignore[union-attr,index,call-overload]

    def close(self) -> None:
        super().close()
        self.old, self.half, self.left = [], torch.zeros(0, dtype=torch.bool), 0
