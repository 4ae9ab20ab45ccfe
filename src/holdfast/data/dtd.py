"""The Describable Textures Dataset: a .tar.gz of JPEG images in one folder per class, with lists of its splits.

Of its ten splits the first is used: train1 and val1 are the training rows, test1 the test rows. Images are cut to their
centre square and brought to 32 x 32 RGB bytes.
"""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np

from holdfast.data.catalog import Entry
from holdfast.data.files import Arrays, need_pillow, refused, tar_members, text_lines
from holdfast.errors import BadInput

LIMIT = 2**31  # bytes when unpacked; the published archive holds 0.6 billion
SIDE = 32
PIXELS = 50_000_000  # more than this in one image is not a photograph of a texture
LISTS = {f"dtd/labels/{part}1.txt": part for part in ("train", "val", "test")}
_IMAGE = re.compile(r"dtd/images/([^/]+/[^/]+\.jpg)")


def read(entry: Entry, paths: list[Path]) -> Arrays:
    """All images of the first split, in the order of its lists; a class is a folder, classes in alphabetical order."""
    need_pillow(entry.name)
    (path,) = paths
    images: dict[str, np.ndarray] = {}
    lists: dict[str, list[str]] = {}
    for name, content in tar_members(path, LIMIT, lambda n: n in LISTS or _IMAGE.fullmatch(n) is not None):
        if name in LISTS:
            lists[LISTS[name]] = text_lines(path, name, content)
        else:
            images[name.removeprefix("dtd/images/")] = _thumbnail(path, name, content)
    _check_lists(path, lists)
    train, test = lists["train"] + lists["val"], lists["test"]
    for image in (*train, *test):
        if image not in images:
            raise refused(path, f"no image {image}", "every image that its lists name")
    classes = tuple(sorted({image.split("/")[0] for image in train}))
    strange = sorted({image.split("/")[0] for image in test} - set(classes))
    if strange:
        raise refused(path, f"the class {strange[0]} in test1 only", "test classes that train1 or val1 also have")

    def gathered(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
        y = np.array([classes.index(name.split("/")[0]) for name in names], np.int64)
        return np.stack([images[name] for name in names]), y

    return Arrays(*gathered(train), *gathered(test), classes)


def rows(entry: Entry, paths: list[Path]) -> tuple[int, int]:
    """Train and test rows by the lists; no image is decoded."""
    (path,) = paths
    lists = {LISTS[n]: text_lines(path, n, content) for n, content in tar_members(path, LIMIT, lambda n: n in LISTS)}
    _check_lists(path, lists)
    return len(lists["train"]) + len(lists["val"]), len(lists["test"])


def _check_lists(path: Path, lists: dict[str, list[str]]) -> None:
    for name, part in LISTS.items():
        if not lists.get(part):
            raise refused(path, f"no {name}", "a list of images with that name")
    named = [image for images in lists.values() for image in images]
    if len(set(named)) != len(named):
        twice = next(image for image in named if named.count(image) > 1)
        raise refused(path, f"{twice} twice in its lists", "every image once in train1, val1 or test1")


def _thumbnail(path: Path, name: str, content: bytes) -> np.ndarray:
    """(3, 32, 32) uint8."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content), formats=("JPEG",)) as image:
            width, height = image.size
            if width * height > PIXELS:
                raise refused(path, f"{name} of {width} x {height} pixels", f"at most {PIXELS} pixels")
            image.draft("RGB", (4 * SIDE, 4 * SIDE))  # let the decoder skip detail that is thrown away below
            side = min(image.size)
            left, top = (image.width - side) // 2, (image.height - side) // 2
            square = (left, top, left + side, top + side)
            small = image.convert("RGB").resize((SIDE, SIDE), Image.Resampling.BILINEAR, box=square)
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise refused(path, f"{name} of too many pixels", f"at most {PIXELS} pixels") from error
    except BadInput:
        raise
    except (OSError, EOFError, SyntaxError, ValueError) as error:
        raise refused(path, f"{name} that is not a whole image ({error})", "a JPEG image") from error
    return np.asarray(small).transpose(2, 0, 1)
