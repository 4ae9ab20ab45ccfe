"""Recipes of papers 003 and 004: what they run, how they read a record, and what they draw."""

from __future__ import annotations

import dataclasses
import json
from itertools import product

import numpy as np
import pytest

import holdfast as hf
from holdfast import papers
from holdfast.cli import main
from holdfast.papers import common
from holdfast.papers.apps import grid, table1
from holdfast.papers.apps import table3 as apps3
from holdfast.papers.apps import table4 as apps4
from holdfast.papers.apps import table5 as apps5
from holdfast.papers.still import mnist
from holdfast.papers.still import table3 as still3
from holdfast.papers.still import table4 as still4


@pytest.fixture(scope="module")
def some_record() -> hf.Record:
    """A real record, for everything that a hand-made study leaves alone."""
    return hf.run("finetune", hf.stream("slt", parts="D9-1a", examples=20), seed=0)


def handmade(
    record: hf.Record, courses: dict, blends: list | None = None, chosen: int = 1, stop: int = 10
) -> hf.Record:
    """`courses`: trial -> (task, {test set: accuracies at steps 0, 10, 20})."""
    trials = [
        {"trial": n, "task": t, "began_from": None if t in (0, None) else 0, "settings": {}, "stop": stop if t else 20,
         "chosen": t == 0 or n == chosen}
        for n, (t, _) in courses.items()
    ]  # fmt: skip
    curves = [
        {"trial": n, "step": 10 * i, "task": task, "accuracy": q}
        for n, (_, tests) in courses.items() for task, qs in tests.items() for i, q in enumerate(qs)
    ]  # fmt: skip
    made = {"trials": trials, "curves": curves, **({"blends": blends} if blends else {})}
    protocol = {**record.protocol, "name": "realistic", "epochs": 10, "steps": None}
    return dataclasses.replace(record, study=made, protocol=protocol)


COURSES = {
    0: (0, {0: [0.1, 0.9, 0.95], None: [0.1, 0.9, 0.95]}),
    1: (1, {0: [0.95, 0.5, 0.1], 1: [0.0, 0.98, 0.985], None: [0.86, 0.55, 0.19]}),  # chosen on validation rows
    2: (1, {0: [0.95, 0.9, 0.8], 1: [0.0, 0.5, 0.99], None: [0.86, 0.87, 0.82]}),
    3: (None, {0: [0.9], 1: [0.9], None: [0.97]}),
}


def test_realistic_is_read_where_it_stopped_and_as_the_authors_read_it(some_record):
    found = {("fc", "D9-1a", False): [handmade(some_record, COURSES)]}
    assert still4.measured(found, "fc", "D9-1a", "", False) == [0.55]  # the chosen retraining at step 10
    # 0.999 of the best on D2: step 20 of both; of the two, the one with more on the union
    assert still4.measured(found, "fc", "D9-1a", "", True) == [0.82]
    assert still4.measured(found, "D-fc", "D9-1a", "", True) == [0.82]  # started without dropout: fc's runs
    assert still4.measured(found, "D-fc", "D9-1a", "", False) is None


def test_dp10_10_shows_what_was_lost_of_d1(some_record):
    record = dataclasses.replace(handmade(some_record, COURSES), R=np.array([[0.96, 0.1], [0.79, 0.95]]))
    found = {("fc", "DP10-10", False): [record]}
    read = {metric: still4.measured(found, "fc", "DP10-10", metric, False) for metric in (still4.BEFORE, still4.AFTER)}
    shown = {c["metric"] for c in papers.find("still/table4").published if c["column"] == "DP10-10"}
    assert (read[still4.BEFORE], read[still4.AFTER]) == ([0.96], [0.79]) and set(read) < shown


def test_dp10_10_is_read_as_the_authors_scored_it(some_record):
    found = {("fc", "DP10-10", False): [handmade(some_record, COURSES)]}
    assert still3.measured(found, "fc", "DP10-10", "", False) == [0.87]
    assert still3.measured(found, "fc", "DP10-10", "", True) == [0.999 * 0.95]  # of D1's own accuracy at its best
    assert still4.measured(found, "fc", "DP10-10", "", True) == [0.95]


