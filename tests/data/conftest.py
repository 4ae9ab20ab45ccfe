"""Writers of tiny, valid data sets in each on-disk format; the tests then break them."""

import gzip
import io
import struct
import tarfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

RNG = np.random.default_rng(0)


def idx_bytes(array: np.ndarray) -> bytes:
    header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(np.uint8).tobytes()


def mnist(folder: Path, train: int = 6, test: int = 3, name: str = "mnist") -> dict[str, Path]:
    """Four files; label i of each part is i % 10, pixel values are random."""
    home = folder / name
    home.mkdir(parents=True, exist_ok=True)
    paths = {}
    for part, n in (("train", train), ("t10k", test)):
        contents = {
            f"{part}-images-idx3-ubyte.gz": RNG.integers(0, 256, (n, 28, 28)),
            f"{part}-labels-idx1-ubyte.gz": np.arange(n) % 10,
        }
        for file, array in contents.items():
            paths[file] = home / file
            paths[file].write_bytes(gzip.compress(idx_bytes(array), mtime=0))
    return paths


def tar_gz(path: Path, members: dict[str, bytes]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w:gz") as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def cifar_rows(labels: list[tuple[int, ...]]) -> bytes:
    """Rows whose red, green and blue planes hold 1, 2 and 3."""
    pixels = bytes(1024 * [1] + 1024 * [2] + 1024 * [3])
    return b"".join(bytes(label) + pixels for label in labels)


def cifar10(folder: Path, **changes: bytes) -> Path:
    """Batches 1, 2 and 10 hold labels (0, 1), (2,) and (9,); `changes` replace or add members by short name."""
    members = {
        "batches.meta.txt": "\n".join(f"class {i}" for i in range(10)).encode() + b"\n\n",
        "data_batch_10.bin": cifar_rows([(9,)]),
        "data_batch_2.bin": cifar_rows([(2,)]),
        "data_batch_1.bin": cifar_rows([(0,), (1,)]),
        "test_batch.bin": cifar_rows([(3,)]),
    } | {name.replace("__", "."): content for name, content in changes.items()}
    wanted = {f"cifar-10-batches-bin/{name}": content for name, content in members.items() if content is not None}
    return tar_gz(folder / "cifar-10" / "cifar-10-binary.tar.gz", wanted)


def cifar100(folder: Path, train: list[tuple[int, int]], test: list[tuple[int, int]]) -> Path:
    return tar_gz(
        folder / "cifar-100" / "cifar-100-binary.tar.gz",
        {"cifar-100-binary/train.bin": cifar_rows(train), "cifar-100-binary/test.bin": cifar_rows(test)},
    )


def svhn(folder: Path, **changes: np.ndarray) -> Path:
    """Five training rows with labels 10, 1, 2, 3, 10 and two test rows; `changes` replace X or y of train."""
    from scipy.io import savemat

    home = folder / "svhn"
    home.mkdir(parents=True, exist_ok=True)
    train = {"X": RNG.integers(0, 256, (32, 32, 3, 5)).astype(np.uint8), "y": np.array([[10], [1], [2], [3], [10]])}
    test = {"X": RNG.integers(0, 256, (32, 32, 3, 2)).astype(np.uint8), "y": np.array([[4], [10]])}
    savemat(home / "train_32x32.mat", train | changes, do_compression=True)
    savemat(home / "test_32x32.mat", test, do_compression=True)
    return home / "train_32x32.mat"


def jpeg(red: int, size: tuple[int, int] = (48, 40)) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new("RGB", size, (red, 10, 20)).save(out, "JPEG")
    return out.getvalue()


def dtd(folder: Path, **changes: bytes | None) -> Path:
    """Two classes, one image of each in train1, val1 and test1; `changes` replace lists or, by number, images."""
    members = {}
    for i, part in enumerate(("train", "val", "test")):
        members[f"labels/{part}1.txt"] = f"banded/banded_{i}.jpg\ndotted/dotted_{i}.jpg\n".encode()
        members[f"images/banded/banded_{i}.jpg"] = jpeg(50 * i)
        members[f"images/dotted/dotted_{i}.jpg"] = jpeg(250 - 50 * i)
    members |= {f"labels/{name}.txt": content for name, content in changes.items() if name[-1] == "1"}
    members |= {f"images/banded/{name}.jpg": content for name, content in changes.items() if name[-1] != "1"}
    wanted = {f"dtd/{name}": content for name, content in members.items() if content is not None}
    return tar_gz(folder / "dtd" / "dtd.tar.gz", wanted)


def npz(folder: Path, name: str = "mine", **changes: np.ndarray | None) -> Path:
    """20 training rows of 1 x 5 x 4 in two classes and no test rows; `changes` replace, add or remove arrays."""
    home = folder / name
    home.mkdir(parents=True, exist_ok=True)
    arrays = {"x": RNG.integers(0, 256, (20, 5, 4)).astype(np.uint8), "y": np.arange(20) % 2} | changes
    np.savez(home / "rows.npz", **{word: array for word, array in arrays.items() if array is not None})
    return home / "rows.npz"


def image(level: int, size: tuple[int, int] = (6, 5), mode: str = "L", kind: str = "PNG") -> bytes:
    """Noise about this level, so that its bytes are many enough to be damaged."""
    from PIL import Image

    out = io.BytesIO()
    pixels = (level + np.random.default_rng(level).integers(0, 40, (size[1], size[0]))).astype(np.uint8)
    Image.fromarray(pixels).convert(mode).save(out, kind)
    return out.getvalue()


def tree(folder: Path, name: str = "mine", n: int = 5, classes: tuple[str, ...] = ("cat", "dog"), **changes) -> Path:
    """n grey images of 6 x 5 in each class folder; `changes` are settings of `image`."""
    home = folder / name
    for i, label in enumerate(classes):
        (home / label).mkdir(parents=True, exist_ok=True)
        for k in range(n):
            (home / label / f"{k}.png").write_bytes(image(100 * (i % 2) + k, **changes))
    return home


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bytes cut, dropped, repeated or changed."""
    spot = int(rng.integers(0, min(len(content), 2000 if rng.random() < 0.7 else len(content))))
    kind = rng.integers(0, 4)
    if kind == 0:
        return content[:spot]
    if kind == 1:
        return content[:spot] + content[spot + 1 + int(rng.integers(0, 50)) :]
    if kind == 2:
        return content[:spot] + content[max(0, spot - 40) : spot] + content[spot:]
    noisy = bytearray(content)
    for at in rng.integers(spot, min(spot + 30, len(content)), 3):
        noisy[at] = int(rng.integers(0, 256))
    return bytes(noisy)


@pytest.fixture
def make() -> SimpleNamespace:
    writers = (idx_bytes, mnist, tar_gz, cifar_rows, cifar10, cifar100, svhn, jpeg, dtd, npz, image, tree, damaged)
    return SimpleNamespace(**{writer.__name__: writer for writer in writers})
