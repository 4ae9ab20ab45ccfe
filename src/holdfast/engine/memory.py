"""Episodic memories: which past examples a learner keeps. One way in (`add`), one way out (`draw`, `of_task`)."""

from __future__ import annotations

import math
from abc import abstractmethod
from itertools import groupby

import torch
from torch import Tensor

from holdfast.engine.state import Plain
from holdfast.types import Batch

Columns = tuple[Tensor, Tensor, Tensor]  # x, y, task


class Memory(Plain):
    """A table of examples with their labels and tasks; the rule that fills it is the subclass.

    There may be room for more rows than there are: `x`, `y` and `task` are those that are filled.
    """

    def __init__(self) -> None:
        self.room = (torch.zeros(0), torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.long))
        self.rows = 0  # filled

    def __len__(self) -> int:
        return self.rows

    @property
    def x(self) -> Tensor:
        return self.room[0][: self.rows]

    @property
    def y(self) -> Tensor:
        return self.room[1][: self.rows]

    @property
    def task(self) -> Tensor:
        return self.room[2][: self.rows]

    @abstractmethod
    def add(self, batch: Batch, rng: torch.Generator) -> None:
        """Offer a batch; the rule decides what stays."""

    def draw(self, n: int, rng: torch.Generator) -> Batch:
        """n examples at random, without replacement while there are enough."""
        have = len(self)
        index = torch.randperm(have, generator=rng)[:n] if have >= n else torch.randint(have, (n,), generator=rng)
        return self._rows(index)

    def of_task(self, task: int) -> Batch:
        """All that is kept of one task."""
        return self._rows((self.task == task).nonzero().flatten())

    def tasks(self) -> list[int]:
        """The tasks of which something is kept."""
        return self.task.unique().tolist()

    def all(self) -> Batch:
        return Batch(self.x, self.y, self.task)

    def _rows(self, index: Tensor) -> Batch:
        index = index.to(self.y.device)
        x, y, task = (column.index_select(0, index) for column in self.room)
        return Batch(x, y, task)

    def _append(self, batch: Batch, index: slice = slice(None), room: int = 0) -> None:
        """More rows; where there is no place for them, it is made for `room` rows in all."""
        offered = (batch.x[index], batch.y[index], _task_column(batch)[index])
        stop = self.rows + len(offered[1])
        if stop > len(self.room[1]):
            self.room = _moved(self._filled(), offered, max(stop, room))
        for kept, new in zip(self.room, offered, strict=True):
            kept[self.rows : stop] = new
        self.rows = stop

    def _keep(self, index: Tensor) -> None:
        x, y, task = self._filled()
        index = index.to(y.device)
        self.room, self.rows = (x[index], y[index], task[index]), len(index)

    def _write(self, slots: Tensor, batch: Batch, index: Tensor) -> None:
        """These of the batch's examples go into these rows. Indices are made on the CPU, where the dice are."""
        slots, index = slots.to(self.y.device), index.to(batch.y.device)
        for kept, offered in zip(self.room, (batch.x, batch.y, _task_column(batch)), strict=True):
            kept.index_copy_(0, slots, offered[index])

    def _filled(self) -> Columns:
        return self.x, self.y, self.task


class TaskRing(Memory):
    """The last `size` examples of every task, each task's in one block: `x.view(tasks, size, ...)` when all are full.

    With `total`, the number of tasks need not be known: every task's share shrinks to total // tasks (paper 002 §3).
    """

    def __init__(self, size: int, total: int | None = None) -> None:
        super().__init__()
        self.size = size if total is None else total
        self.total = total
        self.current: int | None = None
        self.earlier: list[tuple[int, int]] = []  # (task, rows) of the blocks before the current task's
        self.first = 0  # row where the current task's block begins
        self.cursor = 0

    def add(self, batch: Batch, rng: torch.Generator) -> None:
        task = _single_task(batch)
        if task != self.current:
            self._open(task)
        kept = batch if len(batch) <= self.size else Batch(batch.x[-self.size :], batch.y[-self.size :], task)
        room = self.size - (len(self) - self.first)
        fits = min(room, len(kept))
        if fits:
            self._append(kept, slice(0, fits), room=self.first + self.size)
        if fits < len(kept):
            index = torch.arange(fits, len(kept))
            slots = self.first + (self.cursor + torch.arange(len(index))) % self.size
            self._write(slots, kept, index)
            self.cursor = (self.cursor + len(index)) % self.size

    def past(self) -> list[tuple[Tensor, Tensor, Tensor]]:
        """(K, m, *shape), (K, m), (K,): the memories of earlier tasks side by side, those of neighbours of equal size.

        One triple when all tasks are equally full, as usual; none when there is no earlier task.
        """
        blocks, start = [], 0
        for size, group in groupby(self.earlier, key=lambda block: block[1]):
            tasks = torch.tensor([task for task, _ in group], device=self.y.device)
            stop = start + len(tasks) * size
            x, y = self.x[start:stop], self.y[start:stop]
            blocks.append((x.view(len(tasks), size, *x.shape[1:]), y.view(len(tasks), size), tasks))
            start = stop
        return blocks

    def draw_past(self, n: int, rng: torch.Generator) -> Batch | None:
        """n random examples of the earlier tasks, all of them if there are fewer; None when there are none."""
        if not self.earlier:
            return None
        return self._rows(torch.randperm(self.first, generator=rng)[:n])

    def _open(self, task: int) -> None:
        """A new task begins: what is kept of an earlier visit goes, and shares shrink if the total is fixed."""
        blocks = {k: rows for k, rows in self._blocks().items() if k != task}
        if self.total is not None:
            for oldest in list(blocks)[: max(0, len(blocks) + 1 - self.total)]:  # not even a row for each
                del blocks[oldest]
            self.size = self.total // (len(blocks) + 1)
        blocks = {k: rows[-self.size :] for k, rows in blocks.items()}
        self._keep(torch.cat([*blocks.values(), torch.zeros(0, dtype=torch.long)]))
        self.earlier = [(k, len(rows)) for k, rows in blocks.items()]
        self.current, self.first, self.cursor = task, len(self), 0

    def _blocks(self) -> dict[int, Tensor]:
        """The rows of every task, oldest first: those of the current task begin where the ring's cursor stands."""
        blocks, start = {}, 0
        for task, rows in self.earlier:
            blocks[task] = torch.arange(start, start + rows)
            start += rows
        if self.current is not None:
            blocks[self.current] = torch.arange(start, len(self)).roll(-self.cursor)
        return blocks


