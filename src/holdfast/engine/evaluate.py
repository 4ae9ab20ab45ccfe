"""The only evaluation loop: large batches, no gradients, the scenario's mask applied here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.engine.gradients import restrict
from holdfast.types import Part, as_float, shared_scale

CHUNK_ROWS = 1000
TABLE_BYTES = 512 * 2**20  # shuffled rows are kept up to this size, made anew for every scoring beyond it
Predict = Callable[[Tensor, int | None], Tensor]  # (x, task or None) -> logits


@dataclass(frozen=True, eq=False)
class Score:
    accuracy: float
    loss: float  # mean cross-entropy
    predicted: np.ndarray  # (n,) class indices, uint8 or uint16


class Shuffled:
    """The rows of several parts in one random order: a chunk of them does not tell where they are from."""

    def __init__(self, parts: Sequence[Part], rng: torch.Generator) -> None:
        self.parts = tuple(parts)
        self.sizes = [len(part) for part in parts]
        device = parts[0].y.device
        self._order = torch.randperm(sum(self.sizes), generator=rng).to(device)  # per place its row
        self.places = self._order.argsort().split(self.sizes)  # per part where its rows are
        self.y = torch.cat([part.y for part in parts])[self._order]
        scale = shared_scale(parts)
        self._scale = None if scale is None else scale.rows(self._order)
        self._table = self._made() if self._bytes() <= TABLE_BYTES else None

    def __len__(self) -> int:
        return len(self._order)

    def x(self, chunk: slice) -> Tensor:
        """What a network sees of these places; a copy, which may be changed."""
        raw = self._table[chunk] if self._table is not None else self._gathered(self._order[chunk])
        scale = None if self._scale is None else self._scale.rows(chunk)
        return as_float(raw, scale) if raw.dtype == torch.uint8 else raw.clone()

    def _bytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def _made(self) -> Tensor:
        table = torch.cat([part.cut() for part in self.parts])
        return table.index_select(0, self._order)

    def _gathered(self, rows: Tensor) -> Tensor:
        starts = torch.tensor([0, *self.sizes], device=rows.device).cumsum(0)
        which = torch.bucketize(rows, starts, right=True) - 1
        pieces = [part.cut(rows[which == k] - starts[k]) for k, part in enumerate(self.parts)]
        return torch.cat(pieces).index_select(0, which.argsort(stable=True).argsort())


@torch.inference_mode()
def score(predict: Predict, part: Part, task: int | None, allowed: Tensor | None) -> Score:
    """Accuracy and loss on a part. task: given to `predict`."""
    return _scored(*_answers(predict, part.x, part.y, task, allowed), part.y)


@torch.inference_mode()
def score_together(predict: Predict, rows: Shuffled) -> list[Score]:
    """Accuracy and loss on each of several parts, where the task is hidden: every chunk has rows of all of them."""
    predicted, losses = _answers(predict, rows.x, rows.y, None, None)
    return [
        _scored(predicted[place], losses[place], part.y) for place, part in zip(rows.places, rows.parts, strict=True)
    ]


@torch.inference_mode()
def entropy(predict: Predict, part: Part, task: int | None, allowed: Tensor | None, rows: int) -> float:
    """Mean entropy in nats of the predicted distribution on the first `rows` of a part."""
    n = min(rows, len(part))
    total = 0.0
    for chunk in _chunks(n):
        p = restrict(predict(part.x(chunk), task), allowed).softmax(-1)  # (b, C)
        total -= torch.xlogy(p, p).sum().item()
    return total / n


def _answers(
    predict: Predict, x: Callable[[slice], Tensor], y: Tensor, task: int | None, allowed: Tensor | None
) -> tuple[Tensor, Tensor]:
    """(n,) predicted classes and (n,) cross-entropies."""
    predicted, losses = [], []
    for chunk in _chunks(len(y)):
        logits = restrict(predict(x(chunk), task), allowed)  # (b, C)
        predicted.append(logits.argmax(-1))
        losses.append(F.cross_entropy(logits, y[chunk], reduction="none"))
    return torch.cat(predicted), torch.cat(losses)


def _scored(predicted: Tensor, losses: Tensor, y: Tensor) -> Score:
    right = (predicted == y).sum().item()
    small = np.uint8 if predicted.max() < 256 else np.uint16
    return Score(right / len(y), losses.sum().item() / len(y), predicted.cpu().numpy().astype(small))


def _chunks(n: int) -> Iterator[slice]:
    return (slice(start, min(start + CHUNK_ROWS, n)) for start in range(0, n, CHUNK_ROWS))
