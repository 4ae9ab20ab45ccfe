"""Every reader reads a tiny valid file, and refuses a broken one in one line that names it."""

import gzip
import os
import re
import shutil
import struct
import sys

import numpy as np
import pytest

from holdfast.data import load
from holdfast.data.matlab import numbers, variables
from holdfast.errors import BadInput


def refused(name, folder, *words):
    """Loading is refused with one line that has all these words."""
    with pytest.raises(BadInput) as caught:
        load(name, folder)
    (line,) = caught.value.faults
    assert "\n" not in line
    for word in words:
        assert str(word) in line, line


# By name


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(BadInput, match=r"unknown data set 'mnsit'; did you mean 'mnist'\?"):
        load("mnsit")


def test_absent_files_are_named_with_the_way_to_get_them(tmp_path):
    with pytest.raises(BadInput) as caught:
        load("svhn", tmp_path)
    assert len(caught.value.faults) == 2
    assert str(tmp_path / "svhn" / "test_32x32.mat") in caught.value.faults[1]
    assert "holdfast data fetch svhn" in caught.value.faults[1] and "HOLDFAST_DATA" in caught.value.faults[1]


def test_the_folder_comes_from_the_environment(tmp_path, make, monkeypatch):
    make.mnist(tmp_path)
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    assert len(load("mnist").x) == 6


def test_a_second_load_is_the_same_object_until_a_file_changes(tmp_path, make):
    make.mnist(tmp_path)
    first = load("mnist", tmp_path)
    assert load("mnist", tmp_path) is first
    paths = make.mnist(tmp_path)
    os.utime(paths["train-images-idx3-ubyte.gz"], ns=(1, 1))
    again = load("mnist", tmp_path)
    assert again is not first and again.fingerprint != first.fingerprint


def test_digits_are_bytes_with_one_fixed_stratified_split():
    digits = load("digits")
    assert digits.x.shape == (1438, 1, 8, 8) and digits.x_test.shape == (359, 1, 8, 8)
    assert digits.x.max() == 255 and str(digits.x.dtype) == "torch.uint8"
    shares = digits.y_test.bincount() / (digits.y.bincount() + digits.y_test.bincount())
    assert (shares - 0.2).abs().max() < 0.005


# IDX


def test_idx_is_read_packed_and_unpacked(tmp_path, make):
    paths = make.mnist(tmp_path)
    packed = load("mnist", tmp_path)
    assert packed.x.shape == (6, 1, 28, 28) and packed.y.tolist() == [0, 1, 2, 3, 4, 5]
    assert packed.y_test.tolist() == [0, 1, 2] and packed.classes == tuple("0123456789")
    for path in paths.values():
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    assert (load("mnist", tmp_path).x == packed.x).all()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ("nothing", "00000801")),
        (b"\x00\x00\x08\x03" + struct.pack(">3I", 6, 1, 1) + bytes(6), ("00000803", "00000801")),
        (b"\x00\x00\x0d\x01" + struct.pack(">I", 6) + bytes(24), ("00000d01", "00000801")),
        (b"\x00\x00\x08\x01\x00\x00", ("a header of 6 bytes", "8 bytes")),
        (b"\x00\x00\x08\x01" + struct.pack(">I", 6) + bytes(5), ("5 bytes of data", "6, as its header says")),
        (b"\x00\x00\x08\x01" + struct.pack(">I", 6) + bytes(7), ("more than 6 bytes",)),
        (b"\x00\x00\x08\x01" + struct.pack(">I", 2**32 - 1) + bytes(6), ("claims 4294967295", "at most")),
        (b"\x00\x00\x08\x01" + struct.pack(">I", 5) + bytes(5), ("5 labels", "6, one per image")),
        (b"\x00\x00\x08\x01" + struct.pack(">I", 6) + bytes([0, 1, 2, 3, 4, 10]), ("the label 10", "0 to 9")),
    ],
)
def test_a_wrong_idx_label_file_is_refused(tmp_path, make, content, words):
    path = make.mnist(tmp_path)["train-labels-idx1-ubyte.gz"]
    path.write_bytes(content)
    refused("mnist", tmp_path, path, *words)
    path.write_bytes(gzip.compress(content))
    refused("mnist", tmp_path, path, *words)


