"""One network with an input layer per task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from holdfast.engine import Growing, Net, Optimiser, cross_entropy
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class Multimodal(Learner):
    """A dedicated input layer per task before shared layers (paper 002 §4.3, `multimodal`).

        f(x, t) = shared(W_t x + b_t),   L(W_t, b_t, shared) = CE

    The network given must be a plain stack of layers (such as `mlp`), whose first linear layer each task gets for
    itself. A task not seen yet is not guessed: it has no input layer.

    >>> import holdfast as hf
    >>> record = hf.run("multimodal", hf.stream("rotated", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.R.shape
    (2, 2)
    """

    needs_task = True

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        shared = Net(ManyInputs(net.module, net.build), device=net.device)
        super().start(shared, optimiser, info, rng)

    def observe(self, batch: Batch) -> Tensor:
        part = f"task{batch.task}"
        if part not in self._parts():
            for done in self._parts()[-1:]:
                self.net.freeze(done)
            self.net.grow(part, seed=int(torch.randint(2**62, (), generator=self.rng)))
        logits = self.net(batch.x, part)
        return self.descend(cross_entropy(logits, batch.y, self.allowed(batch.task)))

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        part = f"task{task}"
        if part not in self._parts():
            return torch.zeros(len(x), self.info.classes, device=x.device)
        with self.net.evaluating():
            return self.net(x, part)

    def _parts(self) -> list[str]:
        return list(self.net.module.parts)  # type: ignore[arg-type]


class ManyInputs(Growing):
    """A stack whose layers up to the first linear one exist once per part; the rest is shared."""

    def __init__(self, module: nn.Module, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.make = make
        self.first = _first_linear(module)
        self.shared = module[self.first + 1 :]  # type: ignore[index]

    def build(self, name: str) -> nn.Module:
        return self.make()[: self.first + 1]  # type: ignore[index,no-any-return]

    def forward(self, x: Tensor, part: str) -> Tensor:
        return self.shared(self.parts[part](x))  # type: ignore[no-any-return]


def _first_linear(module: nn.Module) -> int:
    places = [i for i, m in enumerate(module.children()) if isinstance(m, nn.Linear)]
    if not isinstance(module, nn.Sequential) or len(places) < 2:
        raise BadInput("method 'multimodal' needs a plain stack with several linear layers, such as net 'mlp'")
    return places[0]
