"""A diagnosis of numbers made by hand: its means, its ratio, its verdict and its sentences."""

from __future__ import annotations

import math

import numpy as np
import pytest

import holdfast as hf
from holdfast.metrics import Diagnosis
from holdfast.metrics.diagnosis import PERMUTED, TASK

MOST = math.log(10)


def looked(record, task, permuted, prior=(0.0, 0.01), seed=0, **fields):
    """A record of two batches: `task` and `permuted` are (entropy, gradient) of both."""
    rows = [
        {"of": of, "batch": b + 1, "entropy": entropy, "most": MOST, "likelihood": pull / (b + 1), "prior": prior[b]}
        for of, (entropy, pull) in {PERMUTED: permuted, TASK: task}.items()
        for b in range(2)
    ]
    return record(np.eye(2), seed=seed, study={"early": rows}, method="vcl", **fields)


@pytest.fixture
def three(record):
    """Task B is surer, and pulls harder, in each of three repeats."""
    return Diagnosis.of(
        [
            looked(record, (0.2 + d, 0.3 + d), (0.5 + 2 * d, 0.1 + 2 * d), seed=i)
            for i, d in enumerate((0.0, 0.01, 0.02))
        ]
    )


def test_means_and_deviations_are_over_repeats(three):
    assert three.repeats == 3 and three.batches == [1, 2]
    assert three.at("entropy") == (pytest.approx(0.21), pytest.approx(0.01))
    assert three.at("entropy", PERMUTED) == (pytest.approx(0.52), pytest.approx(0.02))
    assert three.number == pytest.approx(0.31 / 0.12)


def test_the_ratio_begins_with_the_second_batch_where_the_prior_has_a_gradient(three):
    first, second = three.course("ratio")
    assert first == (None, None)  # 0.3 / 0
    assert second == (pytest.approx(0.31 / 2 / 0.01), pytest.approx(0.5))
    assert "at batch 1 the prior's gradient is 0" in str(three)


def test_what_rounding_leaves_of_a_prior_is_none(record):
    dusty = Diagnosis.of([looked(record, (0.2, 0.3), (0.5, 0.1), prior=(1e-12, 0.01))])
    assert dusty.course("ratio")[0].mean is None and "prior's gradient is 0" in str(dusty)
    new_head = Diagnosis.of([looked(record, (0.2, 0.3), (0.5, 0.1), prior=(0.002, 0.01))])
    assert "prior's gradient is 0" not in str(new_head)


def test_a_method_without_a_prior_has_no_ratio(record):
    found = Diagnosis.of([looked(record, (0.2, 0.3), (0.5, 0.1), prior=(None, None))])
    assert [p.mean for p in found.course("ratio")] == [None, None]
    assert "no prior" in str(found) and found.at("prior") == (None, None)


def test_a_stream_that_looks_alike_and_pulls_harder_poses_the_problem(three):
    assert (three.resembles, three.pulls, three.poses) == ("a", "a", "yes")
    assert three.sentences()[0] == (
        "Task B looks like task A to the learner: entropy 0.21 ± 0.01 of at most 2.30 nats before learning it "
        "(permuted pixels: 0.52 ± 0.02)."
    )
    assert three.sentences()[-1] == (
        "This stream poses the problem: 2.58 (permuted pixels: 1). ± is one standard deviation over 3 repeats."
    )


@pytest.mark.parametrize(
    ("task", "permuted", "poses", "said"),
    [
        ((0.5, 0.1), (0.5, 0.1), "no", "no more like task A"),  # the same but for noise
        ((0.9, 0.05), (0.5, 0.1), "no", "less like task A"),
        ((0.2, 0.1), (0.5, 0.1), "in part", "looks like task A"),
        ((0.5, 0.3), (0.5, 0.1), "in part", "no more like task A"),
    ],
)
def test_other_streams_do_not_or_in_part(record, task, permuted, poses, said):
    noise = [(-0.01, 0.01), (0.01, -0.01), (0.02, -0.02), (-0.02, 0.02)]
    runs = [
        looked(record, (task[0] + a, task[1] + a / 2), (permuted[0] + b, permuted[1] + b / 2), seed=i)
        for i, (a, b) in enumerate(noise)
    ]
    found = Diagnosis.of(runs)
    assert found.poses == poses and said in str(found)


def test_one_repeat_decides_nothing(record):
    found = Diagnosis.of([looked(record, (0.2, 0.3), (0.5, 0.1))])
    assert found.poses == "undecided" and str(found).endswith("One repeat decides nothing: 3 (permuted pixels: 1).")
    assert "±" not in str(found)


def test_the_summary_is_json_with_every_row(three):
    import json

    found = json.loads(json.dumps(three.summary(), allow_nan=False))
    assert found["poses"] == "yes" and found["repeats"] == 3 and len(found["rows"]) == 12
    assert found["entropy"]["task B"][0]["mean"] == pytest.approx(0.21)
    assert found["ratio"]["permuted pixels"][0] == {"mean": None, "deviation": None}


def test_other_records_are_refused(record):
    with pytest.raises(hf.BadInput, match="protocol 'early'"):
        Diagnosis.of([record(np.eye(2))])
    with pytest.raises(hf.BadInput, match="protocol 'early'"):
        Diagnosis.of([])
