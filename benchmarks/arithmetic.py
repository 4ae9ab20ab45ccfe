"""GEM's arithmetic alone: the matrix products of the memory gradients, on buffers made beforehand, nothing else."""

from __future__ import annotations

from pathlib import Path

import contestant
import torch
from contestant import Contestant, Tick
from torch import Tensor
from workloads import MEMORIES, Workload


class Arithmetic(Contestant):
    def __init__(self, work: Workload, data: Path, seed: int) -> None:
        self.steps = work.examples // work.batch
        self.weights = [m.weight.detach() for m in work.net() if isinstance(m, torch.nn.Linear)]

    def learn(self, t: int, tick: Tick | None = None) -> None:
        rows = t * MEMORIES
        inputs = [torch.rand(rows, w.shape[1]) for w in self.weights]
        deltas = [torch.rand(rows, w.shape[0]) for w in self.weights]
        gradients = [torch.empty(t, *w.shape) for w in self.weights]
        for _ in range(self.steps):
            self.products(inputs, deltas, gradients, t)
            if tick is not None:
                tick()

    def products(self, inputs: list[Tensor], deltas: list[Tensor], gradients: list[Tensor], tasks: int) -> None:
        """Forward x Wᵀ, backward δ W (not for the first layer), and per task δᵀ x."""
        if not tasks:
            return
        for i, (w, x, d, g) in enumerate(zip(self.weights, inputs, deltas, gradients, strict=True)):
            torch.mm(x, w.t(), out=d)
            if i:
                torch.mm(d, w, out=x)
            torch.bmm(d.view(tasks, MEMORIES, -1).transpose(1, 2), x.view(tasks, MEMORIES, -1), out=g)

    def score(self) -> list[float]:
        raise NotImplementedError


if __name__ == "__main__":
    contestant.main(Arithmetic)