def test_the_authors_own_runs_are_read_where_there_are_any(some_record):
    other = {**COURSES, 1: (1, {0: [0.9, 0.9, 0.9], 1: [0.9, 0.9, 0.9], None: [0.9, 0.9, 0.9]})}
    mine, theirs = handmade(some_record, COURSES), handmade(some_record, other)
    found = {("EWC", "D9-1a", False): [mine], ("EWC", "D9-1a", True): [theirs]}
    assert still3.measured(found, "EWC", "D9-1a", "", False) == [0.87]
    assert still3.measured(found, "EWC", "D9-1a", "", True) == [pytest.approx(0.999 * 0.9)]


def test_best_and_last_are_the_lowest_over_the_tasks_of_a_type(some_record):
    worse = {**COURSES, 1: (1, {0: [0.5, 0.5, 0.5], 1: [0.5, 0.5, 1.0], None: [0.5, 0.6, 0.4]})}
    found = {
        ("MNIST, D9-1a", "FC", False): [handmade(some_record, COURSES)],
        ("MNIST, D9-1b", "FC", False): [handmade(some_record, worse)],
    }
    place = ("MNIST, D9-1", "FC")
    assert apps3._measured(found, *place, "best", False) == [0.6]
    assert apps3._measured(found, *place, "last", False) == [0.4]  # ε₂ by the best on D2: trial 2, and 1 in the other
    assert apps5._measured(found, *place, "baseline", False) == [0.97]
    assert apps5._measured(found, *place, "Ω_all", False) == [pytest.approx(0.6 / 0.97)]
    assert apps3._measured(found, "MNIST, D5-5", "FC", "best", False) is None


def test_best_and_last_do_not_depend_on_where_retraining_was_stopped():
    small = {"layers": (1,), "sizes": (20,), "lr": (0.01,), "later_lr": (0.01, 0.001), "steps": 40, "score_every": 10}
    stream = hf.stream("slt", parts="D5-5a", val=0.2)
    made = [
        hf.run("finetune", stream, protocol=hf.protocol(name, choose_on="test", batch=20, **small), seed=0)
        for name in ("application", "realistic")
    ]
    for reading in apps3.READ.values():
        assert reading(made[0]) == reading(made[1]) > 0


def test_at_laptop_mnist_is_run_once_for_both_papers():
    if not (_have("mnist") and _have("fashion-mnist")):
        pytest.skip("MNIST is not here")
    there = {e.cell(0).name for e in papers.find("still/table4").entries("laptop")}
    mine = {e.row: e for e in papers.find("apps/table3").entries("laptop") if (e.column, e.emulated) == ("FC", False)}
    assert mine["MNIST, D5-5a"].cell(0).name in there
    assert mine["FashionMNIST, D5-5a"].protocol.at_once
    table5 = {e.row: e for e in papers.find("apps/table5").entries("laptop") if e.column == "FC"}
    assert table5["MNIST, D5-5a"].protocol.at_once


def blends(mean: list[float], mode: list[float]) -> list[dict]:
    return [
        {"after_task": 1, "merge": merge, "alpha": i / 4, "task": task, "accuracy": q}
        for merge, qs in (("mean", mean), ("mode", mode)) for i, q in enumerate(qs) for task in (0, 1)
    ]  # fmt: skip


