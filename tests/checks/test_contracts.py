"""Every method and every stream passes its contracts by existing; and the checks catch what breaks them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import pytest
import torch

import holdfast as hf
from holdfast.checks import CHECKS, check_learner, check_stream
from holdfast.checks import learner as checks
from holdfast.methods import methods
from holdfast.methods._base import Learner
from holdfast.streams import streams
from holdfast.types import Augment


@pytest.mark.parametrize("name", methods.names())
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_method(name, check, quick):
    check(quick(name))


@pytest.mark.parametrize("name", streams.names())
@pytest.mark.parametrize("scenario", ["class", "domain", "task"])
def test_stream(name, scenario):
    if streams.find(name).usual_data != "digits":
        pytest.skip("has data sets of its own; its own tests check it on synth")
    if scenario == "task" and hf.stream(name).info.hidden:
        with pytest.raises(hf.BadInput, match=f"stream '{name}' hides where tasks end, and the 'task' scenario tells"):
            hf.stream(name, scenario=scenario)
        return
    check_stream(hf.stream(name, scenario=scenario, val=0.2))


def test_a_stream_that_trains_on_another_tasks_validation_rows_is_caught():
    stream = hf.stream("permuted", tasks=2, val=0.2)
    first, second = stream.tasks

    def with_second(task):
        made = dataclasses.replace(stream, tasks=(first, task))
        return dataclasses.replace(made, reseed=lambda seed: made)

    rows = torch.cat([second.train.rows, first.val.rows[:1]])
    leaky = dataclasses.replace(second.train, rows=rows, y=torch.cat([second.train.y, first.val.y[:1]]), _cache=None)
    caught = "validation row of task 0 is a training row of task 1"
    with pytest.raises(AssertionError, match=caught):
        check_stream(with_second(dataclasses.replace(second, train=leaky, val=second.val.take(torch.arange(0)))))
    sliced = dataclasses.replace(leaky, pixels=leaky.pixels[1:], rows=(leaky.rows - 1).clamp(min=0), _cache=None)
    with pytest.raises(AssertionError, match=caught):  # a slice of the table is the table
        check_stream(with_second(dataclasses.replace(second, train=sliced, val=second.val.take(torch.arange(0)))))
    own = dataclasses.replace(leaky, pixels=leaky.pixels.clone(), _cache=None)
    check_stream(with_second(dataclasses.replace(second, train=own)))  # rows of a table of its own are other rows


class Plain(Learner):
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))


class GlobalDice(Plain):
    def observe(self, batch):
        noise = torch.rand((), generator=torch.Generator().manual_seed(torch.seed()))
        return self.descend(self.cross_entropy(batch) * (1 + noise))


class RestlessPredict(Plain):
    def predict(self, x, task):
        with torch.no_grad():
            self.net.theta.add_(1e-3)
        return super().predict(x, task)


class TossingPredict(Plain):
    def predict(self, x, task):
        return super().predict(x, task) + torch.rand(1, generator=self.rng)


class Lazy(Plain):
    def observe(self, batch):
        return self.cross_entropy(batch).detach()


class Unsavable(Plain):
    def begin(self, train, plan):
        self.thing = object()


class Forgetful(Plain):
    """Something that matters is left out of its state."""

    not_state = (*Learner.not_state, "steps")

    def start(self, *args):
        super().start(*args)
        self.steps = 0

    def observe(self, batch):
        self.steps += 1
        return self.descend(self.cross_entropy(batch) / self.steps)


@dataclass
class HiddenStore(Plain):
    kept: list = field(default_factory=list)

    def finish(self, train):
        self.kept.append(train)


@pytest.mark.parametrize(
    ("learner", "check"),
    [
        (GlobalDice, checks.check_same_seed_same_result),
        (RestlessPredict, checks.check_predict_changes_nothing),
        (TossingPredict, checks.check_predict_changes_nothing),
        (Lazy, checks.check_loss_falls),
        (Forgetful, checks.check_state_round_trips),
    ],
)
def test_a_broken_learner_is_caught(learner, check):
    with pytest.raises(AssertionError):
        check(learner())


def test_what_cannot_be_saved_is_named():
    with pytest.raises(TypeError, match=r"Unsavable\.thing is a object"):
        check_learner(Unsavable)


def test_a_kept_lease_is_useless_and_cannot_be_saved():
    checks.check_lease_ends_with_the_task(HiddenStore())
    with pytest.raises(TypeError, match="Lease"):
        check_learner(HiddenStore)


@dataclass(frozen=True)
class Wild(Augment):
    """Moves images by as much as it likes."""

    margin: int = 1

    def __call__(self, pixels, rng):
        return pixels.roll(int(torch.randint(2, 5, (), generator=rng)), -1)


def test_a_stream_that_augments_what_it_must_not_is_caught():
    stream = hf.stream("split", tasks=2, val=0.2, augment=True)
    first, second = stream.tasks
    augment = second.train.augment

    def with_second(**parts):
        made = dataclasses.replace(stream, tasks=(first, dataclasses.replace(second, **parts)))
        return dataclasses.replace(made, reseed=lambda seed: made)

    check_stream(with_second())
    for name in ("val", "test"):
        part = dataclasses.replace(getattr(second, name), augment=augment)
        with pytest.raises(AssertionError, match="task 1 augments validation or test rows"):
            check_stream(with_second(**{name: part}))
    for wrong, complaint in [
        (Wild(), "lack their middle, which is all but a margin of 1"),
        (Wild(4), "leaves nothing"),
    ]:
        with pytest.raises(AssertionError, match=complaint):
            check_stream(with_second(train=dataclasses.replace(second.train, augment=wrong)))


def test_rows_of_other_tasks_without_their_task_are_caught():
    @dataclass
    class Mixing(Learner):
        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.old = None

        def observe(self, batch):
            if self.old is not None:
                x, y = self.old
                batch = hf.Batch(torch.cat([batch.x, x]), torch.cat([batch.y, y]), batch.task)
            return self.descend(self.cross_entropy(batch))

        def finish(self, train):
            self.old = (train.x[:5], train.y[:5])

    with pytest.raises(AssertionError, match=r"batch\.task is a tensor with the task of each"):
        check_learner(Mixing)


def test_a_transform_that_looks_at_other_rows_is_caught():
    @dataclass(frozen=True)
    class Noisy(hf.StreamSpec):
        def plan(self, data, seed):
            def noisy(pixels):
                noise = torch.rand(pixels.shape, generator=torch.Generator().manual_seed(seed))
                return (pixels * noise).to(pixels.dtype)

            return "domain", 10, [hf.Plan("noise", tuple(range(10)), tuple(range(10)), noisy)] * self.tasks

    with pytest.raises(AssertionError, match="its transform must depend on the row alone"):
        check_stream(hf.stream(Noisy))
    with pytest.raises(hf.BadInput, match="the scenario 'domain', not 'class' as asked for"):
        hf.stream(Noisy, scenario="class")


def test_a_learner_that_reads_the_lease_it_is_not_given_is_caught():
    @dataclass
    class Reader(Plain):
        def begin(self, train, plan):
            self.rows = len(train.x)

    with pytest.raises(AssertionError, match=r"begin gets None in place of a lease.*\(test_contracts\.py, line \d+\)"):
        check_learner(Reader)


def test_fields_of_a_class_that_is_no_dataclass_are_no_settings():
    class Undecorated(Plain):
        strength: float = 1.0

    with pytest.raises(AssertionError, match=r"strength would be no setting.*write @dataclass above it"):
        check_learner(Undecorated)
    for make in (
        lambda: hf.method(Undecorated),
        lambda: hf.run(Undecorated(), "split"),
        lambda: hf.run(Undecorated, "split"),
    ):
        with pytest.raises(hf.BadInput, match=r"Undecorated has fields \(strength\) and is no dataclass"):
            make()


def test_what_has_no_type_is_told_from_what_is_not_there():
    @dataclass
    class Untyped(Plain):
        strength = 1.0

    with pytest.raises(hf.BadInput, match=r"strength of method 'Untyped' has no type.*write `strength: float = 1.0`"):
        hf.method(Untyped, strength=2)
    with pytest.raises(hf.BadInput, match="unknown setting 'width': method 'Untyped' has no settings"):
        hf.method(Untyped, width=2)


def test_a_loss_that_is_no_tensor_is_named():
    @dataclass
    class Floats(Plain):
        def observe(self, batch):
            return self.descend(self.cross_entropy(batch).item())

    with pytest.raises(TypeError, match="a loss must be a tensor with its graph, not a float"):
        check_learner(Floats)
