"""Any folder below HOLDFAST_DATA is a data set by its name: IDX files, an .npz file, or class folders of images.

Where a folder fits several of these, the first counts.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from holdfast.data import class_folders, idx_folder, npz
from holdfast.data.canonical import canonical
from holdfast.data.catalog import NAMES
from holdfast.data.files import is_file, refused
from holdfast.data.given import Given, Table
from holdfast.errors import BadInput
from holdfast.types import DataSet

KEPT = 8  # data sets kept in memory, as in `load`
EXPECTED = (
    "the four IDX files (train-images-idx3-ubyte and so on, .gz or not), one .npz file with x and y, or class folders "
    "of images"
)


@dataclass(frozen=True)
class Layout:
    """One way in which a folder can hold a data set."""

    word: str
    here: Callable[[Path], bool]  # whether a folder looks like it
    files: Callable[[Path], Sequence[str | Path]]  # that are read
    tested: Callable[[Path], bool]  # whether it has test rows of its own
    read: Callable[[Path], Given]
    rows: Callable[[Path], tuple[int, int]]  # train and test, without reading images


LAYOUTS = tuple(
    Layout(word, room.here, room.files, room.tested, room.read, room.rows)
    for word, room in (("IDX files", idx_folder), ("npz", npz), ("class folders", class_folders))
)


def fault_of_name(name: str) -> str:
    """Why no folder can have this name; empty where one can."""
    if name and name[0] != "." and name.isprintable() and not set(name) & set("/\\:"):
        return ""
    return (
        f"{name!r} cannot be the name of a data set; that is the name of a folder in HOLDFAST_DATA, without '/', '\\' "
        "and ':', and it does not begin with a dot"
    )


def names(where: Path) -> list[str]:
    """The folders that look like data sets and have no name that the catalog knows."""
    try:
        with os.scandir(where) as entries:
            found = sorted(e.name for e in entries if e.is_dir() and e.name not in NAMES)
    except OSError:
        return []
    return [name for name in found if not fault_of_name(name) and is_here(where / name)]


def is_here(home: Path) -> bool:
    """Whether a folder looks like a data set; a link or one that may not be entered does: reading it says why not."""
    if not os.path.isdir(home):
        return False
    try:
        return home.is_symlink() or _layout(home) is not None
    except BadInput:
        return True


def layout(home: Path) -> Layout:
    """How a folder holds a data set."""
    if home.is_symlink():
        raise refused(home, "a link", "a folder; nothing outside HOLDFAST_DATA is read: copy it")
    found = LAYOUTS[1] if is_file(home) else _layout(home)  # a file is an npz
    if found is None:
        raise refused(home, "no data set", EXPECTED)
    return found


def load(home: Path, seed: int, test: Path | None = None) -> DataSet:
    """The data set of a folder, or of an npz; without test rows, 20 % of each class become them, drawn by the seed.

    Test rows may lie in a folder, or npz, of their own. A second call is free while the files are unchanged.
    """
    found = layout(home)
    stamps = _stamp(found.files(home)), "" if test is None else _stamp(layout(test).files(test))
    return _loaded(home, test, stamps, None if test is not None or found.tested(home) else seed)


@lru_cache(maxsize=KEPT)
def _loaded(home: Path, test: Path | None, stamps: tuple[str, str], seed: int | None) -> DataSet:
    given = read(home, test) if seed is None else _whole(home, stamps[0])
    try:
        data = canonical(home.name, given.train, given.test, seed or 0, given.fingerprint)
    except BadInput as error:
        raise BadInput(*(f"cannot read {home}: {fault}" for fault in error.faults)) from error
    if len(data.classes) < 2:
        raise refused(home, f"the class {data.classes[0]} only", "at least two classes")
    return data


def read(home: Path, test: Path | None = None) -> Given:
    """All rows, as they are there."""
    given = layout(home).read(home)
    if test is None:
        return given
    if given.test is not None:
        raise BadInput(f"{home} has test rows of its own; leave out {test}, or take away those")
    other = layout(test).read(test)
    parts = [given.train, other.train, *([] if other.test is None else [other.test])]
    if len(parts) > 2:
        raise BadInput(f"{test} has training rows and test rows, and is to be one of them; take one away")
    both = given.fingerprint + other.fingerprint
    return Given(by_word(given.train), by_word(other.train), hashlib.sha256(both.encode()).hexdigest())


def by_word(table: Table) -> Table:
    """Its labels are the names of its classes, where they have names, so that they mean the same elsewhere."""
    return table if table.names is None else Table(table.x, np.array(table.names)[np.asarray(table.y)])


@lru_cache(maxsize=1)
def _whole(home: Path, stamp: str) -> Given:
    """Kept for the next seed, which splits it in another way."""
    return layout(home).read(home)


def _layout(home: Path) -> Layout | None:
    return next((each for each in LAYOUTS if each.here(home)), None)


def _stamp(paths: Sequence[str | Path]) -> str:
    """A digest over the files' names, times and sizes: a changed file is read anew."""
    digest = hashlib.sha256()
    for path in paths:
        try:
            found = os.stat(path)
        except OSError as error:
            raise refused(Path(path), f"a broken file ({error.strerror})", "one that can be read") from error
        digest.update(f"{path}\0{found.st_mtime_ns}\0{found.st_size}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def size(home: Path) -> int:
    """Bytes of all files that are read."""
    return sum(os.stat(path).st_size for path in layout(home).files(home))