def test_imm_is_read_at_the_best_alpha_and_at_the_share(some_record):
    first = handmade(some_record, COURSES, blends([0.2, 0.5, 0.8, 0.5, 0.2], [0.2, 0.6, 0.7, 0.9, 0.2]))
    second = handmade(some_record, COURSES, blends([0.3, 0.7, 0.6, 0.5, 0.2], [0.2, 0.8, 0.7, 0.6, 0.2]))
    assert hf.panels.share(first) == 0.5  # 20 examples each
    found = {("MNIST, D9-1a", "wtIMM", False): [first], ("MNIST, D9-1b", "wtIMM", False): [second]}
    place = ("MNIST, D9-1",)
    read = {m: apps4.measured(found, "wtIMM mode", *place, m, False) for m in ("best", *_EXTRA)}
    assert read["best"] == pytest.approx([0.8]) and read[apps4.SHARED] == pytest.approx([0.7])
    assert read[apps4.GAIN] == pytest.approx([0.2]) and read[apps4.AWAY] == [0.25]
    assert apps4.measured(found, "wtIMM mean", *place, "best", False) == pytest.approx([0.7])


def test_correct_runs_do_not_stand_in_for_authors_runs_that_are_not_there(some_record):
    recipe, record = papers.find("apps/table4"), handmade(some_record, COURSES, blends([0.85] * 5, [0.8] * 5))
    whole = recipe.entries("smoke")
    found = {(e.row, e.column, e.emulated): [record] for e in whole}
    place = ("wtIMM mode", "MNIST, D9-1", "best")

    def numbers(found):
        cells = {(c["row"], c["column"], c["metric"]): c for c in papers.judged(recipe, found, "smoke", whole)}
        return cells[place]["measured"], cells[place]["emulated"]

    assert numbers(found) == (pytest.approx(0.8), pytest.approx(0.8))
    assert numbers({key: records for key, records in found.items() if not key[2]}) == (pytest.approx(0.8), None)


_EXTRA = (apps4.SHARED, apps4.GAIN, apps4.AWAY)


def test_a_panel_shows_the_chosen_path_over_time(some_record):
    other = {**COURSES, 0: (0, {0: [0.2, 0.9, 0.95], None: [0.2, 0.9, 0.95]})}  # only its beginning differs
    made = hf.panels.panel("D9-1a", [handmade(some_record, COURSES), handmade(some_record, other)])
    by_name = {curve.name: curve for curve in made.curves}
    assert list(by_name) == ["D1", "D2", "D1 ∪ D2"] and made.begins == [0, 20] and made.at_once == 0.97
    assert by_name["D1"].x == [0, 10, 20, 20, 30, 40] and by_name["D1"].mean[-1] == pytest.approx(0.1)
    assert by_name["D1 ∪ D2"].mean == pytest.approx([0.86, 0.55, 0.19])
    assert by_name["D1"].low[0] < 0.15 < by_name["D1"].high[0] and by_name["D1"].low[1] is None
    assert made.marks[0].x == 30 and "on average" in made.marks[0].text
    epochs = hf.panels.panel("D9-1a", [handmade(some_record, COURSES)], "epoch")
    assert epochs.begins == [0, 10] and max(epochs.curves[1].x) == 20


def test_an_epoch_is_a_pass_over_the_part_where_training_has_a_number_of_steps(some_record):
    record = handmade(some_record, COURSES)
    tasks = [{**task, "n_train": n} for task, n in zip(record.tasks, (90, 10), strict=True)]
    limited = dataclasses.replace(record, protocol={**record.protocol, "steps": 20, "batch": 9}, tasks=tasks)
    made = hf.panels.panel("D9-1a", [limited], "epoch")
    assert made.begins == [0, 2] and max(made.curves[1].x) == pytest.approx(2 + 18)


def test_the_authors_panel_draws_the_retraining_that_their_number_is_read_from(some_record):
    found = {("fc", "D9-1a", False): [handmade(some_record, COURSES)]}
    (figure,) = papers.find("still/figure4").figures(found)
    (panel,) = figure.panels
    union = panel.curves[-1].mean
    assert union == pytest.approx([0.86, 0.87, 0.82]) and not panel.marks  # trial 2, to its end
    assert still4.measured(found, "D-fc", "D9-1a", "", True) == [pytest.approx(union[-1])]


