"""Readings of a study, on hand-made curves whose answers stand here."""

from __future__ import annotations

import pytest

import holdfast as hf

# Two models on D1 (trials 0 and 1; 1 is better at step 10), each retrained with two ε₂.
CURVES = {  # trial: steps 0, 10, 20 of D1, D2, D1 ∪ D2; D1 has 1 test row in 4
    0: ([0.1, 0.8, 0.7], None, [0.1, 0.8, 0.7]),
    1: ([0.1, 0.9, 0.8], None, [0.1, 0.9, 0.8]),
    2: ([0.9, 0.5, 0.1], [0.0, 0.79, 0.8], [0.225, 0.7175, 0.625]),
    3: ([0.9, 0.9, 0.8], [0.0, 0.1, 0.6], [0.225, 0.3, 0.65]),
    4: ([0.8, 0.8, 0.4], [0.0, 0.7, 0.9], [0.2, 0.725, 0.775]),
}
TRIALS = [(0, None, True), (0, None, False), (1, 1, True), (1, 1, False), (1, 0, False)]


@pytest.fixture
def study(record):
    rows = [
        {"trial": k, "step": 10 * i, "task": task, "accuracy": q}
        for k, sets in CURVES.items()
        for task, curve in zip((0, 1, None), sets, strict=True)
        for i, q in enumerate(curve or [])
    ]
    trials = [
        {"trial": k, "task": task, "began_from": origin, "chosen": chosen, "settings": {}, "stop": 20}
        for k, (task, origin, chosen) in enumerate(TRIALS)
    ]
    tasks = tuple(
        {"name": f"D{t + 1}", "classes": [t], "n_train": 1, "n_val": 0, "n_test": n} for t, n in ((0, 1), (1, 3))
    )
    blends = [
        {"after_task": 1, "merge": "mean", "alpha": a, "task": t, "accuracy": q}
        for a, pair in ((0.0, (0.9, 0.1)), (0.5, (0.8, 0.6)))
        for t, q in enumerate(pair)
    ]
    return record(
        [[0.9, 0.0], [0.1, 0.8]],
        study={"trials": trials, "curves": rows, "blends": blends},
        protocol={"name": "prescient", "choose_on": "test"},
        tasks=tasks,
    )


def test_the_first_task_chooses_the_model_that_was_best_on_it(study):
    assert hf.study.first(study) == 1  # whatever the prescient protocol marked
    assert hf.study.retrainings(study) == [2, 3]


def test_prescience_is_the_highest_on_both_of_any_model_and_step(study):
    assert hf.study.prescient(study) == 0.775  # trial 4
    assert hf.study.prescient(study, on=0) == 0.9  # scored on D1's test set alone


def test_realistic_stops_by_the_second_task_alone(study):
    assert hf.study.realistic(study, 0.9, "d2") == 0.7175  # trial 2: 0.79 >= 0.9 * 0.8 at step 10
    assert hf.study.realistic(study, 0.99, "d2") == 0.625  # only 0.8 reaches 0.792
    assert hf.study.realistic(study, 0.99, "union") == 0.65  # trial 3, which a reading of D1 prefers
    assert hf.study.realistic(study, 0.999, "union", on=0) == 0.9  # everything read on D1: at once


def test_best_and_last_are_of_the_learning_rate_that_was_best_on_the_second_task(study):
    assert hf.study.chosen(study) == 2
    assert hf.study.best(study) == 0.7175 and hf.study.last(study) == 0.625
    assert hf.study.at_once(study) is None and hf.study.omega_all(study) is None


def test_what_all_tasks_at_once_reach_is_a_trial(study):
    study.study["trials"].append({"trial": 5, "task": None, "began_from": None, "chosen": False})
    study.study["curves"].append({"trial": 5, "step": 40, "task": None, "accuracy": 0.95})
    assert hf.study.at_once(study) == 0.95
    assert hf.study.omega_all(study) == pytest.approx(0.7175 / 0.95)


def test_accuracies_over_alpha_are_pooled_by_the_sizes_of_the_test_sets(study):
    assert hf.study.blended(study, "mean") == [(0.0, pytest.approx(0.3)), (0.5, pytest.approx(0.65))]
    assert hf.study.blended(study, "mode") == []


def test_a_record_of_another_protocol_is_told(record):
    with pytest.raises(hf.BadInput, match="has no trials of a study; run it under protocol prescient, realistic or"):
        hf.study.realistic(record([[0.9, 0.0], [0.1, 0.8]]))
