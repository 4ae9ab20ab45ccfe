"""The diagonal of the Fisher information, from per-example gradients."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from holdfast.engine.gradients import restrict
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
    with net.evaluating():
        logits = restrict(net(batch.x), allowed)
        if labels == "predicted":
            y = logits.argmax(-1)
        elif labels == "sampled":
            y = torch.multinomial(logits.softmax(-1).cpu(), 1, generator=rng).flatten().to(batch.y.device)
        else:
            y = batch.y
        return net.summed_squares(batch.x, y, None if allowed is None else allowed.expand(len(y), -1)) / len(y)
