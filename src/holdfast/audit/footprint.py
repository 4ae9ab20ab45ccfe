"""What a learner keeps, found by walking everything reachable from it; nobody reports their own memory."""

from __future__ import annotations

import functools
import types
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

Kept = Tensor | np.ndarray | bytes | bytearray | memoryview | str | int | float
_SMALL = (int, float, bool, str)
_HOLDERS = (Tensor, np.ndarray, dict, list, tuple, set, deque, bytearray)
_OPAQUE = (type, types.ModuleType, torch.Generator, torch.device, torch.dtype, complex)


def footprint(thing: Any) -> int:
    """Bytes of all tensors, arrays, byte strings and listed numbers reachable from `thing`, shared storage once.

    Gradients are working memory and do not count.

    >>> class Keeper: ...
    >>> keeper = Keeper()
    >>> keeper.memory = {0: torch.zeros(10, 10)}
    >>> keeper.view = keeper.memory[0][:5]
    >>> keeper.more = [0.5, 0.25]
    >>> footprint(keeper) - footprint(Keeper())
    416
    """
    stores: dict[int, int] = {}
    gradients: set[int] = set()
    other = 0
    for item in reachable(thing):
        if isinstance(item, Tensor):
            stores[item.untyped_storage().data_ptr()] = item.untyped_storage().nbytes()
            if item.is_leaf and item.grad is not None:
                gradients.add(item.grad.untyped_storage().data_ptr())
        elif isinstance(item, np.ndarray):
            owner = _owner(item)
            stores[owner.__array_interface__["data"][0]] = owner.nbytes
        else:
            other += 8 if isinstance(item, int | float) else len(item)
    return other + sum(n for place, n in stores.items() if place not in gradients)


def glance(thing: Any) -> list[Any]:
    """What would differ if anything reachable changed: which tensors, how often written to, which numbers and words."""
    return [
        (id(item), item._version)
        if isinstance(item, Tensor)
        else item.tobytes()
        if isinstance(item, np.ndarray)
        else item
        for item in reachable(thing, every_number=True)
    ]


def reachable(thing: Any, every_number: bool = False) -> Iterator[Kept]:
    """Everything kept that can be reached: attributes, containers, modules, closures, partials; each thing once.

    Numbers and words in lists and the like are data; those that are attributes are not, unless asked for.
    """
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind in _SMALL:
            if every_number:
                yield item
            continue
        if item is None or id(item) in seen or isinstance(item, _OPAQUE):
            continue
        seen.add(id(item))
        if isinstance(item, Tensor) and item.layout != torch.strided:
            waiting.extend(_pieces(item))
        elif isinstance(item, Tensor | np.ndarray | bytes | bytearray | memoryview):
            yield item
            if isinstance(item, np.ndarray) and item.dtype == object:
                waiting.extend(item.flatten().tolist())
        elif isinstance(item, dict):
            waiting.extend(item.values())
            waiting.extend(key for key in item if type(key) is not str)
        elif isinstance(item, list | tuple | set | frozenset | deque):
            yield from (part for part in item if type(part) in _SMALL)
            waiting.extend(part for part in item if type(part) not in _SMALL)
        elif isinstance(item, types.FunctionType):
            waiting.extend(c.cell_contents for c in item.__closure__ or () if c != types.CellType())
            waiting.extend([item.__defaults__, item.__kwdefaults__, item.__dict__])
        elif isinstance(item, types.MethodType):
            waiting.extend([item.__self__, item.__func__])
        elif isinstance(item, functools.partial):
            waiting.extend([item.func, item.args, item.keywords])
        else:
            waiting.append(getattr(item, "__dict__", None))
            waiting.extend(_made_by_classes(kind))
            for cls in kind.__mro__:
                slots = cls.__dict__.get("__slots__", ())
                waiting.extend(getattr(item, s, None) for s in ([slots] if isinstance(slots, str) else slots))


def _made_by_classes(kind: type) -> list[Any]:
    """What the bodies of a user's classes hold besides methods and documentation: a list made there is kept, too."""
    return [
        value
        for cls in kind.__mro__
        if cls.__module__.partition(".")[0] not in ("torch", "numpy", "builtins", "abc", "holdfast")
        for name, value in vars(cls).items()
        if isinstance(value, _HOLDERS) and not name.startswith("__")
    ]


def _owner(array: np.ndarray) -> np.ndarray:
    """The array whose memory a view looks at; a view keeps all of it alive."""
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


def _pieces(sparse: Tensor) -> list[Tensor]:
    """The dense tensors that a sparse one is made of."""
    if sparse.layout == torch.sparse_coo:
        return [sparse._indices(), sparse._values()]
    by_row = sparse.layout in (torch.sparse_csr, torch.sparse_bsr)
    compressed = (
        [sparse.crow_indices(), sparse.col_indices()] if by_row else [sparse.ccol_indices(), sparse.row_indices()]
    )
    return [*compressed, sparse.values()]
