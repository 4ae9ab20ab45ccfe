"""Floating-point operations of real steps, counted by torch's formulas as the operations run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils.flop_counter import flop_registry

T = TypeVar("T")

_CONVOLUTION = torch.ops.aten.convolution_backward
# Of matrix products, which argument is the left factor. torch's own formulas of these take several times as long.
_LEFT = {torch.ops.aten.mm: 0, torch.ops.aten.addmm: 1, torch.ops.aten.bmm: 0, torch.ops.aten.baddbmm: 1}
_current: ContextVar[Counter | None] = ContextVar("counter", default=None)
_WHOLE: set[Any] = {torch.ops.prim.device.default}  # operations without a formula that are not made of others


def count_flops(work: Callable[[], T]) -> tuple[T, int]:
    """Do the work and count its matrix products and convolutions (2·m·n·k for a product; in-place ones are missed)."""
    with counting() as counter:
        result = work()
    return result, counter.total


@contextmanager
def counting() -> Iterator[Counter]:
    """Count the operations in here, also those of work that fails."""
    with Counter() as counter:
        token = _current.set(counter)
        try:
            yield counter
        finally:
            _current.reset(token)


@contextmanager
def uncounted() -> Iterator[Counter | None]:
    """Do not count the operations in here; who does adds to the counter, if there is one, what they came to."""
    with _disable_current_modes():
        token = _current.set(None)
        try:
            yield token.old_value if token.old_value is not token.MISSING else None
        finally:
            _current.reset(token)


class Counter(TorchDispatchMode):
    """What `FlopCounterMode` counts, without its tables per module and without loading torch's compiler (2 s)."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _WHOLE:
            return func(*args, **kwargs)
        if (left := _LEFT.get(func._overloadpacket)) is not None:
            out = func(*args, **kwargs)
            self.total += 2 * out.numel() * args[left].shape[-1]
            return out
        formula = flop_registry.get(func._overloadpacket)
        if formula is None:
            with self:  # an operation made of others, in inference mode
                whole = func.decompose(*args, **kwargs)
            if whole is not NotImplemented:
                return whole
            _WHOLE.add(func)
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
