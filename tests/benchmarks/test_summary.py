"""What is made of the measurements: turns, medians, lines, verdicts and the picture."""

from __future__ import annotations

import numpy as np
import pytest


def runs(train: float, score: float, acc: float = 0.8) -> list[dict]:
    """Three repeats whose medians are these; the process's clock ran at half the speed of the wall's."""
    return [
        {"train": t, "score": score, "train_cpu": t / 2, "score_cpu": score / 2, "acc": acc, "peak_mb": 500.0}
        for t in (train, 9 * train, train / 2)
    ]


def steps(start: float, slope: float) -> list[dict]:
    seconds = [0.001, *(start + slope * k for k in range(1, 20))]
    return [{"per_step": seconds, "per_step_cpu": seconds}]


@pytest.fixture
def results() -> dict:
    return {
        "conditions": {
            "clock": "wall",
            "when": "2026-01-01T00:00:00",
            "machine": "a machine",
            "versions": {"torch": "2"},
            "repeats": 3,
            "load_before": (0.0, 0.0, 0.0),
            "load_after": (0.0, 0.0, 0.0),
        },
        "workloads": {"W1": {"bare": runs(0.6, 0.4), "holdfast": runs(0.6, 0.6, 0.78), "avalanche": runs(2.4, 2.4)}},
        "scoring": {"bare": [{"score": 1.0, "score_cpu": 1.0}], "holdfast": [{"score": 1.1, "score_cpu": 1.3}]},
        "compare": {"1": [{"seconds": 9.0}], "2": [{"seconds": 5.0}]},
        "growth": {
            "gem": {"bare": steps(0.001, 0.002), "holdfast": steps(0.001, 0.002), "arithmetic": steps(0, 0.001)},
            "ewc": {"bare": steps(0.001, 0.0), "holdfast": steps(0.001, 0.0001)},
        },
    }


def test_in_as_many_rounds_as_contestants_each_begins_once(benchmarks):
    turns = benchmarks("speed").turns
    assert [turns(["a", "b", "c"], r)[0] for r in range(3)] == ["a", "b", "c"]
    assert turns(["a", "b", "c"], 4) == ["b", "c", "a"]


def test_avalanche_is_left_out_with_a_note_where_it_is_not_installed(benchmarks, monkeypatch, capsys):
    monkeypatch.setenv("AVALANCHE_PYTHON", "/nowhere/python")
    assert list(benchmarks("speed").contestants()) == ["bare", "holdfast"]
    assert capsys.readouterr().err.count("\n") == 1


def test_verdicts(benchmarks, results):
    found = {row["name"]: (round(row["measured"], 3), row["met"]) for row in benchmarks("summary").judge(results)}
    assert found == {
        "W1 Holdfast ÷ bare loop": (1.2, False),
        "W1 Avalanche ÷ Holdfast": (4.0, True),
        "W1 |accuracy of Holdfast − of bare|": (0.02, True),
        "W1 |accuracy of Holdfast − of avalanche|": (0.02, True),
        "scoring after every task, Holdfast ÷ bare loop": (1.1, True),
        "compare, one process ÷ two": (1.8, True),
        "GEM's step against past tasks, R² of a line": (1.0, True),
        "GEM's slope, Holdfast ÷ floor": (1.0, True),
        "EWC's step, its growth over 19 past tasks": (1.727, False),
    }


def test_the_process_clock_decides_when_asked(benchmarks, results):
    results["conditions"]["clock"] = "cpu"
    found = {row["name"]: row["measured"] for row in benchmarks("summary").judge(results)}
    assert found["scoring after every task, Holdfast ÷ bare loop"] == pytest.approx(1.3)


def test_a_line_leaves_out_the_first_task(benchmarks):
    fit = benchmarks("summary").line(np.array([100.0, 3.0, 5.0, 7.0]))
    assert fit == pytest.approx({"slope": 2.0, "start": 1.0, "r2": 1.0})


def test_the_picture_is_one_file(benchmarks, results):
    page = benchmarks("plot").plot(results)
    assert "<script src=" not in page
    assert "+2.000 ms per past task" in page


def test_the_table_names_every_target(benchmarks, results):
    summary = benchmarks("summary")
    results["targets"] = summary.judge(results)
    text = summary.table(results)
    assert all(row["name"] in text for row in results["targets"])
