"""Mistakes of a method's author that change a method in silence are told in one line that names them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

import pytest
import torch

import holdfast as hf
from holdfast.methods._base import Learner

STREAM = {"tasks": 2, "examples": 30}


class Plain(Learner):
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))


class NoSuper(Plain):
    def start(self, net, optimiser, info, rng):
        self.anchor = None


class Leash(Plain):
    """Would be finetune: the anchor is θ itself."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.anchor = None

    def observe(self, batch):
        loss = self.cross_entropy(batch)
        if self.anchor is not None:
            loss = loss + ((self.net.theta - self.anchor) ** 2).sum()
        return self.descend(loss)

    def finish(self, train):
        self.anchor = self.net.theta.detach()


class LeashInADict(Leash):
    def finish(self, train):
        self.anchors = {train.task: [self.net.theta.detach()[:5]]}


class LeashToTheta(Leash):
    def finish(self, train):
        self.anchor = self.net.theta


class LeashInNumPy(Leash):
    def finish(self, train):
        self.array = self.net.theta.detach().numpy()


class KeepsTheGraph(Plain):
    def observe(self, batch):
        loss = self.cross_entropy(batch)
        self.descend(loss)
        self.losses = [loss]
        return loss.detach()


class ReplacesTheModule(Plain):
    def finish(self, train):
        self.net.module = copy.deepcopy(self.net.module)


class ReplacesTheLastLayer(Plain):
    def finish(self, train):
        last = self.net.module[-1]
        last.weight.data = last.weight.detach() * 0.5


class HalfASuper(Plain):
    def start(self, net, optimiser, info, rng):
        self.net, self.optimiser, self.rng = net, optimiser, rng


class KeepsTheGradient(Plain):
    def observe(self, batch):
        loss = super().observe(batch)
        self.last = self.net.grad
        return loss


class ReplacesTheta(Plain):
    def finish(self, train):
        self.net.theta = self.net.theta.detach() * 0.5


class ReplacesItsData(Plain):
    def finish(self, train):
        self.net.theta.data = self.net.theta.detach() * 0.5


class TorchOptimiser(Plain):
    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.adam = torch.optim.Adam([net.theta], lr=0.01)

    def observe(self, batch):
        loss = self.cross_entropy(batch)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        return loss


class HiddenTorchOptimiser(TorchOptimiser):
    """Learns nothing: `zero_grad` leaves θ without a gradient."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        adam = self.adam
        del self.adam
        self.step = lambda: adam

    def observe(self, batch):
        loss = self.cross_entropy(batch)
        self.step().zero_grad()
        loss.backward()
        self.step().step()
        return loss


class OptimisesAndForgets(Plain):
    """Learns nothing: `zero_grad` leaves θ without a gradient."""

    def observe(self, batch):
        adam = torch.optim.Adam([self.net.theta], lr=0.01)
        loss = self.cross_entropy(batch)
        adam.zero_grad()
        loss.backward()
        adam.step()
        return loss


@pytest.mark.parametrize(
    ("learner", "error", "words"),
    [
        (NoSuper, hf.BadInput, r"NoSuper.start does not call super\(\).start"),
        (Leash, hf.RunFailed, r"Leash.anchor shares its memory with net.theta.*clone\(\)"),
        (LeashInADict, hf.RunFailed, "LeashInADict.anchors shares its memory with net.theta"),
        (KeepsTheGradient, hf.RunFailed, "KeepsTheGradient.last shares its memory with net.grad"),
        (ReplacesTheta, AttributeError, r"net.theta cannot be replaced; write into it: net.set\(theta\)"),
        (LeashToTheta, hf.RunFailed, "LeashToTheta.anchor shares its memory with net.theta"),
        (LeashInNumPy, hf.RunFailed, "LeashInNumPy.array shares its memory with net.theta"),
        (KeepsTheGraph, hf.RunFailed, "KeepsTheGraph.losses keeps a tensor with its graph"),
        (ReplacesTheModule, hf.RunFailed, "no longer parts of net.theta"),
        (ReplacesTheLastLayer, hf.RunFailed, "no longer parts of net.theta"),
        (HalfASuper, hf.BadInput, r"HalfASuper.start does not call super\(\).start"),
        (ReplacesItsData, hf.RunFailed, "no longer parts of net.theta"),
        (
            TorchOptimiser,
            hf.BadInput,
            "TorchOptimiser.adam is an optimiser of torch's on the network; use self.optimiser",
        ),
        (HiddenTorchOptimiser, hf.BadInput, "HiddenTorchOptimiser.step shares its memory with net.theta"),
        (OptimisesAndForgets, hf.RunFailed, r"no longer in net.grad: call net.zero_grad\(\)"),
    ],
)
def test_a_slip_is_named(learner, error, words):
    with pytest.raises(error, match=words) as told:
        hf.run(learner(), hf.stream("split", **STREAM))
    assert "\n" not in str(told.value)


def test_slips_at_the_start_are_bad_input_before_anything_is_written(tmp_path):
    with pytest.raises(hf.BadInput, match="super"):
        hf.compare([NoSuper()], hf.stream("split", **STREAM), seeds=1, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_field_that_cannot_be_a_setting_is_named_with_what_can():
    @dataclass
    class Listed(Plain):
        layers: list = field(default_factory=list)
        rates: dict[str, float] = field(default_factory=dict)

    with pytest.raises(hf.BadInput) as told:
        hf.run(Listed(), hf.stream("split", **STREAM))
    assert [fault.partition(",")[0] for fault in told.value.faults] == [
        "layers of method 'Listed' is declared as list",
        "rates of method 'Listed' is declared as dict[str",
    ]
    assert "tuple[..., ...]" in told.value.faults[0]


def test_live_parameters_and_copies_may_be_kept():
    class Fine(Plain):
        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.parameters = list(net.module.parameters())

        def finish(self, train):
            self.anchor = self.net.theta.detach().clone()

        state = lambda self: {}  # noqa: E731

    assert hf.run(Fine(), hf.stream("split", **STREAM)).acc is not None


def test_an_optimiser_of_torchs_on_a_module_of_the_learners_own_may_be_kept():
    class Fine(Plain):
        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            self.critic = torch.nn.Linear(2, 1)
            self.adam = torch.optim.Adam(self.critic.parameters())

    assert hf.run(Fine(), hf.stream("split", **STREAM)).acc is not None


def test_weights_put_in_for_predicting_and_put_back_change_nothing():
    class Averaged(Plain):
        def predict(self, x, task):
            before = self.net.theta.detach().clone()
            self.net.set(before * 0.5)
            said = super().predict(x, task)
            self.net.set(before)
            return said

    assert hf.run(Averaged(), hf.stream("split", **STREAM)).acc is not None


def test_theta_may_be_written_to_in_place():
    class Fine(Plain):
        def finish(self, train):
            with torch.no_grad():
                self.net.theta *= 0.5
            self.net.set(self.net.theta.detach() * 2)

    assert hf.run(Fine(), hf.stream("split", **STREAM)).acc is not None
