"""Files are written whole or not at all, and survive a power cut once they are there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.errors import NotKept


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _umask()


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    """A temporary file beside it, then a rename: a reader sees the old content or the new one."""
    with keeping(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            os.close(handle)
            fill(Path(part), content)
            Path(part).chmod(0o666 & ~_UMASK)  # as an ordinary new file has it
            os.replace(part, path)
            flush_folder(path.parent)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise


def fill(path: Path, content: bytes) -> None:
    """Write a file and wait until it is on the disk."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def flush_folder(folder: Path) -> None:
    """Make new names in a folder survive a power cut; not every system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def keeping(path: Path) -> Iterator[None]:
    """What goes wrong inside while `path` is written is told with the place and the reason."""
    try:
        yield
    except OSError as error:
        raise NotKept(error.errno, error.strerror or str(error), str(path)) from error


def unwritable(folder: Path, option: str = "--out") -> list[str]:
    """Why nothing can be written to a folder, which need not exist yet; the option names another."""
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not there.is_dir():
        return [f"{there} is a file, not a folder; choose another {option}"]
    if not os.access(there, os.W_OK | os.X_OK):
        return [f"{there} cannot be written to; choose another {option}"]
    return []
