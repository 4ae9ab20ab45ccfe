"""Every metric on a 3x3 matrix small enough to check by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from holdfast import metrics
from holdfast.errors import BadInput

R = [
    [0.9, 0.2, 0.1],
    [0.7, 0.8, 0.3],
    [0.5, 0.9, 0.7],
]
BASELINE = [0.1, 0.1, 0.2]


@pytest.fixture
def three(record):
    return record(R, baseline=BASELINE)


def test_acc_is_the_mean_of_the_last_row(three):
    assert metrics.acc(three) == pytest.approx((0.5 + 0.9 + 0.7) / 3)


def test_bwt_compares_the_last_row_with_the_diagonal(three):
    assert metrics.bwt(three) == pytest.approx(((0.5 - 0.9) + (0.9 - 0.8)) / 2)


def test_fwt_compares_the_upper_diagonal_with_the_baseline(three):
    assert metrics.fwt(three) == pytest.approx(((0.2 - 0.1) + (0.3 - 0.2)) / 2)


def test_forgetting_starts_from_the_best_a_task_was_before_the_last(three):
    assert metrics.forgetting(three) == pytest.approx(((0.9 - 0.5) + (0.8 - 0.9)) / 2)


def test_forgetting_is_not_minus_bwt_when_a_task_peaked_later(record):
    peaked = record([[0.5, 0, 0], [0.8, 0.6, 0], [0.4, 0.6, 0.9]])
    assert metrics.forgetting(peaked) == pytest.approx(((0.8 - 0.4) + 0) / 2)
    assert metrics.bwt(peaked) == pytest.approx(((0.4 - 0.5) + 0) / 2)


def test_forgetting_counts_what_was_known_before_a_task_was_learned(record):
    known_before = record([[0.5, 0.9, 0], [0.5, 0.6, 0], [0.5, 0.6, 0.9]])
    assert metrics.forgetting(known_before) == pytest.approx((0 + 0.9 - 0.6) / 2)


def test_ctrl_forgetting_is_negative_when_the_learner_forgot(three):
    assert metrics.forgetting_ctrl(three) == pytest.approx(((0.5 - 0.9) + (0.9 - 0.8)) / 2)


def test_transfer_compares_the_last_task_with_learning_it_alone(three, record):
    assert metrics.transfer(three, record([[0.6]])) == pytest.approx(0.7 - 0.6)


def test_only_the_last_scoring_after_each_task_counts(three, record):
    often = record(
        [[0, 0, 0], R[0], [1, 1, 1], R[1], R[2]],
        baseline=BASELINE,
        scorings=tuple({"after_task": t, "step": s} for t, s in [(0, 5), (0, 10), (1, 5), (1, 10), (2, 10)]),
        tasks=three.tasks,
    )
    for name in ("acc", "bwt", "fwt", "forgetting"):
        assert metrics.METRICS[name].of(often) == metrics.METRICS[name].of(three)


def test_one_task_has_an_accuracy_and_nothing_else(record):
    found = metrics.summary(record([[0.75]]))
    assert found["acc"] == 0.75
    assert [found[name] for name in ("bwt", "fwt", "forgetting", "forgetting_ctrl")] == [None] * 4


def test_tasks_that_were_mixed_have_no_transfer(record):
    for matrix in (R, R[-1:]):
        found = metrics.summary(record(matrix, baseline=BASELINE, mixed=True))
        assert found["acc"] == pytest.approx(0.7)
        assert [found[name] for name in ("bwt", "fwt", "forgetting", "forgetting_ctrl")] == [None] * 4


def test_a_run_scored_only_at_its_end_has_no_transfer(record):
    assert metrics.bwt(record(R[-1:])) is None


def test_nan_never_leaves(record):
    broken = record(np.full((3, 3), np.nan))
    assert {metrics.summary(broken)[name] for name in ("acc", "bwt", "fwt", "forgetting")} == {None}


def curve(task, accuracies, learned=None):
    learned = task if learned is None else learned
    return [
        {"after_task": learned, "step": b, "task": task, "accuracy": a, "loss": 1.0} for b, a in enumerate(accuracies)
    ]


def test_lca_is_the_mean_early_accuracy_on_the_task_being_learned(record):
    rows = curve(0, [0.0, 0.3, 0.6, 0.9]) + curve(1, [0.2, 0.4, 0.6, 1.0]) + curve(2, [0.1, 0.1, 0.4, 0.8])
    other = curve(0, [0.9, 0.9, 0.9, 0.9], learned=1)
    found = record(R, curves=tuple(rows + other))
    assert metrics.lca(found, beta=2) == pytest.approx((0.3 + 0.4 + 0.2) / 3)
    assert metrics.lca(found, beta=0) == pytest.approx(0.1)
    assert metrics.lca(found, beta=4) is None
    assert "lca" not in metrics.summary(found)
    assert metrics.learning_curve(found, 1) == [(0, 0.2), (1, 0.4), (2, 0.6), (3, 1.0)]


def test_the_summary_has_lca_when_each_task_was_scored_after_each_early_batch(record):
    rows = [row for t in range(3) for row in curve(t, [0.5] * 6)]
    assert metrics.summary(record(R, curves=tuple(rows)))["lca"] == pytest.approx(0.5)
    assert metrics.lca(record(R, curves=tuple(rows[:-1]))) is None


def test_resources_are_final_bytes_and_total_time(three):
    found = metrics.summary(three)
    assert (found["bytes"], found["flops"], found["train_seconds"], found["eval_seconds"]) == (300, 3e6, 1.5, 0.25)


def test_every_number_of_a_summary_stands_in_the_table(three):
    assert set(metrics.summary(three)) <= set(metrics.METRICS)
    assert all(value is None or math.isfinite(value) for value in metrics.summary(three).values())


@pytest.fixture
def scored(record):
    """Accuracies that follow from 200 predictions per task."""

    def build(seed, method="gem"):
        rng = np.random.default_rng(seed)
        labels = tuple(np.random.default_rng(t).integers(0, 10, 200 + t) for t in range(3))
        predictions = tuple(np.where(rng.random((3, len(y))) < 0.7, y, (y + 1) % 10).astype(np.uint8) for y in labels)
        matrix = np.array(
            [[np.count_nonzero(p[i] == y) / len(y) for p, y in zip(predictions, labels, strict=True)] for i in range(3)]
        )
        return record(matrix, seed=seed, method=method, predictions=predictions, labels=labels)

    return build


def test_rescoring_the_predictions_gives_R_again(scored):
    found = scored(0)
    np.testing.assert_allclose(metrics.rescore(found), found.R, atol=1e-12, rtol=0)


def test_rescoring_without_predictions_says_what_is_missing(three):
    with pytest.raises(BadInput, match=r"predictions\.npz"):
        metrics.rescore(three)


def test_two_runs_are_compared_example_by_example(record):
    y = np.zeros(12, dtype=np.uint8)
    a = np.array([[9] * 12, [0] * 4 + [0] * 5 + [1] * 3])  # the last scoring counts: 9 right
    b = np.array([[9] * 12, [0] * 4 + [1] * 5 + [0] * 1 + [1] * 2])  # 5 right, 1 of them alone
    first, second = (record([[0.0], [0.0]], predictions=(p,), labels=(y,)) for p in (a, b))
    found = metrics.compare_examples(first, second, 0)
    assert (found.both, found.only_a, found.only_b, found.neither) == (4, 5, 1, 2)
    assert found.p_value == pytest.approx(2 * (1 + 6) / 2**6)  # 2 · P(at most 1 of 6)
    assert metrics.compare_examples(first, first, 0).p_value == 1


def test_runs_on_different_test_sets_are_not_compared(scored, record):
    a = scored(0)
    b = record(a.R, predictions=a.predictions, labels=tuple(y + 1 for y in a.labels))
    with pytest.raises(BadInput, match="different test sets"):
        metrics.compare_examples(a, b, 0)
    other = replace(a, stream={**a.stream, "seed": 1})  # its rows have the same labels, and need not be the same rows
    with pytest.raises(BadInput, match=r"different test sets of task 0 \(stream\.seed 0 and 1\)"):
        metrics.compare_examples(a, other, 0)
    fewer = replace(a, stream={**a.stream, "examples": 7})  # training rows are another matter
    assert metrics.compare_examples(a, fewer, 0).p_value == 1
    with pytest.raises(BadInput, match=r"a run must be a Record, as hf\.run gives one, not a str"):
        metrics.compare_examples(a, "er", 0)
    with pytest.raises(BadInput, match="task must be a whole number, counted from 0, not '0'"):
        metrics.compare_examples(a, a, "0")
    with pytest.raises(BadInput, match="task must be from 0 to 2, not 3"):
        metrics.compare_examples(a, a, 3)
