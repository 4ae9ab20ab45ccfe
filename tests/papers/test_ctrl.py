"""Paper 000's recipes: rows as methods, T(S) against the last task alone, and what cells mean."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

import holdfast as hf
from holdfast import papers
from holdfast.papers.ctrl import ablation, pictures, rows, standard, transfer

TABLES = ("table2", "table11", "table12", *transfer.TABLES, "table18")


@pytest.fixture(scope="module")
def found():
    """Two rows of S⁻ at smoke, and the last task alone."""
    made = {}
    for row in ("Independent", "New-head freeze"):
        for entry in transfer.and_alone(transfer.entry(row, "S-", "minus", "smoke")):
            made[entry.row, entry.column, False] = [entry.cell(seed).run() for seed in (0, 1)]
    return made


def test_cells_are_read_as_the_tables_have_them(hand_made):
    whole = [hand_made([[0.7, 0.1], [0.5, 0.4]], acc=0.45), hand_made([[0.6, 0.2], [0.6, 0.5]], seed=1, acc=0.55)]
    alone = [hand_made([[0.35]], seed=1), hand_made([[0.3]])]  # in another order
    runs = {("ER", "S-", False): whole, ("ER", f"S-, {rows.ALONE}", False): alone}
    read = lambda metric: rows.measured(runs, "ER", "S-", metric, False)  # noqa: E731
    assert read(rows.FIRST) == [0.7, 0.6] and read(rows.LAST) == [0.4, 0.5] and read("acc") == [0.45, 0.55]
    assert read(rows.CHANGE) == pytest.approx([-0.3, -0.1])
    assert read(rows.TRANSFER) == pytest.approx([0.4 - 0.3, 0.5 - 0.35])
    assert read(rows.MEM) == [1.0, 1.0] and read(rows.FLOPS) == [3.0, 3.0]
    assert rows.measured(runs, "EWC", "S-", "acc", False) is None
    del runs["ER", f"S-, {rows.ALONE}", False]
    assert rows.measured(runs, "ER", "S-", rows.TRANSFER, False) is None


def test_transfer_is_of_the_same_rows_alone(found):
    for row in ("Independent", "New-head freeze"):
        whole, alone = found[row, "S-", False], found[row, f"S-, {rows.ALONE}", False]
        for a, b in zip(whole, alone, strict=True):
            assert (a.labels[-1] == b.labels[0]).all() and a.tasks[-1]["n_train"] == b.tasks[0]["n_train"]
        wanted = [a.final[-1, -1] - b.final[-1, -1] for a, b in zip(whole, alone, strict=True)]
        assert rows.measured(found, row, "S-", rows.TRANSFER, False) == pytest.approx(wanted)
        assert all(value == 0 for value in rows.measured(found, row, "S-", "forgetting_ctrl", False))
        assert len(rows.measured(found, row, "S-", "lca", False)) == 2


@pytest.mark.parametrize("table", TABLES)
def test_every_published_row_has_runs_or_a_reason(table):
    recipe = papers.find(f"ctrl/{table}")
    entries, missing = recipe.entries("smoke"), recipe.missing("smoke")
    places = {(entry.row, entry.column) for entry in entries}
    assert not places & set(missing)
    assert {(cell["row"], cell["column"]) for cell in recipe.published} <= places | set(missing)
    for entry in entries:
        entry.cell(0).check()
        assert bool(entry.grid) == ("EWC" in entry.row and rows.ALONE not in entry.column)


def test_er_keeps_fifteen_rows_of_each_class_of_each_task():
    entry = transfer.entry("ER", "S-", "minus", "smoke")
    assert entry.method.memories == 15 * 10 * 2 and entry.method.rule == "task class ring"


def test_ewc_has_heads_where_the_network_convolves_and_not_on_permuted_mnist():
    outputs = lambda row, table: standard.entry(row, table, "smoke").stream.info.classes  # noqa: E731
    assert outputs("EWC", "table11") == outputs("Finetune", "table11")
    assert outputs("EWC", "table12") == 2 * outputs("Finetune", "table12")
    assert outputs("ER", "table12") == outputs("Finetune", "table12")


def test_a_strength_is_chosen_over_a_stream_under_crossval():
    stream = hf.stream("permuted", tasks=2, examples=60, test_examples=30, val=0.3, scenario="task")
    protocol = hf.protocol("crossval", lr=(0.01,), decay=(0.0,), epochs=2, batch=20)
    tuned = hf.tune(hf.method("ewc", samples=20), stream, {"strength": [1.0, 1000.0]}, protocol=protocol)
    made = tuned.run(seed=0)
    assert made.settings["strength"]["chosen_by"] == "val:stream" and made.resources["trials"]["runs"] >= 2
    assert [trial.acc is not None for trial in tuned.choice.trials] == [True, True]
    assert not made.card["causal"]["met"] if "causal" in made.card else True


@pytest.mark.parametrize(("figure", "row", "new"), [("figure7", "MNTDP-D", 1), ("figure8", "MNTDP-S", 2)])
@pytest.mark.parametrize("scale", ["smoke", pytest.param("laptop", marks=pytest.mark.data)])
def test_figures_of_paths_have_the_runs_of_their_table(figure, row, new, scale):
    recipe = papers.find(f"ctrl/{figure}")
    if not all(map(hf.at_hand, recipe.needs[scale])):
        pytest.skip("the paper's data sets are not here")
    (entry,) = recipe.entries(scale)
    table = papers.find("ctrl/table16").entries(scale)
    assert entry.cell(0).name in [one.cell(0).name for one in table if one.row == row]
    (cell,) = recipe.published
    assert cell["published"] == new and not cell.get("judged")


def test_new_modules_are_counted_in_the_paths_of_a_run():
    made = [SimpleNamespace(study={"paths": [{"new": [0, 1, 2]}, {"new": []}, {"new": new}]}) for new in ([2], [1, 2])]
    found = {("MNTDP-D", "S_out", False): made}
    read = lambda metric: pictures.measured(found, "MNTDP-D", "S_out", metric, False)  # noqa: E731
    assert read(pictures.NEW) == [1, 2] and read(pictures.ALL) == [4, 5]
    assert pictures.measured({}, "MNTDP-D", "S_out", pictures.NEW, False) is None


def test_the_cheap_search_is_a_row_of_ours_in_the_transfer_tables():
    recipe = papers.find("ctrl/table13")
    (entry,) = [e for e in papers.only(recipe.entries("smoke"), [rows.CHEAP]) if rows.ALONE not in e.column]
    assert entry.method.search == "halving" and "our" in rows.CHEAP and "," not in rows.CHEAP
    cells = [cell for cell in recipe.published if cell["row"] == rows.CHEAP]
    assert {"acc", rows.TRANSFER, rows.FLOPS} <= {cell["metric"] for cell in cells}
    assert all(cell["published"] is None for cell in cells)
    assert rows.CHEAP not in {entry.row for entry in papers.find("ctrl/table12").entries("smoke")}


def test_all_past_paths_are_a_row_of_every_table():
    for table in ("table11", "table12", *transfer.TABLES):  # no table of the long stream prints it
        (entry, *_) = [e for e in papers.find(f"ctrl/{table}").entries("smoke") if e.row == "MNTDP-S (k=all)"]
        assert entry.method.nearest_paths is None


def test_the_ablation_differs_from_the_very_cells_of_the_tables_in_one_thing():
    made = {(e.row, e.column): e for e in papers.find("ctrl/ablation").entries("smoke")}
    tables = {e.cell(0).name for t in ("table13", "table16") for e in papers.find(f"ctrl/{t}").entries("smoke")}
    for column in ablation.STREAMS:
        plain = made[ablation.PLAIN, column]
        assert plain.cell(0).name in tables
        assert made[ablation.PLAIN, f"{column}, {rows.ALONE}"].cell(0).name in tables
        for name, own in ablation.VARIANTS.items():
            entry = made[name, column]
            assert entry.method == replace(plain.method, **own.method) and entry.net == replace(plain.net, **own.net)
            assert entry.stream is plain.stream and entry.protocol == plain.protocol
    names = {entry.cell(0).name for entry in made.values()}
    assert len(names) == len(made) == 2 * (len(ablation.VARIANTS) + 1)


def test_alone_networks_of_the_ablation_are_one_however_they_are_cut():
    """So T(S) of all rows is held against the same runs."""
    plain = rows.alone(transfer.entry(ablation.PLAIN, "S-", "minus", "smoke"))
    (R, *others) = [ablation.varied(plain, name, "smoke").cell(0).run() for name in ablation.VARIANTS]
    for other in others:
        assert (other.predictions[0] == R.predictions[0]).all()


def test_what_the_ablation_reads(hand_made):
    whole = [hand_made([[0.7, 0], [0.7, 0.5]]), hand_made([[0.7, 0], [0.7, 0.6]], seed=1)]
    runs = {("random path", "S-", False): whole}
    recipe = papers.find("ctrl/ablation")
    assert recipe.measure(runs, "random path", "S-", rows.CHANGE, False) == pytest.approx([-0.2, -0.1])
    assert recipe.measure(runs, "random path", "S-", rows.TRANSFER, False) is None
    runs[ablation.PLAIN, f"S-, {rows.ALONE}", False] = [hand_made([[0.3]], seed=1), hand_made([[0.2]])]
    assert recipe.measure(runs, "random path", "S-", rows.TRANSFER, False) == pytest.approx([0.3, 0.3])
    printed = {(c["row"], c["column"]): c["published"] for c in recipe.published if c["published"] is not None}
    assert printed == {
        ("MNTDP-D", "S-"): 0, ("MNTDP-D", "S_out"): 0, ("random path", "S-"): -0.2, ("random path", "S_out"): -0.3,
        ("3 modules", "S_out"): -0.1, ("10 modules", "S_out"): 0,
    }  # fmt: skip
    assert not any(cell.get("judged") for cell in recipe.published)
