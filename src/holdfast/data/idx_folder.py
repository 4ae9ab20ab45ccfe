"""A folder of four IDX files: images and labels of train and test, named as MNIST's are, packed with gzip or not.

A name may have something before it, as EMNIST's have: `emnist-byclass-train-images-idx3-ubyte.gz`.
"""

from __future__ import annotations

import re
from pathlib import Path

from holdfast.data.files import check_labels, children, fault, refused, sha256_of
from holdfast.data.given import Given, Table
from holdfast.data.idx import header_of, read_idx, times
from holdfast.errors import BadInput

LABELS = 256  # a label is a byte
PARTS = (
    ("train-images-idx3-ubyte", "train"),
    ("train-labels-idx1-ubyte", "train"),
    ("t10k-images-idx3-ubyte", "t10k|test"),
    ("t10k-labels-idx1-ubyte", "t10k|test"),
)


def here(home: Path) -> bool:
    """Whether it has at least one of the four."""
    return any(_candidates(home))


def files(home: Path) -> list[Path]:
    """The four files; a packed one is preferred to the same one unpacked."""
    found, faults = [], []
    for (name, _), paths in zip(PARTS, _candidates(home), strict=True):
        different = {path.name.removesuffix(".gz") for path in paths}
        if not paths:
            faults.append(fault(home, f"no {name} (.gz or not)", "all four IDX files; add it"))
        elif len(different) > 1:
            faults.append(fault(home, " and ".join(sorted(different)), "one of them; move the others elsewhere"))
        else:
            found.append(max(paths))
    if faults:
        raise BadInput(*faults)
    return found


def tested(home: Path) -> bool:
    return True


def read(home: Path) -> Given:
    paths = files(home)
    x, y, x_test, y_test = (read_idx(path, dims) for path, dims in zip(paths, (3, 1, 3, 1), strict=True))
    if x.shape[1:] != x_test.shape[1:]:
        raise refused(paths[2], f"images of {times(x_test.shape[1:])}", f"{times(x.shape[1:])}, as in {paths[0].name}")
    check_labels(paths[1], y, len(x), LABELS)
    check_labels(paths[3], y_test, len(x_test), LABELS)
    return Given(Table(x[:, None], y), Table(x_test[:, None], y_test), sha256_of(paths))


def rows(home: Path) -> tuple[int, int]:
    """As the headers state them."""
    paths = files(home)
    return header_of(paths[0], 3)[0], header_of(paths[2], 3)[0]


def _candidates(home: Path) -> list[list[Path]]:
    """For each of the four, the files that could be it."""
    names = [entry.name for entry in children(home) if entry.is_file()]
    patterns = [name.replace(name.split("-")[0], f"(.+-)?({part})", 1) + r"(\.gz)?" for name, part in PARTS]
    return [[home / name for name in names if re.fullmatch(pattern, name)] for pattern in patterns]
