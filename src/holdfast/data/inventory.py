"""What is there: `status` for all data sets at a glance, `verify` for one of them file by file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from holdfast.data import cifar_binary, digits, dtd, folders, idx, svhn, synth
from holdfast.data.catalog import EMBEDDED, NAMES, Entry, Format, PublishedFile
from holdfast.data.files import absent, data_folder, is_file, located, sha256_of
from holdfast.data.load import entry_of, load
from holdfast.errors import BadInput

COUNTERS: dict[Format, Callable[[Entry, list[Path]], tuple[int, int]]] = {
    "idx": idx.rows,
    "cifar_binary": cifar_binary.rows,
    "svhn": svhn.rows,
    "dtd": dtd.rows,
}


@dataclass(frozen=True)
class StatusRow:
    """One line of `holdfast data status`."""

    name: str
    present: bool
    where: str  # a folder, or 'embedded'
    train: int | None  # rows; None when absent or unreadable
    test: int | None
    size: int  # bytes: of the files, or of the arrays when embedded
    embedded: bool
    note: str  # why it is not ready, or how it differs from what was published


@dataclass(frozen=True)
class FileCheck:
    """One file beside the one that was published."""

    file: Path
    state: Literal["published", "differs", "absent"]
    detail: str


@dataclass(frozen=True)
class Verdict:
    """What `holdfast data verify NAME` found."""

    name: str
    files: tuple[FileCheck, ...]  # none when embedded, or where nothing is known to compare with
    reads: bool
    detail: str  # rows and shape, or why it does not read

    @property
    def published(self) -> bool:
        """Every file that can be compared is, byte for byte, the published one."""
        return self.reads and all(check.state == "published" for check in self.files)


def status(folder: Path | None = None) -> list[StatusRow]:
    """One row per data set. Rows are counted from headers and lists: no image is decoded, nothing is raised."""
    return [status_of(name, folder) for name in (*NAMES, *folders.names(data_folder(folder)))]


def status_of(name: str, folder: Path | None = None) -> StatusRow:
    """The row of one data set; a name that there is not is bad input."""
    entry, where = entry_of(name, folder), data_folder(folder)
    if name in EMBEDDED:
        return _embedded(name, where)
    return _folder(name, entry, where) if entry is None or entry.format == "folder" else _on_disk(entry, where)


def verify(name: str, folder: Path | None = None) -> Verdict:
    """Compare each file with the published one, and read the data set whole."""
    entry, where = entry_of(name, folder), data_folder(folder)
    files: tuple[FileCheck, ...] = ()
    if entry is not None:
        paths = located(entry, where)
        files = tuple(_compared(path, file) for path, file in zip(paths, entry.files, strict=True))
    try:
        data = load(name, folder)
    except BadInput as error:
        return Verdict(name, files, False, str(error))
    shape = " x ".join(map(str, data.shape))
    detail = f"reads: {len(data.x)} train and {len(data.x_test)} test rows of {shape}, {len(data.classes)} classes"
    if not files and name not in EMBEDDED:
        detail += f", sha256 {data.fingerprint}"
    return Verdict(name, files, True, detail)


def _embedded(name: str, folder: Path) -> StatusRow:
    train, test = digits.ROWS if name == "digits" else synth.rows(name)
    size = (train + test) * (64 if name == "digits" else 3 * synth.SIDE**2)
    note = f"the folder {folder / name} is not read; rename it" if folders.is_here(folder / name) else ""
    return StatusRow(name, True, "embedded", train, test, size, True, note)


def _folder(name: str, entry: Entry | None, folder: Path) -> StatusRow:
    home = folder / name
    if not folders.is_here(home):
        note = f"absent; `holdfast data fetch {name}` says where to get it"
        return StatusRow(name, False, str(home), None, None, 0, False, note)
    try:
        layout = folders.layout(home)
        size, (train, test) = folders.size(home), layout.rows(home)
    except BadInput as error:
        return StatusRow(name, True, str(home), None, None, 0, False, error.faults[0])
    return StatusRow(name, True, str(home), train, test, size, False, _differs(entry, (train, test)) or layout.word)


def _on_disk(entry: Entry, folder: Path) -> StatusRow:
    paths, where = located(entry, folder), str(folder / entry.name)
    size = sum(path.stat().st_size for path in paths if is_file(path))
    if absent(entry, folder):
        note = f"absent; run `holdfast data fetch {entry.name}`"
        return StatusRow(entry.name, False, where, None, None, size, False, note)
    try:
        train, test = COUNTERS[entry.format](entry, paths)
    except BadInput as error:
        return StatusRow(entry.name, True, where, None, None, size, False, str(error))
    return StatusRow(entry.name, True, where, train, test, size, False, _differs(entry, (train, test)))


def _differs(entry: Entry | None, rows: tuple[int, int]) -> str:
    if entry is None or entry.rows is None or rows == entry.rows:
        return ""
    return f"the published set has {entry.rows[0]} and {entry.rows[1]} rows"


def _compared(path: Path, published: PublishedFile) -> FileCheck:
    if not is_file(path):
        return FileCheck(path, "absent", f"expected {published.size} bytes, sha256 {published.sha256}")
    size, digest = path.stat().st_size, sha256_of([path])
    if digest == published.sha256:
        return FileCheck(path, "published", f"{size} bytes, sha256 {digest}")
    return FileCheck(
        path,
        "differs",
        f"differs from the published file: {size} bytes, sha256 {digest}; "
        f"published {published.size} bytes, sha256 {published.sha256}",
    )
