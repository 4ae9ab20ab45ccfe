"""Recipes, the published numbers beside them, and how a cell is judged."""

from __future__ import annotations

import json

import numpy as np
import pytest

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.papers import gem
from holdfast.papers.base import SCALES, Recipe, judged

RECIPES = [item.recipe for item in papers.contents() if item.recipe is not None]


def test_every_item_is_listed_once_and_every_recipe_is_an_item():
    ids = [item.id for item in papers.contents()]
    assert len(set(ids)) == len(ids) and {"gem/table3", "still/table4", "ctrl/table1", "robust/figure6"} <= set(ids)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.id)
def test_every_published_cell_has_runs_behind_it(recipe):
    places = {(entry.row, entry.column) for entry in recipe.entries("smoke")}
    assert places >= {(cell["row"], cell["column"]) for cell in recipe.published}
    assert set(recipe.needs) == set(recipe.minutes) == set(SCALES)


def test_table3_is_transcribed_from_the_paper():
    cells = {(c["row"], c["column"], c["metric"]): c["published"] for c in papers.find("gem/table3").published}
    assert cells["GEM", "1 epoch", "acc"] == 0.86 and cells["GEM", "1 epoch", "bwt"] == 0.05
    assert cells["single", "5 epochs", "acc"] == 0.43 and cells["single", "5 epochs", "bwt"] == -0.40
    assert cells["EWC", "2 epochs", "bwt"] == -0.17
    assert ("single, shuffled data", "1 epoch", "bwt") not in cells and len(cells) == 33


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
    assert gem._emulated(record, "acc") == pytest.approx(record.acc - np.mean(last))
    assert gem._emulated(record, "bwt") == pytest.approx(record.bwt * 2 / 3, abs=0.01)


def test_reproduce_prints_the_contract(tmp_path, capsys):
    assert main(["reproduce", "gem/table3", "--scale", "smoke", "--json", "--quiet", "--out", str(tmp_path / "o")]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["id"], result["scale"]) == ("gem/table3", "smoke")
    wanted = {"row", "column", "metric", "published", "measured", "low", "high", "tolerance", "within", "emulated"}
    assert all(wanted <= set(cell) for cell in result["cells"])
    assert all(cell["measured"] is not None for cell in result["cells"])
    assert json.loads((tmp_path / "o" / "reproduction.json").read_text()) == result
    page = (tmp_path / "o" / "report.html").read_text()
    assert "<h2>Published and measured</h2>" in page and "GEM, 1 epoch" in page and "λ = 1000" in page
    (tmp_path / "o" / "report.html").unlink()
    assert main(["report", str(tmp_path / "o")]) == 0
    assert (tmp_path / "o" / "report.html").read_text() == page
    (tmp_path / "o" / "reproduction.json").write_text("[]")
    assert main(["report", str(tmp_path / "o")]) == 2
    assert "not one of Holdfast's" in capsys.readouterr().err


def test_mistakes_are_told_together(capsys, tmp_path):
    assert main(["reproduce", "gem/table9", "--scale", "huge", "--seeds", "0"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and "did you mean 'gem/table" in lines[0]
    assert main(["reproduce", "still/table4"]) == 2
    assert "has no recipe yet" in capsys.readouterr().err
