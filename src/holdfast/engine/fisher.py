"""The diagonal of the Fisher information, from per-example gradients."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.engine.gradients import CHUNK_ROWS, restrict
from holdfast.engine.theta import Net
from holdfast.types import Batch

Labels = Literal["true", "predicted", "sampled"]


def fisher(
    net: Net, batch: Batch, allowed: Tensor | None, labels: Labels = "true", rng: torch.Generator | None = None
) -> Tensor:
    """F_i = 1/n Σ_x (∂ log p_θ(y|x) / ∂θ_i)², shape (P,), one gradient per example, whatever the batch size.

    y is the `true` label (empirical Fisher), the `predicted` one, or `sampled` from p_θ(·|x) (the Fisher
    information itself). The square of a batch-mean gradient is not this: it shrinks as the batch grows.
    """
    total = torch.zeros_like(net.theta.detach())
    with net.evaluating():
        for rows in torch.arange(len(batch.y), device=batch.y.device).split(CHUNK_ROWS):
            x, y = batch.x[rows], batch.y[rows]
            if labels != "true":
                y = _answers(restrict(net(x), allowed), labels, rng)
            total += net.summed_squares(x, y, None if allowed is None else allowed.expand(len(y), -1))
    return total / len(batch.y)


@torch.no_grad()
def _answers(logits: Tensor, labels: Labels, rng: torch.Generator | None) -> Tensor:
    if labels == "predicted":
        return logits.argmax(-1)
    return torch.multinomial(logits.softmax(-1).cpu(), 1, generator=rng).flatten().to(logits.device)
