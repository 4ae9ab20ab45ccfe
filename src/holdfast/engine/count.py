"""Floating-point operations of real steps, counted by torch's formulas as the operations run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry

T = TypeVar("T")

_CONVOLUTION = torch.ops.aten.convolution_backward


def count_flops(work: Callable[[], T]) -> tuple[T, int]:
    """Do the work and count its matrix products and convolutions (2·m·n·k for a product; in-place ones are missed)."""
    with _Counter() as counter:
        result = work()
    return result, counter.total


class _Counter(TorchDispatchMode):
    """What `FlopCounterMode` counts, without its tables per module and without loading torch's compiler (2 s)."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        formula = flop_registry.get(func._overloadpacket)
        if formula is None and func is not torch.ops.prim.device.default:
            with self:  # an operation made of others, in inference mode
                whole = func.decompose(*args, **kwargs)
            if whole is not NotImplemented:
                return whole
        out = func(*args, **kwargs)
        if func._overloadpacket is _CONVOLUTION:
            self.total += _convolution_backward(*args, out_val=out)
        elif formula is not None:
            self.total += formula(*args, **kwargs, out_val=out)
        return out


def _convolution_backward(*args: Any, out_val: Any) -> int:
    """torch counts the weights' gradient of a grouped convolution as that of a full one, `groups` times too much.

    Gradients per example are such convolutions, with a group for every example.
    """
    *given, groups, (of_input, of_weight, _bias) = args
    count = flop_registry[_CONVOLUTION]
    inputs = count(*given, groups, [of_input, False, False], out_val=out_val)
    return int(inputs + count(*given, groups, [False, of_weight, False], out_val=out_val) // groups)
