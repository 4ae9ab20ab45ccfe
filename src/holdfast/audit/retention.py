"""Old data found in a learner's state by matching rows against hashes of past training and validation rows."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.audit.footprint import reachable
from holdfast.types import Gone, Part, as_float

_CHUNK = 4096
_LOOKED_AT = 2**16  # entries of a table, to tell whether it can be of bytes
BESIDE = 4  # columns that may stand beside a row: its label, its task
SURE, LIKELY = 1e-6, 0.01  # so probable by chance: narrow rows that are found are surely kept below, surely not above
PLAIN = 16  # bits: with fewer a row is so plain that masks, counters and the like have it, too
_NOBODY = -(2**63)  # no hash of a row but once in 2^64


class Retention:
    """Remembers hashes of the rows that past tasks leased, and looks for them in what a learner keeps.

    Rows are matched bit for bit: as stored (bytes), as the learner saw them (floats), or halved in precision; in
    tensors, arrays and byte strings; shaped, flat, transposed or with a label beside them. Of images that were
    augmented, the middle that every augmented copy has is looked for at all places of what is kept, also mirrored. Rows
    and middles of one colour are not, nor are vectors of zeros. Rows that a learner altered otherwise, compressed, or
    keeps as Python numbers are not found: the count is a lower bound.

    A vector of few numbers, or of few different ones, may stand in what is kept by chance: a single weight can be a
    table's only number, a mask can be the place of a word. Such are not looked for with halved precision. `by_chance`
    says for how many of the rows that were found it may be so.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape, self.width = shape, math.prod(shape)
        self._past: list[Part] = []
        self._bytes = True  # all past rows were bytes, seen from 0 to 1
        self._hashed = 0  # how many parts are in the indices
        self._found = torch.zeros(0, dtype=torch.int64)  # which past rows the last scan found
        self.by_chance = 0  # how many of these may stand there by chance
        self._rows = _Index()  # past rows, in all their forms
        self._middles: defaultdict[int, _Index] = defaultdict(_Index)  # of augmented images, by the margin around them

    def remember(self, *parts: Part) -> None:
        """A task is over: its rows are past rows from now on. They are hashed when first needed."""
        new = [part for part in parts if len(part) and not isinstance(part, Gone)]
        self._past += new
        self._bytes = self._bytes and all(part.dtype == torch.uint8 and part.scale is None for part in new)

    def state(self) -> dict[str, Any]:
        """The hashes of those past rows that the last scan found: what is not kept now cannot be found later."""
        indices = {-1: self._rows, **self._middles}
        return {"bytes": self._bytes, "indices": {margin: index.of(self._found) for margin, index in indices.items()}}

    def load(self, state: dict[str, Any]) -> None:
        self._bytes = state["bytes"]
        for margin, (hashes, whose) in state["indices"].items():
            (self._rows if margin == -1 else self._middles[margin]).add(whose, hashes)
        self._found = self._rows.whose()

    def scan(self, thing: Any) -> tuple[int, int]:
        """(rows, bytes): how many different past rows are kept in anything reachable from `thing`, and their size."""
        found: list[Tensor] = []
        proven: list[Tensor] = []
        size = 0
        for table, again in _tables(thing, self.width) if self._past or len(self._found) else ():
            if table.dtype.itemsize == 1 and table.is_floating_point():
                table = table.float()
            if self._bytes:
                table = _of_bytes(table[table.amin(1) >= 0])  # weights and gradients are not hashed
            read, table = len(table), table[_telling(table) if self._images else (table != 0).any(1)]
            if not len(table):
                continue
            self._hash_past()
            whose = self._rows.find(_hash(table))
            for margin, middles in self._middles.items():
                rest = whose == _NOBODY
                whose[rest] = self._find_middles(table[rest], margin, middles)
            matched = whose != _NOBODY
            kept = whose[matched]
            sure = kept
            if len(kept) and not self._images:
                kept, sure = _judged(table[matched], kept, read * len(self._rows))
            proven.append(sure)
            if again:  # the part of it that a view shows is counted
                kept = kept[~torch.isin(kept, torch.cat(found))] if found else kept
            found.append(kept)
            size += len(kept) * self.width * table.element_size()
        self._found = torch.cat(found).unique() if found else self._found[:0]
        self.by_chance = len(self._found) - (len(torch.cat(proven).unique()) if proven else 0)
        return len(self._found), size

    @property
    def _images(self) -> bool:
        return len(self.shape) == 3

    def _find_middles(self, table: Tensor, margin: int, middles: _Index) -> Tensor:
        """(n,) whose middle each row of a table has, wherever it lies in it."""
        images, whose = table.reshape(-1, *self.shape), torch.full((len(table),), _NOBODY)
        height, width = self.shape[1] - 2 * margin, self.shape[2] - 2 * margin
        for down, right in product(range(2 * margin + 1), repeat=2):
            window = images[:, :, down : down + height, right : right + width].flatten(1)
            found = middles.find(_hash(window))
            whose = torch.where(found == _NOBODY, whose, found)
        return whose

    def _hash_past(self) -> None:
        for part in self._past[self._hashed :]:
            for start in range(0, len(part), _CHUNK):
                chunk = slice(start, start + _CHUNK)
                raw = part.raw(chunk)
                seen = part.seen(raw, chunk).cpu()
                raw = raw.cpu()
                forms, stored = (raw, seen, seen.half(), seen.bfloat16()), _hash(raw.flatten(1))
                for i, form in enumerate(forms):
                    flat = form.flatten(1)
                    own = torch.ones(len(flat), dtype=torch.bool)
                    if i > 1 and not self._images:  # rounded, a narrow row may be any number: 1.0
                        own = _bits(flat) >= PLAIN
                    self._rows.add(stored[own], _hash(flat[own]))
                if part.augment is not None:
                    self._hash_middles(forms, stored, part.augment.margin)
        self._hashed = len(self._past)

    def _hash_middles(self, forms: Sequence[Tensor], stored: Tensor, margin: int) -> None:
        _, height, width = self.shape
        forms = [form[:, :, margin : height - margin, margin : width - margin] for form in forms]
        flat = forms[0].flatten(1)
        telling = _telling(flat)
        for form in forms:
            mine = form[telling]
            both = mine.flatten(1), mine.flip(-1).flatten(1)
            self._middles[margin].add(stored[telling], *map(_hash, both))


