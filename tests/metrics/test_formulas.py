"""Every formula on 3×3 matrices whose answers are worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import metrics
from holdfast.errors import BadInput
from holdfast.metrics import SOURCES, Matrix, formulas
from holdfast.metrics.formulas import NAMES, OURS

R = [
    [0.8, 0.9, 0.1],  # task 2 was known before it was learned, and better than ever after
    [0.9, 0.6, 0.3],  # task 1 is best after task 2
    [0.5, 0.7, 0.4],  # task 2 is better at the end than when it was learned
]
BASELINE = [0.1, 0.2, 0.1]
ROWS = [10, 10, 20]
POOLED = (0.5 + 0.7 + 2 * 0.4) / 4
SEEN = (0.8 + (0.9 + 0.6) / 2 + POOLED) / 3
BWT = ((0.5 - 0.8) + (0.7 - 0.6)) / 2
FWT = ((0.9 - 0.2) + (0.3 - 0.1)) / 2

BY_HAND = {
    ("papers", "acc"): (0.5 + 0.7 + 0.4) / 3,
    ("papers", "aia"): SEEN,
    ("papers", "bwt"): BWT,
    ("papers", "fwt"): FWT,
    ("papers", "forgetting"): ((0.9 - 0.5) + (0.9 - 0.7)) / 2,
    ("papers", "forgetting_ctrl"): BWT,
    ("gem", "acc"): (0.5 + 0.7 + 0.4) / 3,
    ("gem", "bwt"): ((0.5 - 0.8) + (0.7 - 0.6) + 0) / 3,
    ("gem", "fwt"): (0 + (0.9 - 0.2) + (0.3 - 0.1)) / 3,
    ("avalanche", "acc"): POOLED,
    ("avalanche", "bwt"): BWT,
    ("avalanche", "fwt"): FWT,
    ("avalanche", "forgetting"): ((0.8 - 0.5) + (0.6 - 0.7)) / 2,
    ("mammoth", "acc"): (0.5 + 0.7 + 0.4) / 3,
    ("mammoth", "bwt"): BWT,
    ("mammoth", "fwt"): FWT,
    ("mammoth", "forgetting"): ((0.9 - 0.5) + (0.9 - 0.7)) / 2,
    ("pycil", "acc"): POOLED,
    ("pycil", "aia"): SEEN,
    ("pycil", "forgetting"): ((0.9 - 0.5) + (0.7 - 0.7)) / 2,
    ("pilot", "acc"): POOLED,
    ("pilot", "aia"): SEEN,
    ("pilot", "forgetting"): ((0.9 - 0.5) + (0.7 - 0.7)) / 2,
    ("continuum", "acc"): POOLED,
    ("continuum", "acc_all"): (0.8 + 0.9 + 0.6 + 0.5 + 0.7 + 0.4) / 6,
    ("continuum", "aia"): SEEN,
    ("continuum", "bwt"): (0.5 - 0.8) / 3,  # of three pairs one is summed
    ("continuum", "fwt"): (0.9 + 0.5 + 0.7) / 3,
    ("continuum", "forgetting"): (0.8 - 0.5) / 2,  # task 2 and row 2 are left out
}
ALL = [(source, name) for source in SOURCES for name in SOURCES[source]]


@pytest.fixture
def three(record):
    made = record(R, baseline=BASELINE)
    tasks = tuple({**task, "n_test": n} for task, n in zip(made.tasks, ROWS, strict=True))
    return record(R, baseline=BASELINE, tasks=tasks)


@pytest.mark.parametrize(("source", "name"), ALL)
def test_by_hand(three, source, name):
    assert formulas(source)[name](three) == pytest.approx(BY_HAND[source, name])


@pytest.mark.parametrize(("source", "name"), ALL)
def test_a_matrix_is_as_good_as_a_record(three, source, name):
    bare = Matrix.of(R, baseline=BASELINE, n_test=ROWS)
    assert formulas(source)[name](bare) == formulas(source)[name](three)


def test_ours_are_those_of_the_summary(three):
    summary = metrics.summary(three)
    mine = {name: formula(three) for name, formula in formulas(OURS).items() if name != "aia"}
    assert mine == {name: summary[name] for name in mine} and len(mine) == 5


def test_a_task_that_became_better_makes_up_for_another_only_where_the_last_row_is_not_among_the_best():
    better = Matrix.of([[0.75, 0, 0], [0.75, 0.25, 0], [0.5, 0.75, 0.5]])  # −0.25 on task 1, +0.5 on task 2
    found = {source: each["forgetting"](better) for source, each in SOURCES.items() if "forgetting" in each}
    assert found["papers"] == found["avalanche"] == (0.25 - 0.5) / 2
    assert found["mammoth"] == found["pycil"] == found["pilot"] == (0.25 + 0) / 2


def test_mammoth_looks_one_task_ahead_and_no_further():
    R = np.array([[0.5, 0.6, 0.9], [0.5, 0.3, 0.9], [0.5, 0.2, 0.9]])
    assert formulas("mammoth")["forgetting"](Matrix.of(R)) == pytest.approx((0 + 0.6 - 0.2) / 2)
    R = [[0.5, 0, 0.9, 0], [0.5, 0.3, 0, 0], [0.5, 0.3, 0.3, 0], [0.5, 0.3, 0.3, 0.3]]
    assert formulas("mammoth")["forgetting"](Matrix.of(R)) == pytest.approx(0)


def test_without_a_baseline_only_forward_transfer_is_undefined():
    bare = Matrix.of(R)
    undefined = [(source, name) for source, name in ALL if formulas(source)[name](bare) is None]
    assert undefined == [("papers", "fwt"), ("gem", "fwt"), ("avalanche", "fwt"), ("mammoth", "fwt")]


def test_with_one_task_only_accuracies_are_defined(record):
    one = record([[0.75]], baseline=[0.5])
    for source, name in ALL:
        assert formulas(source)[name](one) == (0.75 if name in ("acc", "acc_all", "aia") else None)


def test_with_two_tasks_continuum_has_nothing_to_sum():
    two = Matrix.of([[0.9, 0.1], [0.2, 0.8]])
    assert formulas("continuum")["bwt"](two) == formulas("continuum")["forgetting"](two) == 0


def test_tasks_shown_at_once_have_accuracies_at_the_end_alone(record):
    joint = record([[0.5, 0.75]], baseline=[0.1, 0.1], mixed=True)
    defined = {(source, name) for source, name in ALL if formulas(source)[name](joint) is not None}
    assert defined == {(source, "acc") for source in SOURCES}


NAN = float("nan")
ENDS = [[0.8, NAN, NAN], [NAN, 0.6, NAN], [0.5, 0.7, 0.4]]  # score=ends
SEEN_ONLY = [[0.8, 0.9, NAN], [0.9, 0.6, 0.3], [0.5, 0.7, 0.4]]  # score=seen


def test_what_needs_an_accuracy_that_was_not_scored_is_undefined(record):
    holes = record(ENDS, baseline=BASELINE)
    defined = {(source, name) for source, name in ALL if formulas(source)[name](holes) is not None}
    backward = {(source, "bwt") for source in ("papers", "gem", "avalanche", "mammoth")}
    first_and_last = {("papers", "forgetting_ctrl"), ("avalanche", "forgetting")}
    # with three tasks Continuum looks at no row between learning a task and the end
    assert defined == {(s, "acc") for s in SOURCES} | backward | first_and_last | {
        ("continuum", "bwt"),
        ("continuum", "forgetting"),
    }


def test_no_source_needs_more_than_the_tasks_so_far_and_the_next(three, record):
    seen = record(SEEN_ONLY, baseline=BASELINE, tasks=three.tasks)
    assert all(formulas(source)[name](seen) == formulas(source)[name](three) for source, name in ALL)


def test_every_metric_has_a_name_for_tables():
    assert {name for _, name in ALL} == set(NAMES)


def test_an_unknown_source_names_the_nearest():
    with pytest.raises(BadInput, match="unknown source 'avalanch'; did you mean 'avalanche'"):
        formulas("avalanch")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"R": [[1, 0]]}, "R must be square"),
        ({"R": [[1]], "baseline": [0, 0]}, "baseline must have one number per task, 1, not 2"),
        ({"R": [[1]], "n_test": [4, 5]}, "n_test must have one number per task, 1, not 2"),
    ],
)
def test_a_matrix_that_is_none_is_refused(given, said):
    with pytest.raises(BadInput, match=said):
        Matrix.of(**given)
