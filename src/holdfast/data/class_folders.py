"""Images in one folder per class: `train/` and `test/` with class folders each, or one tree of class folders.

Images are read one after the other into one array of bytes, (N, C, H, W): grey ones have one channel, and three where
any image has colours; transparency is left out. All must have one size.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
import struct
import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from holdfast.data.canonical import some
from holdfast.data.files import children, fault, need_pillow, refused
from holdfast.data.given import Given, Table
from holdfast.data.split import split_rows
from holdfast.errors import BadInput

KINDS = ("PNG", "JPEG", "BMP", "PPM")
SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".pgm", ".ppm")
WANTED = "whole .png, .jpg, .bmp, .pgm or .ppm images of 8 bits"
TRAIN, TEST = ("train", "training"), ("test",)  # in any case: Train, Training
LIMIT = 2**33  # bytes of all images together
PIXELS = 50_000_000  # of one image
MOST = 10  # broken images named at once
GREY = ("1", "L", "LA")
PALETTES = ("P", "PA")
COLOURS = (*PALETTES, "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
FAULTS = (
    OSError, EOFError, SyntaxError, ValueError, TypeError, KeyError, IndexError, OverflowError, AssertionError,
    MemoryError, NotImplementedError, struct.error, zlib.error,
)  # what decoders raise over a broken image  # fmt: skip

Tree = dict[str, list[str]]  # class -> its images' names
Trees = list[tuple[Path, Tree]]


def here(home: Path) -> bool:
    """Whether a class folder in it has an image."""
    parts = _parts(home)
    roots = [part for part in parts if part is not None] or [home]
    return any(_is_image(image.name) for root in roots for each in _folders(root) for image in children(root / each))


def files(home: Path) -> list[str]:
    """All images, in the order in which they are read; as text, for there may be many."""
    return _files(_trees(home))


def _files(trees: Trees) -> list[str]:
    parts = [(os.path.join(root, label, ""), names) for root, tree in trees for label, names in tree.items()]
    return [part + name for part, names in parts for name in names]


def tested(home: Path) -> bool:
    return None not in _parts(home)


def read(home: Path) -> Given:
    need_pillow(home.name)
    trees, faults = _grown(home)
    try:
        x, digest = _pixels(home, _files(trees))
    except BadInput as error:
        raise BadInput(*faults, *error.faults) from error
    if faults:
        raise BadInput(*faults)
    classes = tuple(trees[0][1])
    labels = [(classes.index(label), len(names)) for _, tree in trees for label, names in tree.items()]
    y = np.repeat(*np.transpose(labels))
    n = sum(map(len, trees[0][1].values()))
    test = Table(x[n:], y[n:], classes) if len(trees) > 1 else None
    return Given(Table(x[:n], y[:n], classes), test, digest)


def read_loose(home: Path) -> tuple[np.ndarray, str] | None:
    """The images that lie in a folder itself, and their digest; None where there are class folders."""
    names = [entry.name for entry in children(home) if _is_image(entry.name) and entry.is_file()]
    if not names or _folders(home):
        return None
    need_pillow(home.name)
    return _pixels(home, [str(home / name) for name in sorted(names)])


def rows(home: Path) -> tuple[int, int]:
    """By the number of files; no image is opened."""
    counts = [[len(names) for names in tree.values()] for _, tree in _trees(home)]
    if len(counts) > 1:
        return sum(counts[0]), sum(counts[1])
    train, test = split_rows(np.repeat(np.arange(len(counts[0])), counts[0]), seed=0)  # as many for every seed
    return len(train), len(test)


def _trees(home: Path) -> Trees:
    """The tree of train and that of test, or the one tree there is; classes and images in alphabetical order."""
    trees, faults = _grown(home)
    if faults:
        raise BadInput(*faults)
    return trees


def _grown(home: Path) -> tuple[Trees, list[str]]:
    """The same, and what is wrong with them."""
    train, test = _parts(home)
    if (train is None) != (test is None):
        lone = (train or test or home).name
        raise refused(home, f"the folder {lone} alone", "train and test, or class folders and neither")
    roots = [home] if train is None or test is None else [train, test]
    faults: list[str] = []
    trees = [(root, _tree(root, faults)) for root in roots]
    first, last = trees[0][1], trees[-1][1]
    if not first:
        faults.append(fault(roots[0], "no class folders", "at least one"))
    if not last:
        faults.append(fault(roots[-1], "no class folders", "those that train has"))
    strange = sorted(set(last) - set(first))
    if strange:
        faults.append(fault(roots[-1], f"classes that train does not have: {some(strange)}", "none; move them"))
    return trees, faults


def _tree(root: Path, faults: list[str]) -> Tree:
    tree: Tree = {}
    for label in _folders(root):
        entries = children(root / label)
        tree[label] = sorted(entry.name for entry in entries if _is_image(entry.name) and entry.is_file())
        others = sorted({entry.name for entry in entries} - set(tree[label]))
        if others:
            faults.append(fault(root / label, some(others), f"{WANTED} alone; move the rest elsewhere"))
        if not entries:
            faults.append(fault(root / label, "no image", "at least one; remove the empty folder"))
    return tree


def _parts(home: Path) -> tuple[Path | None, Path | None]:
    """The folders of train and of test."""
    names = {name.lower(): home / name for name in reversed(_folders(home))}
    train, test = (next((names[word] for word in part if word in names), None) for part in (TRAIN, TEST))
    return train, test


def _folders(root: Path) -> list[str]:
    return sorted(entry.name for entry in children(root) if entry.is_dir())


def _is_image(name: str) -> bool:
    return os.path.splitext(name)[1].lower() in SUFFIXES


def _pixels(home: Path, paths: Sequence[str]) -> tuple[np.ndarray, str]:
    """All images, (N, C, H, W), and a digest over their names and bytes."""
    digest = hashlib.sha256()
    x = np.empty((0, 0, 0, 0), np.uint8)
    first = ""
    broken: list[str] = []
    other: list[str] = []
    for i, path in enumerate(paths):
        name = Path(path).relative_to(home).as_posix()
        try:
            image = _image(Path(path), name, digest)  # (C, H, W)
        except BadInput as error:
            broken += error.faults
            if len(broken) == MOST:
                raise BadInput(*broken) from error
            continue
        if not first:
            first, x = f"{name} of {_times(image.shape)}", _room(home, len(paths), image.shape)
        if image.shape[1:] != x.shape[2:]:
            other.append(f"{name} of {_times(image.shape)}")
            continue
        if len(image) > x.shape[1]:  # the first one with colours: the grey ones before it get three channels
            grey, x = x, _room(home, len(paths), image.shape)
            x[:i] = grey[:i]
        x[i] = image
    if other:
        found = f"{len(other)} of {len(paths)} images of another size than the first ({some(other)}; first {first})"
        broken.append(fault(home, found, "one size for all; resize them"))
    if broken:
        raise BadInput(*broken)
    return x, digest.hexdigest()


def _image(path: Path, name: str, digest: hashlib._Hash) -> np.ndarray:
    """(C, H, W) bytes; one channel where it is grey. What cannot be read is refused in one line."""
    from PIL import Image

    try:
        content = path.read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of odd metadata
            with Image.open(io.BytesIO(content), formats=KINDS) as image:
                if image.width * image.height > PIXELS:
                    raise refused(path, f"{image.width} x {image.height} pixels", f"at most {PIXELS}; make it smaller")
                if image.mode not in (*GREY, *COLOURS):
                    raise refused(path, f"pixels of the kind {image.mode}", f"{WANTED}; convert it")
                pixels = np.asarray(image.convert("L" if image.mode in GREY else "RGB"))  # (H, W) or (H, W, 3)
                if image.mode in PALETTES and (pixels == pixels[..., :1]).all():
                    pixels = pixels[..., 0]  # grey
    except Image.DecompressionBombError as error:
        raise refused(path, "too many pixels", f"at most {PIXELS}; make it smaller") from error
    except BadInput:
        raise
    except FAULTS as error:
        reason = "" if isinstance(error, Image.UnidentifiedImageError) else f" ({_first_line(error)})"
        raise refused(path, f"no whole image{reason}", f"{WANTED}; mend or remove it") from error
    return pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def _room(home: Path, n: int, shape: tuple[int, ...]) -> np.ndarray:
    if n * math.prod(shape) > LIMIT:
        raise refused(home, f"{n} images of {_times(shape)}", f"at most {LIMIT} bytes in all; make them smaller")
    return np.empty((n, *shape), np.uint8)


def _first_line(error: Exception) -> str:
    return str(error).split("\n")[0] or type(error).__name__


def _times(shape: tuple[int, ...]) -> str:
    """Width and height of an image, (C, H, W)."""
    return f"{shape[2]} x {shape[1]}"