class _Index:
    """Hashes, and whose they are."""

    def __init__(self) -> None:
        self._new: list[tuple[Tensor, Tensor]] = []
        self._hashes = self._whose = torch.zeros(0, dtype=torch.int64)

    def add(self, whose: Tensor, *hashes: Tensor) -> None:
        """Several hashes of each row; a row is known by the hash of what is stored."""
        self._new += [(each, whose) for each in hashes]

    def __len__(self) -> int:
        return len(self._hashes) + sum(len(hashes) for hashes, _ in self._new)

    def of(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The hashes of these rows, and whose each is."""
        self._sort()
        mine = torch.isin(self._whose, rows)
        return self._hashes[mine], self._whose[mine]

    def whose(self) -> Tensor:
        """All rows that it has."""
        self._sort()
        return self._whose.unique()

    def _sort(self) -> None:
        if self._new:
            new, whose = (torch.cat(column) for column in zip((self._hashes, self._whose), *self._new, strict=True))
            self._hashes, order = new.sort()
            self._whose, self._new = whose[order], []

    def find(self, hashes: Tensor) -> Tensor:
        """(n,) whose each of these is, or `_NOBODY`."""
        self._sort()
        if not len(self._hashes):
            return torch.full_like(hashes, _NOBODY)
        place = torch.searchsorted(self._hashes, hashes).clamp_(max=len(self._hashes) - 1)
        return self._whose[place].where(self._hashes[place] == hashes, torch.tensor(_NOBODY))


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


def _of_bytes(table: Tensor) -> Tensor:
    """The rows of a table that may be rows of bytes as a network sees them, by some of their entries.

    A gradient's rows may all be positive; to hash all past rows for them would take longer than a task's audit.
    """
    if not table.is_floating_point() or not table.numel():
        return table
    some = table[:, :: -(-table.numel() // _LOOKED_AT)].float().cpu().contiguous()
    seen = as_float(torch.arange(256, dtype=torch.uint8))
    values = torch.cat([seen, seen.half().float(), seen.bfloat16().float()]).unique()  # sorted
    place = torch.searchsorted(values, some).clamp_(max=len(values) - 1)
    return table[(values[place] == some).all(1).to(table.device)]


def _telling(rows: Tensor) -> Tensor:
    """(n,) which rows are not of a single colour: such are in many an image, in empty tables and in gradients."""
    return (rows != rows[:, :1]).any(1)


def _judged(rows: Tensor, whose: Tensor, pairs: int) -> tuple[Tensor, Tensor]:
    """Of rows that were matched in one table: those that are kept, for all that is known, and of these the sure ones.

    Of `pairs` of a row kept and a row looked for, pairs / 2^b are expected to be equal by chance where a row has b bits
    to tell it by; k of them are found with a probability of at most expected^k / k!. The rows with the most bits count
    first, each once. So many as chance will bring to a table of weights are not kept, unless they are so plain that
    something else than chance may have put them there: masks, counters.
    """
    bits, order = _bits(rows).sort(descending=True)
    whose = whose[order]
    _, where = np.unique(whose.cpu().numpy(), return_index=True)
    once = torch.from_numpy(np.sort(where))
    k = torch.arange(1, len(once) + 1, dtype=torch.float64)
    chance = k * (math.log(max(pairs, 1)) - bits[once] * math.log(2)) - torch.lgamma(k + 1)
    below = (chance < math.log(SURE)).nonzero().flatten()
    sure = whose[once[: int(below[-1]) + 1 if len(below) else 0]]
    usual = int((bits[once] >= PLAIN).sum())
    by_chance = len(sure) < usual and float(chance[usual - 1]) > math.log(LIKELY)
    kept = torch.isin(whose, sure) | (bits < PLAIN) | (not by_chance)
    return whose[kept], sure


def _bits(rows: Tensor) -> Tensor:
    """(n,) by how many bits a row can be told: those of its different numbers, and of which of them stand where.

    A float32 has one for each place of its mantissa that is used, an integer one for each of its places; zero has none.
    """
    ordered = rows.sort(1).values
    first = torch.ones_like(ordered, dtype=torch.bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    if rows.is_floating_point():
        mantissa = (ordered.float().contiguous().view(torch.int32) & 0x7FFFFF) | 0x800000
        each = 24 - torch.log2((mantissa & -mantissa).double())
    else:
        each = torch.log2(ordered.double().abs() + 1)
    each = each.where(first & (ordered != 0), torch.zeros((), dtype=torch.float64))
    n, width = rows.shape
    place = first.long().cumsum(1) - 1  # which of a row's different numbers stands there
    counts = torch.zeros(n, width, dtype=torch.float64).scatter_add_(
        1, place, torch.ones(n, width, dtype=torch.float64)
    )
    orders = math.lgamma(width + 1) - torch.lgamma(counts + 1).sum(1)
    return each.sum(1) + orders / math.log(2)


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
    bits = bits.contiguous()
    words = (bits.clone() if bits.storage_offset() % 2 else bits).view(torch.int64)  # a slice may begin within a word
    form = torch.randint(-(2**62), 2**62, (words.shape[1],), generator=torch.Generator().manual_seed(17))
    return torch.cat([(chunk * form).sum(1) for chunk in words.split(_CHUNK)])
