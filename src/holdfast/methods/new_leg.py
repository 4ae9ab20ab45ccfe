"""One network with an input module per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.methods._by_task import FIRST, Branching


@final
@dataclass
class NewLeg(Branching):
    """All modules are shared but the first, which each task gets for itself (Veniat et al., 2021, paper 000 §5.2).

        f(x, t) = shared(leg_t(x)),   L(leg_t, shared) = CE

    The first task learns all of it. With `freeze` the shared modules then stay as they are, their batch statistics
    included, and later tasks learn their legs alone: nothing is forgotten. Without it they learn on, as under
    `multimodal`, whose first leg begins with weights of its own. The network must be a stack of modules: `mlp`, `conv`,
    `ctrl_resnet`, `alexnet`.

    >>> import holdfast as hf
    >>> record = hf.run("new_leg", hf.stream("permuted", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    freeze: bool = True  # shared modules stay as the first task left them; else all tasks train them
    own = FIRST
