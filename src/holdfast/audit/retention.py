"""Old data found in a learner's state by matching rows against hashes of past training and validation rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.audit.footprint import reachable
from holdfast.types import Part, as_float

_CHUNK = 4096
BESIDE = 4  # columns that may stand beside a row: its label, its task


class Retention:
    """Remembers hashes of the rows that past tasks leased, and looks for them in what a learner keeps.

    Rows are matched bit for bit: as stored (bytes), as the learner saw them (floats), or halved in precision; in
    tensors, arrays and byte strings; shaped, flat, transposed or with a label beside them. Rows that a learner
    altered otherwise, compressed, or keeps as Python numbers are not found: the count is a lower bound.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.width = math.prod(shape)
        self._past: list[Part] = []
        self._hashed = 0  # how many parts are in `_known`
        self._known = torch.zeros(0, dtype=torch.int64)  # sorted hashes of past rows, in all their forms
        self._row_of = torch.zeros(0, dtype=torch.int64)  # for each the hash of the row as stored, its identity

    def remember(self, *parts: Part) -> None:
        """A task is over: its rows are past rows from now on. They are hashed when first needed."""
        self._past += [part for part in parts if len(part)]

    def scan(self, thing: Any) -> tuple[int, int]:
        """(rows, bytes): how many different past rows are kept in anything reachable from `thing`, and their size."""
        found: list[Tensor] = []
        size = 0
        for table, again in _tables(thing, self.width) if self._past else ():
            if table.dtype.itemsize == 1 and table.is_floating_point():
                table = table.float()
            if all(part.pixels.dtype == torch.uint8 and not part.centred for part in self._past):
                table = table[(table >= 0).all(1)]  # weights are not hashed
            if not len(table):
                continue
            self._hash_past()
            hashes = _hash(table)
            place = torch.searchsorted(self._known, hashes).clamp_(max=len(self._known) - 1)
            hit = self._known[place] == hashes
            rows = self._row_of[place[hit]]
            if again:  # the part of it that a view shows is counted
                rows = rows[~torch.isin(rows, torch.cat(found))] if found else rows
            found.append(rows)
            size += len(rows) * self.width * table.element_size()
        return (len(torch.cat(found).unique()) if found else 0), size

    def _hash_past(self) -> None:
        new, rows = [self._known], [self._row_of]
        for part in self._past[self._hashed :]:
            for start in range(0, len(part), _CHUNK):
                raw = part.raw(slice(start, start + _CHUNK)).cpu()
                stored = _hash(raw.flatten(1))
                seen = as_float(raw, part.centred).flatten(1)
                new += [stored, _hash(seen), _hash(seen.half()), _hash(seen.bfloat16())]
                rows += [stored] * 4
        self._hashed = len(self._past)
        self._known, order = torch.cat(new).sort()
        self._row_of = torch.cat(rows)[order]


def _tables(thing: Any, width: int) -> Iterator[tuple[Tensor, bool]]:
    """Everything reachable that could hold examples, as tables (rows, width); and whether it was seen in part."""
    storages: set[int] = set()
    for item in reachable(thing):
        tensors: list[Tensor | None] = []
        if isinstance(item, np.ndarray):
            tensors = [_from_numpy(item)]
        elif isinstance(item, bytes | bytearray | memoryview):
            raw = bytes(item)
            tensors = [_from_numpy(np.frombuffer(raw, kind)) for kind in ("u1", "f4") if len(raw) % 4 == 0]
        elif isinstance(item, Tensor) and not item.is_meta and item.untyped_storage().data_ptr() not in storages:
            tensors = [item, _whole(item, width)]
            if item.dtype == torch.uint8 and item.dim() == 1 and len(item) % 4 == 0:
                tensors.append(item.clone().view(torch.float32))  # bytes of floats
            storages.add(item.untyped_storage().data_ptr() if tensors[1] is not None else -1)
        for again, tensor in enumerate(tensors):
            if tensor is not None and tensor.numel() and not tensor.dtype.is_complex:
                yield from ((table, bool(again)) for table in _readings(tensor.detach().cpu(), width))


def _readings(tensor: Tensor, width: int) -> Iterator[Tensor]:
    """The ways in which a tensor may hold rows: shaped, flat, with a column before or behind, or transposed."""
    shape = tensor.shape
    if width in [math.prod(shape[d:]) for d in range(len(shape))] or (len(shape) == 1 and len(tensor) % width == 0):
        yield tensor.reshape(-1, width)
    elif len(shape) == 2 and width < shape[1] <= width + BESIDE:
        yield from (tensor[:, start : start + width] for start in range(shape[1] - width + 1))
    elif width in [math.prod(shape[:d]) for d in range(1, len(shape))]:
        yield tensor.reshape(width, -1).T


def _whole(view: Tensor, width: int) -> Tensor | None:
    """All that the storage behind a view holds, which it keeps alive; None where the view is all of it."""
    numbers = view.untyped_storage().nbytes() // view.element_size()
    if numbers == view.numel() or numbers < width:
        return None
    whole = torch.zeros(0, dtype=view.dtype, device=view.device).set_(view.untyped_storage())  # type: ignore[call-overload]
    return whole[: numbers // width * width]


def _from_numpy(array: np.ndarray) -> Tensor | None:
    """An array of numbers as a tensor, whatever its strides and byte order; None when it holds something else."""
    if array.dtype.kind not in "buif" or array.dtype.itemsize > 8:
        return None
    return torch.from_numpy(np.array(array, array.dtype.newbyteorder("=")))


def _hash(rows: Tensor) -> Tensor:
    """(n,) int64: a random linear form of each row's bits, two numbers a word, modulo 2^64; equal rows always agree.

    Numbers are taken as float32 and integers as int32, so that a copy in a wider type is the same row.
    """
    if rows.shape[1] % 2:
        rows = F.pad(rows, (0, 1))
    bits = rows.float() if rows.is_floating_point() else rows.to(torch.int32)
    words = bits.contiguous().view(torch.int64)
    form = torch.randint(-(2**62), 2**62, (words.shape[1],), generator=torch.Generator().manual_seed(17))
    return torch.cat([(chunk * form).sum(1) for chunk in words.split(_CHUNK)])
