"""What is measured: five workloads on permuted MNIST, and the one file from which every contestant reads its data.

Nothing here imports Holdfast, so that contestants which do not have it can read this, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

LR = 0.1
MEMORIES = 256  # GEM's stored examples per task
MARGIN = 0.5  # GEM's γ
BUFFER = 500  # replay's stored examples, in all
STRENGTH = 2.0  # EWC's λ in λ/2 Σ F (θ − θ*)² with F per example
AVALANCHE_STRENGTH = (
    10.0  # the same penalty as Avalanche writes it: no ½, F from gradients of whole batches (README.md)
)


@dataclass(frozen=True)
class Workload:
    method: str
    tasks: int = 10
    examples: int = 1000
    batch: int = 10
    hidden: tuple[int, int] = (100, 100)

    def net(self) -> nn.Sequential:
        a, b = self.hidden
        return nn.Sequential(nn.Flatten(), nn.Linear(784, a), nn.ReLU(), nn.Linear(a, b), nn.ReLU(), nn.Linear(b, 10))


WORKLOADS = {
    "W1": Workload("naive"),
    "W2": Workload("gem"),
    "W3": Workload("ewc"),  # its Fisher from all examples of a task, as Avalanche takes it
    "W4": Workload("replay"),
    "W5": Workload("naive", tasks=5, examples=60000, batch=128, hidden=(400, 400)),
}
GROWTH = {  # seconds per step against the number of past tasks
    "gem": Workload("gem", tasks=20, examples=500),
    "ewc": Workload("ewc", tasks=20, examples=500),
}


class Shown(NamedTuple):
    """One task's bytes and labels, permuted: (n, 784), (n,), and the same of its test set."""

    x: Tensor
    y: Tensor
    test_x: Tensor
    test_y: Tensor


def save(path: Path, **arrays: Tensor) -> None:
    """x, y, test_x, test_y once, and for every task its permutation (`orders`) and its training rows (`rows`)."""
    np.savez(path, **{name: array.numpy() for name, array in arrays.items()})


def load(path: Path, work: Workload) -> list[Shown]:
    """The tasks of a workload."""
    with np.load(path, allow_pickle=False) as found:
        a: dict[str, Any] = {name: torch.from_numpy(found[name]) for name in found.files}
    x, test_x = a["x"].flatten(1), a["test_x"].flatten(1)
    return [
        Shown(x[rows][:, order], a["y"][rows], test_x[:, order], a["test_y"])
        for order, rows in zip(a["orders"][: work.tasks], a["rows"][: work.tasks, : work.examples], strict=True)
    ]
