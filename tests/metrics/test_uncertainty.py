"""The θ rule on matrices whose rates are counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from holdfast import metrics
from holdfast.metrics.uncertainty import THETAS, Rates, area, calibration, information, rates, unseen_auc


def rows(M, steps=(0,), **others):
    """Curves that say this of every model and task; NaN: it was not asked."""
    return tuple(
        {"after_task": i, "step": step, "task": j, "accuracy": 0.5, "information": value / (1 + step), **others}
        for step in steps
        for i, row in enumerate(M)
        for j, value in enumerate(row)
        if not np.isnan(value)
    )


# Model 1 has seen task 1, model 2 two, model 3 all. Unseen pairs: (1,2) 3, (1,3) 6, (2,3) 1.5; seen, beside the
# current tasks: (2,1) 2.5, (3,1) 0.5, (3,2) 1.2, in units of the current task's information.
THREE = np.array([[1.0, 3.0, 6.0], [5.0, 2.0, 3.0], [0.5, 1.2, 1.0]])


def at(theta, found):
    return next(each for each in found if each.theta == pytest.approx(theta))


def test_rates_by_hand():
    found = rates(THREE)
    assert [each.theta for each in found] == list(THETAS) and (THETAS[0], THETAS[-1], len(THETAS)) == (1.0, 10.0, 91)
    # of 3 unseen and 6 seen pairs, the three current ones among them
    assert at(1.0, found)[1:] == (2 / 6, 3 / 3)  # (2,1) and (3,2) are called unseen
    assert at(1.2, found)[1:] == (1 / 6, 3 / 3)  # 1.2 is not more than 1.2
    assert at(1.5, found)[1:] == (1 / 6, 2 / 3)
    assert at(2.5, found)[1:] == (0.0, 2 / 3)
    assert at(3.0, found)[1:] == (0.0, 1 / 3)
    assert at(6.0, found)[1:] == (0.0, 0.0)


def test_area_by_hand():
    # corners (0,0) and (1,1); points (0,0) (0,1/3) (0,2/3) (1/6,2/3) (1/6,1) (2/6,1)
    assert area(rates(THREE)) == pytest.approx(1 / 6 * 2 / 3 + 5 / 6)


def test_a_model_that_knows_what_it_knows_has_an_area_of_one_and_one_that_does_not_of_a_half():
    tasks = np.arange(5)
    knows = np.where(tasks[:, None] >= tasks, 0.1, 0.3)
    assert area(rates(knows)) == 1.0
    assert area(rates(np.full((5, 5), 0.2))) == 0.5  # nothing is called unseen: from corner to corner
    forgets = np.where(tasks[:, None] == tasks, 0.1, 0.3)  # old tasks look as new ones do
    # at θ < 3 all unseen and the 10 old of 15 seen pairs are called unseen
    assert area(rates(forgets)) == pytest.approx(0.5 * 2 / 3 + 1 / 3)


def test_pairs_that_were_not_scored_do_not_count():
    M = THREE.copy()
    M[2, 1] = np.nan
    assert at(1.0, rates(M))[1:] == (1 / 5, 1.0)


def test_the_matrix_is_that_of_the_last_scoring_after_each_task(record):
    made = record(np.zeros((3, 3)), curves=rows(THREE, steps=(0, 9)))
    np.testing.assert_allclose(information(made), THREE)  # step 0 is what the record calls its scorings
    assert unseen_auc(made) == pytest.approx(area(rates(THREE)))
    often = tuple({"after_task": t, "step": s} for t in range(3) for s in (0, 9))
    later = record(np.zeros((6, 3)), curves=rows(THREE, steps=(0, 9)), scorings=often)
    np.testing.assert_allclose(information(later), THREE / 10)


def test_records_without_samples_have_no_such_numbers(record):
    plain = tuple({k: v for k, v in row.items() if k != "information"} for row in rows(THREE, calibration=0.1))
    made = record(np.zeros((3, 3)), curves=plain)
    assert information(made) is None and unseen_auc(made) is None and metrics.ece(made) is None
    assert not {"unseen_auc", "ece"} & set(metrics.summary(made))
    assert calibration(made).tolist() == [[0.1] * 3] * 3


def test_records_with_samples_have_them_in_their_summary(record):
    curves = tuple({**row, "calibration": 0.1 * (1 + row["task"])} for row in rows(THREE))
    made = record(np.zeros((3, 3)), curves=curves)
    found = metrics.summary(made)
    assert found["ece"] == pytest.approx(0.2) and found["unseen_auc"] == pytest.approx(area(rates(THREE)))


def test_tasks_shown_at_once_or_alone_have_none(record):
    assert unseen_auc(record(np.zeros((3, 3)), curves=rows(THREE), mixed=True)) is None
    assert unseen_auc(record(np.zeros((1, 1)), curves=rows(THREE[:1, :1]))) is None
    seen = np.where(np.triu(np.ones((3, 3)), 1) == 1, np.nan, THREE)  # `ends` and the like ask about no unseen task
    assert unseen_auc(record(np.zeros((3, 3)), curves=rows(seen))) is None


def test_area_takes_points_in_any_order():
    points = [Rates(2.0, 0.0, 0.5), Rates(1.0, 0.5, 1.0)]
    assert area(points) == area(points[::-1]) == pytest.approx(0.5 * 0.75 + 0.5)
