"""Averaged gradient episodic memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.engine import Net, Optimiser, TaskRing
from holdfast.methods._base import Learner
from holdfast.settings import Count
from holdfast.types import Batch, StreamInfo


@final
@dataclass
class AGEM(Learner):
    """Averaged GEM (Chaudhry et al., 2019): the average loss over past tasks may not rise.

        g̃ = g − (⟨g, r⟩ / ⟨r, r⟩) r  if ⟨g, r⟩ < 0, else g

    r is the gradient on a random batch of all past tasks' memories.

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("agem", memories=20), hf.stream("rotated", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["value"]
    40
    """

    memories: Count = 256  # stored examples per task
    replay: Count = 256  # stored examples behind each reference gradient

    needs_boundaries = True  # a memory per task

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        self.memory = TaskRing(self.memories)

    def observe(self, batch: Batch) -> Tensor:
        self.memory.add(batch, self.rng)
        past = self.memory.draw_past(self.replay, self.rng)
        if past is None:
            return self.fit(batch)
        self.gradient(past)
        r = self.net.grad.clone()
        loss = self.gradient(batch)
        g = self.net.grad
        product = g @ r
        if product < 0:
            g -= product / (r @ r) * r
        self.optimiser.step(self.net)
        return loss
