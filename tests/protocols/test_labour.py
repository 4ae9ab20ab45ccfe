"""Work outside the steps is training: timed, counted, watched, and stopped where it goes wrong."""

from __future__ import annotations

import copy
from contextlib import nullcontext

import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import Samples, count_flops, counting, observed, repeat
from holdfast.methods import Learner
from holdfast.protocols import Progress, Session, Showing, _showing
from holdfast.seeds import generator
from holdfast.types import Batch

STREAM = {"tasks": 3, "examples": 40, "test_examples": 20}
STEP = 2 * 4 * 5 * 6  # operations of one product of (4, 5) and (5, 6)


class Plain(Learner):
    def observe(self, batch):
        return self.fit(batch)


def product(value=1.0):
    return (torch.full((4, 5), value) @ torch.ones(5, 6)).sum()


class Works(Plain):
    """So many products in `begin`, `finish` and `ready`."""

    def __init__(self, begin=0, finish=0, ready=0, value=1.0):
        self.begins, self.finishes, self.readies, self.value = begin, finish, ready, value

    def begin(self, train, plan):
        repeat(self.begins, lambda i: product(self.value), "warming up")

    def finish(self, train):
        repeat(self.finishes, lambda i: product(self.value), "a generator")

    def ready(self):
        repeat(self.readies, lambda i: product(self.value), "a coreset")


def flops(learner, **words):
    stream = hf.stream("split", **STREAM)
    return hf.run(learner, stream, protocol=hf.protocol("online", **words)).resources["flops"]


@pytest.mark.parametrize("steps", [1, 2, 3, 49, 50, 51, 499, 500, 1234])
def test_equal_steps_are_counted_exactly_wherever_they_are(steps):
    plain = flops(Plain())
    for where in ("begin", "finish", "ready"):
        assert [a - b for a, b in zip(flops(Works(**{where: steps})), plain, strict=True)] == [steps * STEP] * 3


def test_all_work_counts_once_also_where_tasks_are_scored_while_they_are_learned():
    """Forty rows are four steps; each task is scored after two of them and after all."""
    plain = flops(Plain(), score_every=2)
    worked = flops(Works(begin=10, finish=20, ready=100), score_every=2)
    assert [a - b for a, b in zip(worked, plain, strict=True)] == [(10 + 20 + 2 * 100) * STEP] * 3


def test_so_it_does_for_a_learner_that_sees_all_tasks_at_once():
    class Mixed(Works):
        mixes = True

    class MixedPlain(Plain):
        mixes = True

    assert sum(flops(Mixed(begin=10, finish=20, ready=100))) - sum(flops(MixedPlain())) == (30 + 3 * 100) * STEP


def test_unequal_steps_are_sampled_more_than_once():
    """The products grow linearly with the step: from the ends and the quarters the sum is found to a per cent."""

    def step(i):
        return (torch.ones(i + 1, 8) @ torch.ones(8, 3)).sum()

    exact = sum(2 * (i + 1) * 8 * 3 for i in range(1000))
    _, found = count_flops(lambda: repeat(1000, step, "growing"))
    assert len(Samples(1000).at) == 6 and found == pytest.approx(exact, rel=0.01)
    one = 1000 * 2 * 2 * 8 * 3  # what the second step alone would say
    assert abs(found - exact) < abs(one - exact) / 100


def test_long_work_is_not_run_step_by_step_under_the_counter():
    counted = []

    def step(i):
        stack = torch.utils._python_dispatch._get_current_dispatch_mode()
        counted.extend([i] if stack is not None else [])
        return product()

    with counting() as counter:
        product()
        repeat(1000, step, "long")
        product()
    assert counted == list(Samples(1000).at) and counter.total == 1002 * STEP


class Coreset(Plain):
    """Keeps rows, and trains a throw-away copy on them before each scoring."""

    def start(self, *args):
        super().start(*args)
        self.kept_x, self.kept_y, self.scoring = torch.zeros(0), torch.zeros(0, dtype=torch.long), self.net

    def finish(self, train):
        batch = train.take(torch.arange(10))
        self.kept_x = torch.cat([self.kept_x.view(-1, *batch.x.shape[1:]), batch.x])
        self.kept_y = torch.cat([self.kept_y, batch.y])

    def ready(self):
        self.scoring = copy.deepcopy(self.net)
        batch = Batch(self.kept_x, self.kept_y)

        def step(i):
            loss = self.scoring.collect(batch.x, batch.y, None)
            with torch.no_grad():
                self.scoring.theta.sub_(0.05 * self.scoring.grad)
            return loss

        repeat(60, step, "coreset")

    def predict(self, x, task):
        with self.scoring.evaluating():
            return self.scoring(x)


def test_a_coreset_trained_before_each_scoring_is_in_flops():
    class Keeps(Coreset):
        def ready(self):
            pass

    stream = hf.stream("split", **STREAM)
    bare, full = hf.run(Keeps(), stream), hf.run(Coreset(), stream)
    more = [a - b for a, b in zip(full.resources["flops"], bare.resources["flops"], strict=True)]
    assert more[0] > 0 and more == [more[0], 2 * more[0], 3 * more[0]]  # 10, 20 and 30 rows
    assert (full.R != bare.R).any()  # the copy answers
    assert full.resources["updates"] == bare.resources["updates"]


NOW = [0.0]


def wait(seconds):
    NOW[0] += seconds


