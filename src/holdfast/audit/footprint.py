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

_OPAQUE = (type, types.ModuleType, torch.Generator, torch.device, torch.dtype, str, int, float, complex, bool)


def footprint(thing: Any) -> int:
    """Bytes of all tensors, arrays and byte strings reachable from `thing`, shared storage counted once.

    Gradients are working memory and do not count.

    >>> class Keeper: ...
    >>> keeper = Keeper()
    >>> keeper.memory = {"past": torch.zeros(10, 10)}
    >>> keeper.view = keeper.memory["past"][:5]
    >>> footprint(keeper)
    400
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
            other += len(item)
    return other + sum(n for place, n in stores.items() if place not in gradients)


def reachable(thing: Any) -> Iterator[Tensor | np.ndarray | bytes | bytearray]:
    """Every tensor, array and byte string that can be reached: attributes, containers, modules, closures, partials."""
    seen: set[int] = set()
    waiting = [thing]
    while waiting:
        item = waiting.pop()
        if item is None or id(item) in seen or isinstance(item, _OPAQUE):
            continue
        seen.add(id(item))
        if isinstance(item, Tensor) and item.layout != torch.strided:
            waiting.extend(_pieces(item))
        elif isinstance(item, Tensor | np.ndarray | bytes | bytearray):
            yield item
            if isinstance(item, np.ndarray) and item.dtype == object:
                waiting.extend(item.flatten().tolist())
        elif isinstance(item, dict):
            waiting.extend(item.keys())
            waiting.extend(item.values())
        elif isinstance(item, list | tuple | set | frozenset | deque):
            waiting.extend(item)
        elif isinstance(item, types.FunctionType):
            waiting.extend(c.cell_contents for c in item.__closure__ or () if c != types.CellType())
            waiting.extend([item.__defaults__, item.__kwdefaults__, item.__dict__])
        elif isinstance(item, types.MethodType):
            waiting.extend([item.__self__, item.__func__])
        elif isinstance(item, functools.partial):
            waiting.extend([item.func, item.args, item.keywords])
        else:
            waiting.append(getattr(item, "__dict__", None))
            for cls in type(item).__mro__:
                waiting.extend(vars(cls).values())  # a list that a class body made is kept, too
                slots = cls.__dict__.get("__slots__", ())
                waiting.extend(getattr(item, s, None) for s in ([slots] if isinstance(slots, str) else slots))


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
