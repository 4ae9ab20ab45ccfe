"""What all readers share: where files lie, how a faulty one is refused, and tar archives read within bounds."""

from __future__ import annotations

import gzip
import hashlib
import os
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from holdfast.data.catalog import Entry
from holdfast.errors import BadInput
from holdfast.types import DataSet

INFLATION = 1032  # zlib cannot make more than this many bytes out of one
_CHUNK = 2**18


class Arrays(NamedTuple):
    """The four arrays of a data set, and its classes' names. Readers give bytes and int64 labels."""

    x: np.ndarray  # (N, C, H, W) or (N, D)
    y: np.ndarray  # (N,) int64
    x_test: np.ndarray
    y_test: np.ndarray
    classes: tuple[str, ...]


def as_tensors(name: str, arrays: Arrays, fingerprint: str) -> DataSet:
    """A data set that shares memory with these arrays."""
    x, y, x_test, y_test = (torch.from_numpy(part) for part in arrays[:4])
    return DataSet(name, x, y, x_test, y_test, arrays.classes, fingerprint)


def data_folder(folder: Path | None = None) -> Path:
    """The folder that holds the data sets: the one given, else HOLDFAST_DATA, else ~/.cache/holdfast/data."""
    if folder is not None:
        return Path(folder).expanduser()
    named = os.environ.get("HOLDFAST_DATA")
    return Path(named).expanduser() if named else Path.home() / ".cache" / "holdfast" / "data"


def is_file(path: Path) -> bool:
    """Whether there is a file that can be reached; a folder that may not be entered has none."""
    return os.path.isfile(path)  # Path.is_file would raise PermissionError


def located(entry: Entry, folder: Path) -> list[Path]:
    """Where each file of a data set lies, or should lie; an IDX file may also lie there unpacked."""
    return [_unpacked_if_only(folder / entry.name / file.name) for file in entry.files]


def _unpacked_if_only(path: Path) -> Path:
    plain = path.with_suffix("")
    return plain if path.name.endswith("ubyte.gz") and is_file(plain) and not is_file(path) else path


def absent(entry: Entry, folder: Path) -> list[str]:
    """One sentence per file of a data set that is not there, or one for a folder."""
    if entry.format == "folder":
        home = folder / entry.name
        line = f"data set {entry.name!r} needs the folder {home}, which does not exist"
        return [] if os.path.isdir(home) else [f"{line}; `holdfast data fetch {entry.name}` says where to get it"]
    return [
        f"data set {entry.name!r} needs the file {path}, which does not exist; "
        f"run `holdfast data fetch {entry.name}` or set HOLDFAST_DATA to the folder that has it"
        for path in located(entry, folder)
        if not is_file(path)
    ]


def fault(path: Path, found: str, expected: str) -> str:
    """The one line for a file or folder that is not what its name says."""
    return f"cannot read {path}: found {found}, expected {expected}"


def refused(path: Path, found: str, expected: str) -> BadInput:
    return BadInput(fault(path, found, expected))


def need_pillow(name: str) -> None:
    """Refuse to read images where the package that can is not installed."""
    try:
        import PIL.Image  # noqa: F401
    except ImportError as error:
        raise BadInput(
            f"data set {name!r} needs Pillow to read its images; run `pip install 'holdfast[images]'`"
        ) from error


def children(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder of a user's, hidden things left out. Links are refused: they may lead out of it."""
    try:
        with os.scandir(folder) as entries:
            found = sorted((entry for entry in entries if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except OSError as error:
        raise refused(folder, f"a folder that cannot be entered ({error.strerror})", "one that can") from error
    links = [entry.name for entry in found if entry.is_symlink()]
    if links:
        raise refused(folder / links[0], "a link", "the thing itself; nothing outside the folder is read: copy it")
    return found


def sha256_of(paths: Iterable[Path]) -> str:
    """One digest over the bytes of all these files, in this order."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
    return digest.hexdigest()


def fingerprint_of(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, classes: tuple[str, ...]
) -> str:
    """A digest over arrays: their types, shapes and bytes, and the classes' names."""
    digest = hashlib.sha256(repr(classes).encode())
    for part in (x, y, x_test, y_test):
        digest.update(f"{part.dtype.str}{part.shape}".encode())
        digest.update(np.ascontiguousarray(part).data)
    return digest.hexdigest()


def check_labels(path: Path, y: np.ndarray, rows: int, classes: int) -> None:
    """Refuse labels that are not one per image, or that name a class which does not exist."""
    if len(y) != rows:
        raise refused(path, f"{len(y)} labels", f"{rows}, one per image")
    if len(y) == 0:
        raise refused(path, "no rows", "at least one")
    if y.min() < 0 or y.max() >= classes:
        wrong = y.min() if y.min() < 0 else y.max()
        raise refused(path, f"the label {wrong}", f"labels from 0 to {classes - 1}")


class _Bounded:
    """A stream that refuses to give more than `limit` bytes, so that a small archive cannot fill the memory."""

    def __init__(self, stream: gzip.GzipFile, path: Path, limit: int) -> None:
        self.stream, self.path, self.limit, self.given = stream, path, limit, 0

    def read(self, size: int) -> bytes:
        chunk = self.stream.read(size)
        self.given += len(chunk)
        if self.given > self.limit:
            raise refused(self.path, f"more than {self.limit} bytes when unpacked", "no more than that")
        return chunk


def tar_members(path: Path, limit: int, wanted: Callable[[str], bool]) -> Iterator[tuple[str, bytes]]:
    """(name, content) of the regular files in a .tar.gz whose exact name is wanted; nothing is written to disk."""
    seen = set()
    try:
        with gzip.open(path) as unpacked:
            stream = _Bounded(unpacked, path, limit)
            with tarfile.open(fileobj=stream, mode="r|", bufsize=_CHUNK) as archive:  # type: ignore[call-overload]
                for member in archive:
                    if not member.isfile() or not wanted(member.name):
                        continue
                    if member.name in seen:
                        raise refused(path, f"the member {member.name} twice", "it once")
                    seen.add(member.name)
                    yield member.name, _content(archive, member)
            while stream.read(_CHUNK):  # to the end, where gzip compares its checksum
                pass
    except BadInput:
        raise
    except (OSError, EOFError, zlib.error, tarfile.TarError, ValueError) as error:
        raise refused(path, f"a broken archive ({error})", "a whole .tar.gz") from error


def _content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    file = archive.extractfile(member)
    content = b"" if file is None else file.read()
    if len(content) != member.size:
        raise tarfile.ReadError(f"{member.name} ends after {len(content)} of {member.size} bytes")
    return content


def text_lines(path: Path, name: str, content: bytes) -> list[str]:
    """The non-empty lines of a text file in an archive."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise refused(path, f"{name} that is not text", "UTF-8 text") from error
    return [line.strip() for line in text.splitlines() if line.strip()]
