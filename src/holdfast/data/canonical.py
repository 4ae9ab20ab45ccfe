"""Rows of any source in canonical form.

Everything a user has becomes a `Table` first, images and labels as they came; then one function checks all of it and
brings it into the canonical form, so that every source gives the same errors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from holdfast.data.files import Arrays, as_tensors, fingerprint_of
from holdfast.data.given import Table
from holdfast.data.split import split_rows
from holdfast.errors import BadInput
from holdfast.types import DataSet

CHANNELS = (1, 3, 4)


def canonical(name: str, train: Table, test: Table | None, seed: int, fingerprint: str = "") -> DataSet:
    """A data set of these rows; without test rows, 20 % of each class become them.

    `fingerprint`: of the files they came from; else it is that of the arrays.
    """
    faults: list[str] = []
    x, y = examples(train.x, "x", faults), labels_of(train.y, "y", faults)
    _check_pair(x, y, ("x", "y"), faults)
    _check_names(train.names, y, faults)
    x_test = y_test = None
    if test is not None:
        x_test, y_test = examples(test.x, "x_test", faults), labels_of(test.y, "y_test", faults)
        _check_pair(x_test, y_test, ("x_test", "y_test"), faults)
        check_test(x, y, x_test, y_test, faults)
        if train.names != test.names:
            faults.append("train and test name their classes differently; both must have the same list of names")
    elif y is not None:
        check_counts(train.names, y, faults)
    if faults or x is None or y is None:
        raise BadInput(*faults)
    values, y = np.unique(y, return_inverse=True)  # labels 0..C-1 in the order of the given ones
    classes = tuple(train.names[v] for v in values) if train.names else tuple(map(str, values))
    if x_test is None or y_test is None:
        fingerprint = fingerprint or fingerprint_of(x, y, x[:0], y[:0], classes)  # of what was given, before the split
        rows, rows_test = split_rows(y, seed)
        x, y, x_test, y_test = x[rows], y[rows], x[rows_test], y[rows_test]  # copies: the data set's own memory
        x, x_test = np.ascontiguousarray(x), np.ascontiguousarray(x_test)
    else:
        y_test = np.searchsorted(values, y_test)
        fingerprint = fingerprint or fingerprint_of(x, y, x_test, y_test, classes)
        x, x_test = np.array(x, order="C"), np.array(x_test, order="C")  # copies, too
    return as_tensors(name, Arrays(x, y, x_test, y_test, classes), fingerprint)


def examples(given: Any, word: str, faults: list[str]) -> np.ndarray | None:
    """(N, C, H, W) or (N, D), uint8 or float32; None, and what is wrong with it, when it cannot be that."""
    try:
        x = _array(given)
    except (ValueError, TypeError) as error:
        faults.append(f"{word} cannot be made one array; all its examples must be numbers of one shape ({error})")
        return None
    if x.dtype.kind not in "buif":
        faults.append(f"{word} must hold numbers, not {x.dtype}")
        return None
    if x.ndim not in (2, 3, 4):
        faults.append(
            f"{word} has {x.ndim} dimensions {x.shape}; images are (N, H, W), (N, C, H, W) or (N, H, W, C), "
            "vectors (N, D)"
        )
        return None
    if x.size == 0:
        faults.append(f"{word} is empty, its shape is {x.shape}")
        return None
    if x.ndim == 3:
        x = x[:, None]
    elif x.ndim == 4 and x.shape[1] not in CHANNELS:
        if x.shape[-1] not in CHANNELS:
            faults.append(f"{word} has images of shape {x.shape[1:]}; 1, 3 or 4 channels must come first or last")
            return None
        x = x.transpose(0, 3, 1, 2)
    if x.dtype != np.uint8:
        with np.errstate(over="ignore"):  # what overflows becomes inf, and is reported below
            x = x.astype(np.float32)
        bad = len(x) - int(np.isfinite(x.reshape(len(x), -1)).all(1).sum())
        if bad:
            faults.append(f"{word} has NaN or infinite values in {bad} of its {len(x)} examples")
    return x


def _array(given: Any) -> np.ndarray:
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu()
        return (given.float() if given.is_floating_point() else given).numpy()
    if isinstance(given, list | tuple) and given and not isinstance(given[0], int | float):
        return np.stack([_array(item) for item in given])  # tensors, arrays, PIL images, lists
    return np.asarray(given)


def labels_of(given: Any, word: str, faults: list[str]) -> np.ndarray | None:
    """(N,) integers or strings."""
    try:
        y = given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else np.asarray(given)
    except (ValueError, TypeError) as error:
        faults.append(f"{word} cannot be made one array of labels ({error})")
        return None
    if y.ndim != 1:
        faults.append(f"{word} must be one-dimensional, one label per example, not of shape {y.shape}")
        return None
    if y.size == 0:
        faults.append(f"{word} is empty")
        return None
    if y.dtype.kind == "O":
        kinds = sorted({type(label).__name__ for label in y})
        if all(isinstance(label, str) for label in y):
            return y.astype(str)
        if all(isinstance(label, int) and abs(label) < 2**63 for label in y):
            return y.astype(np.int64)
        faults.append(f"{word} must hold integers or strings, all of one kind, not {', '.join(kinds)}")
        return None
    if y.dtype.kind == "f" and np.isnan(y).any():
        gone = int(np.isnan(y).sum())
        faults.append(f"{word} is NaN in {gone} of its {len(y)} labels; fill them in, or leave out those examples")
        return None
    if y.dtype.kind not in "biuU":
        faults.append(f"{word} must hold integers or strings, not {y.dtype}; convert it, e.g. {word}.astype(int)")
        return None
    return y if y.dtype.kind == "U" else y.astype(np.int64)


def check_counts(names: tuple[str, ...] | None, y: np.ndarray, faults: list[str]) -> None:
    values, counts = np.unique(y, return_counts=True)
    words = dict(enumerate(names or ()))
    lone = [str(words.get(value, value)) for value in values[counts == 1]]
    if lone:
        faults.append(
            f"these classes have one example only, which cannot be both in train and in test: {some(lone)}; "
            "leave them out or give test rows of their own, e.g. (x, y, x_test, y_test)"
        )


def _check_pair(x: np.ndarray | None, y: np.ndarray | None, words: tuple[str, str], faults: list[str]) -> None:
    if x is not None and y is not None and len(x) != len(y):
        faults.append(f"{words[0]} has {len(x)} examples but {words[1]} has {len(y)} labels")


def check_test(
    x: np.ndarray | None,
    y: np.ndarray | None,
    x_test: np.ndarray | None,
    y_test: np.ndarray | None,
    faults: list[str],
) -> None:
    if x is not None and x_test is not None:
        if x.shape[1:] != x_test.shape[1:]:
            faults.append(f"examples of x have shape {x.shape[1:]} but those of x_test {x_test.shape[1:]}")
        if x.dtype != x_test.dtype:
            faults.append(f"x is {x.dtype} but x_test is {x_test.dtype}; both must be bytes or both numbers")
    if y is not None and y_test is not None:
        if (y.dtype.kind == "U") != (y_test.dtype.kind == "U"):
            faults.append(f"y holds {y.dtype} but y_test {y_test.dtype}; both must be integers or both strings")
            return
        unseen = [str(label) for label in np.setdiff1d(y_test, y)]
        if unseen:
            faults.append(f"y_test has labels that y does not have: {some(unseen)}")


def _check_names(names: tuple[str, ...] | None, y: np.ndarray | None, faults: list[str]) -> None:
    if names and y is not None and (y.dtype.kind == "U" or y.min() < 0 or y.max() >= len(names)):
        faults.append(f"labels must be from 0 to {len(names) - 1}, the classes that the data set names")


def some(words: list[str]) -> str:
    """The first ten of them, and how many more."""
    return ", ".join(words[:10]) + (f" and {len(words) - 10} more" if len(words) > 10 else "")
