"""The output folder: records come back equal, bad files are named, nothing is overwritten."""

import io
import json
import random
import zipfile
from dataclasses import fields, replace

import numpy as np
import pytest

from holdfast import metrics
from holdfast.errors import BadInput
from holdfast.sweeps import claim, read_record, read_records, write_record, write_text
from holdfast.sweeps.store import dumps, to_json


def test_a_record_comes_back_equal(record, home):
    back = read_record(home)
    for f in fields(record):
        ours, theirs = getattr(record, f.name), getattr(back, f.name)
        if f.name in ("R", "baseline"):
            assert ours.dtype == theirs.dtype == np.float64 and np.array_equal(ours, theirs)
        elif f.name in ("predictions", "labels", "images"):
            assert [a.dtype for a in ours] == [a.dtype for a in theirs]
            assert all(map(np.array_equal, ours, theirs))
        else:
            assert json.loads(json.dumps(ours)) == json.loads(json.dumps(theirs)), f.name
    assert back.acc == record.acc and (back.final == record.final).all()
    write_record(back, home)
    assert to_json(read_record(home)) == to_json(back)


def test_a_record_can_be_scored_again_from_its_predictions(home):
    back = read_record(home)
    assert [p.shape for p in back.predictions] == [(2, 30), (2, 30)]
    assert np.array_equal(metrics.rescore(back), back.R)
    by_hand = [[(p[i] == y).mean() for p, y in zip(back.predictions, back.labels, strict=True)] for i in range(2)]
    assert np.array_equal(by_hand, back.R)


def test_record_json_has_the_promised_names_and_no_nan(home):
    content = json.loads((home / "record.json").read_text(), parse_constant=pytest.fail)
    assert content["schema"] == 1
    promised = "method seed settings stream scenario protocol net tasks R baseline curves resources card metrics"
    assert set(promised.split()) <= set(content)
    assert set(content["resources"]) >= {"bytes", "flops", "train_seconds", "eval_seconds"}
    assert set(content["tasks"][0]) == {"name", "classes", "n_train", "n_val", "n_test"}
    assert set(content["curves"][0]) == {"after_task", "step", "task", "accuracy", "loss", "entropy", "calibration"}
    assert {"value", "chosen_by"} == set(content["settings"]["memories"])
    with pytest.raises(ValueError, match="Out of range float"):
        dumps({"x": float("nan")})


def broken(**changes):
    def change(text):
        content = json.loads(text) | changes
        return json.dumps({k: v for k, v in content.items() if v is not None})

    return change


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda text: "", "does not hold a readable record: .*; without that folder, its run is made again"),
        (lambda text: text[: len(text) // 2], "does not hold a readable record"),
        (lambda text: "[1, 2]", "does not hold a readable record"),
        (lambda text: "null", "does not hold a readable record"),
        (lambda text: text.replace('"task":', '"tusk":', 1), "a row of curves lacks one of accuracy, after_task"),
        (lambda text: "\x00\x01", "does not hold a readable record"),
        (broken(schema=2), "has schema 2, this version reads 1"),
        (broken(schema=None), "has schema None"),
        (broken(R=None), "does not hold a readable record: 'R'"),
        (broken(R=[[1.0], [1.0, 2.0]]), "does not hold a readable record"),
        (broken(R="much"), "does not hold a readable record"),
        (broken(curves=3), "does not hold a readable record"),
        (broken(surprise=1), "does not hold a readable record"),
    ],
)
def test_a_broken_record_is_named(change, reason, home):
    path = home / "record.json"
    path.write_text(change(path.read_text()))
    with pytest.raises(BadInput, match=reason) as caught:
        read_record(home)
    assert str(home) in str(caught.value) and len(caught.value.faults) == 1


def test_no_cut_and_no_flipped_byte_of_the_predictions_escapes_as_another_error(home):
    path, rng = home / "predictions.npz", random.Random(0)
    whole = path.read_bytes()
    spoiled = [whole[:n] for n in range(0, len(whole), len(whole) // 40)]
    for _ in range(150):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        spoiled.append(bytes(flipped))
    refused = 0
    for content in spoiled:
        path.write_bytes(content)
        try:
            read_record(home)
        except BadInput:
            refused += 1
    assert refused > 120  # the rest hit names, times or checksums that are not read


def test_pickled_predictions_are_never_loaded(home):
    """An object array would run code on loading; it is refused."""

    class Bomb:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    array = np.empty(1, dtype=object)
    array[0] = Bomb()
    np.savez(home / "predictions.npz", predictions_0=array)
    with pytest.raises(BadInput, match="does not hold a readable record: Object arrays cannot be loaded"):
        read_record(home)


def test_predictions_that_claim_to_be_huge_are_refused(home):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (2**50,)})
    with zipfile.ZipFile(home / "predictions.npz", "w") as archive:
        archive.writestr("labels_0.npy", header.getvalue())
    with pytest.raises(BadInput, match="does not hold a readable record"):
        read_record(home)


