"""What a stream shows, its segments, apart from what it tests, its tasks; and boundaries that are hidden."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.checks import check_learner, check_stream
from holdfast.checks import learner as checks
from holdfast.cli import main
from holdfast.engine import Checkpoint, Net
from holdfast.methods import Learner, methods
from holdfast.seeds import generator, seeded
from holdfast.streams.permuted import Permuted
from holdfast.streams.split import Split
from holdfast.types import Part, joined

ABLE = {"finetune", "er", "joint"}


def blur(tasks, seed, share, task=None):
    """Segment t: all of task t but a share, which the one before has; the first has its own, too."""
    cuts = {}
    for each in tasks:
        order = torch.randperm(len(each.train), generator=generator(seed, "blur", task=each.t))
        early = round(share * len(order)) if each.t else 0
        cuts[each.t] = each.train.take(order[:early]), each.train.take(order[early:])
    for each in tasks:
        parts = [cuts[each.t][1], *([cuts[each.t + 1][0]] if each.t + 1 < len(tasks) else [])]
        said = None if task is None else task(each.t, parts)
        yield hf.Segment.of(each.t, parts, each.val, said)


@dataclass(frozen=True)
class Blurred(Split):
    """A fifth of each task's rows comes with the task before."""

    share: float = 0.2

    def mixtures(self, tasks, seed):
        return tuple(blur(tasks, seed, self.share))


@dataclass(frozen=True)
class BlurredPixels(Permuted):
    """The same where tasks transform their rows."""

    def mixtures(self, tasks, seed):
        return tuple(blur(tasks, seed, 0.2))


@dataclass(frozen=True)
class Told(Split):
    """Mixed, and every row says its task."""

    def mixtures(self, tasks, seed):
        def rows(t, parts):
            return torch.cat([torch.full((len(part),), t + i) for i, part in enumerate(parts)])

        return tuple(blur(tasks, seed, 0.2, rows))


@dataclass(frozen=True)
class Drifting(Split):
    """Rows in a fixed order: each segment begins with its task and passes over to the next, half and half."""

    def mixtures(self, tasks, seed):
        halves = [task.train.take(torch.arange(len(task.train))).y.argsort() for task in tasks]
        parts = [task.train.take(half) for task, half in zip(tasks, halves, strict=True)]
        n = len(parts[0]) // 2
        first, rest = [p.take(torch.arange(n)) for p in parts], [p.take(torch.arange(n, len(p))) for p in parts]
        return tuple(
            hf.Segment.of(t.t, [rest[t.t], first[(t.t + 1) % len(tasks)]], t.val, None, ordered=True) for t in tasks
        )


def stream(kind=Blurred, **words):
    return hf.stream(kind, **{"tasks": 4, "examples": 50, "val": 0.2, **words})


class Noting(Learner):
    """Notes what it is told."""

    def start(self, *args):
        super().start(*args)
        self.log = []

    needs_boundaries = False

    def begin(self, train, plan):
        self.log.append(["begin", train is None, plan.steps, plan.epochs, plan.batch])

    def observe(self, batch):
        self.log.append([None if batch.task is None else torch.as_tensor(batch.task).tolist(), batch.y.tolist()])
        return self.fit(batch)

    def finish(self, train):
        self.log.append(["finish"])


def show(made, learner, protocol=None):
    with seeded(0):
        net = Net(hf.net("mlp", hidden=(8,)).build(made.info))
        return (protocol or hf.protocol("online")).run(learner, made, net, 0)


@pytest.mark.parametrize("kind", [Blurred, BlurredPixels, Told, Drifting])
def test_streams_of_segments_pass_the_checks_that_all_streams_pass(kind):
    check_stream(stream(kind))
    if kind is not BlurredPixels:
        check_stream(stream(kind, augment=True))


