"""`load` finds a data set by name, reads it with the reader of its format, and keeps the last few in memory."""

from __future__ import annotations

import os
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path

from holdfast.data import cifar_binary, digits, dtd, folders, idx, svhn, synth
from holdfast.data.catalog import EMBEDDED, NAMES, ON_DISK, Entry, Format
from holdfast.data.files import Arrays, absent, as_tensors, data_folder, fingerprint_of, located, sha256_of
from holdfast.data.source import FILES
from holdfast.errors import BadInput, unknown
from holdfast.types import DataSet

READERS: dict[Format, Callable[[Entry, list[Path]], Arrays]] = {
    "idx": idx.read,
    "cifar_binary": cifar_binary.read,
    "svhn": svhn.read,
    "dtd": dtd.read,
}
KEPT = 8  # data sets kept in memory; a transfer stream uses seven


def load(name: str, folder: Path | None = None, seed: int = 0) -> DataSet:
    """The data set with this name, from `folder`, else HOLDFAST_DATA, else ~/.cache/holdfast/data.

    Besides those of the catalog it is the name of any folder there that holds one. `seed` splits a folder that has no
    test rows.

    A second call is free while the files are unchanged, and returns the same object: treat its tensors as read-only.

    >>> load("digits").shape
    (1, 8, 8)
    """
    entry, where = entry_of(name, folder), data_folder(folder)
    if name in EMBEDDED:
        return _embedded(name)
    faults = absent(entry, where) if entry else []
    if faults:
        raise BadInput(*faults)
    if entry is None or entry.format == "folder":
        return folders.load(where / name, seed)
    paths = tuple(located(entry, where))
    return _from_disk(name, paths, tuple((p.stat().st_mtime_ns, p.stat().st_size) for p in paths))


def entry_of(name: str, folder: Path | None = None) -> Entry | None:
    """What the catalog knows of a data set on disk; None for one that is embedded, or a folder of the user's."""
    if name not in NAMES:
        if fault := folders.fault_of_name(name):
            raise BadInput(fault)
        where = data_folder(folder)
        if not (where / name).is_dir():
            raise BadInput(unknown("data set", name, [*NAMES, *folders.names(where)]) + _here(name))
    return ON_DISK.get(name)


def _here(name: str) -> str:
    """A hint, where a file or folder of nearly this name is in the current folder."""
    try:
        there = [entry.name for entry in os.scandir() if entry.is_dir() or entry.name.lower().endswith(FILES)]
    except OSError:
        return ""
    near = get_close_matches(name, there, n=1, cutoff=0.8)
    return f"; for the one in this folder write ./{near[0]}" if near else ""


def at_hand(name: str, folder: Path | None = None) -> bool:
    """Whether a data set is here: embedded, or with its files in HOLDFAST_DATA. They are not read.

    >>> at_hand("digits"), at_hand("nothing of this name")
    (True, False)
    """
    where, entry = data_folder(folder), ON_DISK.get(name)
    if entry is not None and entry.format != "folder":
        return not absent(entry, where)
    return name in EMBEDDED or (not folders.fault_of_name(name) and folders.is_here(where / name))


@lru_cache(maxsize=KEPT)
def procedural(
    name: str, families: tuple[str, ...], n_train: int, n_test: int, seed: int = 0, shift: float = 0.0
) -> DataSet:
    """A data set of this name from one family of synth or several; so many rows per class.

    >>> procedural("far-strokes", ("strokes",), 3, 2, shift=1.0).x.shape
    torch.Size([30, 3, 32, 32])
    """
    arrays = synth.several(families, n_train, n_test, seed, shift)
    return as_tensors(name, arrays, fingerprint_of(*arrays))


@lru_cache(maxsize=KEPT)
def _embedded(name: str) -> DataSet:
    arrays = digits.read() if name == "digits" else synth.read(name)
    return as_tensors(name, arrays, fingerprint_of(*arrays))


@lru_cache(maxsize=KEPT)
def _from_disk(name: str, paths: tuple[Path, ...], stamps: tuple[tuple[int, int], ...]) -> DataSet:
    """`stamps` are the files' times and sizes: a changed file is read anew."""
    entry = ON_DISK[name]
    arrays = READERS[entry.format](entry, list(paths))
    return as_tensors(name, arrays, sha256_of(paths))
