"""A network of its own for every task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from holdfast.engine import Growing, Net, Optimiser
from holdfast.methods._by_task import ByTask
from holdfast.types import StreamInfo


@final
@dataclass
class Independent(ByTask):
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

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(Net(Separate(net.build), device=net.device), optimiser, info, rng)

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        parts = self.parts()
        if self.initial == "fresh" or not parts or f"task{task}" in parts:
            return super().predict(x, task)
        with self.net.evaluating():
            return self.net(x, parts[-1])

    def leave(self, part: str) -> None:
        self.net.freeze()

    def enter(self, part: str) -> None:
        super().enter(part)
        if len(self.parts()) > 1 and self.initial == "clone":
            new, old = (self.net.module.parts[name].state_dict() for name in (part, self.parts()[-2]))  # type: ignore[union-attr,index]
            for name, tensor in new.items():
                tensor.copy_(old[name])


class Separate(Growing):
    """Networks side by side, one per part; the caller says which one answers."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.make = make

    def build(self, name: str) -> nn.Module:
        return self.make()

    def forward(self, x: Tensor, part: str) -> Tensor:
        return self.parts[part](x)  # type: ignore[no-any-return]
