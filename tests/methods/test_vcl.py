"""Variational continual learning: its bound, its coresets, its heads, and that it does its job."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.engine import SGD, Adam, Net
from holdfast.methods import _variational
from holdfast.methods.vcl import VCL, k_center
from holdfast.nets.bayes import MeanField, divergence
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, Lesson, StreamInfo


def made(widths, log_variance, sampling="weights") -> Net:
    with seeded(0):
        return Net(MeanField(widths, log_variance, sampling, "torch"))


def started(net: Net, info: StreamInfo, optimiser=None, **settings) -> VCL:
    learner = VCL(likelihood_start=False, **settings)
    learner.start(net, optimiser or SGD(0.1), info, generator(0))
    return learner


INFO = StreamInfo("test", "domain", (3,), 2, ((0, 1),))


def test_the_gradient_of_a_step_is_that_of_the_bound_by_differences():
    """1/S Σ CE(w_s) + KL/N with the same noise, in steps of 10⁻² of each of 22 numbers."""
    rng = torch.Generator().manual_seed(0)
    x, y = torch.randn(8, 3, generator=rng), torch.randint(2, (8,), generator=rng)
    net = made((3, 1, 2), -2.0)
    learner = started(net, INFO, SGD(1.0), samples=4)
    learner.rows, prior = 5, torch.randn(net.size, generator=rng)
    learner.before = prior

    def likelihood(theta):
        net.set(theta)
        logits = net(x, 4, generator(1)).double()
        return torch.stack([torch.nn.functional.cross_entropy(each, y) for each in logits]).mean().item()

    def bound(theta):
        return likelihood(theta) + (divergence(theta.double(), prior.double()) / 5).item()

    begun = net.theta.detach().clone()
    learner.rng = generator(1)
    loss = learner.observe(Batch(x, y, 0)).item()
    step = begun - net.theta.detach()  # SGD of rate 1: the gradient
    assert loss == pytest.approx(likelihood(begun), rel=1e-5)
    for i in range(net.size):
        away = torch.zeros(net.size)
        away[i] = 1e-2
        slope = (bound(begun + away) - bound(begun - away)) / 2e-2
        assert step[i].item() == pytest.approx(slope, abs=2e-3)


def test_one_task_of_a_linear_model_ends_at_the_closed_form_posterior(monkeypatch):
    """Gaussian noise of variance 0.5, prior N(0, 1): the best mean-field Gaussian has the posterior's means, and the
    inverse of its precision's diagonal as variances."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn(40, 3, generator=rng)
    y = x @ torch.tensor([1.0, -0.5, 0.3]) + 0.2 + 0.5**0.5 * torch.randn(40, generator=rng)
    X = torch.cat([x, torch.ones(40, 1)], 1).double()
    precision = torch.eye(4) + X.T @ X / 0.5
    means = torch.linalg.solve(precision, X.T @ y.double() / 0.5)

    def gaussian(answers, targets, allowed):
        return ((answers[:, 0] - targets) ** 2).mean() / (2 * 0.5)

    monkeypatch.setattr(_variational, "cross_entropy", gaussian)
    net = made((3, 1), -2.0, "local")
    learner = started(net, StreamInfo("line", "domain", (3,), 1, ((0,),)), Adam(0.02), samples=20)
    learner.begin(None, Lesson(1, 1, 40))
    assert learner.rows == 40
    for step in range(1500):
        learner.optimiser.lr = 0.05 / (1 + step / 200)
        learner.observe(Batch(x, y, 0))
    mean, rho = net.theta.detach().double().chunk(2)
    torch.testing.assert_close(mean, means, atol=0.02, rtol=0)
    torch.testing.assert_close(rho.exp(), 1 / precision.diagonal(), atol=0, rtol=0.1)


def test_the_next_task_begins_from_this_ones_posterior_as_prior_or_from_the_initial_one():
    for prior in ("posterior", "initial"):
        learner = started(made((3, 4, 2), -6.0), INFO, prior=prior)
        assert not learner.before.any()
        learner.observe(Batch(torch.randn(4, 3), torch.tensor([0, 1, 0, 1]), 0))
        learner.finish(None)
        assert torch.equal(learner.before, learner.net.theta.detach())
        before = learner.net.theta.detach().clone()
        learner.rows = 1  # so that the prior is all that counts
        learner.observe(Batch(torch.zeros(2, 3), torch.tensor([0, 1]), 1))
        moved = (learner.net.theta.detach() - before).abs().max()
        assert (moved < 0.1) if prior == "posterior" else (moved > 0.04)


