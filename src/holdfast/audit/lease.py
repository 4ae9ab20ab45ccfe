"""A lease on the data of the current task: the only data a learner ever gets, and only until the task is over."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from holdfast.errors import PastDataError
from holdfast.types import Batch, Part


class Lease:
    """Train and validation tensors of one task. After the task every read raises `PastDataError`.

    Rows read are counted, one by one: under a single-pass protocol they are another pass, and the card says so.
    """

    def __init__(self, task: int, train: Part, val: Part, mixed: Tensor | None = None) -> None:
        self.task = task
        self._looks = torch.zeros(len(train) + len(val))  # how often each row was read, training rows first
        self._train: Part | None = train
        self._val: Part | None = val
        self._mixed = mixed  # per row its task, where all tasks are shown at once
        self._kept = torch.ones(len(train), dtype=torch.bool)

    def __len__(self) -> int:
        return len(self._open(self._train))

    @property
    def x(self) -> Tensor:
        part = self._open(self._train)
        self._looks[: len(part)] += 1
        return part.x()

    @property
    def y(self) -> Tensor:
        return self._open(self._train).y.clone()

    @property
    def val_x(self) -> Tensor:
        part = self._open(self._val)
        self._looks[len(self) :] += 1
        return part.x()

    @property
    def val_y(self) -> Tensor:
        return self._open(self._val).y.clone()

    @property
    def own_rows(self) -> int:
        """How many training rows there are without augmented copies (views), which stand behind all of them."""
        part = self._open(self._train)
        return len(part) // (1 + part.copies)

    @property
    def own_val_rows(self) -> int:
        """The same of validation rows; copies of them say little more."""
        part = self._open(self._val)
        return len(part) // (1 + part.copies)

    def take(self, index: Tensor) -> Batch:
        """These training rows as a batch; only they count as read."""
        part = self._open(self._train)
        rows = torch.arange(len(part))[index.cpu()]
        self._looks.index_add_(0, rows, torch.ones(len(rows)))
        task = self.task if self._mixed is None else self._mixed[index]
        index = index.to(part.y.device)
        return Batch(part.x(index), part.y[index], task)

    def withhold(self, index: Tensor) -> None:
        """Keep these rows out of the training batches (a coreset)."""
        self._open(self._train)
        self._kept[index] = False

    def close(self) -> None:
        self._train = self._val = self._mixed = None

    @property
    def closed(self) -> bool:
        return self._train is None

    def kept(self) -> Tensor:
        """The rows that training may show: all but those withheld. For protocols."""
        return self._kept.nonzero().flatten()

    def looks(self) -> Tensor:
        """How often each row was read, training rows first. For protocols; a copy."""
        return self._looks.clone()

    def state(self) -> dict[str, Any]:
        """What was read and withheld so far. For protocols."""
        return {"looks": self._looks.clone(), "kept": self._kept.clone()}

    def load(self, state: dict[str, Any]) -> None:
        self._looks, self._kept = state["looks"], state["kept"]

    def _open(self, part: Part | None) -> Part:
        if part is None:
            raise PastDataError(
                f"the data of task {self.task} are gone: its lease ended with the task. Copy what the method may keep "
                "(an episodic memory counts on the audit card) before `finish` returns"
            )
        return part
