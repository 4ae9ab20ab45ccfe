"""IDX, the format of MNIST and Fashion-MNIST: a magic number, the sizes, then bytes; packed with gzip or not.

00 00 08 <dims> | <dims> big-endian uint32 sizes | the bytes, last dimension fastest
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from holdfast.data.catalog import Entry
from holdfast.data.files import INFLATION, Arrays, check_labels, refused
from holdfast.errors import BadInput

LIMIT = 2**30  # bytes a file may claim to hold; MNIST's largest holds 47 million
_UINT8 = 0x08


def read(entry: Entry, paths: list[Path]) -> Arrays:
    """The four files of a data set: train images and labels, test images and labels."""
    x, y, x_test, y_test = (read_idx(path, dims) for path, dims in zip(paths, (3, 1, 3, 1), strict=True))
    for images, labels, path in ((x, y, paths[0]), (x_test, y_test, paths[2])):
        if images.shape[1:] != entry.shape[1:]:
            raise refused(path, f"images of {times(images.shape[1:])}", times(entry.shape[1:]))
        check_labels(paths[paths.index(path) + 1], labels, len(images), entry.labels)
    return Arrays(x[:, None], y.astype(np.int64), x_test[:, None], y_test.astype(np.int64), entry.classes)


def rows(entry: Entry, paths: list[Path]) -> tuple[int, int]:
    """Train and test rows as the headers state them; the images are not read."""
    return header_of(paths[0], 3)[0], header_of(paths[2], 3)[0]


def header_of(path: Path, dims: int) -> tuple[int, ...]:
    """The sizes that a file states."""
    with _opened(path) as stream:
        return _header(stream, path, dims)


def read_idx(path: Path, dims: int) -> np.ndarray:
    """One file of unsigned bytes with this many dimensions."""
    with _opened(path) as stream:
        shape = _header(stream, path, dims)
        claimed = math.prod(shape)
        content = stream.read(claimed)
        if len(content) < claimed:
            raise refused(path, f"{len(content)} bytes of data", f"{claimed}, as its header says ({times(shape)})")
        if stream.read(1):
            raise refused(path, f"more than {claimed} bytes of data", f"as many as its header says ({times(shape)})")
    return np.frombuffer(content, np.uint8).reshape(shape).copy()  # a copy may be written to, and torch wants that


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
        with gzip.open(path) if packed else path.open("rb") as stream:
            yield stream  # type: ignore[misc]
    except BadInput:
        raise
    except (OSError, EOFError, zlib.error) as error:
        raise refused(path, f"a broken file ({error})", "an IDX file, packed with gzip or not") from error


def _header(stream: IO[bytes], path: Path, dims: int) -> tuple[int, ...]:
    start, wanted = stream.read(4), bytes((0, 0, _UINT8, dims))
    if start != wanted:
        raise refused(path, f"the magic number {start.hex() or 'nothing'}", f"{wanted.hex()}, that of {dims}-dim bytes")
    sizes = stream.read(4 * dims)
    if len(sizes) < 4 * dims:
        raise refused(path, f"a header of {4 + len(sizes)} bytes", f"{4 + 4 * dims} bytes")
    shape = struct.unpack(f">{dims}I", sizes)
    most = min(LIMIT, INFLATION * path.stat().st_size)
    if math.prod(shape) > most:
        raise refused(path, f"a header that claims {times(shape)} bytes", f"at most {most} for a file of its size")
    return shape


def times(shape: tuple[int, ...]) -> str:
    """28 x 28."""
    return " x ".join(map(str, shape))