@pytest.mark.parametrize("seed", range(5))
def test_k_center_against_brute_force(seed):
    x = torch.randn(30, 4, generator=torch.Generator().manual_seed(seed))
    chosen = [0]
    while len(chosen) < 8:
        nearest = [min(float((x[i] - x[j]).square().sum()) for j in chosen) for i in range(30)]
        chosen.append(int(np.argmax(nearest)))
    assert k_center(x, 8).tolist() == chosen


def small(**settings):
    return hf.method("vcl", **{"samples": 1, "test_samples": 5, "coreset_steps": 40, **settings})


PROTOCOL = {"epochs": 30, "batch": 50, "optimiser": "adam", "lr": 3e-3, "reset_optimiser": True}


def run(method, scenario, seed=0, **changes):
    stream = hf.stream("split", tasks=5, scenario=scenario, seed=seed)
    protocol = hf.protocol("epochs", **{**PROTOCOL, **changes})
    return hf.run(method, stream, net=hf.net("bayes", hidden=(50,)), protocol=protocol, seed=seed)


def test_a_coreset_is_kept_out_of_training_and_found_by_the_audit():
    record = run(small(coreset=10, rule="random"), "class", epochs=1)
    assert record.card["no_old_data"]["value"] == 50 and not record.card["no_old_data"]["met"]
    none = run(small(), "class", epochs=1)
    assert none.card["no_old_data"]["value"] == 0 and none.card["no_old_data"]["met"]
    steps = -(-(record.tasks[0]["n_train"] - 10) // 50)
    assert record.resources["updates"][0] == steps
    assert record.resources["flops"][1] > 1.5 * none.resources["flops"][1]  # learning the coreset is training


def test_what_learns_the_coreset_is_thrown_away():
    """The posterior after two tasks is that of a run whose coresets were never learned."""
    seen = []

    class Watched(VCL):
        def finish(self, train):
            super().finish(train)
            seen.append(self.net.theta.detach().clone())

    words = {"test_samples": 2, "coreset": 10, "rule": "random"}
    for steps in (1, 30):
        run(Watched(coreset_steps=steps, **words), "class", epochs=2)
    assert all(torch.equal(a, b) for a, b in zip(seen[:5], seen[5:], strict=True))


def test_heads_of_tasks_to_come_are_left_as_they_began():
    seen = []

    class Watched(VCL):
        def finish(self, train):
            super().finish(train)
            seen.append([p.detach().clone() for p in (self.net.module.means[-2], self.net.module.log_variances[-2])])
            assert not self.before[: self.net.size // 2][-2 * (5 - self.tasks) :].any() or self.tasks == 5

    run(Watched(test_samples=2), "task", epochs=2, optimiser="sgd", lr=0.05)
    for t in range(4):
        later = slice(2 * t + 2, 10)
        assert all(torch.equal(a[later], b[later]) for a, b in zip(seen[0], seen[t], strict=True)) or t == 0
    assert (seen[0][1][2:] == -6).all() and (seen[0][1][:2] != -6).any()
    assert not torch.equal(seen[1][0][2:4], seen[0][0][2:4])


@pytest.fixture(scope="module")
def plain():
    """Single-headed, without a coreset, two seeds on digits."""
    return [run(small(coreset=0, coreset_steps=300), "class", seed) for seed in range(2)]


@pytest.mark.parametrize("rule", ["k-center", "random"])
def test_single_headed_coresets_are_what_helps(rule, plain):
    """Margins over two seeds."""
    for seed, alone in enumerate(plain):
        kept = run(small(coreset=20, rule=rule, coreset_steps=300), "class", seed)
        assert alone.acc < 0.35 and kept.acc > alone.acc + 0.4
        assert np.diag(alone.R).mean() > 0.6  # it did learn the tasks that it forgot


def test_multi_headed_the_prior_alone_does_its_job():
    apart = run(small(), "task")
    assert apart.acc > 0.9 and apart.forgetting < 0.08


def test_a_coreset_needs_more_than_one_pass():
    with pytest.raises(hf.RunFailed, match="keeps a coreset out of training, which a single pass does not allow"):
        hf.run(small(coreset=5), hf.stream("split"), net="bayes")


def test_it_needs_a_perceptron():
    with pytest.raises(hf.BadInput, match="'vcl' needs a perceptron without dropout: net 'bayes', or 'mlp'"):
        hf.run(small(), hf.stream("split"), net=hf.net("mlp", dropout=0.5))
