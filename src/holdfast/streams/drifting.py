"""Classes that come and go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch

from holdfast.seeds import generator
from holdfast.settings import NonNegative
from holdfast.streams._classes import DisjointClasses
from holdfast.types import Segment, Task, joined


@final
@dataclass(frozen=True)
class Drifting(DisjointClasses):
    """The probability of each class changes all the time, and no task begins or ends (paper 001 §5: continuous tasks).

    Every class has a time at which it is most frequent, one after the other, evenly spread over the stream; the time of
    each of its rows is drawn from a normal distribution around it. Rows are shown in that order, and batches do not say
    their task. A task is a group of classes that is tested as one; the t-th scoring comes when as many rows were shown
    as the first t groups have.

    >>> import holdfast as hf
    >>> stream = hf.stream("drifting", tasks=2, spread=0.2, order=(0, 1), examples=100, seed=0)
    >>> [[int((ys == 1).sum()) for ys in segment.train.y.split(20)] for segment in stream.segments]
    [[0, 0, 0, 0, 1], [19, 20, 20, 20, 20]]
    """

    spread: NonNegative = 0.5  # deviation of when the rows of a class come, in tasks; many: all classes are mixed

    def mixtures(self, tasks: Sequence[Task], seed: int) -> Sequence[Segment]:
        whole = joined([task.train for task in tasks])
        rng = generator(seed, "drifting")
        times = torch.cat([_times(task) for task in tasks]) + self.spread * torch.randn(len(whole), generator=rng)
        order = times.argsort(stable=True).split([len(task.train) for task in tasks])
        return [
            Segment(task.t, whole.take(rows), task.val, None, ordered=True)
            for task, rows in zip(tasks, order, strict=True)
        ]


def _times(task: Task) -> torch.Tensor:
    """(n,) that of the class of each row, counted in tasks."""
    places = torch.searchsorted(torch.tensor(task.classes), task.train.y)
    return task.t + (places + 0.5) / len(task.classes)
