"""(a) Bare loops: what one would write by hand for each workload alone, with autograd, torch.optim and no library.

GEM and EWC are floors: gradients per task and per example come from batched products over hand-written layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import contestant
import numpy as np
import torch
import torch.nn.functional as F
from contestant import Contestant, Tick
from scipy.optimize import nnls
from torch import Tensor, nn
from workloads import BUFFER, LR, MARGIN, MEMORIES, STRENGTH, Workload, load


class Naive(Contestant):
    def __init__(self, work: Workload, data: Path) -> None:
        self.data, self.batch = load(data, work), work.batch
        self.net = work.net()
        self.layers = [m for m in self.net if isinstance(m, nn.Linear)]
        self.parameters = list(self.net.parameters())
        self.optimiser = torch.optim.SGD(self.parameters, lr=LR)

    def learn(self, t: int, tick: Tick | None = None) -> None:
        x, y = self.data[t].x, self.data[t].y
        order = torch.randperm(len(y))
        for i in range(0, len(y), self.batch):
            rows = order[i : i + self.batch]
            self.observe(x[rows].float() / 255, y[rows])
            if tick is not None:
                tick()
        self.finish(x, y)

    def observe(self, x: Tensor, y: Tensor) -> None:
        self.optimiser.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        self.optimiser.step()

    def finish(self, x: Tensor, y: Tensor) -> None:
        pass

    @torch.inference_mode()
    def score(self) -> list[float]:
        accuracies = []
        for _, _, x, y in self.data:
            right = 0
            for i in range(0, len(y), 1000):
                right += (self.net(x[i : i + 1000].float() / 255).argmax(1) == y[i : i + 1000]).sum().item()
            accuracies.append(right / len(y))
        return accuracies


class Replay(Naive):
    """A reservoir; every batch is joined by as many stored examples."""

    def __init__(self, work: Workload, data: Path) -> None:
        super().__init__(work, data)
        self.x, self.y, self.seen = torch.zeros(BUFFER, 784), torch.zeros(BUFFER, dtype=torch.long), 0

    def observe(self, x: Tensor, y: Tensor) -> None:
        if self.seen:
            rows = torch.randint(min(self.seen, BUFFER), (len(y),))
            super().observe(torch.cat([x, self.x[rows]]), torch.cat([y, self.y[rows]]))
        else:
            super().observe(x, y)
        if self.seen < BUFFER:
            self.x[self.seen : self.seen + len(y)], self.y[self.seen : self.seen + len(y)] = x, y
        else:
            slots = (torch.rand(len(y)) * (self.seen + torch.arange(len(y)) + 1)).long()
            kept = slots < BUFFER
            self.x[slots[kept]], self.y[slots[kept]] = x[kept], y[kept]
        self.seen += len(y)


class EWC(Naive):
    """Two vectors per parameter carry all anchors."""

    def __init__(self, work: Workload, data: Path) -> None:
        super().__init__(work, data)
        self.importance = [torch.zeros_like(p) for p in self.parameters]
        self.anchored = [torch.zeros_like(p) for p in self.parameters]

    def observe(self, x: Tensor, y: Tensor) -> None:
        self.optimiser.zero_grad()
        loss = F.cross_entropy(self.net(x), y)
        for p, f, b in zip(self.parameters, self.importance, self.anchored, strict=True):
            loss = loss + STRENGTH * ((f * p * p).sum() / 2 - (b * p).sum())
        loss.backward()
        self.optimiser.step()

    @torch.no_grad()
    def finish(self, x: Tensor, y: Tensor) -> None:
        """F = mean over examples of (δ aᵀ)² = (δ²)ᵀ a²; labels drawn from the network."""
        x = x.float() / 255
        label = torch.multinomial(self.net(x).softmax(1), 1).flatten()
        fishers: list[Tensor] = []
        for delta, a in backward_passes(self.layers, x, label):
            fishers += [delta.square().mean(0), delta.square().t() @ a.square() / len(y)]
        for p, f, b, fisher in zip(self.parameters, self.importance, self.anchored, fishers[::-1], strict=True):
            f += fisher
            b += fisher * p


class GEM(Naive):
    """The memory gradients of all past tasks in one batched pass."""

    def __init__(self, work: Workload, data: Path) -> None:
        super().__init__(work, data)
        self.x, self.y = torch.zeros(0, MEMORIES, 784), torch.zeros(0, MEMORIES, dtype=torch.long)
        self.recent: list[tuple[Tensor, Tensor]] = []

    def observe(self, x: Tensor, y: Tensor) -> None:
        self.recent.append((x, y))
        self.optimiser.zero_grad()
        F.cross_entropy(self.net(x), y).backward()
        if len(self.x):
            with torch.no_grad():
                self.project(self.memory_gradients())
        self.optimiser.step()

    def finish(self, x: Tensor, y: Tensor) -> None:
        xs, ys = (torch.cat(column)[-MEMORIES:] for column in zip(*self.recent, strict=True))
        self.x, self.y = torch.cat([self.x, xs[None]]), torch.cat([self.y, ys[None]])
        self.recent.clear()

    def memory_gradients(self) -> Tensor:
        """(K, P) of the K past tasks."""
        k, m = self.y.shape
        pieces: list[Tensor] = []
        for delta, a in backward_passes(self.layers, self.x.flatten(0, 1), self.y.flatten(), m):
            d = delta.view(k, m, -1)
            pieces += [d.sum(1), torch.bmm(d.transpose(1, 2), a.view(k, m, -1)).flatten(1)]
        return torch.cat(pieces[::-1], 1)

    def project(self, G: Tensor) -> None:
        """g ← g + Gᵀv with v = argmin_{v ≥ γ} ½ vᵀ(GGᵀ + εI)v + (Gg)ᵀv, where a product of g with a row is negative."""
        g = torch.cat([p.grad.flatten() for p in self.parameters])  # type: ignore[union-attr]
        c = (G @ g).double().numpy()
        if (c >= 0).all():
            return
        Q = (G @ G.T).double().numpy() + 1e-3 * np.eye(len(G))
        root = np.linalg.cholesky(Q)
        v = nnls(root.T, -np.linalg.solve(root, c + MARGIN * Q.sum(1)))[0] + MARGIN
        z = g + torch.from_numpy(v).float() @ G
        for p, piece in zip(self.parameters, z.split([p.numel() for p in self.parameters]), strict=True):
            p.grad.copy_(piece.view_as(p))  # type: ignore[union-attr]


def backward_passes(layers: list[nn.Linear], x: Tensor, y: Tensor, share: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
    """(δ, a) of every layer, last first: the cross-entropy's derivative (÷ share) by its outputs, and its inputs."""
    inputs = [x]
    for layer in layers:
        z = torch.addmm(layer.bias, inputs[-1], layer.weight.t())
        inputs.append(z if layer is layers[-1] else z.relu_())
    delta = inputs.pop().softmax(1)
    delta[torch.arange(len(y)), y] -= 1
    delta /= share
    for layer, a in zip(reversed(layers), reversed(inputs), strict=True):
        yield delta, a
        if layer is not layers[0]:
            delta = torch.mm(delta, layer.weight).mul_(a > 0)


METHODS = {"naive": Naive, "gem": GEM, "ewc": EWC, "replay": Replay}

if __name__ == "__main__":
    contestant.main(lambda work, data, seed: METHODS[work.method](work, data))
