"""Pareto-optimal results, against a cost."""

import pytest

from holdfast import metrics


@pytest.fixture
def groups(record):
    """groups(a=(cost, accuracy), ...) -> a group each, one seed."""

    def make(**points):
        made = []
        for method, (cost, accuracy) in points.items():
            spent = {"bytes": [cost], "flops": [1.0], "train_seconds": [cost], "eval_seconds": 0.0}
            made.append(record([[accuracy]], method=method, resources=spent, mixed=method == "joint"))
        return metrics.group(made)

    return make


def labels(found):
    return [g.label for g in found]


def test_what_is_beaten_is_not_optimal(groups):
    found = groups(dear=(9.0, 0.9), cheap=(1.0, 0.5), beaten=(2.0, 0.4), between=(2.0, 0.6), same_but_dearer=(3.0, 0.6))
    assert labels(metrics.front(found, "train_seconds")) == ["cheap", "between", "dear"]


def test_equals_are_both_optimal(groups):
    assert labels(metrics.front(groups(a=(1.0, 0.5), b=(1.0, 0.5)), "bytes")) == ["a", "b"]


def test_the_most_accurate_of_one_cost_stands_alone(groups):
    assert labels(metrics.front(groups(a=(1.0, 0.5), b=(1.0, 0.7)), "flops")) == ["b"]


def test_an_upper_bound_is_no_rival(groups):
    assert labels(metrics.front(groups(joint=(0.1, 1.0), a=(1.0, 0.5)), "train_seconds")) == ["a"]


def test_one_that_lacks_seeds_is_no_rival(record):
    records = [record([[0.9]], method="shaky"), record([[0.5]], method="sound")]
    asked = [metrics.Asked("shaky", (0, 1), (1,), (records[0],))]
    assert labels(metrics.front(metrics.group(records, asked=asked), "bytes")) == ["sound"]