def test_a_record_without_predictions_is_still_a_record(home):
    (home / "predictions.npz").unlink()
    back = read_record(home)
    assert (back.predictions, back.labels) == ((), ())


def test_images_are_a_file_of_their_own_that_may_be_taken_out(record, home):
    assert len(record.images) == len(read_record(home).images) == len(record.tasks)
    (home / "images.npz").unlink()
    back = read_record(home)
    assert back.images == () and len(back.predictions) == len(record.predictions)
    write_record(back, home)
    assert not (home / "images.npz").exists()


# The folder


EXPERIMENT = {
    "schema": 1,
    "runs": [{"protocol": {"lr": 0.1}}, {"protocol": {"lr": 0.2}}],
    "seeds": [0, 1],
    "cells": ["a"],
}


def test_an_experiment_may_come_back_to_its_folder(tmp_path):
    claim(tmp_path / "out", EXPERIMENT)
    claim(tmp_path / "out", dict(reversed(EXPERIMENT.items())))
    claim(tmp_path / "out", EXPERIMENT | {"seeds": (0, 1)})
    assert json.loads((tmp_path / "out" / "experiment.json").read_text()) == EXPERIMENT


@pytest.mark.parametrize(
    ("changes", "difference"),
    [
        ({"seeds": [0]}, r"seeds was \[0, 1\], is now \[0\]"),
        ({"seeds": [0, 2]}, r"seeds\[1\] was 1, is now 2"),
        (
            {"runs": [{"protocol": {"lr": 0.1}}, {"protocol": {"lr": 0.3}}]},
            r"runs\[1\]\.protocol\.lr was 0\.2, is now 0\.3",
        ),
        ({"runs": [{"protocol": {"lr": 0.3}}]}, r"runs\[0\]\.protocol\.lr was 0\.1, is now 0\.3"),
        ({"runs": [{"protocol": {"lr": 0.1}}]}, "the number of runs was 2, is now 1"),
        ({"seeds": list(range(1000))}, r"seeds was \[0, 1\], is now \[0, 1, 2, [0-9, ]{87}\.\.\."),
        ({"more": True}, "more was null, is now true"),
        ({"cells": ["b"], "seeds": [1]}, r"seeds was \[0, 1\], is now \[1\]"),  # names of cells come last
        ({"cells": ["b"]}, r"cells\[0\] was \"a\", is now \"b\""),
    ],
)
def test_another_experiments_folder_is_refused_with_the_first_difference(changes, difference, tmp_path):
    claim(tmp_path, EXPERIMENT)
    before = (tmp_path / "experiment.json").read_bytes()
    with pytest.raises(BadInput, match=f"holds another experiment: {difference}; choose another --out"):
        claim(tmp_path, EXPERIMENT | changes)
    assert (tmp_path / "experiment.json").read_bytes() == before


def test_foreign_folders_and_files_are_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter1.tex").write_text("...")
    (tmp_path / "file").write_text("...")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "experiment.json").write_text("{")
    (tmp_path / "list").mkdir()
    (tmp_path / "list" / "experiment.json").write_text("[]")
    before = sorted(tmp_path.rglob("*"))
    for name, reason in {
        "thesis": "exists and is not an output folder",
        "file": "exists and is not an output folder",
        "file/below": "cannot be written to",
        "odd": "cannot be read",
        "list": "is not an experiment",
    }.items():
        with pytest.raises(BadInput, match=reason):
            claim(tmp_path / name, EXPERIMENT)
    assert sorted(tmp_path.rglob("*")) == before
    (tmp_path / "empty").mkdir()
    claim(tmp_path / "empty", EXPERIMENT)


def test_records_are_read_in_the_order_of_the_experiment(record, tmp_path):
    for method, seed in (("a", 10), ("b", 2), ("a", 2)):
        write_record(replace(record, method=method, seed=seed), tmp_path / "cells" / f"{method}-s{seed}-x")
    with pytest.raises(BadInput, match=r"it has no experiment\.json"):
        read_records(tmp_path)
    (tmp_path / "experiment.json").write_text("{}...")
    with pytest.raises(BadInput, match=r"experiment\.json cannot be read"):
        read_records(tmp_path)
    (tmp_path / "experiment.json").write_text(json.dumps({"cells": ["b-s2-x", "a-s2-x", "a-s10-x"]}))
    assert [(r.method, r.seed) for r in read_records(tmp_path)] == [("b", 2), ("a", 2), ("a", 10)]


def test_a_folder_without_finished_cells_is_said_so(tmp_path):
    (tmp_path / "experiment.json").write_text("{}")
    with pytest.raises(BadInput, match="has no finished cells yet"):
        read_records(tmp_path)


def test_text_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "deep" / "summary.json"
    write_text(path, "old")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert [p.name for p in path.parent.iterdir()] == ["summary.json"]
