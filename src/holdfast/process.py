"""What a process that is Holdfast's own asks of the machine, and how it was called; somebody else's process is left as
it is."""

from __future__ import annotations

import ctypes
import os
import platform
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from contextvars import ContextVar
from pathlib import Path

VERSION = "0.1.0"  # of Holdfast; pyproject.toml has it, too
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in glibc
_COMMAND: ContextVar[str] = ContextVar("command", default="")


def take_one_thread() -> None:
    """Idle threads sleep instead of spinning, and none starts unasked. Heeded before torch is imported."""
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")


def keep_memory() -> None:
    """Large blocks that are freed are kept for the next ones.

    glibc gives them back to Linux at once, which zeroes them page by page when they are asked for again: a fifth of the
    time of a convolutional net, whose activations come and go at every step.
    """
    if sys.platform != "linux":
        return
    with suppress(AttributeError):  # another C library
        mallopt = ctypes.CDLL(None).mallopt
        mallopt(_MMAP_THRESHOLD, 1 << 30)
        mallopt(_TRIM_THRESHOLD, (1 << 31) - 1)


def called(args: Sequence[str]) -> None:
    """The command line is at work with these words."""
    _COMMAND.set(shlex.join(["holdfast", *args]))


def command() -> str:
    """How what is done now was asked for: a command of ours, a script, or Python at a prompt."""
    script = Path(sys.argv[0])
    return _COMMAND.get() or (shlex.join(["python", *sys.argv]) if script.suffix == ".py" else "Python")


def machine() -> str:
    """'4 cores, Intel(R) Xeon(R) Processor'."""
    return f"{os.cpu_count()} cores, {_processor()}"


def _processor() -> str:
    try:
        named = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
    except OSError:
        named = []
    return named[0].partition(":")[2].strip() if named else platform.processor() or platform.machine()
