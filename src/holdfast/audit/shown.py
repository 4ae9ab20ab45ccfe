"""What a stream shows, measured on its rows: classes and how frequent they are, and whose rows a segment has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from holdfast.types import Mixture, Part, Segment, Stream, Task

Place = tuple[int, int]  # what rows are cut from and how: where the pixels lie, and which transform they have


@dataclass(frozen=True)
class Shown:
    """A stream's training rows, counted."""

    classes: tuple[frozenset[int], ...]  # of each task
    counts: tuple[dict[int, int], ...]  # per segment: its rows of each class
    of_others: float  # share of all rows that are shown with a task and belong to another one

    @property
    def overlap(self) -> float | None:
        """The mean share of a later task's classes that an earlier one has; None where there is no later task."""
        earlier: set[int] = set()
        shares = []
        for mine in self.classes:
            shares.append(len(mine & earlier) / len(mine))
            earlier |= mine
        return sum(shares[1:]) / len(shares[1:]) if len(shares) > 1 else None


def shown(stream: Stream) -> Shown:
    """Measure the rows that a stream's segments show against those that its tasks have."""
    others = [_of_others(segment, stream.tasks) for segment in stream.mixtures]
    rows = sum(len(segment.train) for segment in stream.segments)
    return Shown(
        tuple(frozenset(task.train.y.unique().tolist()) for task in stream.tasks),
        tuple(_counted(segment.train.y) for segment in stream.segments),
        sum(others) / rows,
    )


def _counted(y: Tensor) -> dict[int, int]:
    classes, counts = y.unique(return_counts=True)
    return dict(zip(classes.tolist(), counts.tolist(), strict=True))


def _of_others(segment: Segment, tasks: tuple[Task, ...]) -> int:
    """How many rows are of another task than the one that the segment ends with, and not of that one, too."""
    found = 0
    own = list(_rows(tasks[segment.t].train))
    rest = [each for task in tasks if task.t != segment.t for each in _rows(task.train)]
    for place, rows in _rows(segment.train):
        found += int((_among(place, rows, rest) & ~_among(place, rows, own)).sum())
    return found


def _among(place: Place, rows: Tensor, known: list[tuple[Place, Tensor]]) -> Tensor:
    """(n,) which rows of a place are among these."""
    there = [theirs for other, theirs in known if other == place]
    return torch.isin(rows, torch.cat(there)) if there else torch.zeros_like(rows, dtype=torch.bool)


def _rows(part: Part) -> Iterator[tuple[Place, Tensor]]:
    """The rows that a part shows, by what they are cut from."""
    if not isinstance(part, Mixture):
        yield (part.pixels.data_ptr(), id(part.transform)), part.rows
        return
    first = 0
    for each in part.parts:
        mine = part.rows[(part.rows >= first) & (part.rows < first + len(each))] - first
        yield from _rows(each.take(mine))
        first += len(each)