def test_a_truncated_gzip_file_is_refused(tmp_path, make):
    path = make.mnist(tmp_path)["t10k-images-idx3-ubyte.gz"]
    path.write_bytes(path.read_bytes()[:-100])
    refused("mnist", tmp_path, path, "a broken file")


def test_images_of_another_size_are_refused(tmp_path, make):
    path = make.mnist(tmp_path)["train-images-idx3-ubyte.gz"]
    path.write_bytes(make.idx_bytes(np.zeros((6, 14, 14))))
    refused("mnist", tmp_path, path, "14 x 14", "28 x 28")


def test_a_gzip_bomb_is_not_unpacked(tmp_path, make):
    path = make.mnist(tmp_path)["train-images-idx3-ubyte.gz"]
    header = b"\x00\x00\x08\x03" + struct.pack(">3I", 6, 28, 28)
    path.write_bytes(gzip.compress(header + bytes(50_000_000), 1))
    refused("mnist", tmp_path, path, "more than 4704 bytes")


# CIFAR


def test_cifar10_batches_come_in_numeric_order(tmp_path, make):
    make.cifar10(tmp_path)
    data = load("cifar-10", tmp_path)
    assert data.y.tolist() == [0, 1, 2, 9] and data.y_test.tolist() == [3]
    assert data.x.shape == (4, 3, 32, 32) and data.x[0].float().mean((1, 2)).tolist() == [1, 2, 3]
    assert data.classes[9] == "class 9"


def test_cifar100_has_its_fine_labels(tmp_path, make):
    make.cifar100(tmp_path, [(19, 99), (0, 5)], [(3, 7)])
    data = load("cifar-100", tmp_path)
    assert data.y.tolist() == [99, 5] and data.y_test.tolist() == [7] and len(data.classes) == 100


def test_wrong_cifar_archives_are_refused(tmp_path, make):
    path = make.cifar10(tmp_path, data_batch_2__bin=make.cifar_rows([(2,)])[:-1])
    refused("cifar-10", tmp_path, path, "data_batch_2.bin with 3072 bytes", "a multiple of 3073")
    make.cifar10(tmp_path, data_batch_2__bin=make.cifar_rows([(10,)]))
    refused("cifar-10", tmp_path, path, "the label 10", "0 to 9")
    make.cifar10(tmp_path, test_batch__bin=None)
    refused("cifar-10", tmp_path, path, "no test rows")
    make.cifar10(tmp_path, test_batch__bin=b"")
    refused("cifar-10", tmp_path, path, "no rows")
    make.cifar10(tmp_path, batches__meta__txt=b"one\ntwo\n")
    refused("cifar-10", tmp_path, path, "2 different names")
    make.cifar10(tmp_path, batches__meta__txt=b"\xff\xfe")
    refused("cifar-10", tmp_path, path, "not text")
    make.tar_gz(path, {"elsewhere/data_batch_1.bin": make.cifar_rows([(1,)])})
    refused("cifar-10", tmp_path, path, "no training rows")
    path.write_bytes(b"not an archive")
    refused("cifar-10", tmp_path, path, "a broken archive")
    refused_path = make.cifar100(tmp_path, [(20, 0)], [(0, 0)])
    refused("cifar-100", tmp_path, refused_path, "the label 20", "0 to 19")


def test_a_tar_bomb_is_refused_before_it_is_unpacked(tmp_path, make, monkeypatch):
    monkeypatch.setattr("holdfast.data.cifar_binary.LIMIT", 1_000_000)
    path = make.cifar10(tmp_path, data_batch_1__bin=bytes(3073 * 1000))
    refused("cifar-10", tmp_path, path, "more than 1000000 bytes when unpacked")


# SVHN


