"""`load` finds a data set by name, reads it with the reader of its format, and keeps the last few in memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import torch

from holdfast.data import cifar_binary, digits, dtd, idx, svhn, synth
from holdfast.data.catalog import NAMES, ON_DISK, Entry, Format
from holdfast.data.files import Arrays, absent, data_folder, fingerprint_of, located, sha256_of
from holdfast.errors import BadInput, unknown
from holdfast.types import DataSet

READERS: dict[Format, Callable[[Entry, list[Path]], Arrays]] = {
    "idx": idx.read,
    "cifar_binary": cifar_binary.read,
    "svhn": svhn.read,
    "dtd": dtd.read,
}
KEPT = 8  # data sets kept in memory; a transfer stream uses seven


def load(name: str, folder: Path | None = None) -> DataSet:
    """The data set with this name, from `folder`, else HOLDFAST_DATA, else ~/.cache/holdfast/data.

    A second call is free while the files are unchanged, and returns the same object: treat its tensors as read-only.

    >>> load("digits").shape
    (1, 8, 8)
    """
    entry = entry_of(name)
    if entry is None:
        return _embedded(name)
    where = data_folder(folder)
    faults = absent(entry, where)
    if faults:
        raise BadInput(*faults)
    paths = tuple(located(entry, where))
    return _from_disk(name, paths, tuple((p.stat().st_mtime_ns, p.stat().st_size) for p in paths))


def entry_of(name: str) -> Entry | None:
    """What the catalog knows of a data set on disk; None for one that is embedded."""
    if name not in NAMES:
        raise BadInput(unknown("data set", name, NAMES))
    return ON_DISK.get(name)


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


def as_tensors(name: str, arrays: Arrays, fingerprint: str) -> DataSet:
    """A data set that shares memory with these arrays."""
    x, y, x_test, y_test = (torch.from_numpy(part) for part in arrays[:4])
    return DataSet(name, x, y, x_test, y_test, arrays.classes, fingerprint)
