"""One process at a time works on an output folder, or on a model."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from holdfast.errors import BadInput
from holdfast.sweeps.store import HALF_WRITTEN, LOCK, refuse_foreign, unusable

GRACE = 1.0  # seconds to wait for a holder: the workers of a killed process outlive it by a moment
_UNSUPPORTED = (errno.ENOSYS, errno.ENOTSUP, errno.ENOLCK)  # some network file systems know no locks
_held: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


@contextmanager
def locked(
    folder: Path, refuse: Callable[[Path], None] = refuse_foreign, choose: str = "choose another --out"
) -> Iterator[None]:
    """Keep all others from a folder until the block ends; inside, it may be asked for again.

    `refuse` refuses a folder that is not ours; `choose`: what to do about one that cannot be had. The kernel frees the
    lock when its holder dies, so it never outlives a process, whatever the clock does.
    """
    place = folder.resolve()
    if place in _held.get():
        yield
        return
    refuse(folder)
    new = not folder.exists()
    try:
        handle = _taken(folder, choose)
    except OSError as error:
        raise unusable(folder, error, choose) from error
    for path in [path for path in folder.iterdir() if path.name.startswith(HALF_WRITTEN)]:
        path.unlink(missing_ok=True)
    token = _held.set(_held.get() | {place})
    try:
        yield
    finally:
        _held.reset(token)
        (folder / LOCK).unlink(missing_ok=True)
        os.close(handle)
        if new:
            with suppress(OSError):  # it stays, unless what came next was refused and nobody else came
                folder.rmdir()


def _taken(folder: Path, choose: str) -> int:
    """The open lock file with our number in it."""
    deadline = time.monotonic() + GRACE
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        except (
            FileNotFoundError,
            FileExistsError,
        ):  # its last holder left it empty and removed it
            if time.monotonic() > deadline:
                raise
            continue
        if _is_free(handle):
            if _is_there(handle, folder / LOCK):
                os.ftruncate(handle, 0)
                os.write(handle, str(os.getpid()).encode())
                return handle
        elif time.monotonic() > deadline:
            other = os.read(handle, 20).decode(errors="replace")
            os.close(handle)
            raise BadInput(f"{folder} is in use by process {other or 'unknown'}; wait for it, or {choose}")
        os.close(handle)
        time.sleep(0.02)


def _is_free(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
    return True


def _is_there(handle: int, path: Path) -> bool:
    """Whether the file is still the one of that name: its last holder removed it when it was done."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
