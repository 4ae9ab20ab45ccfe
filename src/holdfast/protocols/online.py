"""One pass over each task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.protocols._passing import Passing


@final
@dataclass(frozen=True)
class Online(Passing):
    """Every example once, in small batches, task after task (paper 002 §2)."""

    @property
    def passes(self) -> int:
        return 1

    @property
    def single_pass(self) -> bool:
        return True
