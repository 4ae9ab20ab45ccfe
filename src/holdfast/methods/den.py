"""Dynamically expandable networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser
from holdfast.methods._widening import Widens, shrink
from holdfast.settings import Count, Fraction, NonNegative
from holdfast.types import Batch, Lesson, StreamInfo


@final
@dataclass
class DEN(Widens):
    """Dynamically expandable networks (Yoon et al., 2018): perceptrons of which a task retrains what it needs.

        1. the outputs of the task:  min CE + μ‖w‖₁; units from which non-zero weights lead to them are selected
        2. the protocol's steps, on the weights between selected units (all of them in the first task, with μ‖w‖₁)
        3. if CE > τ:  k new units per layer,  min CE + μ‖w‖₁ + γ Σ_g ‖w_g‖₂;  those with w_g = 0 are dropped
        4. old units i with ρ_i = ‖w_i^t − w_i^{t−1}‖₂ > σ are split: i' has w_i^t, and i has w_i^{t−1} again;
           min CE + λ/2 ‖w − w^{t−1}‖²

    w_g are the weights that a unit reads with. A task sees the units that were there when it was over; outputs are its
    own. Old tasks drift with what is retrained and not split. Stages 1, 3 and 4 have a tenth, all and all of the steps
    of stage 2. Where a stream is seen once there is no stage 1, and all units are selected.

    Departures: 1. CE is that of the task's classes; the authors have a sigmoid for each, and report ROC-AUC. 2. μ and γ
    are taken off at every step, as the authors do, not times the learning rate. 3. i' takes i's place where split units
    and outputs read it, others read it with weight 0: the paper does not say. In the authors' code (`emulate=code`)
    stage 1 has one step, selects by the first output, τ is held to the last batch, the least drifted units are split.

    >>> import holdfast as hf
    >>> record = hf.run("den", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.resources["bytes"][1] > record.resources["bytes"][0]
    True
    """

    sparsity: NonNegative = 1e-5  # μ
    group: NonNegative = 1e-3  # γ
    drift: NonNegative = 0.5  # λ
    threshold: NonNegative = 0.01  # τ: a loss that is good enough
    units: Count = 10  # k
    far: NonNegative = 0.05  # σ
    most: Count = 10  # units of a layer that are split at most
    first: Fraction = 0.1  # steps of stage 1, as a share of those of a task
    emulate: Literal["none", "code"] = "none"  # the slips of the authors' code

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.plan = (0, 1)  # steps of a task, and their batch
        self.before = torch.zeros(0, device=net.device)  # w^{t−1}, while a task is learned
        self.last = float("inf")  # the loss of the last batch

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        self.plan = plan.steps, plan.batch
        super().begin(train, plan)
        if train is not None and len(self.before):
            part, steps = self.open(train.task), 1 if self.emulate == "code" else round(self.first * plan.steps)
            self.move(outputs := self.module.outputs(part))
            self.practise(train, steps, plan.batch, then=lambda: shrink(outputs[0][0], self.sparsity))
            self.move([*self.module.outputs(part), *self.module.between(part, self.selected(part))])

    def observe(self, batch: Batch) -> Tensor:
        loss = super().observe(batch)
        if not len(self.before):
            for w in self.module.parameters():
                shrink(w, self.sparsity)
        self.last = float(loss) if self.emulate == "code" else self.last
        return loss

    def enter(self, task: int) -> str:
        """Outputs of its own, and no unit."""
        self.before = self.net.theta.detach().clone()
        part = self.widen(task, [0] * self.module.depth)
        everything = [torch.ones(n, dtype=torch.bool) for n in self.module.counts(part)]
        self.move([*self.module.outputs(part), *self.module.between(part, everything)])
        return part

    def finish(self, train: Lease) -> None:
        if len(self.before):
            self.expand(train)
            self.split(train)
        self.before = self.before[:0]

    def selected(self, part: str) -> list[Tensor]:
        """Per layer the units from which non-zero weights lead to the task's outputs, (N_l,) bool."""
        head = torch.cat([w for w, _ in self.module.outputs(part)[:-1]], 1)
        found = [(head[:1] if self.emulate == "code" else head).ne(0).any(0)]
        for i in reversed(range(1, self.module.depth)):
            found.insert(0, self.module.matrix(i, self.module.up_to(part))[found[0]].ne(0).any(0))
        return found

    def expand(self, train: Lease) -> None:
        """Stage 3. Units that are not needed leave no trace."""
        if (self.last if self.emulate == "code" else self.loss_on(train)) <= self.threshold:
            return
        state, part = self.net.state(), self.widen(train.task, [self.units] * self.module.depth)
        mine = self.module.units(part)
        self.move([(w, True) for w in mine.parameters()])

        def thin() -> None:
            for w in mine.parameters():
                shrink(w, self.sparsity)
            for rows in mine.rows:
                rows.data.mul_((1 - self.group / rows.data.norm(dim=1, keepdim=True).clamp(min=1e-12)).clamp(min=0))

        self.practise(train, *self.plan, then=thin)
        alive = [rows.ne(0).any(1) for rows in mine.rows]
        kept = self.module.some(part, alive)
        self.net.load(state)
        self.module.write(self.widen(train.task, [int(a.sum()) for a in alive]), kept)

    def split(self, train: Lease) -> None:
        """Stage 4: i' goes on with what the task made of i, which is as it was before."""
        sign = -1 if self.emulate == "code" else 1
        found = [(sign * r).masked_fill(r <= self.far, -torch.inf) for r in self.drifts()]
        split = [r.topk(min(self.most, int(r.isfinite().sum()))).indices for r in found]
        if not any(map(len, split)):
            return
        twins, before = self.module.twins(self.open(train.task), split), self.views(self._padded())
        for w, layer, out, _ in self.module.pieces(self.module.earlier()):
            mine = torch.isin(torch.arange(out.start, out.stop, device=w.device), split[layer])
            w.data[mine] = before[id(w)][mine]
        self.module.write(part := self.widen(train.task, [len(i) for i in split]), twins)
        new, between = self.module.parts[part].parameters(), self.module.between(part, self.selected(part))
        self.move([*self.module.outputs(part), *between, *((w, True) for w in new)])
        self.practise(train, *self.plan, first=self._pull)

    def drifts(self) -> list[Tensor]:
        """ρ of the units that were there before the task, per layer (N_l,)."""
        total = [torch.zeros(n, device=self.net.device) for n in self.module.counts(self.module.earlier()[-1])]
        change = self.views((self.net.theta.detach() - self._padded()) ** 2)
        for w, layer, out, read in self.module.pieces(self.module.earlier()):
            if read is not None:
                total[layer][out] += change[id(w)].sum(1)
        return [squares.sqrt() for squares in total]

    def _pull(self) -> None:
        self.net.grad.add_(self.net.theta.detach() - self._padded(), alpha=self.drift)

    def _padded(self) -> Tensor:
        """w^{t−1}, and w where it is new."""
        return torch.cat([self.before, self.net.theta.detach()[len(self.before) :]])