def test_a_segment_has_the_rows_that_its_recipe_says():
    made = stream()
    for segment, task in zip(made.segments, made.tasks, strict=True):
        mine = torch.isin(segment.train.y, torch.tensor(task.classes)).double().mean().item()
        assert mine == pytest.approx({0: 50 / 60, 3: 1.0}.get(task.t, 0.8))
    shown = torch.cat([segment.train.rows for segment in made.segments]).sort().values
    assert shown.equal(torch.cat([task.train.rows for task in made.tasks]).sort().values)


def test_rows_of_tasks_that_transform_them_are_shown_as_their_task_does_and_not_copied():
    made = stream(BlurredPixels)
    whole = {tuple(x.flatten().tolist()) for task in made.tasks[:2] for x in task.train.x()}
    segment = made.segments[0]
    assert len(segment.train) == 60 and segment.train.shape == made.info.shape
    assert {tuple(x.flatten().tolist()) for x in segment.train.x()} <= whole
    assert segment.train.pixels is made.tasks[0].train.pixels
    for row in (3, 55):  # of the first task, of the second
        alone = segment.train.take(torch.tensor([row]))
        assert alone.x().equal(segment.train.x()[row : row + 1]) and alone.cut().equal(
            segment.train.cut()[row : row + 1]
        )


def test_joining_parts_keeps_rows_labels_and_scales_apart():
    a, b = stream(Permuted, scale="centred", scenario="task").tasks[:2]
    part = joined([a.train, b.train])
    assert part.x().equal(torch.cat([a.train.x(), b.train.x()])) and part.y.equal(torch.cat([a.train.y, b.train.y]))
    index = torch.tensor([70, 3, 51, 0])
    assert part.x(index).equal(part.x()[index]) and isinstance(part, Part)
    with pytest.raises(ValueError, match="augmented in different ways"):
        joined([a.train, replace(b.train, augment=stream(augment=True).tasks[0].train.augment)])


