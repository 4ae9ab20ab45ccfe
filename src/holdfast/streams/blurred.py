"""Disjoint classes whose tasks pass over into each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import final

import torch
from torch import Tensor

from holdfast.seeds import generator
from holdfast.settings import Fraction
from holdfast.streams._classes import DisjointClasses
from holdfast.types import Segment, Task, joined


@final
@dataclass(frozen=True)
class Blurred(DisjointClasses):
    """The classes are dealt out to the tasks, and where one task ends is not told (paper 001 §5: unclear demarcation).

    Around the end of a task lies a window in which it and the next are mixed: the probability that a row is of the next
    one rises linearly from 0 to 1. Every row is shown once, in a fixed order; batches do not say their task. The true
    boundary, where the stream is scored, is the middle of the window.

    >>> import holdfast as hf
    >>> stream = hf.stream("blurred", tasks=2, examples=100, window=0.4, order=(0, 1), seed=0)
    >>> [[int((ys == 1).sum()) for ys in segment.train.y.split(20)] for segment in stream.segments]
    [[0, 0, 0, 0, 6], [14, 20, 20, 20, 20]]
    """

    window: Fraction = 0.5  # rows around a boundary in which two tasks are mixed, as a share of the smaller one's rows

    def mixtures(self, tasks: Sequence[Task], seed: int) -> Sequence[Segment]:
        sizes = [len(task.train) for task in tasks]
        halves = [int(self.window * min(pair) / 2) for pair in pairwise(sizes)]
        pieces, first = [], 0  # rows counted through all tasks, in the order in which they are shown
        for t, (size, early, late) in enumerate(zip(sizes, [0, *halves], [*halves, 0], strict=True)):
            end = first + size
            pieces.append(torch.arange(first + early, end - late))
            pieces.append(_passing_over(end, late, generator(seed, "blurred", task=t)))
            first = end
        whole, order = joined([task.train for task in tasks]), torch.cat(pieces)
        shown = [whole.take(rows) for rows in order.split(sizes)]
        return [Segment(task.t, part, task.val, None, ordered=True) for task, part in zip(tasks, shown, strict=True)]


def _passing_over(boundary: int, half: int, rng: torch.Generator) -> Tensor:
    """The `half` rows before a boundary and as many behind it, mixed.

    A row has a place u in [0, 1), of density 2(1 − u) before and 2u behind it, so that one at u is of the next task
    with probability u.
    """
    u = torch.rand(2, half, generator=rng).sqrt()
    places = torch.cat([1 - u[0], u[1]])
    return boundary - half + places.argsort(stable=True)
