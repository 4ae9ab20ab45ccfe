"""What a learner keeps, found by walking everything reachable from it; nobody reports their own memory."""

from __future__ import annotations

import functools
import random
import types
import zlib
from collections import deque
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.seeds import state_of, states

Kept = Tensor | np.ndarray | bytes | bytearray | memoryview | str | int | float
_SMALL = (int, float, bool, str)
_HOLDERS = (Tensor, np.ndarray, dict, list, tuple, set, deque, bytearray)
_OPAQUE = (type, types.ModuleType, torch.device, torch.dtype, complex)
_DICE = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
_KNOWN = ("torch", "numpy", "builtins", "abc", "holdfast", "typing", "dataclasses")  # whose classes keep no data


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
    """What would differ if anything reachable changed: tensors, also by writes that torch does not see, numbers, words,
    and the states of random generators, the global ones included.
    """
    sums: dict[int, int] = {}  # per storage
    return [*(_content(item, sums) for item in reachable(thing, all_that_moves=True)), *states()]


def _content(item: Any, sums: dict[int, int]) -> Any:
    """The item itself where it is small, a check sum of its bytes where it is not."""
    if isinstance(item, Tensor):
        storage = item.untyped_storage()
        place = storage.data_ptr()
        if place not in sums:
            whole = torch.zeros(0, dtype=torch.uint8, device=item.device).set_(storage)  # type: ignore[call-overload]
            sums[place] = 0 if item.is_meta else zlib.crc32(whole.cpu().numpy().data)
        return sums[place], None if item.is_inference() else item._version
    if isinstance(item, np.ndarray):
        return zlib.crc32(item.tobytes()) if item.dtype != object else len(item)
    return zlib.crc32(item) if isinstance(item, bytes | bytearray | memoryview) else item


def reachable(thing: Any, all_that_moves: bool = False) -> Iterator[Kept]:
    """Everything kept that can be reached: attributes, containers, modules, closures, partials, iterators, and the
    globals that a user's class uses; each thing once.

    Numbers and words in lists and the like are data; those that are attributes are not, nor are the states of random
    generators, unless asked for `all_that_moves`.
    """
    seen: dict[int, Any] = {}  # held, so that no other thing gets the number of one that was made on the way
    waiting = [thing]
    while waiting:
        item = waiting.pop()
        kind = type(item)
        if kind in _SMALL:
            if all_that_moves:
                yield item
            continue
        if item is None or id(item) in seen or isinstance(item, _OPAQUE):
            continue
        seen[id(item)] = item
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
        elif isinstance(item, _DICE):
            if all_that_moves:
                yield state_of(item)
        elif isinstance(item, types.GeneratorType):
            waiting.extend([item.gi_frame.f_locals, item.gi_frame.f_lasti] if item.gi_frame is not None else ())
        elif isinstance(item, Iterator) and kind.__module__ in ("builtins", "itertools", "collections"):
            waiting.extend(_inside(item))
        else:
            waiting.append(getattr(item, "__dict__", None))
            waiting.extend(_made_by_classes(kind))
            for cls in kind.__mro__:
                slots = cls.__dict__.get("__slots__", ())
                waiting.extend(getattr(item, s, None) for s in ([slots] if isinstance(slots, str) else slots))


def _made_by_classes(kind: type) -> list[Any]:
    """What a user's classes hold besides methods and documentation: a list made in their bodies, or a global one that
    their methods use, is kept, too.
    """
    theirs = [cls for cls in kind.__mro__ if cls.__module__.partition(".")[0] not in _KNOWN]
    values = [value for cls in theirs for name, value in vars(cls).items() if not name.startswith("__")]
    functions = [value for value in values if isinstance(value, types.FunctionType)]
    used = [f.__globals__[name] for f in functions for name in _names(f.__code__) if name in f.__globals__]
    return [value for value in (*values, *used) if isinstance(value, _HOLDERS)]


@functools.cache
def _names(code: types.CodeType) -> tuple[str, ...]:
    """The names that a function, and those written inside it, look up."""
    inner = [name for const in code.co_consts if isinstance(const, types.CodeType) for name in _names(const)]
    return (*code.co_names, *inner)


def _inside(iterator: Iterator[Any]) -> tuple[Any, ...]:
    """What an iterator of Python's own goes over, and where it is."""
    try:
        return tuple(iterator.__reduce__()[1:])
    except TypeError:  # an iterator that cannot be copied tells nothing
        return ()


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