def test_svhn_label_10_is_digit_0(tmp_path, make):
    make.svhn(tmp_path)
    data = load("svhn", tmp_path)
    assert data.y.tolist() == [0, 1, 2, 3, 0] and data.y_test.tolist() == [4, 0]
    assert data.x.shape == (5, 3, 32, 32) and data.x.is_contiguous()


def test_svhn_pixels_are_not_turned(tmp_path, make):
    x = np.zeros((32, 32, 3, 5), np.uint8)
    x[3, 7, 1, 2] = 200  # row 3, column 7, green, image 2
    make.svhn(tmp_path, X=x)
    assert load("svhn", tmp_path).x[2, 1, 3, 7] == 200


@pytest.mark.parametrize("kind", ["u1", "i2", "u4", "i8", "f4", "f8"])
@pytest.mark.parametrize("packed", [True, False])
def test_matlab_numbers_are_those_scipy_wrote(tmp_path, kind, packed):
    from scipy.io import savemat

    array = np.arange(60).reshape(3, 4, 5).astype(kind)
    savemat(tmp_path / "a.mat", {"array": array, "one": array[:1, :1, :1]}, do_compression=packed)
    held = variables(tmp_path / "a.mat")
    for name, wanted in (("array", array), ("one", array[:1, :1, :1])):
        found = numbers(tmp_path / "a.mat", held[name])
        assert found.dtype == wanted.dtype and found.shape == wanted.shape and (found == wanted).all()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": np.array([0, 1, 2, 3, 4])}, ("labels from 0 to 4", "from 1 to 10")),
        ({"y": np.array([1, 1, 2, 3, 11])}, ("labels from 1 to 11",)),
        ({"y": np.array([1, 1.5, 2, 3, np.nan])}, ("whole numbers from 1 to 10",)),
        ({"y": np.array([1, 2])}, ("y as int64 (1, 2)", "5 numbers")),
        ({"y": np.array(["a", "b", "c", "d", "e"], object)}, ("y as other", "5 numbers")),
        ({"X": np.zeros((32, 32, 3, 5))}, ("X as float64", "uint8 (32, 32, 3, N)")),
        ({"X": np.zeros((28, 28, 3, 5), np.uint8)}, ("X as uint8 (28, 28, 3, 5)",)),
        ({"X": {"a": 1}}, ("X as other",)),
    ],
)
def test_wrong_svhn_files_are_refused(tmp_path, make, changes, words):
    refused("svhn", tmp_path, make.svhn(tmp_path, **changes), *words)


def test_a_file_that_is_not_matlab_is_refused(tmp_path, make):
    path = make.svhn(tmp_path)
    for content in (b"", b"x" * 300, path.read_bytes()[:400]):
        path.write_bytes(content)
        refused("svhn", tmp_path, path, "expected")


# DTD


def test_dtd_train_is_train1_and_val1(tmp_path, make):
    make.dtd(tmp_path)
    data = load("dtd", tmp_path)
    assert data.classes == ("banded", "dotted") and data.x.shape == (4, 3, 32, 32)
    assert data.y.tolist() == [0, 1, 0, 1] and data.y_test.tolist() == [0, 1]
    reds = data.x[:, 0].float().mean((1, 2)).round().tolist()
    assert np.allclose(reds, [0, 250, 50, 200], atol=3)


def test_dtd_images_are_cut_to_their_centre(tmp_path, make):
    import io

    from PIL import Image

    wide = Image.new("RGB", (300, 64), (255, 0, 0))
    wide.paste((0, 0, 255), (118, 0, 182, 64))
    out = io.BytesIO()
    wide.save(out, "JPEG", quality=95, subsampling=0)
    make.dtd(tmp_path, banded_0=out.getvalue())
    first = load("dtd", tmp_path).x[0].float()
    assert first[2, :, 3:-3].min() > 240 and first[0, :, 3:-3].max() < 15