def test_a_panel_of_merged_networks_marks_the_best_alpha(some_record):
    mean, mode = [0.2, 0.5, 0.8, 0.5, 0.2], [0.2, 0.6, 0.7, 0.9, 0.2]
    made = hf.panels.panel("MNIST", [handmade(some_record, COURSES, blends(mean, mode))])
    assert [c.name for c in made.curves] == ["D1", "D2", "D1 ∪ D2, mean merge", "D1 ∪ D2, mode merge"]
    assert [(mark.x, mark.over) for mark in made.marks] == [(0.5, "alpha"), (0.5, "alpha"), (0.75, "alpha")]
    assert "accuracy 0.900 (at the share: 0.700)" in made.marks[2].text
    assert made.curves[0].x == [0, 10, 20]  # its own network, while it was trained


def test_a_stream_of_three_parts_has_a_panel_too(some_record):
    stream = hf.stream("slt", parts="d4-3-3", val=0.2)
    small = {"layers": (1,), "sizes": (8,), "lr": (0.01,), "later_lr": (0.01,), "steps": 4, "score_every": 2}
    record = hf.run("finetune", stream, protocol=hf.protocol("application", **small), seed=0)
    made = hf.panels.panel("three", [record])
    assert [c.name for c in made.curves] == ["D1", "D2", "D3", "D1 ∪ D2 ∪ D3"] and made.begins == [0, 4, 8]
    merged = hf.run(hf.method("imm", merge="mean"), stream, protocol=hf.protocol("application", alphas=2, **small))
    made = hf.panels.panel("three", [merged])
    assert [c.name for c in made.curves][-1] == "D1 ∪ D2 ∪ D3, mean merge" and "|D3|/(|D1|+|D2|+|D3|)" in made.marks[
        0
    ].text


def test_what_needs_another_training_is_an_entry_of_its_own():
    entries = mnist.entries("smoke", "realistic")
    emulated = [entry for entry in entries if entry.emulated]
    assert {entry.row for entry in emulated} == {"EWC"} and len(emulated) == len(common.SMOKE)
    (theirs,) = [entry for entry in emulated if entry.column == "D5-5a"]
    assert (theirs.protocol.optimiser, theirs.protocol.test_batch, theirs.net.init) == ("adam", 100, "tenth")
    assert theirs.protocol.reset_optimiser and theirs.method.strength == "1/lr"
    assert theirs.protocol.weights_from == "last"  # the first perfect batch of 100 says nothing about the best step
    permuted = [e for e in apps3.entries("smoke") if "DP10-10" in e.row]
    assert {e.emulated for e in permuted} == {True, False}
    assert all(e.stream.settings["permute"] != e.emulated for e in permuted)


def test_importances_are_estimated_from_all_rows_of_d1():
    """As in the authors' code. With 200, EWC forgets: the network is nearly always right, so most gradients vanish."""
    for models, row in product((common.MODELS, common.EMULATED), ("EWC", "wtIMM")):
        assert models[row].settings["samples"] >= 60_000


def test_mnist_has_55000_rows_from_0_to_1_and_other_data_sets_all_of_theirs_from_minus_1():
    """As in paper 003's Table 1 and its code."""
    for data, rows, low in (("mnist", 55_000, 0.0), ("fashion-mnist", 60_000, -1.0)):
        if not _have(data):
            pytest.skip(f"{data} is not here")
        tasks = common.entry(
            ("", ""), "D9-1a", common.MODELS["fc"], "laptop", "application", {}, data=data
        ).stream.tasks
        assert sum(len(task.train) for task in tasks) == rows
        for part in (tasks[0].train, tasks[1].test):
            x = part.x(slice(0, 50))
            assert (x.min().item(), x.max().item()) == (low, 1.0)