def test_a_learner_is_told_of_no_boundary_where_they_are_hidden():
    made = stream()
    session = show(made, Noting(), hf.protocol("epochs", epochs=2))
    kinds = [entry[0] for entry in session.learner.log]
    assert kinds[0] == "begin" and set(kinds[1:]) == {None}
    steps = sum(2 * -(-len(segment.train) // 10) for segment in made.segments)
    assert session.learner.log[0] == ["begin", True, steps, 2, 10] and len(kinds) == 1 + steps
    assert len(session.measured.R) == len(made) and session.measured.updates == [12, 10, 10, 8]


def test_a_learner_is_told_the_task_of_every_row_where_they_are_mixed_openly():
    made = stream(Told)
    log = show(made, Noting()).learner.log
    assert [entry[0] for entry in log].count("finish") == len(made)
    for tasks, classes in (
        entry for entry in log if entry[0] not in ("begin", "finish") and isinstance(entry[0], list)
    ):
        assert all(c in made.tasks[t].classes for t, c in zip(tasks, classes, strict=True))


def test_an_ordered_segment_is_shown_as_it_lies_and_others_are_shuffled():
    for kind, ordered in ((Drifting, True), (Blurred, False)):
        made = stream(kind)
        shown = [y for task, ys in show(made, Noting()).learner.log[1:] for y in ys]
        lying = torch.cat([segment.train.y for segment in made.segments]).tolist()
        assert sorted(shown) == sorted(lying) and (shown == lying) is ordered


@pytest.mark.parametrize("name", methods.names())
@pytest.mark.parametrize("kind", [Blurred, Told, Drifting])
def test_every_method_either_runs_or_says_in_a_line_what_it_needs(name, kind):
    made, learner = stream(kind), hf.method(name)
    if name in ABLE:
        record = hf.run(learner, made, net=hf.net("mlp", hidden=(8,)))
        assert not np.isnan(record.R).any() and record.card["no_old_data"]["met"] is (name == "finetune")
        return
    with pytest.raises(hf.BadInput) as found:
        hf.run(learner, made)
    why = "but stream 'Told' shows them mixed" if kind is Told else f"which stream '{kind.__name__}' hides"
    way = "" if kind is Told else " or protocol.boundaries=detected"
    end = f"method {name!r} needs to know where tasks end, {why}; try 'finetune' or 'er'{way}"
    label = f"method {name!r} needs the task label, which the 'class' scenario hides; use scenario 'task'"
    assert found.value.faults == ((label, end) if learner.needs_task else (end,))


def test_replay_from_a_memory_per_task_needs_to_know_them():
    with pytest.raises(hf.BadInput, match="method 'er' needs to know where tasks end"):
        hf.run(hf.method("er", rule="task ring"), stream())
    assert hf.run(hf.method("er", rule="class ring"), stream()).acc is not None


def test_the_card_says_that_boundaries_are_hidden():
    line = hf.run("finetune", stream()).card["no_boundaries"]
    assert line["met"] is True and line["value"] == "hidden" and line["note"].startswith("boundaries hidden")
    assert hf.run("finetune", stream(Told)).card["no_boundaries"]["value"] == "told"


def test_all_that_is_shown_is_seen_at_once_by_a_learner_that_mixes():
    made = stream(Drifting, val=0.0)
    record = hf.run("joint", made)
    assert record.card["single_pass"]["value"] == 1.0
    assert sum(record.resources["updates"]) == -(-sum(len(s.train) for s in made.segments) // 10)


@pytest.mark.parametrize("words", [{"reset_optimiser": True}, {"schedule": "cosine"}])
def test_a_protocol_that_does_something_at_the_end_of_tasks_is_refused(words):
    with pytest.raises(
        hf.BadInput, match=r"of protocol 'online' needs to know where tasks end, which stream 'Blurred'"
    ):
        hf.run("finetune", stream(), protocol=hf.protocol("online", **words))
    hf.run("finetune", stream(Told), protocol=hf.protocol("online", **words))


def test_hidden_boundaries_make_no_sense_where_the_task_is_given():
    said = "stream 'Blurred' hides where tasks end, and the 'task' scenario tells; use scenario 'class' or 'domain'"
    with pytest.raises(hf.BadInput) as found:
        stream(scenario="task")
    assert found.value.faults == (said,)
    assert hf.run("er", stream(Told, scenario="task")).acc > 0.5


def wrong(change):
    @dataclass(frozen=True)
    class Wrong(Split):
        def mixtures(self, tasks, seed):
            return change(list(blur(tasks, seed, 0.2)), tasks)

    return Wrong


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda s, _: s[:-1], "has segments 0, 1, 2; there must be one per task, from 0 to 3"),
        (lambda s, _: [s[1], s[0], *s[2:]], "has segments 1, 0, 2, 3"),
        (lambda s, _: [replace(s[0], task=0), *s[1:]], "hides the task of segment 1, but not of all"),
        (
            lambda s, _: [replace(x, task=7) for x in s],
            "segment 0 of stream 'Wrong' has rows of a task that is none of 0",
        ),
        (lambda s, _: [replace(x, task=torch.zeros(2)) for x in s], "has 60 training rows, but the task of 2"),
        (lambda s, _: [replace(x, train=x.train.take(torch.arange(0))) for x in s], "has no training rows"),
    ],
)
def test_what_cannot_be_shown_is_told_in_a_line(change, said):
    with pytest.raises(hf.BadInput, match=said):
        stream(wrong(change))


def test_rows_that_a_mask_would_hide_are_told():
    with pytest.raises(hf.BadInput, match="has rows of classes that the task they are said to be of has not"):
        stream(wrong(lambda s, _: [replace(x, task=x.t) for x in s]), scenario="task")
    stream(wrong(lambda s, _: [replace(x, task=x.t) for x in s]))


