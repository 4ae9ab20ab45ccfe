"""What stands in a page between its comments is what the result files say, and every number says what it is."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

import pytest

from holdfast import papers

DOCS = Path(__file__).parents[2] / "docs"
RUN = {"command": "holdfast reproduce gem/table3", "seeds": 3, "commit": "abc1234", "machine": None, "date": None}
CELL = {
    **{"row": "GEM", "column": "1 epoch", "metric": "acc", "setting": "", "scenario": "domain, task label hidden"},
    **{"published": 0.86, "tolerance": 0.02, "judged": True, "within": True, "emulated": None, "run": 0},
    **{"measured": 0.849, "low": 0.78, "high": 0.918},
}


@pytest.fixture
def fill(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS))
    return importlib.import_module("fill")


@pytest.fixture
def page(fill, tmp_path):
    """What a page shows of these cells, asked for in these words."""

    def shown(*changes, asked="numbers gem/table3"):
        path = tmp_path / "results" / "gem" / "table3.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        cells = [{**CELL, **change} for change in changes]
        kept = {"schema": 1, "id": "gem/table3", "title": "A title", "notes": ["A note."], "runs": [RUN]}
        path.write_text(json.dumps({**kept, "cells": cells}))
        (tmp_path / "page.md").write_text(f"<!-- {asked} -->\n<!-- end -->\n")
        assert fill.main([str(tmp_path)]) == 0
        return (tmp_path / "page.md").read_text()

    return shown


def lines(text):
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def test_the_pages_are_up_to_date(fill):
    assert fill.main(["--check"]) == 0, "run `make pages`"


def test_a_changed_number_changes_its_page_and_no_other(fill, tmp_path, capsys):
    for part in ("papers", "results"):
        shutil.copytree(DOCS / part, tmp_path / part)
    path, changed = tmp_path / "results" / "gem" / "table3.json", tmp_path / "papers" / "002.md"
    kept = json.loads(path.read_text())
    next(cell for cell in kept["cells"] if cell["measured"])["measured"] = 0.12345
    path.write_text(json.dumps(kept))
    before = changed.read_text()
    assert fill.main([str(tmp_path), "--check"]) == 1
    assert capsys.readouterr().out == f"{changed} is out of date\n" and changed.read_text() == before
    assert fill.main([str(tmp_path)]) == 0 and "0.123" in changed.read_text()
    assert fill.main([str(tmp_path), "--check"]) == 0


def test_every_result_file_is_shown_on_a_page():
    text = "".join(page.read_text() for page in DOCS.rglob("*.md"))
    ids = [str(path.relative_to(DOCS / "results").with_suffix("")) for path in DOCS.rglob("results/**/*.json")]
    assert ids and [id for id in ids if f"<!-- numbers {id} " not in text] == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({}, "0.86 → **0.849 ± 0.069**"),
        ({"within": False}, "0.86 → 0.849 ± 0.069 ✕"),
        ({"judged": False}, "0.86 → 0.849 ± 0.069"),
        ({"within": None, "setting": "run in part"}, "0.86 → 0.849 ± 0.069 · run in part"),
        ({"judge": "emulated", "emulated": 0.87}, "0.86 → 0.849 ± 0.069 (**0.870**)"),
        ({"measured": None, "low": None, "judge": "emulated", "emulated": 0.87}, "0.86 → (**0.870**)"),
        ({"archive": 0.9, "judged": False, "low": None}, "0.86 [0.90] → 0.849"),
        ({"published": None, "judged": False, "metric": "bwt", "measured": -0.25, "low": None}, "−0.250"),
        ({"published": None, "judged": False, "metric": "entropy", "measured": 1.468, "low": None}, "1.47"),
    ],
)
def test_a_number_says_what_was_published_and_whether_it_is_within_tolerance(page, change, said):
    assert lines(page(change)) == [f"| GEM | {said} |"]


def test_no_number_stands_without_its_scenario(page):
    given = {"row": "multimodal", "scenario": "task, task label given"}
    assert "Scenario: domain, task label hidden. " in page({})
    assert "domain, task label hidden (GEM); task, task label given (multimodal)." in page({}, given)
    mixed = page({}, {"column": "CIFAR-100", "scenario": "task, task label given"})
    assert "domain, task label hidden (1 epoch); task, task label given (CIFAR-100)." in mixed
    other = {**given, "row": "GEM", "column": "CIFAR-100"}
    assert "task, task label given (GEM, CIFAR-100; multimodal, 1 epoch)." in page({}, other, given)


def test_below_a_table_stands_what_it_was_measured_by(page):
    assert page({}).count("<sub>`holdfast reproduce gem/table3`: 3 seeds, commit abc1234</sub>") == 1


def test_a_page_chooses_rows_columns_and_metrics_and_what_lies_across(page):
    cells = [{"row": row, "metric": metric} for row in ("EWC", "GEM") for metric in ("acc", "bwt")]
    number = "0.86 → **0.849 ± 0.069**"
    assert lines(page(*cells, asked='numbers gem/table3 rows="GEM;EWC" metrics=acc')) == [
        f"| GEM | {number} |",
        f"| EWC | {number} |",
    ]
    assert lines(page(*cells, asked="numbers gem/table3 across=metrics")) == [
        f"| EWC | {number} | {number} |",
        f"| GEM | {number} | {number} |",
    ]


def test_what_was_not_measured_is_said_and_a_file_may_come_later(page):
    assert "*Not measured yet.*" in page(asked="numbers ctrl/table13")
    assert "Not measured: Figure 1, Table 1, Table 2." in page({}, asked="index gem")
    items = sum(item.id.startswith("ctrl/") for item in papers.contents())
    assert f"(papers/000.md) | 0 of {items} | 0 | 0 | – |" in page({}, asked="index")
    assert "(papers/002.md) | 1 of 4 | 2 | 1 | 1 |" in page({}, {"metric": "bwt", "judged": False}, asked="index")


def test_notes_are_folded(page):
    assert "\n\n- A note.\n\n</details>" in page({}, asked="notes gem/table3")


@pytest.mark.parametrize(
    ("marker", "fault"),
    [
        ("<!-- numbers gem/tabel3 -->\n<!-- end -->", "unknown table or figure 'gem/tabel3' in {}; did you mean"),
        ("<!-- index gme -->\n<!-- end -->", "unknown paper 'gme' in {}; did you mean 'gem'?"),
        ("<!-- numbers gem/table3 row=GEM -->\n<!-- end -->", "unknown option 'row' of gem/table3 in {}; did you"),
        ("<!-- numbers gem/table3 across=row -->\n<!-- end -->", "unknown value of across 'row' of gem/table3 in {}"),
        ("<!-- numbers gem/table3 rows=GME -->\n<!-- end -->", "unknown row 'GME' in the numbers of gem/table3; did"),
        ("<!-- numbers gem/table3 -->\n", "{} has a place for numbers without <!-- end -->"),
    ],
)
def test_a_slip_in_a_page_is_named(fill, tmp_path, capsys, marker, fault):
    shutil.copytree(DOCS / "results", tmp_path / "results")
    page = tmp_path / "page.md"
    page.write_text(marker)
    assert fill.main([str(tmp_path), "--check"]) == 2
    assert capsys.readouterr().err.startswith(fault.format(page))
