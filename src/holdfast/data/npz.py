"""An .npz file, or a folder with one: the arrays `x` and `y`, and `x_test` and `y_test` where it has test rows.

Nothing is unpickled, and no array is read before its header was found to fit the file.
"""

from __future__ import annotations

import math
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from holdfast.data.canonical import some
from holdfast.data.files import INFLATION, children, is_file, refused, sha256_of
from holdfast.data.given import Given, Table
from holdfast.data.split import split_rows
from holdfast.errors import BadInput

LIMIT = 2**33  # bytes an array may claim to hold
TRAIN, TEST = ("x", "y"), ("x_test", "y_test")
FAULTS = (
    OSError, EOFError, ValueError, KeyError, TypeError, OverflowError, MemoryError, RuntimeError, SyntaxError,
    tokenize.TokenError, zipfile.BadZipFile, zlib.error,
)  # what a broken archive or header raises  # fmt: skip
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def here(home: Path) -> bool:
    return bool(_candidates(home))


def files(home: Path) -> list[Path]:
    found = _candidates(home)
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise refused(home, f"the files {names}", "one .npz file; keep one of them there")
    return found


def tested(home: Path) -> bool:
    return set(TEST) <= set(_shapes(*files(home)))


def read(home: Path) -> Given:
    (path,) = files(home)
    held = _shapes(path)
    with _opened(path), np.load(path, allow_pickle=False) as content:
        arrays = {name: content[name] for name in held}
    test = Table(*(arrays[name] for name in TEST)) if TEST[0] in held else None
    return Given(Table(*(arrays[name] for name in TRAIN)), test, sha256_of([path]))


def read_alone(path: Path) -> tuple[np.ndarray, str] | None:
    """The examples of an .npz file without labels, and its digest; None where it has labels."""
    if set(_names(path)) & {*TRAIN[1:], *TEST}:
        return None
    _shapes(path, needed=TRAIN[:1])
    with _opened(path), np.load(path, allow_pickle=False) as content:
        return content["x"], sha256_of([path])


def _names(path: Path) -> list[str]:
    with _opened(path), zipfile.ZipFile(path) as archive:
        return [member.filename.removesuffix(".npy") for member in archive.infolist()]


def rows(home: Path) -> tuple[int, int]:
    """By the headers, and without test rows by the labels."""
    (path,) = files(home)
    held = _shapes(path)
    counts = {name: shape[0] if shape else 0 for name, shape in held.items()}
    if TEST[0] in held:
        return counts["x"], counts["x_test"]
    with _opened(path), np.load(path, allow_pickle=False) as content:
        y = content["y"]
    if y.ndim != 1 or len(y) != counts["x"]:
        raise refused(path, f"y of shape {y.shape}", f"{counts['x']} labels, one per example")
    train, test = split_rows(y, seed=0)  # how many rows these are is the same for every seed
    return len(train), len(test)


def _candidates(home: Path) -> list[Path]:
    if is_file(home):
        return [home]
    return sorted(home / entry.name for entry in children(home) if entry.is_file() and entry.name.endswith(".npz"))


def _shapes(path: Path, *, needed: tuple[str, ...] = TRAIN) -> dict[str, tuple[int, ...]]:
    """The arrays that are read, by name, after their headers were found right."""
    with _opened(path), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        held = [member.filename.removesuffix(".npy") for member in members]
        if len(set(held)) != len(held):
            raise refused(path, "two arrays of one name", "every name once")
        wanted = (*needed, *(TEST if set(TEST) & set(held) else ()))
        if not set(wanted) <= set(held):
            raise refused(path, f"the arrays {some(held) or 'none'}", "x and y, and x_test and y_test or neither")
        return {name: _shape(path, archive, members[held.index(name)]) for name in wanted}


def _shape(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> tuple[int, ...]:
    """From the header, for numbers and strings that the file is large enough to hold."""
    with archive.open(member) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in _HEADERS:
            raise ValueError(f"version {version} of the .npy format")
        shape, _, dtype = _HEADERS[version](stream)
    if dtype.hasobject:
        raise refused(path, f"{member.filename} with Python objects", "numbers or strings; pickles are never loaded")
    most = min(LIMIT, INFLATION * member.compress_size)
    if math.prod(shape) * dtype.itemsize > most:
        raise refused(path, f"{member.filename} that claims the shape {shape}", f"at most {most} bytes for its size")
    return tuple(shape)


@contextmanager
def _opened(path: Path) -> Iterator[None]:
    """What a broken file may raise on the way becomes one line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of headers that Python 2 wrote
            yield
    except BadInput:
        raise
    except FAULTS as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise refused(path, f"a broken file ({reason})", "an .npz file as numpy.savez writes it") from error
