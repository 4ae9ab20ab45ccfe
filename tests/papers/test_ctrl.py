"""Paper 000's recipes: rows as methods, T(S) against the last task alone, and what cells mean."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast import papers
from holdfast.papers.ctrl import long, rows, standard, transfer

TABLES = ("table2", "table11", "table12", *transfer.TABLES, "table18")


def record(R, seed=0, numbers=(250_000,), flops=3e12, **metrics):
    R = np.array(R, dtype=float)
    return SimpleNamespace(
        final=R, seed=seed, resources={"numbers": list(numbers)}, metrics={"flops": flops, **metrics}
    )


@pytest.fixture(scope="module")
def found():
    """Two rows of S⁻ at smoke, and the last task alone."""
    made = {}
    for row in ("Independent", "New-head freeze"):
        for entry in transfer.and_alone(transfer.entry(row, "S-", "minus", "smoke")):
            made[entry.row, entry.column, False] = [entry.cell(seed).run() for seed in (0, 1)]
    return made


def test_cells_are_read_as_the_tables_have_them():
    whole = [record([[0.7, 0.1], [0.5, 0.4]], acc=0.45), record([[0.6, 0.2], [0.6, 0.5]], seed=1, acc=0.55)]
    alone = [record([[0.35]], seed=1), record([[0.3]])]  # in another order
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


LONG = long.COLUMN


def long_record(parameters, seed=0, net="AlexNet", **changes):
    """Three tasks, of which the second is small: it validates on more rows than it trains on."""
    made = record([[0.6, 0.0, 0.0], [0.6, 0.2, 0.0], [0.4, 0.3, 0.8]], seed, (1e6, 1.5e6, 1.5e6), **changes)
    made.tasks = [{"n_train": a, "n_val": b} for a, b in ((5000, 2500), (25, 75), (450, 50))]
    made.net = {"name": net, "parameters": parameters}
    made.resources |= {"flops": [1e12, 2e12, 3e12]}
    made.study = {"trials": [{"task": t, "chosen": c, "flops": 4e12} for t, c in ((0, True), (1, False), (1, False))]}
    return made


def test_small_tasks_and_parameters_are_read_from_the_records_of_the_long_stream():
    found = {
        ("Independent", LONG, False): [long_record(300, seed=1), long_record(200)],
        ("MNTDP-D", LONG, False): [long_record(100), long_record(150, seed=1), long_record(150, seed=2)],
        ("MNTDP-D *", LONG, False): [long_record(100, net="another")],
    }
    read = lambda row, metric: long.measured(found, row, LONG, metric, False)  # noqa: E731
    assert read("MNTDP-D", long.SMALL) == [0.3] * 3 and read("Independent", long.SHARE) == [1.0, 1.0]
    assert read("MNTDP-D", long.SHARE) == [0.5, 0.5] and read("MNTDP-D *", long.SHARE) is None
    assert read("MNTDP-D", long.PFLOPS) == [0.003] * 3 and read("MNTDP-D", rows.MEM) == [6.0] * 3
    assert read("Finetune", long.SMALL) is read("Finetune", long.PFLOPS) is None


def test_figure_4_goes_task_by_task():
    found = {("MNTDP-D", LONG, False): [long_record(1)]}
    learned, end, memory, spent = (figure.series[0].mean for figure in long.evolution(figured(found)))
    assert learned == pytest.approx([0.6, 0.4, 1.6 / 3]) and end == pytest.approx([0.4, 0.35, 0.5])
    assert memory == [4.0, 6.0, 6.0] and spent == [1.0, 11.0, 14.0]


def figured(found):
    for (made,) in found.values():
        made.scenario, made.stream = "task", {}
    return found


def test_the_cheap_search_is_a_row_of_its_own_without_published_numbers():
    for id in ("table2", "table18", "figure4", "figure14"):
        recipe = papers.find(f"ctrl/{id}")
        ways = {e.row: e.method.search for e in recipe.entries("smoke") if "MNTDP-D" in e.row}
        assert ways == {"MNTDP-D": "all", rows.CHEAP: "halving"}
        assert rows.CHEAP not in {cell["row"] for cell in recipe.published}
    shown = [cell for cell in papers.judged(recipe, {}, "smoke", recipe.entries("smoke")) if cell["row"] == rows.CHEAP]
    assert {cell["metric"] for cell in shown} == set(long.WORDS) and {cell["published"] for cell in shown} == {None}
    assert all(rows.CHEAP not in rows.rows_on(permuted) for permuted in (True, False))


def test_table_2_is_table_18_in_fewer_digits_but_for_a_memory_and_no_flops():
    fine = {(c["row"], c["metric"]): c["published"] for c in papers.find("ctrl/table18").published}
    for cell in papers.find("ctrl/table2").published:
        row, metric, printed = cell["row"], cell["metric"], cell["published"]
        if (row, metric) == ("MNTDP-D *", rows.MEM):
            assert (printed, fine[row, metric]) == (1782, 1803.47)
        elif metric == long.PFLOPS:
            assert printed == pytest.approx(fine[row, rows.FLOPS] / 1e3, abs=0.58), (
                row
            )  # of 5.57 it prints 6, of 3.54 it prints 4
        else:
            digits = {"acc": 0.005, "forgetting_ctrl": 0.05, rows.MEM: 0.7}[metric] + 1e-9
            assert printed == pytest.approx(fine[row, metric], abs=digits), (row, metric)


def test_at_the_laptop_scale_one_network_serves_all_rows_and_scoring_is_linear_in_the_tasks():
    entries = [long.entry(row, "smoke") for row in long.names("smoke")]
    assert {repr(entry.net) for entry in entries} == {repr(entries[0].net)} and entries[0].protocol.score == "ends"
    assert "MNTDP-D *" not in long.names("laptop") and "MNTDP-D *" in long.names("full")
    assert long.missing("full") == {} and ("MNTDP-D *", LONG) in long.missing("laptop")
    wide = long.entry("HAT (wide) *", "smoke")
    assert wide.method.width == 3.2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "printed"),
    [("Finetune", 2.4), ("New-head freeze", 2.6), ("Online EWC", 7.4), ("HAT *", 31.9), ("Independent", 243.7)],
)
def test_mem_of_the_long_stream_is_what_table_18_prints(row, printed):
    x, y = torch.zeros(5, 3, 32, 32), torch.arange(5)
    heads = {"head": "task"} if rows.ROWS[row].heads else {}
    blank = hf.stream("permuted", tasks=100, scenario="task", data=(x, y, x, y), **heads)
    net = rows.convolutional(row, "full")
    cell = hf.Cell(rows.method(row, blank), blank, net, hf.protocol("epochs"), seed=0)
    assert round(4 * cell.numbers()[-1] / 1e6, 1) == printed
