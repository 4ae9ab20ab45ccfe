"""Tables 3 to 10 of paper 000: what is counted is what one counts by hand."""

from __future__ import annotations

from functools import cache

import pytest
from sklearn.datasets import load_digits

import holdfast as hf
from holdfast import papers
from holdfast.papers.base import ABSENT
from holdfast.papers.ctrl import described, transfer

N = 607_050 + 20 * 129  # of the ResNet: weights, and statistics of 20 layers of batch normalisation
ALEXNET = 64 * 3 * 16 + 64 + 128 * 64 * 9 + 128 + 256 * 128 * 4 + 256 + 2048 * 1024 + 2048 + 2048 * 2048 + 2048
ALEXNET += 10 * 2048 + 10


@pytest.fixture
def uncached(monkeypatch):
    """Whatever data sets and streams were counted before."""
    for name in ("_task", "_stream"):
        monkeypatch.setattr(described, name, cache(getattr(described, name).__wrapped__))
    return monkeypatch


def test_table3_counts_the_rows_and_classes_of_data_sets(uncached):
    """Of scikit-learn's digits, of which a fifth of each class is for testing."""
    uncached.setattr(described, "DATA", {"MNIST": "digits", "SVHN": "no such data"})
    labels = load_digits().target.tolist()
    testing = sum(round(labels.count(c) / 5) for c in range(10))
    read = lambda column: described._rows_of_data("MNIST", column, "rows")  # noqa: E731
    assert (read("classes"), read("testing"), read(described.BOTH)) == (10, testing, len(labels) - testing)
    assert read("training") is None and described._rows_of_data("SVHN", "testing", "rows") is None
    why = lambda row, column, printed: described._why_not_data(row, column, "rows", printed)  # noqa: E731
    assert why("SVHN", "testing", 26032) == ABSENT and why("MNIST", "validation", 10000).startswith("part of")
    assert why("MNIST", "testing", 10000) == described.REDUCED and why("MNIST", "testing", testing) == ""


def test_table4_counts_the_rows_and_classes_of_tasks(uncached):
    """Of a fiftieth of S⁻, rows per class as its tasks say; the first task of S⁻ has ten times the rows of the last."""
    small = hf.stream("ctrl", kind="minus", data="synth", rows=0.02, test=1, augment=False)
    uncached.setattr(described, "_stream", lambda row: small)
    cells = [cell for cell in papers.find("ctrl/table4").published if cell["row"] == "S-"]
    found = {(c["column"][:2], c["metric"]): described._rows_of_task("S-", c["column"], c["metric"]) for c in cells}
    assert len(found) == 3 * 6
    for i, task in enumerate(small.tasks, 1):
        train, val = ([int(y) for y in part.y] for part in (task.train, task.val))
        assert found[f"T{i}", "training rows"] == len(train) and found[f"T{i}", "validation rows"] == len(val)
        assert found[f"T{i}", "classes"] == len(set(train)) == 10
    assert (found["T1", "training rows"], found["T6", "training rows"]) == (80, 10)


def test_table4_is_counted_where_the_data_are_and_else_said_to_be_of_others(uncached):
    cell = papers.find("ctrl/table4").published[0]
    small = hf.stream("ctrl", kind="minus", data="synth", rows=0.02, test=1, augment=False)
    uncached.setattr(described, "_stream", lambda row: small)
    uncached.setattr(hf, "at_hand", lambda name: name not in transfer.DATA)
    assert described._why_not_task(cell["row"], cell["column"], cell["metric"], 1) == described.IN_PLACE


def test_tables_5_and_6_are_counted_in_the_tasks_of_the_long_stream(uncached):
    small = hf.stream("ctrl", kind="long", data="synth", test=1, augment=False, disjoint=False)
    uncached.setattr(described, "_stream", lambda row: small)
    cells = [cell for table in ("table5", "table6") for cell in papers.find(f"ctrl/{table}").published]
    assert len(cells) == 3 * 100
    for cell in cells:
        counted = described._rows_of_task(cell["row"], cell["column"], cell["metric"])
        if cell["metric"] == "test rows":
            assert counted == 5  # one per class
        elif cell["published"] == 7500 * 2 / 3:  # procedural data have 700 rows per class, not 1,500
            assert counted == pytest.approx(5 * 700 * 2 / 3, abs=5)
        elif cell["published"] in (25, 15):
            assert counted == cell["published"]


@pytest.mark.parametrize("table", ["table7", "table8", "table9"])
def test_modules_have_the_printed_sizes(table):
    recipe = papers.find(f"ctrl/{table}")
    assert recipe.published and all(cell["judged"] for cell in recipe.published)
    for cell in recipe.published:
        assert recipe.measure({}, cell["row"], cell["column"], cell["metric"], False) == [cell["published"]]


SHARED = 607_050 - 650  # without outputs
TABLE10 = {  # train, test, in numbers
    "Independent": (N, N),
    "Finetune": (N, N),
    "New-head freeze": (N, N),
    "EWC": (SHARED + 6 * 650 + 2 * 6 * SHARED, N + 5 * 650),  # θ, F θ* and F: and outputs of all tasks are one layer
    "ER": (607_050 + 6 * 150 * 3074, N),
    "MNTDP-D": (N, N),
}


@pytest.mark.parametrize("row", TABLE10)
def test_table10_is_the_closed_formula(row):
    cells = [cell for cell in papers.find("ctrl/table10").published if cell["row"] == row]
    train, test = (described._size(row, cell["column"], cell["metric"]) for cell in cells)
    assert (train, test) == pytest.approx(tuple(numbers / N for numbers in TABLE10[row]), rel=1e-12)
    judged = [(value, cell) for value, cell in zip((train, test), cells, strict=True) if cell.get("judged")]
    assert all(abs(value - cell["published"]) <= cell["tolerance"] for value, cell in judged)


def test_hat_is_measured_in_alexnets():
    """Its training has the six tasks' embeddings besides: one number per map and unit."""
    units = 64 + 128 + 256 + 2048 + 2048
    assert described._size("HAT *", "test: N", "size, in N") == 1.0
    assert described._size("HAT *", "train: N", "size, in N") == pytest.approx(1 + 6 * units / ALEXNET)


def test_what_has_no_method_is_said_to_be_missing():
    recipe = papers.find("ctrl/table10")
    assert recipe.missing("laptop") == {}  # all rows that are printed with numbers have one
    assert recipe.entries("laptop") == [] and recipe.measure({}, "EWC", "test: N", "size, in N", True) is None
