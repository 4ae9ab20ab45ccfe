"""Where did a task end? Found in the losses, for methods that must know it on streams that hide it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from holdfast.audit import Lease
from holdfast.engine import State
from holdfast.types import Batch, Segment, joined

LEAST = 0.3  # nats: a smaller rise of the loss is no boundary, however quiet it was before


class Detector:
    """Says that a task has ended when the mean loss of the newest batches is above what it was before them.

        mean(newest) > m + max(rise · s, LEAST),   m and s the running mean and deviation before them

    m and s forget with a horizon of two windows and begin anew at each boundary, so that two are at least two windows
    apart. There are no more than the stream has tasks: a learner may have made room for so many.

    It keeps the rows of the newest batches and at most `rows` before them. The next task begins with the first of the
    newest batches whose own loss is above; a learner finishes the task that ended with the rows before it.
    """

    def __init__(
        self,
        segments: Sequence[Segment],
        own: dict[str, State],
        note: Callable[[Sequence[Segment], Tensor], None],
        *,
        window: int,
        rise: float,
        rows: int,
    ) -> None:
        """`own`: where its state is kept; `note`: who books how often rows were looked at."""
        self.segments, self.note, self.window, self.rise, self.rows = segments, note, window, rise, rows
        new = {"steps": 0, "found": [], "seen": torch.zeros(0, 2, dtype=torch.long), **_unmoved()}
        self._own = own.setdefault("boundaries", new)

    @property
    def found(self) -> list[int]:
        """The steps of the stream after which a task was found to have ended."""
        return list(self._own["found"])

    @property
    def steps(self) -> int:
        """Of the stream, so far."""
        return int(self._own["steps"])

    def labelled(self, batch: Batch) -> Batch:
        """The batch as a learner sees it: of the task that is under way as far as can be known."""
        return replace(batch, task=len(self._own["found"]), rows=None)

    def ended(self, t: int, batch: Batch, loss: float) -> bool:
        """Whether a task has ended by now; then `pass_boundary` comes next. `batch` is of segment t and has rows."""
        own = self._own
        own["steps"] += 1
        assert batch.rows is not None, "the detector's batches say their rows"
        rows = batch.rows.cpu()
        own["seen"] = torch.cat([own["seen"], torch.stack([torch.full_like(rows, t), rows], 1)])
        own["newest"].append([loss, len(batch)])
        if len(own["newest"]) > self.window:
            self._move(own["newest"].pop(0)[0])
        own["seen"] = own["seen"][-(self.rows + self._fresh) :]
        losses = [value for value, _ in own["newest"]]
        bar = own["mean"] + max(self.rise * math.sqrt(own["variance"]), LEAST)
        if own["count"] < self.window or not sum(losses) / len(losses) > bar or self._enough:
            return False
        above = next(i for i, value in enumerate(losses) if value > bar)
        own["newest"] = own["newest"][above:]
        return True

    def pass_boundary(self) -> None:
        """The next task is under way."""
        own = self._own
        own["found"].append(own["steps"])
        own["seen"] = own["seen"][len(own["seen"]) - self._fresh :]
        own |= _unmoved()

    @contextmanager
    def leased(self, *, over: bool) -> Iterator[Lease]:
        """The rows seen since the last boundary, without those of the next task unless the stream is over."""
        seen = self._own["seen"]
        seen = seen if over else seen[: len(seen) - self._fresh]
        seen = seen.unique(dim=0)  # in several passes a row is seen several times
        parts = {t: self.segments[t].train.take(seen[seen[:, 0] == t, 1]) for t in seen[:, 0].unique().tolist()}
        none = self.segments[0].val.take(torch.zeros(0, dtype=torch.long))
        lease = Lease(len(self._own["found"]), joined(list(parts.values())), none)
        yield lease
        lease.close()
        self.note([Segment(t, part, none, None) for t, part in parts.items()], lease.looks())

    @property
    def _enough(self) -> bool:
        return len(self._own["found"]) == len(self.segments) - 1

    @property
    def _fresh(self) -> int:
        """Rows of the newest batches."""
        return sum(n for _, n in self._own["newest"])

    def _move(self, loss: float) -> None:
        """The running mean and deviation take in a batch that is among the newest no more."""
        own = self._own
        own["count"] += 1
        rate, gap = max(1 / own["count"], 1 / (2 * self.window)), loss - own["mean"]
        own["mean"] += rate * gap
        own["variance"] = (1 - rate) * (own["variance"] + rate * gap**2)


def _unmoved() -> dict[str, State]:
    return {"newest": [], "count": 0, "mean": 0.0, "variance": 0.0}


def judged(found: Sequence[int], steps: Sequence[float]) -> Mapping[str, Any]:
    """How boundaries that were found after these steps do against the true ones; `steps`: of each segment.

    One that was found belongs to the true one at the nearer end of its segment. The first is a hit; a second, and one
    near the beginning or the end of the stream, a false alarm. `delay`: mean steps from true to found, of the hits;
    below 0 it came early, as it may where tasks are mixed before the boundary.

    >>> judged([9, 12, 24], [10, 10, 10, 10])
    {'found': [9, 12, 24], 'true': [10, 20, 30], 'hits': 2, 'misses': 1, 'false_alarms': 1, 'delay': 1.5}
    """
    ends = [int(end) for end in accumulate(steps)]
    hits: dict[int, int] = {}
    for step in found:
        t = next(t for t, end in enumerate(ends) if step <= end)
        begin = ends[t] - steps[t]
        near = t - 1 if step - begin < ends[t] - step else t
        if 0 <= near < len(ends) - 1:
            hits.setdefault(near, step - ends[near])
    return {
        "found": list(found),
        "true": ends[:-1],
        "hits": len(hits),
        "misses": len(ends) - 1 - len(hits),
        "false_alarms": len(found) - len(hits),
        "delay": sum(hits.values()) / len(hits) if hits else None,
    }
