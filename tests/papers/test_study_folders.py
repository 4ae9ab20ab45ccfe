"""Data sets that lie in folders run by name: under `run`, and in the tables and figures of paper 003."""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.papers.apps import grid, table1


@pytest.fixture
def folders(tmp_path, monkeypatch) -> Path:
    """`madbase` as four IDX files and `devanagari` as a tree of PNG images, ten classes each; nothing else."""
    home = tmp_path / "data"
    rng = np.random.default_rng(0)
    (home / "madbase").mkdir(parents=True)
    for part, n in (("train", 120), ("t10k", 40)):
        labels = np.arange(n) % 10
        images = (25 * labels[:, None, None] + rng.integers(0, 20, (n, 28, 28))).astype(np.uint8)
        for kind, array in (("images-idx3", images), ("labels-idx1", labels)):
            header = bytes((0, 0, 8, array.ndim)) + struct.pack(f">{array.ndim}I", *array.shape)
            content = gzip.compress(header + array.astype(np.uint8).tobytes())
            (home / "madbase" / f"{part}-{kind}-ubyte.gz").write_bytes(content)
    _images(home / "devanagari" / "Train", 6)
    _images(home / "devanagari" / "Test", 2)
    _images(home / "shells", 10)
    monkeypatch.setenv("HOLDFAST_DATA", str(home))
    table1._task.cache_clear()
    yield home
    table1._task.cache_clear()


def _images(home: Path, n: int) -> None:
    from PIL import Image

    rng = np.random.default_rng(1)
    for label in range(10):
        (home / f"character_{label}").mkdir(parents=True)
        for k in range(n):
            pixels = (25 * label + rng.integers(0, 20, (8, 8))).astype(np.uint8)
            Image.fromarray(pixels).save(home / f"character_{label}" / f"{k}.png")


@pytest.mark.parametrize(("name", "rows"), [("madbase", 24), ("devanagari", 12), ("shells", 16)])
def test_they_run_by_name(folders, tmp_path, capsys, name, rows):
    assert main(["run", "er", "--data", name, "--out", str(tmp_path / "o"), "--jobs", "1", "--quiet"]) == 0
    (record,) = (json.loads(path.read_text()) for path in (tmp_path / "o").rglob("record.json"))
    assert record["stream"]["data"] == name and [task["n_train"] for task in record["tasks"]] == [rows] * 5
    assert record["stream"]["fingerprint"] == hf.stream("split", data=name, seed=5).fingerprint


def reproduce(capsys, *words: str) -> dict:
    assert main(["reproduce", *words, "--scale", "smoke", "--json", "--quiet", "--jobs", "1"]) == 0
    return json.loads(capsys.readouterr().out)


def test_table3_runs_on_them(folders, tmp_path, capsys):
    result = reproduce(capsys, "apps/table3", "--only", "FC,MADBase", "--out", str(tmp_path / "o"))
    assert {(c["row"], c["column"]) for c in result["cells"]} == {(f"MADBase, {t}", "FC") for t in _TYPES}
    assert all(c["measured"] is not None for c in result["cells"])
    records = [json.loads(path.read_text()) for path in (tmp_path / "o").rglob("record.json")]
    assert len(records) == 4 and {r["stream"]["data"] for r in records} == {"madbase"}
    assert all(r["stream"]["scale"] == "centred" for r in records)  # as all but MNIST


_TYPES = ("D5-5", "D9-1", "DP10-10")


@pytest.mark.parametrize("item", ["table4", "table5", "figure2", "figure7"])
def test_the_other_tables_and_figures_run_on_them(folders, tmp_path, capsys, item):
    column = "FC" if item in ("table5", "figure2") else "wtIMM"
    result = reproduce(capsys, f"apps/{item}", "--only", f"{column},MADBase,Devanagari", "--out", str(tmp_path / "o"))
    measured = [c for c in result["cells"] if c["measured"] is not None]
    assert {name for c in measured for name in grid.DATA if name in c["row"] + c["column"]} == {"MADBase", "Devanagari"}
    assert bool(result["figures"]) == (item != "table5")


def test_table1_counts_them_first(folders, tmp_path, capsys):
    cells = reproduce(capsys, "apps/table1", "--out", str(tmp_path / "o"))["cells"]
    assert list(dict.fromkeys(c["row"] for c in cells))[:2] == ["Devanagari", "MADBase"]
    read = {(c["row"], c["column"], c["metric"]): (c["measured"], c["setting"]) for c in cells}
    assert read["MADBase", "train", "elements"] == (120, "reduced here")
    assert read["Devanagari", "image", "width"][0] == 8 and read["Devanagari", "classes", "number"][0] == 10
    assert read["EMNIST", "classes", "number"] == (None, "data set absent")


@pytest.mark.parametrize("scale", ["laptop", "full"])
def test_at_every_scale_streams_are_cut_from_the_folder(folders, scale):
    """Without MNIST, which only its own rows need."""
    entries = papers.find("apps/table3").entries(scale)
    assert {e.row.split(", ")[0] for e in entries} == {"MADBase", "Devanagari"}
    first = papers.only(entries, ["FC", "MADBase", "D9-1a"])
    (entry,) = first
    assert entry.stream.settings["data"] == "madbase" and entry.stream.settings["scale"] == "centred"
    assert [len(task.train) for task in entry.stream.tasks] == [108, 12]
    convolved = {e.row.split(", ")[0] for e in entries if "CONV" in e.column}
    assert convolved == (set() if scale == "laptop" else {"MADBase", "Devanagari"})


def test_a_damaged_folder_is_said_to_be_that(folders, tmp_path, capsys):
    (folders / "madbase" / "t10k-labels-idx1-ubyte.gz").unlink()
    assert main(["reproduce", "apps/table3", "--only", "FC,MADBase", "--scale", "smoke", "--out", str(tmp_path / "o")])
    said = capsys.readouterr().err
    assert said.startswith("holdfast: cannot read") and "no t10k-labels-idx1-ubyte" in said and said.count("\n") == 1
    cells = {(c["row"], c["column"]): c for c in papers.judged(papers.find("apps/table1"), {}, "smoke")}
    assert cells["MADBase", "train"]["setting"] == "cannot be read"
    assert not (tmp_path / "o").exists()


@pytest.mark.slow
def test_table3_at_laptop_on_a_small_folder(folders, tmp_path, capsys):
    """The whole grid of one task, about a minute."""
    words = ["--only", "FC,MADBase,D9-1a", "--scale", "laptop", "--json", "--quiet", "--out", str(tmp_path / "o")]
    assert main(["reproduce", "apps/table3", *words]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]
    assert {c["setting"] for c in cells} == {"run in part"} and all(c["measured"] > 0.8 for c in cells[:1])