class ClassRing(Memory):
    """The last `size` examples of every class; `by_task`: of every class of every task."""

    def __init__(self, size: int, by_task: bool = False) -> None:
        super().__init__()
        self.size, self.by_task = size, by_task

    def add(self, batch: Batch, rng: torch.Generator) -> None:
        self._append(batch)
        kind = self.y if not self.by_task else self.task * (1 + self.y.max()) + self.y
        newer_of_class = earlier_alike(kind.flip(0)).flip(0)
        self._keep((newer_of_class < self.size).nonzero().flatten())


class Reservoir(Memory):
    """A uniform sample of all examples seen: the i-th takes a random slot with probability total / i (Vitter, 1985)."""

    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total
        self.seen = 0

    def add(self, batch: Batch, rng: torch.Generator) -> None:
        fits = min(self.total - len(self), len(batch))
        if fits:
            self._append(batch, slice(0, fits))
        if fits < len(batch):
            nth = torch.arange(self.seen + fits + 1, self.seen + len(batch) + 1)
            place = (torch.rand(len(nth), generator=rng, dtype=torch.float64) * nth).long()
            taken = (place < self.total).nonzero().flatten()
            if len(taken):
                self._take(place[taken], fits + taken, batch)
        self.seen += len(batch)

    def _take(self, slots: Tensor, index: Tensor, batch: Batch) -> None:
        """Examples `index` go into their slots; of two that want the same one the later wins."""
        last = dict(zip(slots.tolist(), index.tolist(), strict=True))
        self._write(torch.tensor(list(last)), batch, torch.tensor(list(last.values())))


def _moved(filled: Columns, like: Columns, rows: int) -> Columns:
    """Columns of `rows` rows that begin with the filled ones; the others hold numbers that no example has."""
    x, y, task = (
        new.new_full((rows, *new.shape[1:]), nothing) for new, nothing in zip(like, (-math.inf, -1, -1), strict=True)
    )
    for column, kept in zip((x, y, task), filled, strict=True):
        if len(kept):
            column[: len(kept)] = kept
    return x, y, task


def _task_column(batch: Batch) -> Tensor:
    if isinstance(batch.task, Tensor):
        return batch.task.to(batch.y.device)
    return torch.full_like(batch.y, -1 if batch.task is None else batch.task)


def _single_task(batch: Batch) -> int:
    if not isinstance(batch.task, int):
        raise TypeError("a memory per task needs batches of one known task; use a reservoir where tasks are hidden")
    return batch.task


def earlier_alike(labels: Tensor) -> Tensor:
    """(n,) how many earlier entries have the same label, from one sort: 0 for the first of each.

    >>> earlier_alike(torch.tensor([7, 7, 3, 7, 3])).tolist()
    [0, 1, 0, 2, 1]
    """
    order = torch.argsort(labels, stable=True)  # alike side by side, in their order
    ordered, place = labels[order], torch.arange(len(labels), device=labels.device)
    begins = torch.ones_like(labels, dtype=torch.bool)
    begins[1:] = ordered[1:] != ordered[:-1]
    begin = torch.where(begins, place, 0).cummax(0).values  # where the entry's label begins
    return torch.empty_like(order).index_copy_(0, order, place - begin)
