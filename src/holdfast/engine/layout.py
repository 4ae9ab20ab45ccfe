"""How parameters lie in θ: entry after entry, and the weights of 2-d convolutions with their channels last.

A weight of shape (O, I, kH, kW) lies as (O, kH, kW, I), and images (B, C, H, W) are handed over as (B, H, W, C). That
is torch's memory format `channels_last`: shapes are those of the default layout, sums are rounded differently, and a
narrow ResNet takes 0.7 of the time (`benchmarks/conv.py`).
"""

from __future__ import annotations

from types import CodeType, FunctionType

import torch
from torch import Tensor, nn


def convolutions(module: nn.Module) -> list[nn.Parameter]:
    """The weights that are to lie with their channels last, which is how some may have come."""
    weights = [m._parameters.get("weight") for m in module.modules() if isinstance(m, nn.Conv2d | nn.ConvTranspose2d)]
    viewing = any(_views(type(m)) for m in module.modules())
    return [weight for weight in weights if weight is not None and (not viewing or not weight.is_contiguous())]


def channels_last(images: Tensor) -> Tensor:
    """(..., C, H, W) images or weights with their channels last in memory, without a copy where they are so already."""
    moved = images.movedim(-3, -1)
    return moved.reshape(-1).view(moved.shape).movedim(-1, -3)  # by a row: `contiguous` leaves strides alone if C = 1


def in_default(p: Tensor) -> Tensor:
    """p in torch's default layout."""
    return p.clone(memory_format=torch.contiguous_format) if lies_last(p) else p


def in_row(values: Tensor, p: Tensor) -> Tensor:
    """(..., *p.shape) values as rows (..., p.numel()), in the order in which p's entries lie in θ."""
    if lies_last(p):
        values = values.movedim(-3, -1)  # (..., O, I, kH, kW) -> (..., O, kH, kW, I)
    return values.reshape(*values.shape[: values.dim() - p.dim()], p.numel())


def in_shape(row: Tensor, p: Tensor) -> Tensor:
    """A view in p's shape of a row (p.numel(),) that lies as p's entries do in θ."""
    if not lies_last(p):
        return row.view(p.shape)
    o, i, height, width = p.shape
    return row.view(o, height, width, i).movedim(-1, -3)


def lies_last(p: Tensor) -> bool:
    """Whether the channels are last by the strides, by which torch chooses also where there is one channel or pixel."""
    return p.dim() == 4 and p.stride(1) == 1 and p.stride(3) == p.shape[1]


def _views(kind: type) -> bool:
    """Whether a user's module asks for a `view` of something, such as `maps.view(len(maps), -1)`.

    A view of maps whose channels are last cannot be had, so such a module keeps torch's default layout.
    """
    theirs = [cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in ("torch", "holdfast", "builtins")]
    functions = [f for cls in theirs for f in vars(cls).values() if isinstance(f, FunctionType)]
    return any("view" in _names(f.__code__) for f in functions)


def _names(code: CodeType) -> set[str]:
    """The names that a function, and those written inside it, look up."""
    return set(code.co_names).union(*(_names(c) for c in code.co_consts if isinstance(c, CodeType)))
