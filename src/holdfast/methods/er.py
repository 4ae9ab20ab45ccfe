"""Experience replay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import ClassRing, Memory, Net, Optimiser, Reservoir, TaskRing
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.settings import Count
from holdfast.types import Batch, StreamInfo

OFFERED = 1000  # rows at once, of a task that is over


@final
@dataclass
class ER(Learner):
    """Experience replay (Chaudhry et al., 2019): every batch is joined by as many stored examples.

        L(θ) = CE(θ; B ∪ M_B),   M_B a random batch of the memory

    Batches are offered to the memory as they pass. With `past_only` M_B is of earlier tasks alone, as in paper 000: a
    task's rows, clean ones, are offered when it is over, all of them, wherever its training was stopped.

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("er", memories=20), hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["value"]
    20
    """

    memories: Count = 500  # stored examples in total
    rule: Literal["reservoir", "class ring", "task ring", "task class ring"] = "reservoir"  # which examples stay
    replay: Count | None = None  # stored examples per step; none: as many as the batch has
    past_only: bool = False  # only rows of earlier tasks are replayed; a task's own come to the memory when it is over

    @property
    def needs_boundaries(self) -> bool:
        return "task" in self.rule or self.past_only

    @property
    def needs_length(self) -> str:
        return "rule='task class ring' shares the memory out before the first task" if "task class" in self.rule else ""

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.memory = self._memory(info)

    def numbers_kept(self, tasks: int) -> int:
        """The memory when it is full, label and task of each row included; the paper leaves batch statistics out."""
        return self.weight_count() + self.memories * (math.prod(self.info.shape) + 2)

    def observe(self, batch: Batch) -> Tensor:
        joined = batch
        if len(self.memory):
            joined = self._union(batch, self.memory.draw(self.replay or len(batch), self.rng))
        loss = self.fit(joined)
        if not self.past_only:
            self.memory.add(batch, self.rng)
        return loss

    def finish(self, train: Lease) -> None:
        if self.past_only:
            for rows in torch.randperm(train.own_rows, generator=self.rng).split(OFFERED):
                self.memory.add(train.take(rows), self.rng)

    def _memory(self, info: StreamInfo) -> Memory:
        pairs = sum(len(classes) for classes in info.task_classes)
        shares = {"reservoir": 1, "class ring": info.classes, "task ring": info.tasks, "task class ring": pairs}[
            self.rule
        ]
        if self.memories < shares:
            raise BadInput(f"memories of method 'er' must be at least {shares} for the rule {self.rule!r}")
        if "class" in self.rule:
            return ClassRing(self.memories // shares, by_task="task" in self.rule)
        if self.rule == "task ring":
            return TaskRing(0, total=self.memories)
        return Reservoir(self.memories)

    def _union(self, a: Batch, b: Batch) -> Batch:
        """Tasks are told where they mask outputs."""
        if a.task is None or not self.info.task_given:
            return Batch(torch.cat([a.x, b.x]), torch.cat([a.y, b.y]))
        tasks = [m.task if isinstance(m.task, Tensor) else torch.full_like(m.y, m.task) for m in (a, b)]  # type: ignore[arg-type]
        return Batch(torch.cat([a.x, b.x]), torch.cat([a.y, b.y]), torch.cat(tasks))