def test_wrong_dtd_archives_are_refused(tmp_path, make):
    path = make.dtd(tmp_path, test1=None)
    refused("dtd", tmp_path, path, "no dtd/labels/test1.txt")
    make.dtd(tmp_path, test1=b"banded/banded_9.jpg\n")
    refused("dtd", tmp_path, path, "no image banded/banded_9.jpg")
    make.dtd(tmp_path, test1=b"banded/banded_0.jpg\n")
    refused("dtd", tmp_path, path, "banded/banded_0.jpg twice")
    make.dtd(tmp_path, train1=b"banded/banded_0.jpg\n", val1=b"banded/banded_2.jpg\n", test1=b"dotted/dotted_0.jpg\n")
    refused("dtd", tmp_path, path, "the class dotted in test1 only")
    make.dtd(tmp_path, banded_0=b"no image")
    refused("dtd", tmp_path, path, "banded_0.jpg that is not a whole image")
    make.dtd(tmp_path, banded_0=make.jpeg(7)[:-60])
    refused("dtd", tmp_path, path, "banded_0.jpg that is not a whole image")


def test_an_image_with_too_many_pixels_is_not_decoded(tmp_path, make, monkeypatch):
    monkeypatch.setattr("holdfast.data.dtd.PIXELS", 1000)
    refused("dtd", tmp_path, make.dtd(tmp_path), "48 x 40 pixels", "at most 1000")
    header = re.sub(
        rb"\xff\xc0\x00\x11\x08....", b"\xff\xc0\x00\x11\x08\xff\xff\xff\xff", make.jpeg(9), flags=re.DOTALL
    )
    refused("dtd", tmp_path, make.dtd(tmp_path, banded_0=header), "too many pixels")


def test_without_pillow_the_extra_is_named(tmp_path, make, monkeypatch):
    make.dtd(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    with pytest.raises(BadInput, match=r"pip install 'holdfast\[images\]'"):
        load("dtd", tmp_path)


# Any damage


@pytest.mark.parametrize("name", ["mnist", "cifar-10", "svhn", "dtd"])
def test_a_damaged_file_is_read_or_refused_and_nothing_else(tmp_path, make, name):
    """Bytes flipped, cut, repeated or dropped at random, 200 times per format."""
    {"mnist": make.mnist, "cifar-10": make.cifar10, "svhn": make.svhn, "dtd": make.dtd}[name](tmp_path)
    files = sorted((tmp_path / name).iterdir())
    rng = np.random.default_rng(1)
    outcomes = {"read": 0, "refused": 0}
    for i in range(200):
        path = files[i % len(files)]
        whole = path.read_bytes()
        path.write_bytes(make.damaged(whole, rng))
        os.utime(path, ns=(i, i))
        outcomes[outcome(name, tmp_path)] += 1
        path.write_bytes(whole)
    assert outcomes["refused"] > 60, outcomes


@pytest.mark.parametrize("name", ["mnist", "cifar-10", "dtd"])
def test_damage_under_an_intact_gzip_layer_is_read_or_refused(tmp_path, make, name):
    """As above, but the bytes inside the gzip file are damaged, so that headers and members are wrong."""
    {"mnist": make.mnist, "cifar-10": make.cifar10, "dtd": make.dtd}[name](tmp_path)
    files = sorted((tmp_path / name).iterdir())
    rng = np.random.default_rng(2)
    for i in range(200):
        path = files[i % len(files)]
        whole = path.read_bytes()
        path.write_bytes(gzip.compress(make.damaged(gzip.decompress(whole), rng), 1))
        os.utime(path, ns=(i, i))
        assert outcome(name, tmp_path) in ("read", "refused")
        path.write_bytes(whole)


def outcome(name, folder):
    try:
        load(name, folder)
    except BadInput as error:
        return "refused" if len(error.faults) == 1 else "refused at length"
    return "read"


def test_a_folder_in_place_of_a_file_is_absent(tmp_path, make):
    path = make.cifar10(tmp_path)
    path.unlink()
    path.mkdir()
    refused("cifar-10", tmp_path, path, "does not exist")
    shutil.rmtree(path)