def test_laptop_has_004s_lengths_and_six_topologies():
    if not _have("mnist"):
        pytest.skip("MNIST is not here")
    entries = {(e.row, e.column): e for e in papers.find("still/table4").entries("laptop") if not e.emulated}
    assert {column for row, column in entries if row == "fc"} == set(common.SLTS)
    assert (entries["fc", "D5-5a"].protocol.steps, entries["EWC", "D5-5a"].protocol.steps) == (1500, 2500)
    assert len(entries["fc", "D5-5a"].protocol.topologies()) == 6 and entries["fc", "D5-5a"].protocol.lr == (0.001,)
    thin = {(e.row, e.column): e for e in papers.find("still/table3").entries("laptop")}
    assert len(thin["fc", "D5-5a"].protocol.topologies()) == 9 and len(thin["EWC", "D5-5a"].protocol.topologies()) == 4
    full = papers.find("still/table4").entries("full")
    assert len(full[0].protocol.topologies()) == 36 and {e.column for e in full if e.row == "D-conv"} == set(
        common.SLTS
    )


def test_prescient_evaluation_keeps_every_eps2_where_another_may_be_best():
    rates = {(row, slt): "later_lr" in still3.thinned(row, slt) for row in mnist.ROWS for slt in common.SLTS}
    assert {row for (row, _), thin in rates.items() if thin} == {"fc", "D-fc", "LWTA"}
    assert not any(rates[row, "DP10-10"] for row in mnist.ROWS)


def test_figures_have_the_same_cells_as_the_tables():
    for table, figures in (
        ("still/table4", [f"still/figure{n}" for n in (2, 3, 4, 5)]),
        ("apps/table3", ["apps/figure2"]),
    ):
        there = {entry.cell(0).name for entry in papers.find(table).entries("smoke")}
        for figure in figures:
            assert {entry.cell(0).name for entry in papers.find(figure).entries("smoke")} <= there, figure


def test_at_laptop_figures_draw_runs_of_the_tables_that_their_notes_name():
    if not (_have("mnist") and _have("fashion-mnist")):
        pytest.skip("MNIST is not here")
    names = {
        item: {entry.cell(0).name for entry in papers.find(f"apps/{item}").entries("laptop")}
        for item in ("table4", "table5", *(f"figure{n}" for n in range(2, 9)), "appendix_b")
    }
    for item in (f"figure{n}" for n in range(2, 6)):
        assert names[item] and names[item] <= names["table5"], item
    for item in (f"figure{n}" for n in range(6, 9)):
        assert names[item] and names[item] <= names["table4"], item
    assert names["appendix_b"] <= names["table4"] | names["table5"]


def test_absent_data_sets_are_listed_last_never_dropped(monkeypatch):
    monkeypatch.setattr(hf, "at_hand", lambda name: name in ("mnist", "cifar-10", "svhn", "madbase"))
    recipe = papers.find("apps/table3")
    cells = papers.judged(recipe, {}, "laptop")
    absent = [c for c in cells if c["setting"] == "data set absent"]
    assert len(cells) == 9 * 3 * 6 * 2 and len(absent) == 5 * 3 * 6 * 2 and all(c["measured"] is None for c in absent)
    run, idle, gone = ["MADBase", "MNIST"], ["CIFAR10", "SVHN"], _names(absent)
    assert _names(cells) == [*run, *idle, *gone]
    assert gone == ["Devanagari", "EMNIST", "FashionMNIST", "Fruits 360", "NotMNIST"]
    assert {c["setting"] for c in cells if c["row"].split(",")[0] in idle} == {"not run at laptop"}
    assert [c["column"] for c in cells[:12:2]] == list(grid.MODELS)  # a row stays whole
    assert any("Devanagari, EMNIST" in note for note in recipe.notes) and "not run" in recipe.said["laptop"]
    table4 = papers.judged(papers.find("apps/table4"), {}, "laptop")
    assert list(dict.fromkeys(c["column"].split(",")[0] for c in table4))[:2] == run
    figure = papers.judged(papers.find("apps/figure2"), {}, "laptop")
    assert _names(figure) == [*run, *idle, *gone]


def _names(cells) -> list[str]:
    return list(dict.fromkeys(c["row"].split(",")[0] for c in cells))


