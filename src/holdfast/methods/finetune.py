"""Plain training on whatever comes: the lower bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from holdfast.methods._base import Terms, Weighing
from holdfast.types import Batch


@final
@dataclass
class Finetune(Weighing):
    """Plain training, task after task (paper 002's `single`): the lower bound.

        L(θ) = CE(θ)

    >>> import holdfast as hf
    >>> record = hf.run("finetune", hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.R.shape
    (2, 2)
    """

    def observe(self, batch: Batch) -> Tensor:
        loss = self.gradient(batch)
        self.optimiser.step(self.net)
        return loss

    def terms(self, batch: Batch) -> Terms:
        self.gradient(batch)
        return Terms(self.output_layer(self.net.grad), None)
