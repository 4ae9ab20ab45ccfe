"""The twelve tasks of papers 003 and 004, and partitions of any kind."""

import numpy as np
import pytest
import torch

import holdfast as hf

TABLE2 = {  # paper 004, Tab. 2, written out a second time
    "D5-5a": ({0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}),
    "D5-5b": ({0, 2, 4, 6, 8}, {1, 3, 5, 7, 9}),
    "D5-5c": ({3, 4, 6, 8, 9}, {0, 1, 2, 5, 7}),
    "D5-5d": ({0, 2, 5, 6, 7}, {1, 3, 4, 8, 9}),
    "D5-5e": ({0, 1, 3, 4, 5}, {2, 6, 7, 8, 9}),
    "D5-5f": ({0, 3, 4, 8, 9}, {1, 2, 5, 6, 7}),
    "D5-5g": ({0, 5, 6, 7, 8}, {1, 2, 3, 4, 9}),
    "D5-5h": ({0, 2, 3, 6, 8}, {1, 4, 5, 7, 9}),
    "D9-1a": (set(range(9)), {9}),
    "D9-1b": (set(range(1, 10)), {0}),
    "D9-1c": ({0, 2, 3, 4, 5, 6, 7, 8, 9}, {1}),
}


@pytest.mark.parametrize("name", TABLE2)
def test_the_papers_partitions(name):
    stream = hf.stream("slt", parts=name, seed=3)
    assert tuple(set(task.classes) for task in stream.tasks) == TABLE2[name]
    assert tuple(set(task.train.y.tolist()) for task in stream.tasks) == TABLE2[name]
    assert stream.scenario == "class" and stream.info.classes == 10
    assert hf.stream("slt", parts=name.lower()).tasks[0].classes == stream.tasks[0].classes


def test_unpermuted_parts_are_equal_as_in_paper_003s_code():
    stream = hf.stream("slt", parts="DP10-10", permute=False, val=0.1)
    first, second = (task.test for task in stream.tasks)
    assert torch.equal(first.raw(), second.raw()) and torch.equal(first.y, second.y) and first.transform is None
    for name in ("train", "val"):
        mine, other = (getattr(task, name).rows.sort().values for task in stream.tasks)
        assert torch.equal(mine, other)


def test_dp10_10_permutes_both_parts_each_its_own_way():
    stream = hf.stream("slt", parts="DP10-10", seed=1)
    original = hf.stream("split", tasks=1, seed=1).tasks[0].test
    first, second = (task.test.raw().flatten(1) for task in stream.tasks)
    pixels = original.raw().flatten(1)
    assert stream.scenario == "domain" and [len(task.classes) for task in stream.tasks] == [10, 10]
    assert not torch.equal(first, pixels) and not torch.equal(second, pixels) and not torch.equal(first, second)
    for permuted in (first, second):
        assert torch.equal(permuted.sort(1).values, pixels.sort(1).values)
    again = hf.stream("slt", parts="DP10-10", seed=2)
    assert not torch.equal(again.tasks[0].test.raw().flatten(1), first)


def test_other_partitions_are_dealt_out_by_the_seed():
    streams = [hf.stream("slt", parts="d2-3-5", seed=seed) for seed in range(4)]
    for stream in streams:
        assert [len(task.classes) for task in stream.tasks] == [2, 3, 5]
        assert sorted(c for task in stream.tasks for c in task.classes) == list(range(10))
    assert len({stream.tasks[0].classes for stream in streams}) > 1
    assert streams[0].settings["tasks"] == 3
    assert len(hf.stream("slt", parts="dp4-4-4").tasks) == 3


def test_of_more_classes_the_best_represented_take_part_or_random_ones_when_balanced():
    def data(counts):
        y = np.repeat(np.arange(12), counts)
        return np.random.default_rng(0).random((len(y), 5), np.float32), y

    uneven = hf.stream("slt", data=data([3, 30, 30, 30, 30, 30, 4, 30, 30, 30, 30, 30]), parts="D9-1a")
    names = [c for task in uneven.tasks for c in task.name.split()[2:]]
    assert "0" not in names and "6" not in names and len(names) == 10
    chosen = {
        tuple(task.name for task in hf.stream("slt", data=data([20] * 12), parts="D5-5a", seed=s).tasks)
        for s in range(5)
    }
    assert len(chosen) > 1


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"parts": "D5-5z"}, "unknown parts 'D5-5z'; did you mean 'D5-5"),
        ({"parts": "5-5"}, "unknown parts '5-5'"),
        ({"parts": "d5-6"}, "need 11 classes, but data set 'digits' has 10"),
        ({"parts": "d4-5", "scenario": "domain"}, "needs parts of equal size, not 4, 5 classes"),
        ({"parts": "dp10-5"}, "needs parts of equal size, not 10, 5 classes"),
        ({"parts": "d5-5", "tasks": 3}, "make 2 tasks, not 3; leave tasks out"),
    ],
)
def test_what_is_impossible_is_told(settings, fault):
    with pytest.raises(hf.BadInput, match=fault):
        hf.stream("slt", **settings)
