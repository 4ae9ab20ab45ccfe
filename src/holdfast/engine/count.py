"""Floating-point operations of real steps, counted by torch as they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from torch.utils.flop_counter import FlopCounterMode

T = TypeVar("T")


def count_flops(work: Callable[[], T]) -> tuple[T, int]:
    """Do the work and count its matrix products and convolutions (2·m·n·k for a product; in-place ones are missed)."""
    with FlopCounterMode(display=False) as counter:
        result = work()
    return result, counter.get_total_flops()
