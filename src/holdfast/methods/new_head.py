"""One network with an output module per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.methods._by_task import LAST, Branching


@final
@dataclass
class NewHead(Branching):
    """All modules are shared but the last, which each task gets for itself (Veniat et al., 2021, paper 000 §5.2).

        f(x, t) = head_t(shared(x)),   L(head_t, shared) = CE

    The first task learns all of it. With `freeze` the shared modules then stay as they are, their batch statistics
    included, and later tasks learn their heads alone: nothing is forgotten. Without it they learn on. The network must
    be a stack of modules: `mlp`, `conv`, `ctrl_resnet`, `alexnet`. A head has all of the stream's outputs.

    >>> import holdfast as hf
    >>> record = hf.run("new_head", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    freeze: bool = True  # shared modules stay as the first task left them; else all tasks train them
    own = LAST
