"""Any folder below HOLDFAST_DATA is a data set by its name; a faulty one is refused in a line that says what to do."""

import gzip
import os
import sys
import zipfile

import numpy as np
import pytest

import holdfast as hf
from holdfast.data import NAMES, as_dataset, at_hand, fetch, load, status, status_of, verify
from holdfast.errors import BadInput


def faults(folder, name="mine"):
    with pytest.raises(BadInput) as caught:
        load(name, folder)
    assert all("\n" not in line for line in caught.value.faults)
    return caught.value.faults


def refused(folder, *words, name="mine"):
    """Loading is refused with one line that has all these words, and `status` raises nothing."""
    (line,) = faults(folder, name)
    for word in words:
        assert str(word) in line, line
    assert any(row.name == name for row in status(folder)) or not at_hand(name, folder)


# IDX


def test_four_idx_files_are_a_data_set_packed_or_not(tmp_path, make):
    paths = make.mnist(tmp_path, 12, 6, name="mine")
    packed = load("mine", tmp_path)
    assert packed.name == "mine" and packed.shape == (1, 28, 28) and packed.y[-2:].tolist() == [0, 1]
    assert packed.classes == tuple("0123456789") and len(packed.x_test) == 6
    for path in paths.values():
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    unpacked = load("mine", tmp_path)
    assert (unpacked.x == packed.x).all() and len(unpacked.fingerprint) == 64


def test_idx_names_may_be_those_of_emnist(tmp_path, make):
    for path in make.mnist(tmp_path, 12, 6, name="emnist").values():
        path.rename(path.with_name(f"emnist-byclass-{path.name.replace('t10k', 'test')}"))
    assert len(load("emnist", tmp_path).x) == 12
    for path in make.mnist(tmp_path, 12, 6, name="emnist").values():
        path.rename(path.with_name(f"emnist-digits-{path.name}"))
    lines = faults(tmp_path, "emnist")
    assert len(lines) == 4 and "emnist-byclass-train-images" in lines[0] and "emnist-digits-train-images" in lines[0]


def test_labels_of_idx_files_may_have_gaps(tmp_path, make):
    paths = make.mnist(tmp_path, 4, 2, name="mine")
    paths["train-labels-idx1-ubyte.gz"].write_bytes(make.idx_bytes(np.array([200, 7, 7, 200])))
    paths["t10k-labels-idx1-ubyte.gz"].write_bytes(make.idx_bytes(np.array([200, 7])))
    data = load("mine", tmp_path)
    assert data.classes == ("7", "200") and data.y.tolist() == [1, 0, 0, 1] and data.y_test.tolist() == [1, 0]
    paths["t10k-labels-idx1-ubyte.gz"].write_bytes(make.idx_bytes(np.array([200, 8])))
    refused(tmp_path, tmp_path / "mine", "labels that y does not have: 8")


def test_each_missing_idx_file_is_named(tmp_path, make):
    paths = make.mnist(tmp_path, name="mine")
    paths["train-labels-idx1-ubyte.gz"].unlink()
    paths["t10k-images-idx3-ubyte.gz"].unlink()
    lines = faults(tmp_path)
    assert len(lines) == 2 and "no train-labels-idx1-ubyte (.gz or not)" in lines[0] and "t10k-images" in lines[1]
    assert all(str(tmp_path / "mine") in line and "add it" in line for line in lines)


def test_wrong_idx_files_are_refused(tmp_path, make):
    path = make.mnist(tmp_path, 6, 3, name="mine")["train-labels-idx1-ubyte.gz"]
    path.write_bytes(make.idx_bytes(np.arange(5)))
    refused(tmp_path, path, "5 labels", "6, one per image")
    path = make.mnist(tmp_path, 6, 3, name="mine")["t10k-images-idx3-ubyte.gz"]
    path.write_bytes(make.idx_bytes(np.zeros((3, 14, 14))))
    refused(tmp_path, path, "14 x 14", "28 x 28, as in train-images-idx3-ubyte.gz")
    paths = make.mnist(tmp_path, 6, 3, name="mine")
    for part, n in (("train", 6), ("t10k", 3)):
        paths[f"{part}-labels-idx1-ubyte.gz"].write_bytes(make.idx_bytes(np.full(n, 4)))
    refused(tmp_path, tmp_path / "mine", "the class 4 only", "at least two")


# npz


