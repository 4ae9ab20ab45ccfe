"""`reproduce --keep`: small files of numbers, in which what is measured anew takes the place of what was there."""

import json

import pytest

from holdfast.cli import main
from holdfast.commands import results
from holdfast.report.reproduction import Reproduction


def made(measured, id="gem/table9", scale="laptop"):
    """A reproduction with these cells: (row, metric) -> measured."""
    cells = [
        {
            "row": row,
            "column": "1",
            "metric": metric,
            "published": 0.5,
            "measured": value,
            "emulated": None,
            "low": None,
        }
        for (row, metric), value in measured.items()
    ]
    return Reproduction(id, "a title", scale, cells, notes=["a note"])


def read(folder, id="gem/table9"):
    return json.loads((folder / f"{id}.json").read_text())


def test_every_number_says_what_it_was_measured_by(tmp_path):
    path = results.keep(tmp_path, made({("GEM", "acc"): 0.8, ("GEM", "bwt"): None}), 3, "GEM")
    found = read(tmp_path)
    assert path == tmp_path / "gem" / "table9.json" and found["title"] == "a title" and found["notes"] == ["a note"]
    (cell,), (run,) = found["cells"], found["runs"]  # what was not measured is not kept
    assert cell["measured"] == 0.8 and cell["run"] == 0
    assert run["command"] == "holdfast reproduce gem/table9 --scale laptop --only GEM --seeds 3" and run["seeds"] == 3
    assert {"commit", "machine", "date", "scale"} <= set(run) and all(run.values())


def test_what_is_measured_anew_takes_the_place_of_what_was_there(tmp_path):
    results.keep(tmp_path, made({("GEM", "acc"): 0.8, ("EWC", "acc"): 0.5}), 3, None)
    results.keep(tmp_path, made({("EWC", "acc"): 0.6, ("single", "acc"): 0.4}), 1, "EWC,single")
    found = read(tmp_path)
    said = {c["row"]: (c["measured"], found["runs"][c["run"]]["seeds"]) for c in found["cells"]}
    assert said == {"GEM": (0.8, 3), "EWC": (0.6, 1), "single": (0.4, 1)}
    results.keep(tmp_path, made({("GEM", "acc"): 0.9}), 2, "GEM")
    found = read(tmp_path)  # nothing is left of the first run
    assert [run["seeds"] for run in found["runs"]] == [1, 2]
    assert {c["row"]: found["runs"][c["run"]]["seeds"] for c in found["cells"]} == {"EWC": 1, "single": 1, "GEM": 2}


@pytest.mark.parametrize(
    "content", ["no JSON", "[]", '{"schema": 2}', '{"schema": 1, "runs": [], "cells": [{"run": 0}]}']
)
def test_a_file_of_another_kind_is_left_alone(content, tmp_path, capsys):
    (tmp_path / "k" / "gem").mkdir(parents=True)
    path = tmp_path / "k" / "gem" / "table1.json"
    path.write_text(content)
    asked = ["reproduce", "gem/table1", "--scale", "smoke", "--out", str(tmp_path / "o"), "--keep", str(tmp_path / "k")]
    assert main([*asked, "--seeds", "0"]) == 2  # all faults at once, and nothing is run
    assert len(capsys.readouterr().err.splitlines()) == 2
    assert path.read_text() == content and not (tmp_path / "o").exists()


def test_the_command_keeps_what_it_prints(tmp_path, capsys):
    asked = ["reproduce", "ctrl/table4", "--scale", "smoke", "--json"]
    assert main([*asked, "--out", str(tmp_path / "o"), "--keep", str(tmp_path / "k")]) == 0
    printed = {results._key(c): c["measured"] for c in json.loads(capsys.readouterr().out)["cells"]}
    kept = {results._key(c): c["measured"] for c in read(tmp_path / "k", "ctrl/table4")["cells"]}
    assert kept == {place: value for place, value in printed.items() if value is not None} and kept


def test_numbers_found_elsewhere_keep_saying_where(tmp_path):
    path = results.keep(tmp_path, made({("GEM", "acc"): 0.8, ("EWC", "acc"): 0.5}), 3, None)
    found = read(tmp_path)
    found["runs"][0] |= {"source": "transcribed from a page", "commit": None, "date": None}
    path.write_text(json.dumps(found))
    results.keep(tmp_path, made({("EWC", "acc"): 0.6}), 3, "EWC")
    assert [run.get("source") for run in read(tmp_path)["runs"]] == ["transcribed from a page", None]