def test_a_data_set_that_is_not_here_is_asked_for_in_vain(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "nothing"))
    reproduce(capsys, "apps/table3", "--only", "FC,MADBase", "--out", str(tmp_path / "o"), code=2)
    said = capsys.readouterr().err
    assert said.startswith("holdfast: 'MADBase' has no runs, for the data set is not here") and "data status" in said
    assert main(["reproduce", "apps/table3", "--scale", "laptop", "--out", str(tmp_path / "o")]) == 2
    said = capsys.readouterr().err
    assert "holdfast data fetch mnist" in said or "holdfast data fetch fashion-mnist" in said
    assert not (tmp_path / "o").exists()


def test_thresholds_are_003s():
    thresholds = {c["column"]: c["threshold"] for c in papers.find("still/table4").published if "threshold" in c}
    assert thresholds["D5-5a"] == thresholds["DP10-10"] == 0.5 and thresholds["D9-1c"] == 0.9
    shaded = [c for c in papers.find("apps/table3").published if "threshold" in c]
    assert {c["metric"] for c in shaded} == {"best"} and len(shaded) == 162


def test_properties_are_counted_where_the_data_are(monkeypatch):
    monkeypatch.setitem(grid.DATA, "MNIST", "digits")
    monkeypatch.setitem(grid.DATA, "SVHN", "nothing")
    table1._task.cache_clear()
    try:
        assert table1._measured({}, "MNIST", "image", "width", False) == [8.0]
        task = hf.stream("permuted", tasks=2).tasks[0]
        assert table1._measured({}, "MNIST", "train", "elements", False) == [float(len(task.train))]
        assert 0 < table1._measured({}, "MNIST", "train", "imbalance (%)", False)[0] < 3
        assert table1._measured({}, "SVHN", "train", "elements", False) is None
        assert table1._missing("laptop")["SVHN", "train"] == "data set absent"
        assert table1._measured({}, "MNIST", "classes", "number", False) == [10.0]
    finally:
        table1._task.cache_clear()


def test_a_data_set_that_is_here_only_in_part_says_so_beside_its_rows(monkeypatch):
    """Of 55,000 published training rows digits has 1,438: a difference that is the file's, not the paper's."""
    monkeypatch.setitem(grid.DATA, "MNIST", "digits")
    table1._task.cache_clear()
    try:
        cells = {(c["row"], c["column"]): c for c in papers.judged(papers.find("apps/table1"), {}, "laptop")}
        assert cells["MNIST", "train"]["setting"] == cells["MNIST", "test"]["setting"] == "reduced here"
        assert cells["MNIST", "image"]["setting"] == cells["MNIST", "classes"]["setting"] == ""
        absent = [row for row, name in grid.DATA.items() if not hf.at_hand(name)]
        assert all(
            cells[row, column]["setting"] == "data set absent" for row in absent for column in ("train", "classes")
        )
    finally:
        table1._task.cache_clear()


def _have(data: str) -> bool:
    try:
        hf.stream("permuted", data=data, tasks=2)
    except hf.BadInput:
        return False
    return True


def reproduce(capsys, *words: str, code: int = 0) -> dict:
    assert main(["reproduce", *words, "--scale", "smoke", "--json", "--quiet", "--jobs", "1"]) == code
    return json.loads(capsys.readouterr().out) if code == 0 else {}


def test_a_table_without_runs_has_a_report(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "nothing"))
    table1._task.cache_clear()
    try:
        result = reproduce(capsys, "apps/table1", "--out", str(tmp_path / "o"))
    finally:
        table1._task.cache_clear()
    assert len(result["cells"]) == 63 + 9
    assert all(c["measured"] is None and c["setting"] == "data set absent" for c in result["cells"])
    page = (tmp_path / "o" / "report.html").read_text()
    assert "data set absent" in page and "<h2>Summary</h2>" not in page


