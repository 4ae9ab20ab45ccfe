"""The only evaluation loop: large batches, no gradients, the scenario's mask applied here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
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
    entropy: float  # mean entropy of the predicted distribution, in nats


@torch.inference_mode()
def score(predict: Predict, part: Part, task: int | None, allowed: Tensor | None, rows: int | None = None) -> Score:
    """Accuracy, loss and entropy on a part (or its first `rows`). task: given to `predict`, None when hidden."""
    n = len(part) if rows is None else min(rows, len(part))
    predicted, loss, entropy = [], 0.0, 0.0
    for start in range(0, n, CHUNK_ROWS):
        chunk = slice(start, min(start + CHUNK_ROWS, n))
        y = part.y[chunk]
        logp = F.log_softmax(restrict(predict(part.x(chunk), task), allowed), -1)  # (b, C)
        predicted.append(logp.argmax(-1))
        loss -= logp.gather(1, y[:, None]).sum().item()
        entropy -= torch.xlogy(logp.exp(), logp.exp()).sum().item()
    classes = torch.cat(predicted)
    right = (classes == part.y[:n]).sum().item()
    small = np.uint8 if classes.max() < 256 else np.uint16
    return Score(right / n, loss / n, classes.cpu().numpy().astype(small), entropy / n)
