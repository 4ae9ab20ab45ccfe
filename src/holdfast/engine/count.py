"""Floating-point operations of real steps, counted by torch as they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils.flop_counter import FlopCounterMode, flop_registry

T = TypeVar("T")

_CONVOLUTION = torch.ops.aten.convolution_backward


def count_flops(work: Callable[[], T]) -> tuple[T, int]:
    """Do the work and count its matrix products and convolutions (2·m·n·k for a product; in-place ones are missed)."""
    with FlopCounterMode(display=False, custom_mapping={_CONVOLUTION: _convolution_backward}) as counter:
        result = work()
    return result, counter.get_total_flops()


def _convolution_backward(*args: Any, out_shape: Any, **_: Any) -> int:
    """torch counts the weights' gradient of a grouped convolution as that of a full one, `groups` times too much.

    Gradients per example are such convolutions, with a group for every example.
    """
    *given, groups, (of_input, of_weight, _bias) = args
    count = flop_registry[_CONVOLUTION]
    inputs = count(*given, groups, [of_input, False, False], out_val=out_shape)
    return inputs + count(*given, groups, [False, of_weight, False], out_val=out_shape) // groups
