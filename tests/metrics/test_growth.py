"""What a stream reaches and takes, task by task, by hand."""

import pytest

import holdfast as hf


def test_growth_by_hand(record):
    resources = {"bytes": [2e6, 3e6, 3e6], "numbers": [250_000, 500_000, 500_000], "flops": [5.0, 7.0, 1.0],
                 "train_seconds": [0.1] * 3, "eval_seconds": 0.1}  # fmt: skip
    trials = [{"task": 0, "flops": 5.0, "chosen": True}, {"task": 1, "flops": 4.0, "chosen": False},
              {"task": None, "flops": 9.0, "chosen": False}]  # fmt: skip
    found = record([[0.8, 0, 0], [0.5, 0.6, 0], [0.2, 0.6, 0.4]], resources=resources, study={"trials": trials})
    assert hf.growth.learned(found) == pytest.approx([0.8, 0.7, 0.6])
    assert hf.growth.kept(found) == pytest.approx([0.2, 0.4, 0.4])
    assert hf.growth.memory(found) == [1.0, 2.0, 2.0] and hf.growth.reachable(found) == [2.0, 3.0, 3.0]
    assert hf.growth.flops(found) == [5.0, 16.0, 17.0]
