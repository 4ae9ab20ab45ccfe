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
    masks = None if allowed is None else allowed.expand(len(batch.y), -1)
    with net.evaluating():
        y = batch.y if labels == "true" else answers(net, batch.x, masks, labels, rng)
        return net.summed_squares(batch.x, y, masks) / len(y)


def answers(
    net: Net, x: Tensor, allowed: Tensor | None, labels: Literal["predicted", "sampled"], rng: torch.Generator | None
) -> Tensor:
    """(n,) what the model says of each example, or a label drawn from p_θ(·|x)."""
    logits = restrict(torch.cat([net(rows) for rows in x.split(CHUNK_ROWS)]), allowed)
    if labels == "predicted":
        return logits.argmax(-1)
    return torch.multinomial(logits.softmax(-1).cpu(), 1, generator=rng).flatten().to(x.device)
