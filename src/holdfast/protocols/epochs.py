"""Several passes over each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.protocols._passing import Passing
from holdfast.settings import Count


@final
@dataclass(frozen=True)
class Epochs(Passing):
    """Several passes over each task's data before the next task comes."""

    epochs: Count = 5  # passes over each task

    @property
    def passes(self) -> int:
        return self.epochs
