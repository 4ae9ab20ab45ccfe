"""Training on all tasks at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import Tensor

from holdfast.methods._base import Learner
from holdfast.types import Batch


@final
@dataclass
class Joint(Learner):
    """Plain training on all tasks at once (paper 002 Table 3, "single, shuffled data").

        L(θ) = Σ_t CE_t(θ)

    The protocol hands it batches drawn from all tasks, as many as the others get in all; no continual learner
    may have that, and the audit card says so. Its R is scored at T equal points of training.

    >>> import holdfast as hf
    >>> record = hf.run("joint", hf.stream("split", tasks=2, examples=50), seed=0)
    >>> record.bwt is None  # there is no before and after
    True
    """

    mixes = True

    def observe(self, batch: Batch) -> Tensor:
        return self.fit(batch)
