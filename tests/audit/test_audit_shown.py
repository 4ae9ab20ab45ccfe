"""What a stream shows, counted on its rows: nobody says of a stream that its tasks overlap or pass over."""

from dataclasses import dataclass, replace

import pytest
import torch

import holdfast as hf
from holdfast.audit import shown
from holdfast.streams.permuted import Permuted
from holdfast.streams.split import Split

SMALL = {"tasks": 3, "examples": 40}


def passed_over(tasks, share):
    """Segment t has the last rows of task t and, but for the last, the first rows of the next."""
    n = [round(share * len(task.train)) for task in tasks]
    rows = [torch.arange(len(task.train)) for task in tasks]
    for t, task in enumerate(tasks):
        parts = [task.train.take(rows[t][n[t] if t else 0 :])]
        if t + 1 < len(tasks):
            parts.append(tasks[t + 1].train.take(rows[t + 1][: n[t + 1]]))
        yield hf.Segment.of(t, parts, task.val, None)


@dataclass(frozen=True)
class Passing(Split):
    """A quarter of each task comes with the one before."""

    def mixtures(self, tasks, seed):
        return tuple(passed_over(tasks, 0.25))


@dataclass(frozen=True)
class PassingPixels(Permuted):
    """The same where tasks show the same rows, each permuted in its own way."""

    def mixtures(self, tasks, seed):
        return tuple(passed_over(tasks, 0.25))


@dataclass(frozen=True)
class Pairs(hf.StreamSpec):
    """Each task shares a class with the one before."""

    def plan(self, data, seed):
        pairs = [(t, t + 1) for t in range(self.tasks)]
        return "class", len(data.classes), [hf.Plan(f"{pair}", pair, pair) for pair in pairs]


def test_disjoint_tasks_share_nothing():
    found = shown(hf.stream("split", **SMALL))
    assert found.overlap == 0 and found.of_others == 0
    assert [sum(counts.values()) for counts in found.counts] == [40, 40, 40]
    assert [set(counts) for counts in found.counts] == list(map(set, found.classes))


def test_permuted_tasks_share_all_classes():
    assert shown(hf.stream("permuted", tasks=2)).overlap == 1


def test_tasks_that_share_a_class():
    found = shown(hf.stream(Pairs, **SMALL))
    assert found.classes == ({0, 1}, {1, 2}, {2, 3}) and found.overlap == 0.5 and found.of_others == 0


@pytest.mark.parametrize("stream", [Passing, PassingPixels])
@pytest.mark.parametrize("taken", [False, True])
def test_rows_of_other_tasks_are_found_in_mixtures(stream, taken):
    cut = hf.stream(stream, **SMALL)
    if taken:  # a mixture of which some rows are taken, in another order
        cut = replace(cut, mixtures=tuple(replace(s, train=s.train.take(_backwards(s.train))) for s in cut.mixtures))
    assert shown(cut).of_others == pytest.approx(20 / 120)  # ten rows of each of the last two


def _backwards(part):
    return torch.arange(len(part)).flip(0)


def test_the_card_of_a_run_has_them():
    card = hf.run("finetune", hf.stream(Passing, **SMALL)).card
    assert card["continuous_tasks"]["met"] is True and card["no_boundaries"]["met"] is True
    assert card["overlapping_tasks"]["met"] is False
