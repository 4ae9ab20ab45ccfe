"""What a process that is Holdfast's own asks of the machine; somebody else's process is left as it is."""

from __future__ import annotations

import ctypes
import os
import sys
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt in glibc


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
