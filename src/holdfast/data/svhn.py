"""SVHN's cropped digits: MATLAB v5 files with bytes `X` (32, 32, 3, N) and `y` (N, 1), where 10 stands for digit 0."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from holdfast.data.catalog import Entry
from holdfast.data.files import Arrays, check_labels, refused
from holdfast.data.matlab import Variable, numbers, variables

LIMIT = 2**31  # bytes of pixels; the published training file has 225 million
_NOTHING = Variable("nothing", (), 0, 0, False, "<")


def read(entry: Entry, paths: list[Path]) -> Arrays:
    """The training and the test file."""
    (x, y), (x_test, y_test) = (_read_mat(path, entry.labels) for path in paths)
    return Arrays(x, y, x_test, y_test, entry.classes)


def rows(entry: Entry, paths: list[Path]) -> tuple[int, int]:
    """Train and test rows as the headers state them."""
    train, test = (_checked(path)[0].shape[3] for path in paths)
    return train, test


def _read_mat(path: Path, classes: int) -> tuple[np.ndarray, np.ndarray]:
    pixels, labels = (numbers(path, variable) for variable in _checked(path))
    y = labels.reshape(-1)
    if not np.isin(y, np.arange(1, classes + 1)).all():
        raise refused(path, f"labels from {y.min()} to {y.max()}", f"whole numbers from 1 to {classes} (for digit 0)")
    digits = y.astype(np.int64) % classes
    check_labels(path, digits, pixels.shape[3], classes)
    return np.ascontiguousarray(pixels.transpose(3, 2, 0, 1)), digits  # (32, 32, 3, N) -> (N, 3, 32, 32)


def _checked(path: Path) -> tuple[Variable, Variable]:
    """X and y, after their headers have been found right; no number is read yet."""
    held = variables(path)
    x, y = held.get("X", _NOTHING), held.get("y", _NOTHING)
    if len(x.shape) != 4 or x.shape[:3] != (32, 32, 3) or x.kind != "uint8":
        raise refused(path, f"X as {x.kind} {x.shape}", "uint8 (32, 32, 3, N)")
    n = x.shape[3]
    if n < 1 or math.prod(x.shape) > LIMIT:
        raise refused(path, f"a header that claims {n} images", f"from 1 to {LIMIT // 3072}")
    if math.prod(y.shape) != n or y.kind in ("other", "nothing"):
        raise refused(path, f"y as {y.kind} {y.shape}", f"{n} numbers, one label per image")
    return x, y
