"""PackNet."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, cross_entropy, repeat
from holdfast.engine.layout import channels_last
from holdfast.methods._by_task import LAST, Branches, ByTask
from holdfast.seeds import beside
from holdfast.settings import BelowOne, NonNegative
from holdfast.types import Lesson, StreamInfo


@final
@dataclass
class PackNet(ByTask):
    """PackNet (Mallya & Lazebnik, 2018): tasks are packed into one network, each into weights that it alone trains.

        task t trains θ_i where o_i = 0;   then, layer by layer,   o_i ← t for the largest |θ_i| of those, θ_i ← 0 else;
        the weights with o_i = t are trained again;   f(x, t) = head_t(shared(x; θ · [0 < o ≤ t]))

    o_i is the task that owns a weight, 0 while it is free. A task reads the weights of those before it and changes
    none: nothing is forgotten. Biases and norms, batch statistics included, stay as the first task left them, as in the
    paper. Training again takes half as long as training did. Outputs are not shared. A network must be a stack of
    modules: `mlp`, `conv`, `ctrl_resnet`, `alexnet`.

    >>> import holdfast as hf
    >>> record = hf.run("packnet", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    prune: BelowOne = 0.75  # share of the weights that a task trained which it gives up
    retrain: NonNegative = 0.5  # steps of training again, as a share of those of training

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given."""
        branches = Branches(net.module, net.build, LAST, first="task0")
        super().start(Net(branches, device=net.device), optimiser, info, rng)
        shared = sum(p.numel() for p in branches.shared.parameters())  # they are the first in θ
        self.owner = torch.zeros(shared, dtype=torch.short, device=net.device)  # o
        self.turns: dict[str, int] = {}  # t, by part
        self.plan = (0, 1)  # steps of a task, and their batch

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        self.plan = plan.steps, plan.batch
        super().begin(train, plan)

    def finish(self, train: Lease) -> None:
        kept, turn = self.pruned(), 1 + max(self.turns.values(), default=0)
        self.net.theta.detach()[: len(kept)].masked_fill_((self.owner == 0) & ~kept, 0.0)
        self._hold(~kept)
        self._train_again(train)
        self.owner[kept] = turn
        self.turns[f"task{train.task}"] = turn
        self._hold(self.owner > 0)
        still = self._branches().still
        still += [m for m in self._branches().shared.modules() if [*m.buffers(recurse=False)] and m not in still]
        for m in still:
            m.eval()

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        part = f"task{task}"
        if part not in self.turns:
            return super().predict(x, task)
        with self.net.evaluating():
            theta = self.net.theta.detach().clone()
            theta[: len(self.owner)].mul_((self.owner > 0) & (self.owner <= self.turns[part]))
            x = channels_last(x) if x.dim() == 4 else x
            return torch.func.functional_call(self.net.module, self.net.unflatten(theta), (x, part))  # type: ignore[no-any-return]

    def leave(self, part: str) -> None:
        self.net.freeze(part)

    def pruned(self) -> Tensor:
        """The shared entries that the task keeps, (n,) bool: of each matrix the largest of those that were free."""
        kept, start = self.owner == 0, 0
        for p in self._branches().shared.parameters():
            here = slice(start, start := start + p.numel())
            if p.dim() > 1:
                size = self.net.theta.detach()[here].abs().masked_fill(~kept[here], -1.0)
                n = round((1 - self.prune) * int(kept[here].sum()))
                kept[here] = False
                kept[here][size.topk(n).indices] = True
        return kept

    def numbers_kept(self, tasks: int) -> int:
        """And the owner of every shared weight, in half a number."""
        return super().numbers_kept(tasks) + len(self.owner) // 2

    def _train_again(self, train: Lease) -> None:
        optimiser, rng = copy.deepcopy(self.optimiser), beside(self.rng, "retraining")
        optimiser.reset()
        steps, batch = self.plan
        rows, part = train.kept(), f"task{train.task}"

        def step(i: int) -> Tensor:
            drawn = train.take(rows[torch.randint(len(rows), (batch,), generator=rng)])
            logits = self.net(drawn.x, part)
            loss = self.backward(cross_entropy(logits, drawn.y, self.allowed(drawn.task)))
            optimiser.step(self.net)
            return loss

        repeat(round(self.retrain * steps), step, "training again")

    def _hold(self, shared: Tensor) -> None:
        """These shared entries are frozen, and no others."""
        net = self.net
        frozen = (
            torch.zeros(net.size, dtype=torch.bool, device=net.device) if net.frozen is None else net.frozen.clone()
        )
        frozen[: len(shared)] = shared
        net.frozen = frozen

    def _branches(self) -> Branches:
        assert isinstance(self.net.module, Branches)
        return self.net.module
