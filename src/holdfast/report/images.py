"""What the tasks of a stream look like: a strip of test images of each."""

from __future__ import annotations

import struct
import zlib
from base64 import b64encode
from collections.abc import Sequence
from html import escape

import numpy as np

from holdfast.types import Record

SHOWN = 40  # pixels of the page that an image is wide
SAID = "Test images of each task, class by class, as a network sees them but for their scale."


def strips(record: Record) -> str:
    """A strip for each task, with its name; nothing where the record has no images."""
    if not record.images:
        return ""
    names = [escape(str(task["name"])) for task in record.tasks]
    drawn = "".join(_figure(t, name, of) for t, (name, of) in enumerate(zip(names, record.images, strict=True), 1))
    return f'<p class="note">{SAID}</p><div class="strips">{drawn}</div>'


def _figure(t: int, name: str, images: np.ndarray) -> str:
    css = ' class="coarse"' if 2 * images.shape[3] <= SHOWN else ""  # pixels that are seen as such
    return (
        f'<figure><img{css} src="{_data(png(strip(images)))}" width="{SHOWN * len(images)}" '
        f'alt="{len(images)} test images of task {t}, {name}"><figcaption>{t} {name}</figcaption></figure>'
    )


def strip(images: np.ndarray) -> np.ndarray:
    """(n, C, H, W) bytes, grey or coloured -> (H, n·(W + gap), 4) with clear columns in between."""
    n, _, height, width = images.shape
    gap = max(1, width // 16)
    made = np.zeros((height, n, width + gap, 4), dtype=np.uint8)
    made[:, :, :width, :3] = images.transpose(2, 0, 3, 1)
    made[:, :, :width, 3] = 255
    return made.reshape(height, -1, 4)


def png(pixels: np.ndarray) -> bytes:
    """(H, W, 4) bytes as a file."""
    height, width, _ = pixels.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), pixels.reshape(height, -1)], axis=1)  # 0: as they are
    head = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks: Sequence[tuple[bytes, bytes]] = (
        (b"IHDR", head),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def _data(file: bytes) -> str:
    return f"data:image/png;base64,{b64encode(file).decode()}"
