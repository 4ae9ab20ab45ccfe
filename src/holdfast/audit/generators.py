"""Networks that a learner keeps beside its own and that put out examples: generators of old data."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd

from holdfast.audit.footprint import networks


def generators(thing: Any, own: nn.Module, shape: tuple[int, ...]) -> tuple[int, int]:
    """(number, bytes) of the networks reachable from `thing` whose last layer puts out an example of this shape: all
    its numbers, or all its channels.

    The learner's own network and copies of it, a teacher, are none: they put out classes. A generator that is made of
    bare tensors, or ends in something else than a linear or a convolutional layer, is not found: a lower bound, as the
    scan for rows is.

    >>> class Keeper: ...
    >>> keeper, own = Keeper(), nn.Linear(16, 3)
    >>> keeper.teacher, keeper.decoder = nn.Linear(16, 3), nn.Sequential(nn.Linear(2, 16), nn.Sigmoid())
    >>> generators(keeper, own, (1, 4, 4))
    (1, 192)
    """
    likeness = _shapes(own)
    found = [
        each
        for root in _roots(networks(thing))
        if root is not own and _shapes(root) != likeness
        for each in _found(root, shape)
    ]
    weights = {id(w): w for each in found for w in [*each.parameters(), *each.buffers()]}
    return len(found), sum(map(_size, weights.values()))


def _roots(found: list[nn.Module]) -> list[nn.Module]:
    """Those that are part of no other."""
    inner = {id(part) for each in found for part in each.modules() if part is not each}
    return [each for each in found if id(each) not in inner]


def _found(module: nn.Module, shape: tuple[int, ...]) -> list[nn.Module]:
    """A network, or those that it consists of: one generator per class, a generator and its critic."""
    listed = isinstance(module, nn.ModuleList | nn.ModuleDict)
    if not listed and _puts_out(module, shape):
        return [module]
    if isinstance(module, nn.Sequential):  # a layer in the middle puts nothing out
        return []
    inner = [part for part in module.children() if listed or len(_layers(part)) > 1]
    return [found for part in inner for found in _found(part, shape)]


def _layers(module: nn.Module) -> list[nn.Module]:
    """The layers that have weights, in the order in which they were made."""
    return [part for part in module.modules() if isinstance(part, nn.Linear | _ConvNd)]


def _puts_out(module: nn.Module, shape: tuple[int, ...]) -> bool:
    last = next(reversed(_layers(module)), None)
    if isinstance(last, nn.Linear):
        return last.out_features == math.prod(shape)
    return isinstance(last, _ConvNd) and len(shape) > 1 and last.out_channels == shape[0]


def _shapes(module: nn.Module) -> list[tuple[int, ...]]:
    return [tuple(weight.shape) for weight in module.parameters()]


def _size(weight: Tensor) -> int:
    return weight.numel() * weight.element_size()
