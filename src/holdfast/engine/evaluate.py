"""The only evaluation loop: large batches, no gradients, the scenario's mask applied here and nowhere else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from holdfast.engine.gradients import restrict
from holdfast.engine.theta import CHUNK_ROWS
from holdfast.types import Part, as_float, gathered, shared_scale

FEW_CLASSES = 16  # that fill no vector of the processor's: measured at 2, 10, 20 and more
BINS = 15  # of confidence, for the calibration error
TABLE_BYTES = 512 * 2**20  # shuffled rows are kept up to this size, made anew for every scoring beyond it
Predict = Callable[[Tensor, int | None], Tensor]  # (x, task or None) -> logits (B, C), or samples of them (S, B, C)


@dataclass(frozen=True, eq=False)
class Score:
    """How a learner did on a part; of samples, the mean of their softmax is what it said."""

    accuracy: float
    loss: float  # mean cross-entropy
    predicted: np.ndarray  # (n,) class indices, uint8 or uint16
    entropy: float  # mean over the rows, in nats
    calibration: float  # expected calibration error
    information: float | None = None  # mean mutual information between prediction and weights; None without samples
    uncertainty: np.ndarray | None = None  # (2, n) float32: each row's entropy and information; None without samples


@dataclass(frozen=True, eq=False)
class Answers:
    """What a learner said of n rows."""

    predicted: Tensor  # (n,)
    confidence: Tensor  # (n,) probability of the class predicted
    loss: Tensor  # (n,) cross-entropy
    entropy: Tensor  # (n,)
    information: Tensor | None  # (n,)

    def of(self, rows: Tensor) -> Answers:
        columns = (self.predicted, self.confidence, self.loss, self.entropy)
        predicted, confidence, loss, entropies = (c.index_select(0, rows) for c in columns)  # four times c[rows]' speed
        information = None if self.information is None else self.information.index_select(0, rows)
        return Answers(predicted, confidence, loss, entropies, information)

    def score(self, y: Tensor) -> Score:
        right = self.predicted == y
        small = np.uint8 if self.predicted.max() < 256 else np.uint16
        kept = None if self.information is None else torch.stack([self.entropy, self.information])
        return Score(
            accuracy=right.sum().item() / len(y),
            loss=self.loss.sum().item() / len(y),
            predicted=self.predicted.cpu().numpy().astype(small),
            entropy=self.entropy.mean().item(),
            calibration=calibration_error(self.confidence, right),
            information=None if self.information is None else self.information.mean().item(),
            uncertainty=None if kept is None else kept.float().cpu().numpy(),
        )


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
        raw = self._table[chunk] if self._table is not None else gathered(self.parts, self._order[chunk])
        scale = None if self._scale is None else self._scale.rows(chunk)
        return as_float(raw, scale) if raw.dtype == torch.uint8 else raw.clone()

    def _bytes(self) -> int:
        return sum(part.nbytes for part in self.parts)

    def _made(self) -> Tensor:
        table = torch.cat([part.cut() for part in self.parts])
        return table.index_select(0, self._order)


@torch.inference_mode()
def score(predict: Predict, part: Part, task: int | None, allowed: Tensor | None, chunk: int | None = None) -> Score:
    """How a learner does on a part. task: given to `predict`; chunk: rows that it gets at once (`Net.chunk`)."""
    return _answers(predict, part.x, part.y, task, allowed, chunk).score(part.y)


@torch.inference_mode()
def score_together(predict: Predict, rows: Shuffled, chunk: int | None = None) -> list[Score]:
    """How it does on each of several parts, where the task is hidden: every chunk has rows of all of them."""
    answers = _answers(predict, rows.x, rows.y, None, None, chunk)
    return [answers.of(place).score(part.y) for place, part in zip(rows.places, rows.parts, strict=True)]


@torch.inference_mode()
def entropy(predict: Predict, part: Part, task: int | None, allowed: Tensor | None, rows: int) -> float:
    """Mean entropy in nats of the predicted distribution on the first `rows` of a part."""
    n = min(rows, len(part))
    found = [entropy_of(pooled(restrict(predict(part.x(rows), task), allowed))) for rows in _chunks(n)]
    return torch.cat(found).sum().item() / n


def pooled(logits: Tensor) -> Tensor:
    """(B, C) log-probabilities: of one prediction, or of the mean of the softmax of S samples, log 1/S Σ_s p_s."""
    logp = _log_softmax(logits)
    return logp if logits.dim() == 2 else logp.logsumexp(0) - math.log(len(logits))


def entropy_of(logp: Tensor) -> Tensor:
    """−Σ_c p_c log p_c over the last dimension; what is impossible adds nothing: 0 · −∞ is taken as 0."""
    return -logp.exp().mul_(logp.clamp(min=torch.finfo(logp.dtype).min)).sum(-1)


def information_of(logits: Tensor) -> Tensor:
    """(B,): the mutual information between prediction and weights, H[1/S Σ_s p_s] − 1/S Σ_s H[p_s], of S samples.

    In float64: where the weights hardly vary it is the small difference of two large numbers.
    """
    logits = logits.double()
    return (entropy_of(pooled(logits)) - entropy_of(_log_softmax(logits)).mean(0)).clamp_(min=0)


def calibration_error(confidence: Tensor, right: Tensor) -> float:
    """ECE = Σ_b n_b/n · |accuracy_b − confidence_b| over equally wide bins b of confidence (Guo et al., 2017).

    >>> error = calibration_error(torch.tensor([0.9, 0.9, 0.6]), torch.tensor([True, False, True]))
    >>> round(error, 6)  # 2/3 · 0.4 + 1/3 · 0.4
    0.4
    """
    bins = (confidence.nan_to_num() * BINS).long().clamp_(max=BINS - 1)
    gap = torch.zeros(BINS, dtype=torch.float64, device=confidence.device)
    gap.index_add_(0, bins, right.double() - confidence.double())
    return gap.abs().sum().item() / len(right)


def _answers(
    predict: Predict,
    x: Callable[[slice], Tensor],
    y: Tensor,
    task: int | None,
    allowed: Tensor | None,
    chunk: int | None,
) -> Answers:
    found = [_answered(restrict(predict(x(rows), task), allowed), y[rows]) for rows in _chunks(len(y), chunk)]
    *columns, information = zip(*found, strict=True)
    predicted, confidence, loss, entropies = (torch.cat(column) for column in columns)
    sampled = [each for each in information if each is not None]
    return Answers(predicted, confidence, loss, entropies, torch.cat(sampled) if sampled else None)


def _answered(logits: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Of a chunk: classes, their probabilities, cross-entropies, entropies and, of samples, mutual information."""
    logp = pooled(logits)  # (b, C)
    predicted = (logits if logits.dim() == 2 else logp).argmax(-1)  # rounding may make equals of different logits
    loss = -logp.gather(1, y[:, None]).squeeze(1)
    information = information_of(logits) if logits.dim() == 3 else None
    return predicted, logp.amax(-1).exp_(), loss, entropy_of(logp), information


def _log_softmax(logits: Tensor) -> Tensor:
    """Over the classes; torch has few of them seven times as fast where they are the first dimension in memory."""
    if logits.shape[-1] > FEW_CLASSES:
        return logits.log_softmax(-1)
    return logits.movedim(-1, 0).log_softmax(0).movedim(0, -1)


def _chunks(n: int, size: int | None = None) -> Iterator[slice]:
    size = size or CHUNK_ROWS
    return (slice(start, min(start + size, n)) for start in range(0, n, size))