class Slow(Plain):
    def begin(self, train, plan):
        wait(1)

    def finish(self, train):
        wait(10)

    def ready(self):
        wait(100)

    def predict(self, x, task):
        wait(1000)
        return super().predict(x, task)


class SlowMixed(Slow):
    mixes = True


@pytest.mark.parametrize(("kind", "training"), [(Slow, [111] * 3), (SlowMixed, [211 / 3, 211 / 3, 211 / 3 + 100])])
def test_seconds_outside_the_steps_are_training_and_those_of_predict_are_scoring(kind, training, monkeypatch):
    """On a clock that only the learner moves. A mixed run is scored twice while it is shown, and once after it."""
    monkeypatch.setattr(_showing.time, "perf_counter", lambda: NOW[0])
    monkeypatch.setattr(Session, "_unchanged", nullcontext)  # who moves a clock changes something
    spent = hf.run(kind(), hf.stream("split", **STREAM, scenario="task")).resources
    assert spent["train_seconds"] == pytest.approx(training)
    assert spent["eval_seconds"] == 3 * 3 * 1000


def test_the_cost_of_getting_ready_survives_an_interruption(tmp_path):
    stream = hf.stream("split", **STREAM)
    words = {"seeds": 1, "out": tmp_path / "out", "jobs": 1, "checkpoint_every": 2}
    (record,) = hf.compare([Works(ready=70)], stream, **words).records
    assert record.resources["flops"] == flops(Works(ready=70))


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("begin", "the loss of warming up became nan in task 0 at step 1"),
        ("finish", "the loss of a generator became nan in task 0 at step 1"),
        ("ready", "the loss of a coreset became nan after task 0 at step 1"),
    ],
)
def test_a_loss_that_is_not_finite_ends_the_run_with_one_line(where, said):
    with pytest.raises(hf.RunFailed) as found:
        hf.run(Works(**{where: 120}, value=float("nan")), hf.stream("split", **STREAM))
    assert str(found.value) == f"{said}; try a smaller learning rate or strength"
    assert found.value.seconds > 0 and found.value.flops >= 50 * STEP  # it is not free


def test_it_does_so_while_a_task_is_scored_in_its_middle():
    with pytest.raises(hf.RunFailed, match="the loss of a coreset became nan in task 0 at step 1"):
        flops(Works(ready=3, value=float("nan")), score_every=2)


def test_a_step_without_a_loss_is_named():
    with pytest.raises(TypeError, match="a step of dreams returned None; it must return the loss"):
        repeat(3, lambda i: None, "dreams")
    with pytest.raises(TypeError, match=r"a step of dreams returned losses of shape \(2,\); it must return one number"):
        repeat(3, lambda i: torch.ones(2), "dreams")


def test_no_steps_are_no_work():
    assert count_flops(lambda: repeat(0, lambda i: product(), "nothing"))[1] == 0


def test_whoever_watches_sees_what_is_done_and_how_far_it_is():
    seen = []
    hf.run(Works(begin=120, finish=50, ready=20), hf.stream("split", **STREAM), watch=seen.append)
    first = [p for p in seen if p.task == 0]
    assert first == [
        *(Progress(0, 3, done, 120, "warming up") for done in (50, 100, 120)),
        Progress(0, 3, 4, 4),
        Progress(0, 3, 50, 50, "a generator"),
        Progress(0, 3, 20, 20, "a coreset"),
        Progress(0, 3, 4, 4, scored=first[-1].scored, updates=4),
    ]
    assert [[*p.scored] for p in seen if p.scored] == [[0, 1, 2]] * 3
    assert [p.task for p in seen] == sorted(p.task for p in seen) and len(seen) == 3 * len(first)


def test_observers_are_put_back():
    outer, inner = [], []
    with observed(lambda *what: outer.append(what)):
        with observed(lambda *what: inner.append(what)):
            repeat(2, lambda i: product(), "inside")
        repeat(3, lambda i: product(), "outside")
    repeat(4, lambda i: product(), "nobody")
    assert (outer, inner) == ([("outside", 3, 3)], [("inside", 2, 2)])


class Told(Plain):
    def start(self, *args):
        super().start(*args)
        self.plans = []

    def begin(self, train, plan):
        self.plans.append([plan.steps, plan.epochs, plan.batch])


@pytest.mark.parametrize(
    ("name", "words", "plan"), [("online", {}, [4, 1, 10]), ("epochs", {"epochs": 3}, [12, 3, 10])]
)
def test_begin_says_how_many_steps_epochs_and_rows_will_come(name, words, plan, monkeypatch):
    made = []
    start = Told.start
    monkeypatch.setattr(Told, "start", lambda self, *args: (made.append(self), start(self, *args))[1])
    stream = hf.stream("split", tasks=2, examples=35)
    record = hf.run(Told(), stream, protocol=hf.protocol(name, **words))
    assert made[-1].plans == [plan, plan] and record.resources["updates"] == [plan[0]] * 2


def test_a_plan_of_so_many_steps_says_how_many_epochs_they_take():
    stream = hf.stream("split", tasks=2, examples=35)
    task, learner = stream.tasks[0], Told()
    learner.plans = []
    lease = Lease(0, task.train, task.val)
    Showing(learner, lease, task.train, 0, 1, 10, generator(0), limit=9).begin(lease=True)
    assert learner.plans == [[9, 3, 10]]
