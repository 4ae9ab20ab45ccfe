"""A network of its own for every task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from holdfast.engine import Growing, Net, Optimiser, cross_entropy
from holdfast.methods._base import Learner
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class Independent(Learner):
    """One predictor per task, never touched again: nothing is forgotten, nothing is shared (paper 002 §4.3).

        L(θ_t) = CE(θ_t)

    Each starts from new weights or as a clone of the last one. A task not seen yet is guessed by the last network
    (clone) or not at all (fresh). The network given is the one that every task gets: paper 002 makes it T times
    narrower.

    >>> import holdfast as hf
    >>> record = hf.run("independent", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    initial: Literal["fresh", "clone"] = "fresh"  # where a new task's weights start
    needs_task = True

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(Net(Separate(net.build), device=net.device), optimiser, info, rng)

    def observe(self, batch: Batch) -> Tensor:
        part = f"task{batch.task}"
        if part not in self._parts():
            self._open(part)
        logits = self.net(batch.x, part)
        return self.descend(cross_entropy(logits, batch.y, self.allowed(batch.task)))

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        parts = self._parts()
        part = f"task{task}"
        if part not in parts:
            if not parts or self.initial == "fresh":
                return torch.zeros(len(x), self.info.classes, device=x.device)
            part = parts[-1]
        with self.net.evaluating():
            return self.net(x, part)

    def _open(self, part: str) -> None:
        last = self._parts()[-1:]
        if last:
            self.net.freeze()
        self.net.grow(part, seed=int(torch.randint(2**62, (), generator=self.rng)))
        if last and self.initial == "clone":
            new, old = (self.net.module.parts[name].state_dict() for name in (part, last[0]))  # type: ignore[union-attr,index]
            for name, tensor in new.items():
                tensor.copy_(old[name])

    def _parts(self) -> list[str]:
        return list(self.net.module.parts)  # type: ignore[arg-type]


class Separate(Growing):
    """Networks side by side, one per part; the caller says which one answers."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.make = make

    def build(self, name: str) -> nn.Module:
        return self.make()

    def forward(self, x: Tensor, part: str) -> Tensor:
        return self.parts[part](x)  # type: ignore[no-any-return]
