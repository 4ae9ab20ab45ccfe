"""Learning without forgetting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, restrict
from holdfast.methods._base import Learner
from holdfast.settings import NonNegative, Positive
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class LwF(Learner):
    """Learning without forgetting (Li & Hoiem, 2016): on new data, old outputs stay what they were.

        L(θ) = CE(θ) + λ · Σ_k T² · CE(softmax(z°_k / T), softmax(z_k / T))

    z are the logits of the batch, z° those of the network as it was before the task, k the heads learned before:
    the masked outputs of every past task in the task scenario, else the outputs of all classes seen so far.

    >>> import holdfast as hf
    >>> record = hf.run("lwf", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.card["no_old_data"]["met"]
    True
    """

    strength: NonNegative = 1.0  # λ
    temperature: Positive = 2.0  # T

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.teacher = net.copy()
        self.heads = torch.zeros(0, info.classes, dtype=torch.bool, device=net.device)  # (K, C) outputs to keep

    def observe(self, batch: Batch) -> Tensor:
        logits = self.net(batch.x)
        loss = torch.nn.functional.cross_entropy(restrict(logits, self.allowed(batch.task)), batch.y)
        if len(self.heads):
            with self.teacher.evaluating():
                old = self.teacher(batch.x)
            loss = loss + self.strength * self.temperature**2 * self._distance(old, logits)
        return self.descend(loss)

    def finish(self, train: Lease) -> None:
        self.teacher.load(self.net.state())
        learned = torch.zeros(self.info.classes, dtype=torch.bool, device=self.net.device)
        learned[train.y.unique()] = True  # not from `info`, which need not know the classes of later tasks
        if not self.info.task_given:
            self.heads = (self.heads.any(0) | learned)[None]
        elif not bool((self.heads == learned).all(-1).any()):
            self.heads = torch.cat([self.heads, learned[None]])

    def _distance(self, old: Tensor, new: Tensor) -> Tensor:
        """Σ_k of the mean cross-entropy between old and new outputs of head k."""
        total = torch.zeros((), device=new.device)
        for head in self.heads:
            p = (old[:, head] / self.temperature).softmax(-1)
            total = total - (p * (new[:, head] / self.temperature).log_softmax(-1)).sum(-1).mean()
        return total