@pytest.mark.parametrize("kind", ["val", "test"])
def test_a_segment_that_shows_rows_for_validation_or_tests_is_caught(kind):
    def leaky(segments, tasks):
        held = getattr(tasks[1], kind)
        return [replace(s, train=joined([s.train, replace(held, augment=s.train.augment)])) for s in segments]

    said = "validation" if kind == "val" else "test"
    with pytest.raises(AssertionError, match=f"a {said} row of task 1 is a training row of segment 0"):
        check_stream(stream(wrong(leaky)))


def test_segments_that_are_not_pure_in_the_seed_are_caught():
    with pytest.raises(AssertionError, match="the same seed gave another segment 0"):
        check_stream(
            stream(wrong(lambda s, _: [replace(x, train=x.train.take(torch.randperm(len(x.train)))) for x in s]))
        )


def test_a_learner_that_fails_without_the_task_is_told_to_say_so():
    class Uses(Learner):
        def observe(self, batch):
            assert isinstance(int(batch.task), int)
            return self.fit(batch)

    with pytest.raises(AssertionError, match="say needs_boundaries = True, or do without it"):
        checks.check_hidden_boundaries_are_not_needed(Uses())
    Uses.needs_boundaries = True
    check_learner(Uses)


def test_a_hidden_stream_goes_on_where_it_was_interrupted(tmp_path):
    class Interrupted(Exception):
        pass

    class Fragile(Checkpoint):
        def write(self, state):
            super().write(state)
            raise Interrupted

    def run(keep=None):
        made = stream(Drifting)
        with seeded(5):
            build = partial(hf.net("mlp", hidden=(8,)).build, made.info)
            return hf.protocol("epochs", epochs=2).run(Noting(), made, Net(build(), build), 3, None, keep)

    whole, pieced = run(), None
    while pieced is None:
        try:
            pieced = run(Fragile(tmp_path, "mine", 4))
        except Interrupted:
            continue
    assert pieced.measured.R == whole.measured.R and pieced.learner.log == whole.learner.log
    assert pieced.measured.old_rows == whole.measured.old_rows


def test_such_a_stream_in_a_file_is_run_from_the_command_line_and_refusals_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "import torch\n"
        "import holdfast as hf\n"
        "from holdfast.streams.split import Split\n\n\n"
        "@dataclass(frozen=True)\n"
        "class Blurred(Split):\n"
        "    def mixtures(self, tasks, seed):\n"
        "        some = torch.arange(10)\n"
        "        nexts = [*tasks[1:], tasks[0]]\n"
        "        return [hf.Segment.of(a.t, [a.train, b.train.take(some)], a.val, None)"
        " for a, b in zip(tasks, nexts, strict=True)]\n"
    )
    words = "--stream mine.py:Blurred --tasks 3 --examples 30 --jobs 1 --quiet".split()
    assert main(["compare", "finetune,er", *words, "--seeds", "0,1", "--out", "out"]) == 0
    capsys.readouterr()
    assert main(["audit", "out"]) == 0
    assert "boundaries hidden" in capsys.readouterr().out
    assert main(["compare", "finetune,gem", *words, "--out", "other"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "holdfast: method 'gem' needs to know where tasks end, which stream 'Blurred' hides; try 'finetune' or 'er' "
        "or protocol.boundaries=detected"
    ]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("name", ["crossval", "realistic", "application"])
def test_protocols_that_choose_for_each_task_need_to_know_where_it_ends(name):
    with pytest.raises(hf.BadInput, match=f"protocol '{name}' chooses for each task, and stream 'Blurred' hides"):
        hf.run("finetune", hf.stream(Blurred, tasks=3, val=0.2), protocol=name)


def test_a_mixture_that_says_its_tasks_can_be_selected_on():
    stream = hf.stream(Told, tasks=3, val=0.2)
    words = {"lr": (0.01, 0.001), "decay": (0.0,), "epochs": 3, "batch": 20}
    record = hf.run("finetune", stream, protocol=hf.protocol("crossval", **words))
    assert record.R.shape == (3, 3) and record.card["single_pass"]["value"] > 3
