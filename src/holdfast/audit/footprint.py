"""What a learner keeps, found by walking everything reachable from it; nobody reports their own memory."""

from __future__ import annotations

import array
import dis
import functools
import gc
import io
import logging
import random
import types
import zlib
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from holdfast.identity import is_theirs
from holdfast.seeds import state_of, states


class Listed(NamedTuple):
    """Numbers and words in a container: their bytes, and a hash of all of them."""

    bytes: int
    hash: int


Kept = Tensor | np.ndarray | bytes | bytearray | memoryview | Listed | str | int | float | complex
_SMALL = (int, float, bool, str, complex)
_BYTES = (bytes, bytearray, memoryview)
_CONTAINERS = (dict, list, tuple, set, frozenset, deque)
_STORAGES = (torch.UntypedStorage, torch.TypedStorage)
_OPAQUE = (logging.Logger, torch.device, torch.dtype)
_STRUCTURE = (type, types.ModuleType, types.FrameType)  # not followed where the collector finds them
_DICE = (torch.Generator, random.Random, np.random.Generator, np.random.RandomState)
_WORD = 2**64  # whole numbers below it take 8 bytes
NAMES = 1024  # bytes of a dict's keys and small values up to which they are names and settings; beyond, data


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
        elif isinstance(item, Listed):
            other += item.bytes
        elif isinstance(item, memoryview):
            other += item.nbytes
        else:
            other += len(item) if isinstance(item, bytes | bytearray) else _size(item)
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
            sums[place] = 0 if item.is_meta else zlib.crc32(in_bytes(storage).cpu().numpy().data)
        return sums[place]
    if isinstance(item, np.ndarray):
        return zlib.crc32(item.tobytes()) if item.dtype != object else len(item)
    if isinstance(item, memoryview):
        return zlib.crc32(item.tobytes())
    return zlib.crc32(item) if isinstance(item, bytes | bytearray) else item


class Walked:
    """All that is reachable from a thing, walked through once: it stands for the thing where several look at it."""

    def __init__(self, thing: Any) -> None:
        self.found = list(_walked(thing))


def networks(thing: Any) -> list[nn.Module]:
    """Every torch module that can be reached, and every module within it."""
    found = thing.found if isinstance(thing, Walked) else _walked(thing)
    return [item for item in found if isinstance(item, nn.Module)]


def in_bytes(storage: torch.UntypedStorage) -> Tensor:
    """(n,) all bytes of a storage, whatever part of it a tensor looks at."""
    return torch.zeros(0, dtype=torch.uint8, device=storage.device).set_(storage)  # type: ignore[call-overload]


def reachable(thing: Any, all_that_moves: bool = False) -> Iterator[Kept]:
    """Everything kept that can be reached, each thing once: attributes, containers, modules, closures, whatever Python
    itself would follow, and of a user's classes and functions what they hold, capture and look up.

    Numbers and words in lists and the like are data; those that are attributes are not, nor are the states of random
    generators, unless asked for `all_that_moves`. Libraries are not searched, nor are files.
    """
    found = thing.found if isinstance(thing, Walked) else _walked(thing, all_that_moves)
    return (item for item in found if not isinstance(item, nn.Module))


def _walked(thing: Any, all_that_moves: bool = False) -> Iterator[Any]:
    """What `reachable` gives, and the torch modules on the way."""
    seen: dict[int, Any] = {}  # held, so that no other thing gets the number of one that was made on the way
    waiting = [thing]
    while waiting:  # a network has hundreds of things, and is walked through several times a task
        item = waiting.pop()
        if item is None or (type(item) is OrderedDict and not item and not vars(item)):  # seven hooks of every module
            continue
        if isinstance(item, np.generic):
            item = item.item()
        if type(item) in _SMALL:
            if all_that_moves:
                yield item
            continue
        if id(item) in seen or isinstance(item, _OPAQUE):
            continue
        seen[id(item)] = item
        if isinstance(item, _CONTAINERS):
            parts = [*item, *item.values()] if isinstance(item, dict) else item
            if small := _listed(parts):
                named = isinstance(item, dict) and small.bytes <= NAMES
                yield small._replace(bytes=0) if named else small
            waiting.extend([part for part in parts if type(part) not in _SMALL])
            if type(item) not in _CONTAINERS:  # Python's own have no attributes
                waiting.extend(_attributes(item))
        elif isinstance(item, Tensor):
            if item.layout == torch.strided:
                yield item
            waiting.extend([*_pieces(item), item.grad if item.is_leaf else None, *vars(item).values()])
        elif isinstance(item, np.ndarray):
            yield item
            waiting.extend(item.flatten().tolist() if item.dtype == object else ())
            waiting.extend(_attributes(item))
        elif isinstance(item, _BYTES):
            yield item
        elif isinstance(item, array.array):
            yield memoryview(item)
        elif isinstance(item, io.BytesIO):
            yield item.getbuffer()
        elif isinstance(item, _STORAGES):
            waiting.append(in_bytes(item if isinstance(item, torch.UntypedStorage) else item.untyped()))
        elif isinstance(item, _DICE):
            if all_that_moves:
                yield state_of(item)
        else:
            if isinstance(item, nn.Module):
                yield item
            waiting.extend(_held(item))


