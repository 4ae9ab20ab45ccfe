"""One network with an input layer per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch

from holdfast.engine import Net, Optimiser
from holdfast.methods._by_task import FIRST, Branches, ByTask
from holdfast.types import StreamInfo


@final
@dataclass
class Multimodal(ByTask):
    """A dedicated input layer per task before shared layers (paper 002 §4.3, `multimodal`).

        f(x, t) = shared(W_t x + b_t),   L(W_t, b_t, shared) = CE

    The network given must be a stack of modules (such as `mlp`), whose first each task gets for itself: `new_leg` that
    freezes nothing, but for the first task's weights, which are drawn as all others' are. A task not seen yet is not
    guessed: it has no input layer.

    >>> import holdfast as hf
    >>> record = hf.run("multimodal", hf.stream("rotated", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.R.shape
    (2, 2)
    """

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(Net(Branches(net.module, net.build, FIRST), device=net.device), optimiser, info, rng)

    def leave(self, part: str) -> None:
        self.net.freeze(part)
