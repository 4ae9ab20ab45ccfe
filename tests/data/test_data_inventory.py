"""`status` and `verify` tell what is there, and never raise because of a bad file."""

import os
from pathlib import Path

import pytest

from holdfast.data import NAMES, load, status, verify
from holdfast.errors import BadInput


def test_status_has_a_row_for_every_name(tmp_path, make):
    make.mnist(tmp_path, train=12, test=5)
    make.cifar10(tmp_path)
    make.svhn(tmp_path)
    make.dtd(tmp_path).write_bytes(b"broken")
    rows = {row.name: row for row in status(tmp_path)}
    assert tuple(rows) == NAMES
    assert (rows["mnist"].train, rows["mnist"].test) == (12, 5) and rows["mnist"].where == str(tmp_path / "mnist")
    assert "60000" in rows["mnist"].note and rows["mnist"].size > 0
    assert (rows["cifar-10"].train, rows["cifar-10"].test) == (4, 1)
    assert (rows["svhn"].train, rows["svhn"].test) == (5, 2)
    assert rows["dtd"].present and rows["dtd"].train is None and "broken archive" in rows["dtd"].note
    assert not rows["cifar-100"].present and "holdfast data fetch cifar-100" in rows["cifar-100"].note
    make.dtd(tmp_path)
    assert [(r.train, r.test) for r in status(tmp_path) if r.name == "dtd"] == [(4, 2)]


@pytest.mark.parametrize("name", ["digits", "synth", "synth-colours"])
def test_status_of_embedded_data_is_what_load_gives(name, tmp_path):
    (row,) = (row for row in status(tmp_path) if row.name == name)
    data = load(name)
    assert row.embedded and row.present
    assert (row.train, row.test, row.size) == (len(data.x), len(data.x_test), data.x.nbytes + data.x_test.nbytes)


def test_verify_compares_with_what_was_published(tmp_path, make):
    paths = make.mnist(tmp_path)
    verdict = verify("mnist", tmp_path)
    assert verdict.reads and not verdict.published
    assert [check.state for check in verdict.files] == ["differs"] * 4
    assert "9912422 bytes" in verdict.files[0].detail and "440fcabf" in verdict.files[0].detail
    paths["t10k-labels-idx1-ubyte.gz"].unlink()
    verdict = verify("mnist", tmp_path)
    assert not verdict.reads and verdict.files[3].state == "absent" and "t10k-labels" in verdict.detail


def test_verify_of_embedded_data_and_of_unknown_names(tmp_path):
    assert verify("digits", tmp_path).published
    with pytest.raises(BadInput, match="unknown data set"):
        verify("nothing", tmp_path)


REAL = os.environ.get("HOLDFAST_DATA", "")
SHAPES = {
    "mnist": ((1, 28, 28), 10, [5, 0, 4, 1, 9]),
    "fashion-mnist": ((1, 28, 28), 10, [9, 0, 0, 3, 0]),
    "cifar-10": ((3, 32, 32), 10, None),
    "cifar-100": ((3, 32, 32), 100, None),
    "svhn": ((3, 32, 32), 10, None),
    "dtd": ((3, 32, 32), None, None),
}


@pytest.mark.data
@pytest.mark.parametrize("name", SHAPES)
def test_real_data_are_read(name):
    if not REAL or not (Path(REAL) / name).is_dir():
        pytest.skip(f"HOLDFAST_DATA does not name a folder with {name}")
    shape, classes, first = SHAPES[name]
    data = load(name)
    (row,) = (row for row in status() if row.name == name)
    assert data.shape == shape and (row.train, row.test) == (len(data.x), len(data.x_test))
    assert classes is None or len(data.classes) == classes
    assert set(data.y.tolist()) == set(range(len(data.classes))) == set(data.y_test.tolist())
    assert 30 < data.x.float().mean() < 160 and data.x.max() == 255
    if first is not None:
        assert data.y[:5].tolist() == first and len(data.x) == 60000 and len(data.x_test) == 10000
        assert verify(name).published


@pytest.mark.data
def test_real_cifar10_names_fit_its_pictures():
    if not REAL or not (Path(REAL) / "cifar-10").is_dir():
        pytest.skip("HOLDFAST_DATA does not name a folder with cifar-10")
    data = load("cifar-10")
    assert data.classes[0] == "airplane" and data.classes[9] == "truck"
    assert data.y[:5].tolist() == [6, 9, 9, 4, 1] and data.y_test[:5].tolist() == [3, 8, 8, 0, 6]
    means = data.x[data.y == 0].float().mean((0, 2, 3))
    assert means[2] > means[0], "airplanes fly before a blue sky: red, green, blue are in this order"
