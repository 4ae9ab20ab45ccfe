"""Gradient episodic memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from scipy.optimize import nnls
from torch import Tensor

from holdfast.engine import Net, Optimiser, TaskRing
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.settings import Count, NonNegative
from holdfast.types import Batch, StreamInfo

FLAT = 1e-15  # norm of a past task's gradient below which its products are beyond what float32 can tell from 0


@final
@dataclass
class GEM(Learner):
    """Gradient episodic memory (Lopez-Paz & Ranzato, 2017, paper 002): no step may raise the loss of a past task.

        g̃ = argmin_z ½‖g − z‖²  subject to  ⟨z, g_k⟩ ≥ 0 for every past task k,   θ ← θ − ε g̃

    g_k is the gradient on the memory of task k, the last `memories` of its examples. All g_k come from one batched
    backward pass.

    >>> import holdfast as hf
    >>> record = hf.run(hf.method("gem", memories=20), hf.stream("rotated", tasks=2, examples=50), seed=0)
    >>> record.card["no_old_data"]["value"]
    40
    """

    memories: Count = 256  # stored examples per task
    margin: NonNegative = 0.5  # γ: lower bound of the dual variables, which favours backward transfer
    one_by_one: bool = False  # a backward pass per past task, as the authors do: the same result, slower
    total: Count | None = None  # instead of `memories`: stored examples in all, shared by the tasks so far

    needs_boundaries = True  # a memory per task

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        if self.total is not None and self.total < info.tasks:
            raise BadInput(f"total of method 'gem' must be at least one per task, {info.tasks}, not {self.total}")
        self.memory = TaskRing(self.memories, self.total)

    def observe(self, batch: Batch) -> Tensor:
        self.memory.add(batch, self.rng)
        loss = self.gradient(batch)
        past = self.memory.past()
        if past:
            blocks = [self._gradients(*block) for block in past]
            G = blocks[0] if len(blocks) == 1 else torch.cat(blocks)  # (K, P)
            self.net.grad.copy_(project(self.net.grad, G, self.margin))
        self.optimiser.step(self.net)
        return loss

    def _gradients(self, x: Tensor, y: Tensor, tasks: Tensor) -> Tensor:
        """g_k of these tasks; x (K, m, *shape), y (K, m), tasks (K,)."""
        if not self.one_by_one:
            return self.net.gradients(x, y, self.allowed(tasks))
        each = (slice(k, k + 1) for k in range(len(tasks)))
        return torch.cat([self.net.gradients(x[k], y[k], self.allowed(tasks[k])) for k in each])


def project(g: Tensor, G: Tensor, margin: float = 0.0) -> Tensor:
    """The closest vector to g (P,) that has no negative product with any row of G (K, P).

    Its dual (eq. 11, with rows +g_k) has one variable per past task:

        v* = argmin_{v ≥ γ} ½ vᵀGGᵀv + (Gg)ᵀv,   g̃ = g + Gᵀv*

    Scaled to unit rows, with v = u + γ and GGᵀ = AᵀA, this is non-negative least squares, min_{u ≥ 0} ½‖Au − b‖².
    The margin γ acts only when a constraint is violated; with γ = 0 the projection is exact.
    """
    products = G @ g  # (K,)
    if bool((products >= 0).all()):
        return g
    Q, c = (m.double().cpu().numpy() for m in (G @ G.T, products))  # rows are scaled here, (K, K), not in (K, P)
    norms = np.sqrt(Q.diagonal())
    alive = (norms > FLAT) & np.isfinite(norms)  # a task whose loss is flat constrains nothing
    if not alive.any():
        return g
    unit = norms[alive]
    Q = Q[np.ix_(alive, alive)] / np.outer(unit, unit)
    c = c[alive] / unit + Q @ (margin * unit)
    values, vectors = np.linalg.eigh(Q)
    real = values > 10 * len(Q) * torch.finfo(G.dtype).eps  # past gradients may depend linearly on each other
    roots, vectors = np.sqrt(values[real]), vectors[:, real]
    v = np.zeros_like(norms)
    v[alive] = nnls(roots[:, None] * vectors.T, -(vectors.T @ c) / roots)[0] / unit + margin
    return g + torch.from_numpy(v).to(G) @ G
