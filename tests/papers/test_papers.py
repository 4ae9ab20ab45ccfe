"""Recipes, the published numbers beside them, and how a cell is judged."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.papers.base import SCALES, Entry, Recipe, judged
from holdfast.papers.gem import cifar, table2
from holdfast.papers.gem.table3 import emulated_score, measured

RECIPES = [item.recipe for item in papers.contents() if item.recipe is not None]


def at_hand(data: str) -> bool:
    try:
        hf.stream("permuted", data=data, tasks=2)
    except hf.BadInput:
        return False
    return True


def test_every_item_is_listed_once_and_every_recipe_is_an_item():
    listed = {item.id: item.recipe for item in papers.contents()}
    assert {"gem/table3", "still/table4", "ctrl/table1", "robust/figure6"} <= set(listed)
    made = [
        recipe.id for paper in papers.BUILT for recipe in importlib.import_module(f"holdfast.papers.{paper}").recipes()
    ]
    assert sorted(made) == sorted(id for id, recipe in listed.items() if recipe)


def test_what_can_be_run_here_is_listed_first_and_of_the_rest_what_it_lacks(capsys, monkeypatch):
    monkeypatch.setattr("holdfast.commands.reproduce.at_hand", lambda name: name == "mnist")
    assert main(["reproduce"]) == 0
    first, rest = capsys.readouterr().out.split("Lack data")
    assert first.startswith("Can be run here")
    for item in papers.contents():
        there = f"{item.id} " in first
        (line,) = (line for line in (first if there else rest).splitlines() if line.startswith(f"{item.id} "))
        assert ("not built yet" in line) == (item.recipe is None), item.id
        lacking = set(item.recipe.needs["laptop"] if item.recipe else ()) - {"mnist"}
        assert there == (not lacking) and all(name in line or there for name in sorted(lacking)[:1])


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
@pytest.mark.parametrize("scale", ["smoke", "laptop"])
def test_every_published_cell_has_runs_behind_it_or_says_why_not(recipe, scale):
    if any(name not in ("digits", "synth") and not at_hand(name) for name in recipe.needs[scale]):
        pytest.skip("the data are not here")
    places = {(entry.row, entry.column) for entry in recipe.entries(scale)}
    missing = recipe.missing(scale)
    for place in {(cell["row"], cell["column"]) for cell in recipe.published}:
        run = bool(places & set(recipe.behind(*place)))
        assert run != (place in missing) or not places, place  # what is counted needs no runs
    assert set(recipe.needs) == set(recipe.minutes) == set(SCALES)


def test_table3_is_transcribed_from_the_paper():
    cells = {(c["row"], c["column"], c["metric"]): c["published"] for c in papers.find("gem/table3").published}
    assert cells["GEM", "1 epoch", "acc"] == 0.86 and cells["GEM", "1 epoch", "bwt"] == 0.05
    assert cells["single", "5 epochs", "acc"] == 0.43 and cells["single", "5 epochs", "bwt"] == -0.40
    assert cells["EWC", "2 epochs", "bwt"] == -0.17
    assert ("single, shuffled data", "1 epoch", "bwt") not in cells and len(cells) == 33


def test_table1_is_shown_as_multiples_of_the_plain_predictors_time():
    recipe = papers.find("gem/table1")
    cells = {(c["row"], c["column"]): c for c in recipe.published}
    assert cells["permutations", "EWC"]["published"] == pytest.approx(179 / 11)
    assert cells["rotations", "GEM"]["published_seconds"] == 135 and cells["rotations", "single"]["published"] == 1

    def timed(*seconds):
        return [SimpleNamespace(resources={"train_seconds": [s / 2, s / 2], "trials": {"seconds": 9}}) for s in seconds]

    found = {("rotations", "single", False): timed(2, 4), ("rotations", "GEM", False): timed(6, 8)}
    assert recipe.measure(found, "rotations", "GEM", "time", False) == [3.0, 2.0]
    assert recipe.measure(found, "rotations", "GEM", "time", True) is None
    assert recipe.measure(found, "permutations", "GEM", "time", False) is None


def test_table2_has_the_papers_sizes_at_full_scale_and_smaller_ones_below():
    assert tuple(map(str, cifar.SIZES["full"].memories)) == table2.COLUMNS
    entries = {(e.row, e.column): e for e in papers.find("gem/table2").entries("smoke")}
    sizes = list(cifar.SIZES["smoke"].memories)
    assert [int(e.setting.split()[0]) for e in entries.values() if e.row == "iCARL"] == sizes == sorted(sizes)
    assert [e.method.memories for e in entries.values() if e.row == "iCARL"] == sizes
    tasks = len(entries["GEM", "200"].stream)
    assert [e.method.memories for e in entries.values() if e.row == "GEM"] == [size // tasks for size in sizes]
    assert [place for place, e in entries.items() if e.tunes] == [("single", "0"), ("GEM", "200"), ("iCARL", "200")]


def test_a_number_measured_under_another_setting_is_neither_within_nor_out():
    cell = {"row": "a", "column": "c", "metric": "acc", "published": 0.5, "tolerance": 0.1}
    made = replace(entry("a", "c"), setting="100 run")
    recipe = Recipe("x/y", "t", {}, {}, lambda scale: [], lambda *place: [0.5], (cell, {**cell, "published": None}))
    assert [c["within"] for c in judged(recipe, {}, "laptop", [made])] == [None, None]
    assert [c["within"] for c in judged(recipe, {}, "laptop")] == [True, None]


SHOWN = SimpleNamespace(scenario="class")


def entry(row, column, emulated=False, tuned_at=None):
    return Entry(row, column, None, None, None, None, emulated, tuned_at=tuned_at)


def test_only_the_rows_and_columns_asked_for_are_run():
    models, tasks = ("fc", "LWTA", "EWC"), ("D5-5a", "D9-1a")
    entries = [entry(f"{data}, {task}", model) for data in ("MNIST", "CIFAR10") for task in tasks for model in models]
    entries.append(entry("MNIST, D9-1a", "EWC", True))

    def asked(*words):
        return [(e.row, e.column) for e in papers.only(entries, words)]

    assert asked("fc", "LWTA", "MNIST", "D9-1a") == [("MNIST, D9-1a", "fc"), ("MNIST, D9-1a", "LWTA")]
    assert len(asked("MNIST")) == 7 and len(asked("EWC", "correct")) == 4
    assert asked("authors") == [("MNIST, D9-1a", "EWC")]
    with pytest.raises(hf.BadInput, match="no run has all of fc, authors"):  # of different kinds, so both
        asked("fc", "authors")
    with pytest.raises(hf.BadInput, match="unknown row or column 'lwtb'; did you mean 'LWTA'"):
        asked("lwtb")
    with pytest.raises(hf.BadInput) as error:
        papers.only(entries, ["D5-5b", "LWTB", "D5-5"], known=["D5-5b", "D5-5"])
    assert error.value.faults == (
        "'D5-5b' has no runs at this scale", "unknown row or column 'LWTB'; did you mean 'LWTA'?",
        "'D5-5' is made of the runs D5-5a; name them",
    )  # fmt: skip


def test_what_follows_a_choice_brings_its_trials_along():
    entries = [entry("GEM", "200"), entry("GEM", "640", tuned_at="200"), entry("iCARL", "640")]
    assert [e.column for e in papers.only(entries, ["GEM", "640"])] == ["200", "640"]


def test_a_cell_with_a_part_of_its_runs_is_not_judged_and_one_with_none_is_no_row():
    cells = tuple(
        {"row": row, "column": "c", "metric": "acc", "published": 0.5, "tolerance": 0.1} for row in ("a", "b")
    )
    behind = lambda row, column: [(f"{row}{i}", column) for i in (1, 2)]  # noqa: E731
    recipe = Recipe("x/y", "t", {}, {}, lambda scale: [], lambda *place: [0.5], cells, behind=behind)
    whole = [entry(row, "c") for row in ("a1", "a2", "b1", "b2")]
    done = {(e.row, e.column, False): [SHOWN] for e in whole}
    (found,) = judged(recipe, {("a1", "c", False): [SHOWN]}, "laptop", whole[:1], whole)
    assert (found["row"], found["setting"], found["within"]) == ("a", "run in part", None)
    assert [cell["within"] for cell in judged(recipe, done, "laptop", whole)] == [True, True]
    del done["b2", "c", False]  # it failed
    assert [(cell["setting"], cell["within"]) for cell in judged(recipe, done, "laptop", whole)] == [
        ("", True), ("run in part", None),
    ]  # fmt: skip


def test_a_cell_is_judged_by_its_tolerance_and_on_the_number_it_names():
    cells = (
        {"row": "a", "column": "c", "metric": "acc", "published": 0.5, "tolerance": 0.02, "judged": True},
        {"row": "b", "column": "c", "metric": "acc", "published": 0.5, "tolerance": 0.02, "judge": "emulated"},
        {"row": "gone", "column": "c", "metric": "acc", "published": 0.5, "tolerance": 0.02, "judged": True},
    )
    numbers = {("a", False): [0.51, 0.53], ("b", False): [0.9, 0.9], ("b", True): [0.5, 0.49]}

    def measure(found, row, column, metric, emulated):
        return numbers.get((row, emulated))

    recipe = Recipe("x/y", "t", {}, {}, lambda scale: [], measure, cells)
    a, b, gone = judged(recipe, {}, "laptop")
    assert a["measured"] == pytest.approx(0.52) and a["within"] and a["judged"] and a["low"] < 0.52 < a["high"]
    assert b["measured"] == 0.9 and b["emulated"] == pytest.approx(0.495) and b["within"] and not b["judged"]
    assert gone["measured"] is None and gone["within"] is None


def test_the_authors_scoring_drops_a_sample_and_divides_by_t():
    record = hf.run("finetune", hf.stream("rotated", tasks=3, examples=100))
    last = [int(p[-1, -1] == y[-1]) / len(y) for p, y in zip(record.predictions, record.labels, strict=True)]
    assert emulated_score(record, "acc") == pytest.approx(record.acc - np.mean(last))
    assert emulated_score(record, "bwt") == pytest.approx(record.bwt * 2 / 3, abs=0.01)
    assert emulated_score(record, "fwt") == pytest.approx(record.fwt * 2 / 3, abs=0.01)


def reproduce(id, out, capsys, *more, code=0) -> dict:
    command = ["reproduce", id, "--scale", "smoke", "--json", "--quiet", "--jobs", "1", "--out", str(out), *more]
    assert main(command) == code
    return json.loads(capsys.readouterr().out)


def check_contract(result: dict, id: str) -> None:
    assert (result["id"], result["scale"]) == (id, "smoke")
    wanted = {"row", "column", "metric", "published", "measured", "low", "high", "tolerance", "within", "emulated"}
    assert all(wanted <= set(cell) for cell in result["cells"])
    assert all(cell["measured"] is not None or cell["setting"] for cell in result["cells"])
    trained = [cell for cell in result["cells"] if cell["measured"] is not None and result["runs"]]
    assert (trained and all(cell["scenario"] for cell in trained)) or not result["runs"]


def test_reproduce_prints_the_contract_and_writes_the_report(tmp_path, capsys):
    out = tmp_path / "o"
    result = reproduce("gem/table1", out, capsys)
    check_contract(result, "gem/table1")
    assert json.loads((out / "reproduction.json").read_text()) == result
    assert all(cell["emulated"] for cell in result["cells"] if cell["column"] in ("EWC", "GEM"))
    page = (out / "report.html").read_text()
    assert "<h2>Published and measured</h2>" in page and "rotations, GEM (authors’ way)" in page
    assert main(["audit", str(out)]) == 0
    assert "rotations, GEM (authors’ way) (" in capsys.readouterr().out  # as in the report
    (out / "report.html").unlink()
    assert main(["report", str(out)]) == 0
    assert (out / "report.html").read_text() == page
    (out / "reproduction.json").write_text("[]")
    assert main(["report", str(out)]) == 2
    assert "not one of Holdfast's" in capsys.readouterr().err


def untimed(result):
    """Without the seconds of trials: one that failed is tried again, and what it takes counts."""
    trials = [[{**trial, "seconds": None} for trial in choice["trials"]] for choice in result["choices"]]
    choices = [{**c, "seconds": None, "trials": t} for c, t in zip(result["choices"], trials, strict=True)]
    return {**result, "choices": choices}


def test_a_grid_is_tried_once_and_its_choice_is_told(tmp_path, capsys, monkeypatch):
    def entries(scale):
        stream = hf.stream("rotated", tasks=2, examples=40, test_examples=50, val=0.1)
        grid = {"strength": (1e30, 1.0), "protocol.lr": (0.1,)}
        same = (hf.method("ewc"), stream, hf.net("mlp"), hf.protocol("online"))
        return [Entry("EWC", "1", *same, grid=grid), Entry("EWC", "2", *same, grid=grid, tuned_at="1")]

    cells = tuple({"row": "EWC", "column": c, "metric": "acc", "published": None} for c in "12")
    recipe = Recipe("x/y", "t", {}, {}, entries, measured, cells, seeds={"smoke": 2})
    monkeypatch.setattr(papers, "find", lambda id: recipe)
    out = tmp_path / "o"
    result = reproduce("x/y", out, capsys)
    (choice,) = result["choices"]
    assert choice["chosen"] == {"strength": 1.0, "protocol.lr": 0.1} and choice["trials"][0]["acc"] is None
    assert choice["runs"] == 2 and choice["seconds"] > 0
    records = hf.Comparison.read(out).records
    assert len(records) == 2 and all(r.settings["strength"]["chosen_by"] == "val:stream" for r in records)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("record.json")}
    assert len(before) == 3 and untimed(reproduce("x/y", out, capsys)) == untimed(result)
    assert {path: path.stat().st_mtime_ns for path in out.rglob("record.json")} == before
    assert reproduce("x/y", out, capsys, "--fresh")["choices"][0]["chosen"] == choice["chosen"]
    assert {path.stat().st_mtime_ns for path in out.rglob("record.json")}.isdisjoint(before.values())


def test_a_place_whose_trials_all_fail_is_left_out(tmp_path, capsys, monkeypatch):
    stream = hf.stream("rotated", tasks=2, examples=40, test_examples=50, val=0.1)
    rest = (stream, hf.net("mlp"), hf.protocol("online"))
    lost = Entry("EWC", "1", hf.method("ewc"), *rest, grid={"strength": (1e30,)})
    entries = [lost, Entry("single", "1", hf.method("finetune"), *rest)]
    cells = tuple({"row": row, "column": "1", "metric": "acc", "published": None} for row in ("EWC", "single"))
    recipe = Recipe("x/y", "t", {}, {}, lambda scale: entries, measured, cells, seeds={"smoke": 1})
    monkeypatch.setattr(papers, "find", lambda id: recipe)
    result = reproduce("x/y", tmp_path / "o", capsys, code=1)
    assert [cell["measured"] is None for cell in result["cells"]] == [True, False]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_every_recipe_runs_at_its_smallest(recipe, tmp_path, capsys):
    check_contract(reproduce(recipe.id, tmp_path / "o", capsys), recipe.id)


def test_mistakes_are_told_together(capsys, monkeypatch):
    assert main(["reproduce", "gem/table9", "--scale", "huge", "--seeds", "0"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "did you mean 'gem/table" in lines[0]
    monkeypatch.setattr(papers, "BUILT", ("gem",))
    assert main(["reproduce", "ctrl/table1"]) == 2
    assert "has no recipe yet" in capsys.readouterr().err


def test_a_papers_name_alone_is_answered_with_its_tables():
    with pytest.raises(hf.BadInput, match="say which table or figure of 'gem' is meant: gem/figure1, gem/table1"):
        papers.find("gem")
