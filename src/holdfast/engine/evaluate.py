"""The only evaluation loop: large batches, no gradients, the scenario's mask applied here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.engine.gradients import restrict
from holdfast.types import Part

CHUNK_ROWS = 1000
Predict = Callable[[Tensor, int | None], Tensor]  # (x, task or None) -> logits


@dataclass(frozen=True, eq=False)
class Score:
    accuracy: float
    loss: float  # mean cross-entropy
    predicted: np.ndarray  # (n,) class indices, uint8 or uint16


@torch.inference_mode()
def score(predict: Predict, part: Part, task: int | None, allowed: Tensor | None) -> Score:
    """Accuracy and loss on a part. task: given to `predict`, None when hidden."""
    n = len(part)
    predicted, losses = [], []
    for chunk in _chunks(n):
        logits = restrict(predict(part.x(chunk), task), allowed)  # (b, C)
        predicted.append(logits.argmax(-1))
        losses.append(F.cross_entropy(logits, part.y[chunk], reduction="sum"))
    classes = torch.cat(predicted)
    right = (classes == part.y).sum().item()
    small = np.uint8 if classes.max() < 256 else np.uint16
    return Score(right / n, torch.stack(losses).sum().item() / n, classes.cpu().numpy().astype(small))


@torch.inference_mode()
def entropy(predict: Predict, part: Part, task: int | None, allowed: Tensor | None, rows: int) -> float:
    """Mean entropy in nats of the predicted distribution on the first `rows` of a part."""
    n = min(rows, len(part))
    total = 0.0
    for chunk in _chunks(n):
        p = restrict(predict(part.x(chunk), task), allowed).softmax(-1)  # (b, C)
        total -= torch.xlogy(p, p).sum().item()
    return total / n


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK_ROWS, n)) for start in range(0, n, CHUNK_ROWS))