def test_an_npz_is_split_as_arrays_are(tmp_path, make):
    path = make.npz(tmp_path)
    with np.load(path) as content:
        x, y = content["x"], content["y"]
    for seed in (0, 1):
        data, arrays = load("mine", tmp_path, seed=seed), as_dataset((x, y), seed)
        assert (data.x == arrays.x).all() and (data.y_test == arrays.y_test).all()
        assert data.x.shape == (16, 1, 5, 4) and data.classes == ("0", "1")
    one, two = load("mine", tmp_path, seed=0), load("mine", tmp_path, seed=1)
    assert not (one.x == two.x).all() and one.fingerprint == two.fingerprint
    assert load("mine", tmp_path, seed=0) is one


def test_an_npz_may_have_test_rows_names_and_vectors(tmp_path, make):
    rng = np.random.default_rng(0)
    words = np.array(["b", "a"] * 3)
    make.npz(tmp_path, x=rng.random((6, 9)), y=words, x_test=rng.random((2, 9)), y_test=words[:2])
    data = load("mine", tmp_path, seed=3)
    assert data.shape == (9,) and data.classes == ("a", "b") and data.y_test.tolist() == [1, 0]
    assert data is load("mine", tmp_path, seed=4)  # nothing that a seed could split


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"y": None}, ("the arrays x", "x and y, and x_test and y_test or neither")),
        ({"x_test": np.zeros((2, 5, 4), np.uint8)}, ("the arrays x, y, x_test", "or neither")),
        ({"y": np.arange(19) % 2}, ("x has 20 examples but y has 19 labels",)),
        ({"y": np.zeros(20, int)}, ("the class 0 only", "at least two")),
        ({"y": np.arange(20)}, ("one example only", "0, 1, 2")),
        ({"y": np.arange(20) / 2}, ("integers or strings",)),
        ({"x": np.full((20, 3), np.nan)}, ("NaN",)),
        ({"x": np.zeros((20, 2, 2, 2, 2))}, ("5 dimensions",)),
        ({"x": np.array([[1], [1, 2]] * 10, object)}, ("x.npy with Python objects", "pickles are never loaded")),
        ({"y": np.array(["a", "b"] * 10, object)}, ("y.npy with Python objects", "pickles are never loaded")),
    ],
)
def test_wrong_npz_files_are_refused(tmp_path, make, changes, words):
    make.npz(tmp_path, **changes)
    refused(tmp_path, tmp_path / "mine", *words)


class _Trap:
    """A pickle of it makes a file."""

    def __reduce__(self):
        return open, (os.environ["HOLDFAST_TRAP"], "w")


