"""MATLAB v5 files, as far as SVHN needs them: arrays of plain numbers. Cells, structs and objects are never built.

Our own reader, because scipy's ends the process (a segmentation fault in 1.17) on some damaged files. A file is 128
bytes of header, then elements, each a tag (type, length) and its bytes; an element may be packed with zlib. A matrix
is an element made of elements: flags, dimensions, name, numbers, the first dimension fastest.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np

from holdfast.data.files import INFLATION, refused

MAGIC = b"MATLAB 5.0 MAT-file"
VARIABLES = 100  # more than this many in one file is damage, not data
_MATRIX, _PACKED, _COMPLEX = 14, 15, 0x0800
_STORED = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_HEAD = 1024  # bytes within which a matrix names its type, shape and name

Order = Literal["<", ">"]  # of bytes


class Variable(NamedTuple):
    """What a file says of one variable, and where it lies."""

    kind: str  # numpy's name of its type; 'other' when it is not plain real numbers
    shape: tuple[int, ...]
    start: int
    length: int
    packed: bool
    order: Order


class _Damaged(Exception):
    """What was found instead of a well-formed element."""


class _Elements:
    """The elements in a buffer, one after another, never beyond its end."""

    def __init__(self, content: bytes, order: Order) -> None:
        self.content, self.order, self.at = content, order, 0

    def take(self) -> tuple[int, bytes]:
        """The next element's type and bytes. Up to four bytes may stand in the tag itself."""
        kind, length = struct.unpack(self.order + "II", self._bytes(8))
        if kind >> 16:
            return kind & 0xFFFF, self.content[self.at - 4 : self.at][: kind >> 16]
        content = self._bytes(length)
        self.at += -length % 8
        return kind, content

    def _bytes(self, length: int) -> bytes:
        if self.at + length > len(self.content):
            raise _Damaged(f"an element of {length} bytes where {max(0, len(self.content) - self.at)} are left")
        self.at += length
        return self.content[self.at - length : self.at]


def variables(path: Path) -> dict[str, Variable]:
    """The variables of a file by name; only their headers are read."""
    try:
        with path.open("rb") as file:
            start = file.read(128)
            if not start.startswith(MAGIC) or len(start) < 128 or start[126:] not in (b"IM", b"MI"):
                raise _Damaged(f"a header of {len(start)} bytes from {start[:19]!r} to {start[124:]!r}")
            order: Order = "<" if start[126:] == b"IM" else ">"
            size, found = path.stat().st_size, dict[str, Variable]()
            while tag := file.read(8):
                kind, length = struct.unpack(order + "II", tag)
                at = file.tell()
                if at + length > size or len(found) == VARIABLES:
                    raise _Damaged(f"an element of {length} bytes at {at} in a file of {size}")
                head = file.read(min(length, _HEAD))
                name, variable = _header(head, kind, order, at, length)
                found[name] = variable
                file.seek(at + length)
            return found
    except (_Damaged, OSError, struct.error, zlib.error) as error:
        raise refused(path, f"{error}", f"a whole MATLAB v5 file ({MAGIC.decode()})") from error


def numbers(path: Path, variable: Variable) -> np.ndarray:
    """The array of a variable that is not 'other'."""
    most = 8 * math.prod(variable.shape) + _HEAD
    try:
        if most > 8 * INFLATION * variable.length + _HEAD:
            raise _Damaged(f"{variable.length} bytes that claim {math.prod(variable.shape)} numbers")
        with path.open("rb") as file:
            file.seek(variable.start)
            content = file.read(variable.length)
        elements = _Elements(_unpacked(content, most) if variable.packed else content, variable.order)
        for _ in ("flags", "dimensions", "name"):
            elements.take()
        stored, raw = elements.take()
        if stored not in _STORED:
            raise _Damaged(f"numbers of the unknown type {stored}")
        flat = np.frombuffer(raw, np.dtype(_STORED[stored]).newbyteorder(variable.order))
        if len(flat) != math.prod(variable.shape):
            raise _Damaged(f"{len(flat)} numbers for the shape {variable.shape}")
        return flat.reshape(variable.shape, order="F").astype(variable.kind)
    except (_Damaged, OSError, ValueError, struct.error, zlib.error) as error:
        raise refused(path, f"{error}", f"{variable.kind} {variable.shape}, as its header says") from error


def _header(head: bytes, kind: int, order: Order, at: int, length: int) -> tuple[str, Variable]:
    packed = kind == _PACKED
    if packed:
        head = zlib.decompressobj().decompress(head, _HEAD)
        kind, _ = struct.unpack_from(order + "II", head)
        head = head[8:]
    if kind != _MATRIX:
        raise _Damaged(f"an element of type {kind} instead of a matrix")
    elements = _Elements(head, order)
    (_, flags), (_, sizes), (_, name) = elements.take(), elements.take(), elements.take()
    word = struct.unpack_from(order + "I", flags)[0]
    shape = struct.unpack(f"{order}{len(sizes) // 4}i", sizes)
    if len(shape) > 32 or min(shape, default=-1) < 0:
        raise _Damaged(f"the shape {shape}")
    plain = "other" if word & _COMPLEX else _CLASSES.get(word & 0xFF, "other")
    dtype = plain if plain == "other" else np.dtype(plain).name
    return name.decode("latin-1"), Variable(dtype, shape, at, length, packed, order)


def _unpacked(content: bytes, most: int) -> bytes:
    """A packed matrix without its tag; no more bytes than its shape can need."""
    stream = zlib.decompressobj()
    matrix = stream.decompress(content, most)
    if not stream.eof:
        raise _Damaged(f"{'more than ' if len(matrix) == most else 'only '}{len(matrix)} bytes when unpacked")
    return matrix[8:]