def _attributes(item: Any) -> Iterable[Any]:
    """The attributes of a thing: their names are no data."""
    return found.values() if isinstance(found := getattr(item, "__dict__", None), dict) else ()


def _held(item: Any) -> Iterable[Any]:
    """What a thing that is neither data nor a container holds."""
    kind = type(item)
    if isinstance(item, type):
        return _of_class(item) if is_theirs(item.__module__) else ()
    if isinstance(item, types.ModuleType):
        return [v for v in vars(item).values() if not isinstance(v, _STRUCTURE)] if is_theirs(item.__name__) else ()
    if isinstance(item, types.FunctionType):
        return _of_function(item)
    if isinstance(item, types.GeneratorType | types.CoroutineType):
        frame = item.gi_frame if isinstance(item, types.GeneratorType) else item.cr_frame
        return () if frame is None else (*frame.f_locals.values(), frame.f_lasti)
    if isinstance(item, Iterator) and kind.__module__ in ("builtins", "itertools", "collections"):
        return _inside(item)
    own = getattr(item, "__dict__", None)
    found = list(_attributes(item))
    for cls in kind.__mro__:
        slots = cls.__dict__.get("__slots__", ())
        found += [getattr(item, s, None) for s in ([slots] if isinstance(slots, str) else slots)]
    if not isinstance(own, dict) or not is_theirs(kind.__module__):  # what Python's collector knows of it
        found += [x for x in gc.get_referents(item) if x is not own and not isinstance(x, _STRUCTURE)]
    return [*found, kind]


def _of_class(cls: type) -> list[Any]:
    """What a user's class and those it is derived from hold: values, and what their methods capture and look up."""
    found: list[Any] = []
    for name, value in vars(cls).items():
        if name.startswith("__") and name not in ("__init__", "__call__"):
            continue
        if isinstance(value, staticmethod | classmethod):
            value = value.__func__
        found += [value.fget, value.fset] if isinstance(value, property) else [value]
    return [*found, *cls.__bases__]


def _of_function(function: types.FunctionType) -> list[Any]:
    """Closures, defaults and attributes; of a user's function also the globals it looks up."""
    found = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
    found += [function.__defaults__, function.__kwdefaults__, *function.__dict__.values()]
    if is_theirs(function.__module__):
        found += [function.__globals__[name] for name in _globals(function.__code__) if name in function.__globals__]
    return found


@functools.cache
def _globals(code: types.CodeType) -> frozenset[str]:
    """The global names that a function, and those written inside it, look up."""
    mine = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    inner = (_globals(const) for const in code.co_consts if isinstance(const, types.CodeType))
    return frozenset(mine.union(*inner))


def _listed(parts: Iterable[Any]) -> Listed | None:
    small = [part for part in parts if type(part) in _SMALL]
    return Listed(_sizes(small), hash(tuple(small))) if small else None


def _sizes(small: list[Any]) -> int:
    """Bytes of numbers and words; of whole numbers that fit a word, as a long stream's classes do, at once."""
    if set(map(type, small)) == {int} and min(small) > -_WORD and max(small) < _WORD:
        return 8 * len(small)
    return sum(map(_size, small))


def _size(value: Any) -> int:
    """Bytes of a number or a word."""
    if isinstance(value, str):
        return len(value)
    return max(8, (value.bit_length() + 7) // 8) if isinstance(value, int) else 8


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


def _pieces(tensor: Tensor) -> list[Tensor]:
    """The dense tensors that one of another layout is made of."""
    if tensor.layout == torch.strided:
        return []
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
        return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
    return [tensor.values()] if tensor.is_nested else [tensor.to_dense()]
