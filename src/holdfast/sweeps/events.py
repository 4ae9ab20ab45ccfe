"""What happens to cells while they run: every executor tells it in these words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from holdfast.protocols import Progress
from holdfast.types import Record


@dataclass(frozen=True)
class Failure:
    """A cell that went wrong, and why, in one sentence."""

    cell: str
    reason: str
    seconds: float = 0.0  # of training until then, as far as it is known
    flops: float = 0.0


@dataclass(frozen=True)
class Event:
    """Something happened to cell number `cell`: it moved on, it is done, or there is a line to tell about it."""

    cell: int
    progress: Progress | None = None
    outcome: Record | Failure | None = None
    note: str | None = None
    before: bool = False  # it was done by an earlier run


Watcher = Callable[[Event], None]
