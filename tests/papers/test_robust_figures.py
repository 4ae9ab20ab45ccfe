"""Figures 5 to 21 of paper 001: what their recipes run, how their numbers are read off a record, and what is drawn."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.papers.base import judged
from holdfast.papers.robust import replay, sensitivity, split, timed, unseen
from holdfast.report import reproduction

NUMBERS = range(5, 22)
KINDS = {**dict.fromkeys(NUMBERS, "lines"), 13: "scatter", 14: "scatter", 15: "matrix", 16: "matrix"}
KINDS |= {17: "roc", 18: "roc"}


@pytest.fixture(scope="module")
def smoke():
    """The records behind a figure at smoke, seed 0; what several figures show is run once, as with --from."""
    runs: dict[str, hf.Record] = {}

    def found(number: int):
        entries = papers.find(f"robust/figure{number}").entries("smoke")
        cells = {(e.row, e.column, e.emulated): e.cell(0) for e in entries}
        assert len(cells) == len(entries)
        return {key: [runs.get(cell.name) or runs.setdefault(cell.name, cell.run())] for key, cell in cells.items()}

    return found


def test_figures_2_to_21_are_built_and_no_other():
    listed = {item.id: item.recipe for item in papers.contents() if item.id.startswith("robust/")}
    assert set(listed) == {f"robust/figure{n}" for n in range(2, 22)} and None not in listed.values()
    assert {cell["published"] for cell in papers.find("robust/figure2").published} == {0.003, 0.453, None}


@pytest.mark.parametrize("number", NUMBERS)
def test_every_recipe_yields_its_cells_and_its_figure(smoke, number):
    recipe, found = papers.find(f"robust/figure{number}"), smoke(number)
    entries = recipe.entries("smoke")
    cells = judged(recipe, found, "smoke", entries)
    shown = {(c["row"], c["column"]) for c in cells if c["measured"] is not None}
    assert shown == {(e.row, e.column) for e in entries}
    for cell in cells:
        away = cell["setting"] == replay.ELSEWHERE
        assert (cell["measured"] is None) == away and cell["within"] is None and not cell["judged"], cell
        assert away or cell["metric"] == timed.SECONDS or 0 <= cell["measured"] <= 1, cell
    (figure,) = recipe.figures(found)
    assert figure.kind == KINDS[number]
    assert all(len(s.mean) == len(s.x or figure.x) > 1 for s in figure.series)
    assert recipe.figures({}) == [] == [c for c in judged(recipe, {}, "smoke") if c["measured"] is not None]


def test_runs_that_figures_share_are_the_same_cells():
    """So that --from takes them over, at every scale for which the data are here."""
    for scale in ("smoke", "laptop"):
        try:
            names = {n: {e.cell(0).name for e in papers.find(f"robust/figure{n}").entries(scale)} for n in NUMBERS}
        except hf.BadInput:
            pytest.skip("MNIST is not here")
        assert names[15] == names[17] and names[16] == names[18] and names[9] < names[10]
        assert names[18] < names[6] and len(names[11] - names[6]) == 1 == len(names[12] - names[5])
        assert all(names[17] < names[n] for n in (11, 13, 19, 20, 21)) and names[18] < names[13]


def test_multi_headed_runs_know_the_task_and_others_do_not():
    for number in NUMBERS:
        given = "task" if number in (5, 7, 12, 14) else "domain" if number in (9, 10) else "class"
        for entry in papers.find(f"robust/figure{number}").entries("smoke"):
            assert entry.stream.scenario == given, (number, entry.label)


def test_accuracy_is_read_off_hand_worked_arrays(smoke):
    """R of three tasks; the means and minima stand here."""
    (some,) = smoke(18)["VCL", "single-headed", False]
    R = np.array([[0.9, 0.0, 0.0], [0.5, 0.8, 0.1], [0.1, 0.2, 0.6]])
    record = dataclasses.replace(some, R=R, scorings=some.scorings[:3], metrics={"acc": 0.3})
    assert split.just_learned(record) == 0.6
    assert split.so_far(record) == pytest.approx([0.9, 0.65, 0.3])
    found = {("VCL", "no coreset", False): [record, record]}
    assert split.measured(found, "VCL", "no coreset", "just learned", False) == [0.6, 0.6]
    assert split.measured(found, "VCL", "no coreset", "acc", False) == pytest.approx([0.3, 0.3])
    assert split.measured(found, "EWC", "no coreset", "acc", False) is None
    (lines,) = split.figures(found)
    assert lines.x == [1, 2, 3] and lines.series[0].mean == pytest.approx([0.9, 0.65, 0.3])
    drawn = sensitivity.FIGURES["figure20"].figures({("VGR", "1 epoch", False): [record]})[0]
    assert drawn.x == [1] and [s.mean for s in drawn.series] == [[pytest.approx(0.3)], [pytest.approx(0.1)]]


def informed(record: hf.Record, M: np.ndarray) -> hf.Record:
    last = {scoring["after_task"]: scoring["step"] for scoring in record.scorings}
    rows = [
        {"after_task": i, "step": last[i], "task": j, "accuracy": 0.5, "information": float(M[i, j])}
        for i, j in np.ndindex(M.shape)
    ]
    return dataclasses.replace(record, curves=rows)


def test_shares_of_information_are_read_off_a_hand_worked_map(smoke):
    (some,) = smoke(18)["VCL", "single-headed", False]
    M = np.array(
        [
            [1, 4, 5, 8, 10],  # seen: .1
            [2, 1, 6, 8, 10],  # .2
            [1, 3, 1, 5, 10],  # .3, and the lowest unseen .5
            [1, 9, 1, 1, 10],  # .9: the second task is nearly as strange as the fifth
            [10, 1, 1, 1, 1],  # has seen all
        ]
    )
    found = {("VCL", "single-headed", False): [informed(some, M / 7)]}
    recipe = papers.find("robust/figure16")
    read = {c["metric"]: recipe.measure(found, c["row"], c["column"], c["metric"], False) for c in recipe.published}
    wanted = {unseen.SEEN: 0.9, unseen.UNSEEN: 0.4, "model 4, task 2": 0.9, "model 4, task 5": 1.0}
    assert {name: value for name, (value,) in read.items()} == pytest.approx(wanted)
    (drawn,) = recipe.figures(found)
    assert [s.mean for s in drawn.series] == [pytest.approx(row.tolist()) for row in M / 10]
    assert drawn.series[0].told[4] == "1.43 nats"
    (curve,) = papers.find("robust/figure18").figures(found)[0].series
    at_one = (np.mean(M[np.tril_indices(5)] > np.diag(M)[np.tril_indices(5)[0]]), 1.0)
    assert (curve.x[0], curve.mean[0]) == pytest.approx(at_one)


@pytest.mark.parametrize("seed", range(5))
def test_timed_points_are_marked_as_brute_force_marks_them(smoke, seed):
    """Seconds and accuracies on a coarse grid, so that there are ties."""
    rng, (some,) = np.random.default_rng(seed), smoke(18)["VCL", "single-headed", False]
    points, found = {}, {}
    for row in ("VGR", "VCL"):
        for k in range(12):
            seconds, accuracy = float(rng.integers(1, 9)), float(rng.integers(0, 9)) / 8
            points[row, str(k)] = seconds, accuracy
            R = np.full_like(some.R, accuracy)
            scores = {**some.metrics, "acc": accuracy, timed.SECONDS: seconds}
            found[row, str(k), False] = [dataclasses.replace(some, R=R, metrics=scores)]
    (figure,) = papers.find("robust/figure13").figures(found)

    def beaten(place):
        s, a = points[place]
        return any((t < s and b >= a) or (t <= s and b > a) for t, b in points.values())

    marked = {(s.name, told): best for s in figure.series for told, best in zip(s.told, s.optimal, strict=True)}
    assert marked == {place: not beaten(place) for place in points}
    drawn = {(s.name, n): (x, y) for s in figure.series for n, x, y in zip(s.told, s.x, s.mean, strict=True)}
    assert drawn == points


def test_a_map_and_a_curve_are_drawn_from_the_same_runs(tmp_path, capsys):
    first, second = tmp_path / "roc", tmp_path / "map"
    given = ["--scale", "smoke", "--jobs", "1", "--seeds", "1", "--quiet"]
    assert main(["reproduce", "robust/figure18", *given, "--out", str(first)]) == 0
    assert main(["reproduce", "robust/figure16", *given[:-1], "--out", str(second), "--from", str(first)]) == 0
    said = capsys.readouterr()
    assert "finished before" in said.out + said.err
    kept = json.loads((second / "reproduction.json").read_text())
    assert json.dumps(kept).count("model 4, task 2") >= 1
    page = (second / "report.html").read_text()
    assert re.search(r'<figure class="square"><figcaption>Mutual information', page)
    assert "unseen tasks found" in (first / "report.html").read_text()


def test_a_page_says_when_nothing_could_be_judged():
    """Figure 13 below the full scale: both judged settings are run elsewhere."""
    cells = [{"within": None, "judged": cell["judged"]} for cell in papers.find("robust/figure13").published]
    none = reproduction.Reproduction("robust/figure13", "", "laptop", cells)
    assert "No number here is judged. 2 are judged when all their runs are there." in reproduction._finding(none)
    one = dataclasses.replace(none, cells=[{**cells[0], "within": True}, *cells[1:]])
    said = reproduction._finding(one)
    assert "<b>1 of 1</b>" in said and "1 more is judged when all their runs are there." in said
