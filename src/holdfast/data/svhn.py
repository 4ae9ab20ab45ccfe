"""SVHN's cropped digits: MATLAB v5 files with `X` (32, 32, 3, N) of bytes and `y` (N, 1), where 10 stands for digit 0.

The files are opened only after their headers have been checked: plain numbers of the right shape, no more of them than
a file of that size can hold. Cells, structs and objects are never built.
"""

from __future__ import annotations

import math
import struct
import zlib
from pathlib import Path

import numpy as np

from holdfast.data.catalog import Entry
from holdfast.data.files import INFLATION, Arrays, check_labels, refused

LIMIT = 2**31  # bytes of pixels; the published training file has 225 million
_MAGIC = b"MATLAB 5.0 MAT-file"
_NUMBERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "single", "double")
# What scipy raises, beside its MatReadError, on files that are not what they claim.
_BROKEN = (
    OSError,
    EOFError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    OverflowError,
    MemoryError,
    NotImplementedError,
    struct.error,
    zlib.error,
)


def read(entry: Entry, paths: list[Path]) -> Arrays:
    """The training and the test file."""
    (x, y), (x_test, y_test) = (_read_mat(path, entry.labels) for path in paths)
    return Arrays(x, y, x_test, y_test, entry.classes)


def rows(entry: Entry, paths: list[Path]) -> tuple[int, int]:
    """Train and test rows as the headers state them."""
    train, test = (_header(path) for path in paths)
    return train, test


def _read_mat(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.io import matlab

    n = _header(path)
    try:
        content = matlab.loadmat(path, variable_names=("X", "y"))
        pixels, labels = np.asarray(content["X"]), np.asarray(content["y"])
    except (matlab.MatReadError, *_BROKEN) as error:
        raise refused(path, f"a broken file ({error})", "a whole MATLAB v5 file") from error
    if pixels.shape != (32, 32, 3, n) or pixels.dtype != np.uint8 or labels.size != n or labels.dtype.kind not in "uif":
        raise refused(path, "arrays unlike their headers", f"32 x 32 x 3 x {n} bytes and {n} labels")
    y = labels.reshape(-1)
    if not np.isin(y, np.arange(1, classes + 1)).all():
        raise refused(path, f"labels from {y.min()} to {y.max()}", f"whole numbers from 1 to {classes} (for digit 0)")
    digits = y.astype(np.int64) % classes
    check_labels(path, digits, n, classes)
    return np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)), digits  # (32, 32, 3, N) -> (N, 3, 32, 32)


def _header(path: Path) -> int:
    """The number of rows, after the headers of X and y have been found right."""
    from scipy.io import matlab

    with path.open("rb") as file:
        start = file.read(len(_MAGIC))
    if start != _MAGIC:
        raise refused(path, f"a file that starts with {start!r}", f"{_MAGIC!r}")
    try:
        held = {name: (tuple(shape), kind) for name, shape, kind in matlab.whosmat(path)}
    except (matlab.MatReadError, *_BROKEN) as error:
        raise refused(path, f"a broken file ({error})", "a MATLAB v5 file with X and y") from error
    shape, kind = held.get("X", ((), "nothing"))
    if len(shape) != 4 or shape[:3] != (32, 32, 3) or kind != "uint8":
        raise refused(path, f"X as {kind} {shape}", "uint8 (32, 32, 3, N)")
    n = shape[3]
    most = min(LIMIT, INFLATION * path.stat().st_size)
    if n < 1 or math.prod(shape) > most:
        raise refused(path, f"a header that claims {n} images", f"from 1 to {most // 3072} in a file of its size")
    shape, kind = held.get("y", ((), "nothing"))
    if math.prod(shape) != n or kind not in _NUMBERS:
        raise refused(path, f"y as {kind} {shape}", f"{n} numbers, one label per image")
    return n
