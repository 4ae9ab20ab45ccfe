"""The binary version of CIFAR-10 and CIFAR-100, read straight out of the .tar.gz.

A row is its label byte (CIFAR-100: coarse, then fine), then 1024 red, 1024 green and 1024 blue bytes. How many rows a
file has, and how many files `data_batch_*.bin` there are, is read and not assumed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.data.catalog import Entry
from holdfast.data.files import Arrays, check_labels, refused, tar_members, text_lines

LIMIT = 2**29  # bytes when unpacked; the published archives hold 185 million
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class Layout:
    train: str  # a pattern of member names
    test: str
    names: str  # the member that names the classes, one a line
    coarse: int  # coarse classes; 0 where a row has no coarse label

    @property
    def row(self) -> int:
        return (2 if self.coarse else 1) + PIXELS


LAYOUTS = {
    "cifar-10": Layout(
        train=r"cifar-10-batches-bin/data_batch_\d+\.bin",
        test="cifar-10-batches-bin/test_batch.bin",
        names="cifar-10-batches-bin/batches.meta.txt",
        coarse=0,
    ),
    "cifar-100": Layout(
        train=r"cifar-100-binary/train\.bin",
        test="cifar-100-binary/test.bin",
        names="cifar-100-binary/fine_label_names.txt",
        coarse=20,
    ),
}


def read(entry: Entry, paths: list[Path]) -> Arrays:
    """Training rows in the order of their batches, then the test rows."""
    (path,), layout = paths, LAYOUTS[entry.name]
    train, test, names = _contents(path, layout)
    x, y = _split(entry, layout, path, train)
    x_test, y_test = _split(entry, layout, path, test)
    return Arrays(x, y, x_test, y_test, _class_names(entry, layout, path, names))


def rows(entry: Entry, paths: list[Path]) -> tuple[int, int]:
    """Train and test rows by the length of the members."""
    (path,), layout = paths, LAYOUTS[entry.name]
    train, test, _ = _contents(path, layout)
    return len(train) // layout.row, len(test) // layout.row


def _contents(path: Path, layout: Layout) -> tuple[bytes, bytes, bytes | None]:
    """All training batches as one, the test batch, and the class names when there are any."""

    def wanted(name: str) -> bool:
        return name in (layout.test, layout.names) or re.fullmatch(layout.train, name) is not None

    found = dict(tar_members(path, LIMIT, wanted))
    batches = sorted((name for name in found if re.fullmatch(layout.train, name)), key=_number)
    if not batches:
        raise refused(path, "no training rows", f"a member that matches {layout.train}")
    if layout.test not in found:
        raise refused(path, "no test rows", f"a member {layout.test}")
    for name in (*batches, layout.test):
        if len(found[name]) % layout.row:
            raise refused(path, f"{name} with {len(found[name])} bytes", f"a multiple of {layout.row}, a row's length")
    return b"".join(found[name] for name in batches), found[layout.test], found.get(layout.names)


def _number(name: str) -> tuple[int, str]:
    """data_batch_10.bin comes after data_batch_9.bin."""
    digits = re.findall(r"\d+", name)
    return int(digits[-1]), name


def _split(entry: Entry, layout: Layout, path: Path, content: bytes) -> tuple[np.ndarray, np.ndarray]:
    table = np.frombuffer(content, np.uint8).reshape(-1, layout.row)  # (N, labels and pixels)
    if layout.coarse:
        check_labels(path, table[:, 0], len(table), layout.coarse)
    y = table[:, -PIXELS - 1].astype(np.int64)
    check_labels(path, y, len(table), entry.labels)
    return table[:, -PIXELS:].reshape(-1, 3, 32, 32).copy(), y


def _class_names(entry: Entry, layout: Layout, path: Path, content: bytes | None) -> tuple[str, ...]:
    if content is None:
        return tuple(map(str, range(entry.labels)))
    names = tuple(text_lines(path, layout.names, content))
    if len(set(names)) != entry.labels or len(names) != entry.labels:
        raise refused(path, f"{layout.names} with {len(set(names))} different names", f"{entry.labels}")
    return names