def test_finished_runs_of_another_folder_are_taken_over(tmp_path, capsys):
    one, two = tmp_path / "one", tmp_path / "two"
    first = reproduce(capsys, "apps/figure7", "--out", str(one))
    before = {path.parent.name: path.read_text() for path in one.rglob("record.json")}
    (fig,) = {f["kind"] for f in first["figures"]}
    assert fig == "waterfall" and len(before) == 2
    second = reproduce(capsys, "apps/figure7", "--out", str(two), "--from", str(one))
    assert second["cells"] == first["cells"]
    assert {path.parent.name: path.read_text() for path in two.rglob("record.json")} == before
    other, both = tmp_path / "other", tmp_path / "both"
    reproduce(capsys, "still/table4", "--only", "fc,D9-1a", "--out", str(other))
    asked = ("--only", "fc,D9-1a", "--from", str(one), "--from", str(other), "--out", str(both))
    reproduce(capsys, "still/table4", *asked)
    records = [next(folder.rglob("record.json")).read_text() for folder in (other, both)]
    assert records[0] == records[1]  # seconds and all: not run again
    main(["reproduce", "apps/figure7", "--scale", "smoke", "--from", str(tmp_path / "none")])
    assert "is not an output folder of Holdfast" in capsys.readouterr().err
    assert main(["reproduce", "apps/figure7", "--scale", "smoke", "--seeds", "2", "--out", str(one)]) == 2
    assert f"taken over by another --out with --from {one}" in capsys.readouterr().err


def test_the_authors_complete_archive_stands_between_published_and_measured(tmp_path, capsys):
    out = tmp_path / "o"
    assert (
        main(["reproduce", "still/table4", "--scale", "smoke", "--only", "fc", "--jobs", "1", "--out", str(out)]) == 0
    )
    said = capsys.readouterr().out
    head, rows = said.splitlines()[1], {line.split()[1]: line for line in said.splitlines() if line.startswith("fc")}
    assert head.index("published") < head.index("archive") < head.index("measured")
    assert rows["D9-1a"].split().index("0.15") == rows["D9-1a"].split().index("0.48") - 1
    assert "0.48" not in rows["DP10-10"] and "archive" in said.split("\n- ", 1)[1]  # a note says why
    (cell,) = [c for c in json.loads((out / "reproduction.json").read_text())["cells"] if c["column"] == "D9-1a"]
    assert (cell["published"], cell["archive"], cell["judged"], cell["within"]) == (0.15, 0.48, False, None)
    page = (out / "report.html").read_text()
    assert (
        "paper .15" in page and "archive .48" in page and '<th scope="col" class="number">Complete archive</th>' in page
    )


def test_a_table_without_an_archive_has_no_column_of_it(tmp_path, capsys):
    assert main(["reproduce", "apps/table1", "--scale", "smoke", "--out", str(tmp_path / "o")]) == 0
    assert "archive" not in capsys.readouterr().out
    assert "rchive" not in (tmp_path / "o" / "report.html").read_text().partition("<h2>Published and measured</h2>")[2]


def test_some_rows_and_columns_of_a_table(tmp_path, capsys):
    result = reproduce(capsys, "still/table4", "--only", "fc,D9-1a", "--out", str(tmp_path / "o"))
    assert [(c["row"], c["column"]) for c in result["cells"]] == [("fc", "D9-1a")]
    reproduce(capsys, "still/table4", "--only", "fd,D9-1z", "--out", str(tmp_path / "none"), code=2)
    said = capsys.readouterr().err
    assert "'fd'; did you mean 'fc'?" in said and "'D9-1z'; did you mean 'D9-1a'?" in said
    reproduce(capsys, "still/table4", "--only", "D5-5b", "--out", str(tmp_path / "none"), code=2)
    assert "'D5-5b' has no runs at this scale" in capsys.readouterr().err
    reproduce(capsys, "apps/table1", "--only", "MNIST", "--out", str(tmp_path / "none"), code=2)
    assert "has no runs to choose from" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