def test_a_pickle_in_an_npz_is_never_loaded(tmp_path, make, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TRAP", str(tmp_path / "sprung"))
    trap = np.empty(20, object)
    trap[:] = [_Trap()] * 20
    make.npz(tmp_path, x=trap)
    refused(tmp_path, "Python objects")
    make.npz(tmp_path, extra=trap)
    assert len(load("mine", tmp_path).x) == 16  # other arrays are not looked at
    assert not (tmp_path / "sprung").exists()


def test_an_npz_that_claims_more_than_it_holds_is_not_unpacked(tmp_path, make):
    path = make.npz(tmp_path)
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    held["x.npy"] = held["x.npy"].replace(b"(20, 5, 4), }" + b" " * 10, b"(20000000000, 5, 4), }" + b" ")
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in held.items():
            archive.writestr(name, content)
    refused(tmp_path, path, "20000000000", "at most")


def test_two_npz_files_are_one_too_many(tmp_path, make):
    path = make.npz(tmp_path)
    (path.parent / "other.npz").write_bytes(path.read_bytes())
    refused(tmp_path, "other.npz, rows.npz", "keep one")


# Class folders


def test_a_tree_of_class_folders_is_split_by_the_seed(tmp_path, make):
    make.tree(tmp_path)
    one, two = load("mine", tmp_path, seed=0), load("mine", tmp_path, seed=1)
    assert one.shape == (1, 5, 6) and one.classes == ("cat", "dog") and str(one.x.dtype) == "torch.uint8"
    assert one.y.tolist() == [0] * 4 + [1] * 4 and one.y_test.tolist() == [0, 1]
    assert one.x[:4].max() < 60 and one.x[4:].min() >= 100
    assert one.fingerprint == two.fingerprint and not (one.x == two.x).all()


def test_train_and_test_are_taken_as_they_are(tmp_path, make):
    make.tree(tmp_path / "mine", "Training", n=3)
    make.tree(tmp_path / "mine", "Test", n=1, classes=("dog",))
    (tmp_path / "mine" / "papers").mkdir()
    data = load("mine", tmp_path, seed=5)
    assert data.y.tolist() == [0, 0, 0, 1, 1, 1] and data.y_test.tolist() == [1]
    assert data is load("mine", tmp_path, seed=6)


@pytest.mark.parametrize(("kind", "suffix"), [("PNG", "png"), ("JPEG", "JPG"), ("BMP", "bmp"), ("PPM", "pgm")])
def test_pixels_are_those_of_the_images(tmp_path, make, kind, suffix):
    from PIL import Image

    make.tree(tmp_path, n=0)
    for label in ("cat", "dog"):
        for k in range(2):
            (tmp_path / "mine" / label / f"{k}.{suffix}").write_bytes(make.image(k, kind=kind))
    data = load("mine", tmp_path)
    first = np.asarray(Image.open(tmp_path / "mine" / "cat" / f"0.{suffix}"))
    assert any((each[0].numpy() == first).all() for each in (*data.x, *data.x_test)) and data.shape == (1, 5, 6)


def test_one_image_with_colours_gives_all_three_channels(tmp_path, make):
    home = make.tree(tmp_path / "mine", "train")
    make.tree(tmp_path / "mine", "test")
    grey = load("mine", tmp_path)
    (home / "dog" / "9.png").write_bytes(make.image(7, mode="RGB"))
    data = load("mine", tmp_path)
    assert data.shape == (3, 5, 6) and len(data.x) == 11 and data.fingerprint != grey.fingerprint
    assert (data.x[:5] == grey.x[:5]).all()  # the one channel, three times


@pytest.mark.parametrize("mode", ["1", "LA", "P", "RGBA"])
def test_other_kinds_of_eight_bit_images_are_read(tmp_path, make, mode):
    make.tree(tmp_path, mode=mode)
    assert load("mine", tmp_path).shape == ((3 if mode == "RGBA" else 1), 5, 6)


def test_images_of_16_bits_are_refused(tmp_path, make):
    home = make.tree(tmp_path)
    (home / "dog" / "2.png").write_bytes(make.image(1, mode="I;16"))
    refused(tmp_path, home / "dog" / "2.png", "I;16", "8 bits")


def test_images_of_unequal_size_are_counted_and_named(tmp_path, make):
    home = make.tree(tmp_path)
    for k in range(3):
        (home / "dog" / f"{k}.png").write_bytes(make.image(1, size=(7, 4)))
    refused(tmp_path, home, "3 of 10 images", "dog/0.png of 7 x 4", "dog/2.png", "first cat/0.png of 6 x 5", "resize")


def test_every_broken_image_is_named(tmp_path, make):
    home = make.tree(tmp_path)
    (home / "cat" / "1.png").write_bytes(b"no image")
    (home / "dog" / "3.png").write_bytes(make.image(3)[:-30])
    (home / "dog" / "4.png").write_bytes(b"")
    lines = faults(tmp_path)
    assert [str(home / name) in line for name, line in zip(("cat/1.png", "dog/3.png", "dog/4.png"), lines, strict=True)]
    assert all("mend or remove it" in line for line in lines)
    for path in home.rglob("*.png"):
        path.write_bytes(b"")
    make.tree(tmp_path, n=20)
    for path in home.rglob("*.png"):
        path.write_bytes(b"")
    assert len(faults(tmp_path)) == 10


def test_wrong_trees_are_refused(tmp_path, make):
    home = make.tree(tmp_path)
    (home / "empty").mkdir()
    refused(tmp_path, home / "empty", "no image", "remove the empty folder")
    (home / "empty").rename(home / "cat" / "below")
    (home / "dog" / "notes.txt").write_text("mine")
    lines = faults(tmp_path)
    assert len(lines) == 2 and "below" in lines[0] and "notes.txt" in lines[1]
    make.tree(tmp_path, "lone", classes=("cat",))
    refused(tmp_path, tmp_path / "lone", "the class cat only", "at least two", name="lone")
    make.tree(tmp_path / "half", "train")
    refused(tmp_path, tmp_path / "half", "the folder train alone", name="half")
    make.tree(tmp_path / "half", "test", classes=("cat", "owl"))
    refused(tmp_path, tmp_path / "half" / "test", "owl", name="half")
    make.tree(tmp_path, "single", n=1)
    refused(tmp_path, tmp_path / "single", "one example only", "cat, dog", name="single")


def test_too_large_images_and_trees_are_refused(tmp_path, make, monkeypatch):
    home = make.tree(tmp_path)
    monkeypatch.setattr("holdfast.data.class_folders.PIXELS", 10)
    assert "6 x 5 pixels" in faults(tmp_path)[0] and len(faults(tmp_path)) == 10
    monkeypatch.undo()
    monkeypatch.setattr("holdfast.data.class_folders.LIMIT", 200)
    refused(tmp_path, home, "10 images of 6 x 5", "at most 200 bytes")


def test_trees_need_pillow(tmp_path, make, monkeypatch):
    make.tree(tmp_path)
    monkeypatch.setitem(sys.modules, "PIL", None)
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    refused(tmp_path, "'mine' needs Pillow", "pip install 'holdfast[images]'")


def test_hidden_files_are_left_alone(tmp_path, make):
    home = make.tree(tmp_path)
    (home / ".git").mkdir()
    (home / "cat" / ".DS_Store").write_bytes(b"x")
    assert len(load("mine", tmp_path).classes) == 2


# Names, and what may be read at all


@pytest.mark.parametrize(
    "name", ["../mine", "a/b", "a\\b", ".hidden", "..", ".", "", "/etc", "c:mine", "mine\0", "a\nb"]
)
def test_names_that_lead_elsewhere_are_refused(tmp_path, make, name):
    make.npz(tmp_path)
    (tmp_path / "data").mkdir()
    lines = faults(tmp_path / "data", name)
    assert len(lines) == 1 and "cannot be the name of a data set" in lines[0]
    assert not at_hand(name, tmp_path / "data")


def test_links_are_not_followed(tmp_path, make):
    make.npz(tmp_path)
    make.tree(tmp_path, "tree")
    data = tmp_path / "data"
    data.mkdir()
    (data / "mine").symlink_to(tmp_path / "mine")
    refused(data, data / "mine", "a link", "nothing outside HOLDFAST_DATA")
    (data / "file").mkdir()
    (data / "file" / "rows.npz").symlink_to(tmp_path / "mine" / "rows.npz")
    refused(data, data / "file" / "rows.npz", "a link", name="file")
    make.tree(data, "images")
    (data / "images" / "owl").symlink_to(tmp_path / "tree" / "cat")
    refused(data, data / "images" / "owl", "a link", name="images")
    assert [row.train for row in status(data) if row.name in ("mine", "file", "images")] == [None] * 3


def test_an_unknown_name_is_answered_with_the_nearest_folder(tmp_path, make):
    make.npz(tmp_path, "seashells")
    (tmp_path / "seashell-notes").mkdir()
    assert faults(tmp_path, "seashels") == ("unknown data set 'seashels'; did you mean 'seashells'?",)
    (line,) = faults(tmp_path, "seashell-notes")
    assert "no data set" in line and "four IDX files" in line and "class folders" in line


def test_a_folder_is_read_anew_when_a_file_changes(tmp_path, make):
    home = make.tree(tmp_path)
    first = load("mine", tmp_path)
    assert load("mine", tmp_path) is first
    (home / "dog" / "4.png").write_bytes(make.image(9))
    os.utime(home / "dog" / "4.png", ns=(1, 1))
    assert load("mine", tmp_path).fingerprint != first.fingerprint


def test_the_fingerprint_is_of_names_and_bytes(tmp_path, make):
    home = make.tree(tmp_path)
    first = load("mine", tmp_path).fingerprint
    make.tree(tmp_path, "other")
    assert load("other", tmp_path).fingerprint == first
    (home / "dog" / "4.png").rename(home / "dog" / "5.png")
    assert load("mine", tmp_path).fingerprint != first


# Among the others


def test_status_and_verify_tell_of_folders(tmp_path, make):
    make.npz(tmp_path, "arrays")
    make.tree(tmp_path, "images", n=10)
    make.mnist(tmp_path, 12, 6, name="madbase")
    make.npz(tmp_path, "digits")
    (tmp_path / "notes").mkdir()
    rows = {row.name: row for row in status(tmp_path)}
    assert tuple(rows) == (*NAMES, "arrays", "images")
    assert [(rows[n].train, rows[n].test, rows[n].note) for n in ("arrays", "images")] == [
        (16, 4, "npz"),
        (16, 4, "class folders"),
    ]
    assert rows["images"].size == sum(path.stat().st_size for path in (tmp_path / "images").rglob("*.png"))
    assert (rows["madbase"].train, rows["madbase"].test) == (12, 6) and "60000" in rows["madbase"].note
    assert not rows["emnist"].present and "holdfast data fetch emnist" in rows["emnist"].note
    assert "is not read" in rows["digits"].note and load("digits", tmp_path).shape == (1, 8, 8)
    for name in ("arrays", "images", "madbase"):
        verdict = verify(name, tmp_path)
        data = load(name, tmp_path)
        assert verdict.reads and verdict.published and data.fingerprint in verdict.detail
        assert (status_of(name, tmp_path).train, rows[name].test) == (len(data.x), len(data.x_test))
    assert not verify("emnist", tmp_path).reads


@pytest.mark.parametrize("name", ["emnist", "devanagari", "madbase", "notmnist", "fruits-360"])
def test_data_sets_of_paper_003_say_where_they_are_got(tmp_path, make, name):
    (line,) = faults(tmp_path, name)
    assert str(tmp_path / name) in line and f"holdfast data fetch {name}" in line
    with pytest.raises(BadInput) as caught:
        fetch(name, tmp_path)
    (line,) = caught.value.faults
    assert "http" in line and line.endswith(f"put them into {tmp_path / name}") and not list(tmp_path.iterdir())
    make.tree(tmp_path, name)
    assert fetch(name, tmp_path) == [tmp_path / name] and len(load(name, tmp_path).classes) == 2


def test_a_stream_is_cut_from_a_folder(tmp_path, make, monkeypatch):
    make.tree(tmp_path, n=10, classes=("a", "b", "c", "d"))
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    streams = [hf.stream("split", data="mine", tasks=2, seed=seed) for seed in (0, 1)]
    assert streams[0].info.shape == (1, 5, 6) and [len(task.test) for task in streams[0].tasks] == [4, 4]
    assert streams[0].settings["data"] == "mine" and streams[0].fingerprint == streams[1].fingerprint
    assert streams[0].reseed(1).tasks[0].train.pixels is streams[1].tasks[0].train.pixels


# Any damage


@pytest.mark.parametrize("kind", ["idx", "npz", "png", "jpeg", "bmp", "pgm"])
def test_a_damaged_folder_is_read_or_refused_and_nothing_else(tmp_path, make, kind):
    """Bytes flipped, cut, repeated or dropped at random, 150 times."""
    if kind == "idx":
        make.mnist(tmp_path, name="mine")
    elif kind == "npz":
        make.npz(tmp_path, extra=np.arange(5))
    else:
        make.tree(tmp_path, n=0)
        for label in ("cat", "dog"):
            for k in range(2):
                content = make.image(k, kind={"pgm": "PPM"}.get(kind, kind.upper()), mode="LRGB"[: 1 + 3 * k][k:])
                (tmp_path / "mine" / label / f"{k}.{kind}").write_bytes(content)
    files = sorted(path for path in (tmp_path / "mine").rglob("*") if path.is_file())
    rng = np.random.default_rng(3)
    outcomes = {"read": 0, "refused": 0}
    for i in range(150):
        path = files[i % len(files)]
        whole = path.read_bytes()
        path.write_bytes(make.damaged(whole, rng))
        os.utime(path, ns=(i, i))
        outcomes[outcome(tmp_path)] += 1
        assert any(row.name == "mine" for row in status(tmp_path))
        path.write_bytes(whole)
    assert outcomes["refused"] > 30, outcomes


def outcome(folder):
    try:
        load("mine", folder)
    except BadInput as error:
        return "refused" if all("\n" not in line for line in error.faults) else "refused in lines"
    return "read"


def test_damage_inside_an_npz_is_read_or_refused(tmp_path, make):
    """As above, but in the arrays of an intact archive, so that their headers are wrong."""
    path = make.npz(tmp_path)
    with zipfile.ZipFile(path) as archive:
        whole = {name: archive.read(name) for name in archive.namelist()}
    rng = np.random.default_rng(4)
    refusals = 0
    for i in range(300):
        name = ("x.npy", "y.npy")[i % 2]
        with zipfile.ZipFile(path, "w") as archive:
            for each, content in whole.items():
                spot = int(rng.integers(0, 128))  # its header
                flipped = content[:spot] + bytes([int(rng.integers(0, 256))]) + content[spot + 1 :]
                damage = flipped if rng.random() < 0.5 else make.damaged(content, rng)
                archive.writestr(each, damage if each == name else content)
        os.utime(path, ns=(i, i))
        refusals += outcome(tmp_path) == "refused"
        status_of("mine", tmp_path)
    assert refusals > 100
