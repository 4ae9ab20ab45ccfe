"""Figures 2 to 4 of paper 001: what their recipes run, and how their numbers are read off a record."""

from __future__ import annotations

import pytest

import holdfast as hf
from holdfast import papers
from holdfast.papers.robust import early


def test_both_settings_have_the_same_prior_and_as_many_epochs():
    for item in ("figure2", "figure3", "figure4"):
        entries = papers.find(f"robust/{item}").entries("smoke")
        assert {entry.row for entry in entries} == {"Split", "Permuted"}
        assert len({entry.protocol.prior_rows for entry in entries}) == 1
        for entry in entries:
            per_pass = -(-len(entry.stream.tasks[0].train) // entry.protocol.batch)
            assert entry.protocol.steps == 5 * per_pass and len(entry.stream) == 2


def test_every_published_cell_has_its_number():
    """Of one small run for each row and column; the ratio begins with the second batch."""
    runs = {}
    for entry in early.both("smoke"):
        protocol = hf.protocol("early", steps=10, batches=15, rows=4)
        record = hf.run(entry.method, entry.stream, net=entry.net, protocol=protocol)
        runs[entry.row, entry.column, False] = [record]
    for item in ("figure2", "figure3", "figure4"):
        recipe = papers.find(f"robust/{item}")
        for cell in recipe.published:
            (value,) = recipe.measure(runs, cell["row"], cell["column"], cell["metric"], False)
            rows = [r for r in runs[cell["row"], cell["column"], False][0].study["early"] if r["of"] == "task B"]
            if item == "figure2":
                wanted = rows[0]["entropy"] if cell["metric"] == "entropy" else sum(r["entropy"] for r in rows) / 15
            else:
                row = rows[int(cell["metric"].split()[-1]) - 1]
                wanted = row["likelihood"] if item == "figure3" else row["likelihood"] / row["prior"]
            assert value == pytest.approx(wanted), (item, cell)
        only_vcl = {key: found for key, found in runs.items() if item != "figure4" or key[1] == early.VCL}
        (figure,) = recipe.figures(only_vcl)
        assert figure.x == list(range(1, 16)) and figure.quantity != "accuracy"
        assert (figure.series[0].mean[0] is None) == (item == "figure4") == figure.logarithmic
