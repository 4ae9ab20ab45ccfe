"""The harder settings of paper 001 §5: boundaries blurred or absent, tasks that overlap, many tasks; and chains."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.checks import check_stream
from holdfast.cli import main
from holdfast.data import load, status_of
from holdfast.methods import Learner
from holdfast.types import DataSet

HIDDEN = ("blurred", "drifting")


def rows(part):
    return part.rows.tolist()


def shares(segment, classes):
    """(n,) which of the rows shown have one of these classes."""
    return torch.isin(segment.train.y, torch.tensor(classes)).double()


class Blind(Learner):
    """Fails where it is told a task."""

    def observe(self, batch):
        assert batch.task is None and batch.rows is None
        return self.fit(batch)

    def predict(self, x, task):
        assert task is None
        return super().predict(x, task)


# What several have in common


@pytest.mark.parametrize(
    "words", [{}, {"augment": True}, {"scale": "centred"}, {"order": "random", "sizes": (3, 2, 5)}]
)
@pytest.mark.parametrize("name", [*HIDDEN, "overlapping"])
def test_they_pass_the_contracts(name, words):
    check_stream(hf.stream(name, tasks=3, val=0.2, **words))


@pytest.mark.parametrize("name", HIDDEN)
def test_no_task_label_is_told_anywhere(name):
    stream = hf.stream(name, tasks=4, val=0.1)
    assert stream.info.hidden and {segment.task for segment in stream.segments} == {None}
    record = hf.run(Blind(), stream, protocol=hf.protocol("online", score_every=5, score_first=3))
    assert record.card["no_boundaries"]["met"] and record.card["no_task_label"]["met"]


@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.parametrize("settings", [{}, {"window": 1.0}, {"window": 0.0}, {"spread": 0.0}, {"spread": 20.0}])
def test_every_training_row_is_shown_once_and_a_segment_is_as_long_as_its_task(name, settings):
    if ("window" in settings) == (name == "drifting"):
        settings = {}
    stream = hf.stream(name, tasks=3, sizes=(5, 2, 3), val=0.1, seed=4, **settings)
    assert [len(s.train) for s in stream.segments] == [len(t.train) for t in stream.tasks]
    shown, there = ([r for part in parts for r in rows(part.train)] for parts in (stream.segments, stream.tasks))
    assert sorted(shown) == sorted(there) and len(set(shown)) == len(shown)
    data = load("digits")
    for segment in stream.segments:
        assert segment.ordered and segment.train.y.equal(data.y[segment.train.rows])


@pytest.mark.parametrize("name", HIDDEN)
def test_the_seed_decides_what_is_shown_when(name):
    one, again, other = (hf.stream(name, tasks=2, seed=seed) for seed in (0, 0, 1))
    for a, b, c in zip(one.segments, again.segments, other.segments, strict=True):
        assert rows(a.train) == rows(b.train) != rows(c.train)


# Blurred


def test_the_probability_of_the_next_task_rises_linearly_in_the_window_and_nowhere_else():
    """Mean over 200 seeds; a share of 200 draws has a deviation of at most 0.035."""
    found = []
    for seed in range(200):
        stream = hf.stream("blurred", tasks=2, examples=100, window=0.6, seed=seed)
        later = [shares(segment, stream.tasks[1].classes) for segment in stream.segments]
        found.append(torch.cat(later))
    share = torch.stack(found).mean(0)
    assert share[:70].eq(0).all() and share[130:].eq(1).all()
    linear = (torch.arange(60) + 0.5) / 60
    assert (share[70:130] - linear).abs().max() < 0.15  # more than 4 deviations
    assert (share[70:130] - linear).view(6, 10).mean(1).abs().max() < 0.04
    assert share[70:130].mean().item() == pytest.approx(0.5, abs=1e-9)  # as many rows of one as of the other


@pytest.mark.parametrize("window", [0.0, 0.25, 1.0])
def test_a_segment_is_its_task_and_rows_of_its_neighbours(window):
    stream = hf.stream("blurred", tasks=5, examples=100, window=window)
    for segment, task in zip(stream.segments, stream.tasks, strict=True):
        mine = shares(segment, task.classes).mean().item()
        inner = 0 < task.t < 4
        expected = 1 - window * (2 if inner else 1) / 8  # of either half window a quarter is another's, on average
        assert mine == pytest.approx(expected, abs=0.07) and (mine == 1.0) == (window == 0)
        near = [c for other in stream.tasks if abs(other.t - task.t) <= 1 for c in other.classes]
        assert shares(segment, near).all()


def test_a_window_is_cut_to_the_smaller_of_two_tasks():
    stream = hf.stream("blurred", tasks=2, sizes=(9, 1), window=1.0)
    small = len(stream.tasks[1].train)
    first, second = (shares(segment, stream.tasks[1].classes) for segment in stream.segments)
    assert not first[: len(first) - small // 2].any() and first[-(small // 2) :].any()
    assert second[small // 2 :].all() and not second[: small // 2].all()


def test_in_the_domain_scenario_tasks_share_outputs_and_boundaries_stay_hidden():
    stream = hf.stream("blurred", scenario="domain")
    assert stream.info.classes == 2 and stream.info.hidden
    assert hf.run(Blind(), stream).scenario == "domain"


# Drifting


def test_class_probabilities_change_all_the_time():
    """Windows of 100 rows along the stream: a class comes, is most frequent, and goes; each at its own time."""
    stream = hf.stream("drifting", tasks=5, spread=0.7)
    y = torch.cat([segment.train.y for segment in stream.segments])
    shown = torch.stack([part.bincount(minlength=10) for part in y.split(100)][:-1]).double()  # (windows, classes)
    assert shown.argmax(0).tolist() == sorted(shown.argmax(0).tolist())
    assert (shown > 0).sum(1).min() >= 3  # never one task's classes alone
    steps = shown.diff(dim=0).abs().sum(1) / 200  # total variation between windows, 1 where no class is in both
    assert steps.max() < 0.5
    means = torch.stack([(y == c).nonzero().double().mean() for c in range(10)])
    assert means.diff().gt(0).all()


def test_spread_goes_from_classes_in_a_row_to_all_mixed():
    def mean_classes(spread):
        stream = hf.stream("drifting", tasks=5, spread=spread)
        y = torch.cat([segment.train.y for segment in stream.segments])
        return float(np.mean([len(part.unique()) for part in y.split(50)]))

    found = [mean_classes(spread) for spread in (0.0, 0.3, 1.0, 50.0)]
    assert found == sorted(found) and found[0] < 1.5 and found[-1] > 9.5
    assert [s.train.y.diff().ge(0).all().item() for s in hf.stream("drifting", spread=0.0).segments] == [True] * 5


# Overlapping


def test_a_task_k_tasks_from_home_has_overlap_to_the_k_times_as_many_rows():
    stream = hf.stream("overlapping", tasks=3, order=(4, 7, 1), overlap=0.5)
    for part in ("train", "test"):
        counts = torch.stack([getattr(task, part).y.bincount(minlength=10) for task in stream.tasks])[:, [4, 7, 1]]
        weights = torch.tensor([[4, 1, 1], [2, 2, 2], [1, 1, 4]]) / torch.tensor([7, 4, 7])
        assert (counts - weights * counts.sum(0)).abs().max() <= 1.5
    assert [task.name for task in stream.tasks] == [f"mostly classes {c}" for c in (4, 7, 1)]


def test_no_row_is_in_two_tasks_and_none_is_lost():
    stream = hf.stream("overlapping", overlap=0.7, val=0.2, order="random", seed=3)
    data = load("digits")
    held = [r for task in stream.tasks for r in rows(task.train) + rows(task.val)]
    assert sorted(held) == list(range(len(data.y)))
    assert sorted(r for task in stream.tasks for r in rows(task.test)) == list(range(len(data.y_test)))


def test_no_overlap_is_a_split_and_full_overlap_is_no_change_at_all():
    apart, split = hf.stream("overlapping", overlap=0.0), hf.stream("split")
    for a, b in zip(apart.tasks, split.tasks, strict=True):
        assert (
            a.classes == b.classes and rows(a.train) == rows(b.train) and sorted(rows(a.test)) == sorted(rows(b.test))
        )
    counts = [task.train.y.bincount() for task in hf.stream("overlapping", overlap=1.0).tasks]
    assert all((c - counts[0]).abs().max() <= 1 for c in counts)


def test_boundaries_are_told_and_every_scenario_has_the_outputs_of_all_classes():
    for scenario in ("class", "domain", "task"):
        stream = hf.stream("overlapping", scenario=scenario, order=(0, 1, 2, 3), tasks=3)
        assert not stream.info.hidden and stream.info.classes == 10
        assert {task.classes for task in stream.tasks} == {(0, 1, 2, 3)}
    record = hf.run("gem", hf.stream("overlapping", tasks=3, examples=60))
    assert record.card["no_boundaries"]["value"] == "told"


def test_classes_that_a_task_has_no_row_of_are_not_its():
    stream = hf.stream("overlapping", overlap=0.02, scenario="task")
    for task in stream.tasks:
        assert set(task.train.y.tolist()) == set(task.classes)
        assert {2 * task.t, 2 * task.t + 1} <= set(task.classes)
    assert stream.tasks[0].classes != stream.tasks[4].classes


# Long


def test_classes_come_like_cards_and_each_time_with_other_rows():
    stream = hf.stream("long", tasks=37, width=3)
    assert all(len(set(task.classes)) == 3 for task in stream.tasks)
    drawn = [c for task in stream.tasks for c in task.classes]
    times = torch.tensor(drawn).bincount(minlength=10)
    assert times.max() - times.min() <= 1 and times.sum() == 111
    shown = [r for task in stream.tasks for r in rows(task.train)]
    assert len(set(shown)) == len(shown) == 1438
    data = load("digits")
    for task in stream.tasks:
        there = torch.isin(data.y_test, torch.tensor(task.classes)).nonzero().flatten()
        assert sorted(rows(task.test)) == there.tolist()
    orders = {tuple(t.classes for t in hf.stream("long", tasks=37, width=3, seed=s).tasks) for s in (0, 0, 1)}
    assert len(orders) == 2


def test_without_repetition_every_class_is_in_one_task():
    stream = hf.stream("long", data="synth", tasks=20, repeat=False, examples=30, test_examples=20)
    assert sorted(c for task in stream.tasks for c in task.classes) == list(range(40))
    assert {len(task.train) for task in stream.tasks} == {30}
    with pytest.raises(hf.BadInput) as found:
        hf.stream("long", data="synth", tasks=21, repeat=False)
    assert found.value.faults == (
        "21 tasks of 2 classes need 42 without repetition, but data set 'synth' has 40; at most 20 tasks, "
        "or repeat=true",
    )
    with pytest.raises(hf.BadInput, match="width asks for 11 classes in each task, but data set 'digits' has 10"):
        hf.stream("long", width=11)


def test_tasks_may_have_all_classes_or_share_outputs():
    assert {task.classes for task in hf.stream("long", tasks=6, width=10).tasks} == {tuple(range(10))}
    stream = hf.stream("long", tasks=6, scenario="domain")
    assert stream.info.classes == 2 and {task.classes for task in stream.tasks} == {(0, 1)}


def test_a_long_stream_is_learned():
    record = hf.run("er", hf.stream("long", tasks=60, examples=15), net=hf.net("mlp", hidden=(20,)))
    assert record.R.shape == (60, 60) and record.card["more_than_two_tasks"]["value"] == 60


# Chain


def named(name, classes, shape=(6, 6)):
    rng = np.random.default_rng(len(name))
    y = torch.arange(len(classes)).repeat(10)
    x = torch.from_numpy(rng.integers(0, 256, (len(y), 1, *shape)).astype(np.uint8))
    return DataSet(name, x, y, x[:20].clone(), y[:20], tuple(classes), name.rjust(64, "0"))


def test_classes_of_one_name_share_an_output():
    data = [named("a", "xyz"), named("b", "zyx"), named("c", "xyz")]
    stream = hf.stream("chain", data=data, size=6, channels=1)
    assert stream.scenario == "domain" and stream.info.classes == 3 and stream.info.shape == (1, 6, 6)
    assert [task.name for task in stream.tasks] == ["a", "b", "c"]
    for task, one in zip(stream.tasks, data, strict=True):
        names = [one.classes[int(c)] for c in one.y[task.train.rows]]
        assert names == ["xyz"[c] for c in task.train.y.tolist()]
    check_stream(stream)


def test_other_names_have_outputs_of_their_own_and_are_no_domain_of_the_same():
    data = [named("a", "xyz"), named("b", "wz")]
    stream = hf.stream("chain", data=data, size=6)
    assert stream.scenario == "class" and stream.info.classes == 4
    assert [task.classes for task in stream.tasks] == [(0, 1, 2), (2, 3)]
    with pytest.raises(hf.BadInput) as found:
        hf.stream("chain", data=data, size=6, scenario="domain")
    assert found.value.faults == (
        "the domain scenario needs the same classes in all tasks, but data sets 'a' and 'b' have classes of other "
        "names; use scenario 'class', or stream 'assorted', which goes by their places",
    )
    assert hf.stream("chain", data=data, size=6, scenario="task", head="task").info.classes == 5


def test_there_and_back():
    stream = hf.stream("chain", data=[named("a", "xy"), named("b", "xy", (8, 4))], size=6, tasks=3, val=0.2)
    assert [task.name for task in stream.tasks] == ["a", "b", "a 2"] and stream.info.shape == (3, 6, 6)
    check_stream(stream)


def test_a_chain_is_one_of_images():
    with pytest.raises(hf.BadInput, match="stream 'chain' needs images of bytes with 1 or 3 channels, but data set"):
        hf.stream("chain", data=(np.zeros((40, 3)), [0, 1] * 20))


@pytest.mark.data
def test_the_two_task_transfer_of_paper_001():
    if not all(status_of(name).present for name in ("mnist", "svhn")):
        pytest.skip("mnist and svhn are not in HOLDFAST_DATA")
    stream = hf.stream("chain", data="mnist,svhn", examples=500, test_examples=200)
    assert stream.scenario == "domain" and stream.info.classes == 10 and stream.info.shape == (3, 32, 32)
    record = hf.run("finetune", stream)
    assert record.R.shape == (2, 2) and record.card["more_than_two_tasks"]["met"] is False


# The command line


def test_they_are_listed_run_and_refused_from_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["list", "streams"]) == 0
    listed = {line.split()[0] for line in capsys.readouterr().out.splitlines() if line}
    assert {"blurred", "drifting", "overlapping", "long", "chain"} <= listed
    words = "--tasks 3 --examples 40 --jobs 1 --quiet".split()
    assert main(["run", "finetune", "--stream", "blurred", "--set", "stream.window=0.3", *words, "--out", "out"]) == 0
    capsys.readouterr()
    assert main(["run", "gem", "--stream", "blurred", *words, "--out", "other"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1 and "method 'gem' needs to know where tasks end, which stream 'blurred' hides" in said[0]
    assert main(["run", "er", "--stream", "chain", "--data", "digits,synth-shapes", *words[2:], "--out", "chain"]) == 0
