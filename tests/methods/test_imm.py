"""Incremental moment matching against its equations written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import SGD, Net
from holdfast.seeds import generator
from holdfast.types import Batch


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", tasks=3)


def started(stream, **settings):
    learner = hf.method("imm", **settings)
    torch.manual_seed(0)
    learner.start(Net(hf.net("mlp", hidden=(12,)).build(stream.info)), SGD(0.1), stream.info, generator(0))
    return learner


def learn(learner, task):
    """Train on a task; returns its own weights and, by the empirical way, its importances."""
    for i in range(3):
        rows = torch.arange(10 * i, 10 * i + 10)
        learner.observe(Batch(task.train.x(rows), task.train.y[rows], task.t))
    own = learner.net.theta.detach().clone()
    rng = learner.rng.get_state()
    learner.finish(Lease(task.t, task.train, task.val))
    return own.double().numpy(), rng


def learn_again(learner, task, n):
    """Train on a task: its own weights, and what its importances are made of: n rows, labels drawn, a loss of both."""
    own, rng = learn(learner, task)
    twin = learner.net.copy()
    twin.set(torch.from_numpy(own).float())
    dice = torch.Generator()
    dice.set_state(rng)
    x = task.train.x(torch.randperm(len(task.train), generator=dice)[:n])
    others = [c for c in range(10) if learner.info.task_given and c not in task.classes]

    def say(x):
        return twin(x).index_fill(1, torch.tensor(others, dtype=torch.long), -torch.inf)

    y = torch.multinomial(say(x).detach().softmax(-1), 1, generator=dice).flatten()

    def squares(rows):
        """Of the gradient of these rows' mean loss."""
        loss = torch.nn.functional.cross_entropy(say(x[rows]), y[rows])
        found = torch.autograd.grad(loss, list(twin.module.parameters()))
        return torch.cat([g.flatten() for g in found]).double().numpy() ** 2

    return own, squares


@pytest.mark.parametrize("alpha", [None, 0.3])
def test_the_mean_weighs_the_networks_of_all_tasks(stream, alpha):
    learner = started(stream, alpha=alpha)
    own = [learn(learner, task)[0] for task in stream.tasks]
    shares = [1 / 3] * 3 if alpha is None else [0.7 * 0.7, 0.7 * 0.3, 0.3]
    expected = sum(a * w for a, w in zip(shares, own, strict=True))
    np.testing.assert_allclose(learner.net.theta.detach().numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("scenario", ["class", "task"])
def test_the_mode_weighs_them_by_importance(scenario):
    stream = hf.stream("split", tasks=3, scenario=scenario)
    learner = started(stream, merge="mode", alpha=0.25, samples=40)
    moments = []
    for task in stream.tasks[:2]:
        own, squares = learn_again(learner, task, 40)
        moments.append((sum(squares([i]) for i in range(40)) / 40 + 1e-8, own))
    (F1, w1), (F2, w2) = moments
    expected = (0.75 * F1 * w1 + 0.25 * F2 * w2) / (0.75 * F1 + 0.25 * F2)
    np.testing.assert_allclose(learner.net.theta.detach().numpy(), expected, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("merge", ["mean", "mode"])
def test_every_merge_on_offer_is_the_one_written_out_after_each_of_three_tasks(stream, merge):
    """Shares 0.7 and 0.3 of the first two tasks, then (1 − α) of both and α of the third, for each curve offered."""
    learner, kept, offered = started(stream, merge=merge, alpha=0.3, samples=40), [], []
    for task in stream.tasks:
        own, _ = learn(learner, task)
        kept.append((own, learner.own_importance.double().numpy()))
        shares = {1: [1.0], 2: [0.4, 0.6], 3: [0.4 * 0.7, 0.4 * 0.3, 0.6]}[len(kept)]
        for name in learner.merges():
            learner.blend(0.6, name)
            weights = [a * (F if name == "mode" else 1) for a, (_, F) in zip(shares, kept, strict=True)]
            expected = sum(w * own for w, (own, _) in zip(weights, kept, strict=True)) / sum(weights)
            np.testing.assert_allclose(learner.net.theta.detach().numpy(), expected, rtol=1e-3, atol=1e-5)
        offered.append(learner.merges())
    assert offered == [["mean"]] * 3 if merge == "mean" else [["mean", "mode"]] * 2 + [["mode"]]


def test_a_merge_that_what_is_kept_does_not_have_is_refused(stream):
    learner = started(stream, merge="mode", samples=20)
    for task in stream.tasks:
        learn(learner, task)
    with pytest.raises(hf.BadInput, match="merge 'mean' of method 'imm' is not to be had of 3 tasks merged by mode"):
        learner.blend(0.5, "mean")


def test_a_study_of_three_parts_draws_the_merges_that_are_there_after_the_last():
    stream = hf.stream("slt", parts="d4-3-3", val=0.2, examples=40)
    few = {"layers": (1,), "sizes": (8,), "steps": 10, "alphas": 2}
    record = hf.run(hf.method("imm", merge="mode"), stream, protocol=hf.protocol("application", **few))
    offered = {(row["after_task"], row["merge"]) for row in record.study["blends"]}
    assert offered == {(1, "mean"), (1, "mode"), (2, "mode")}
    panel = hf.panels.panel("d4-3-3", [record])
    assert [c.name for c in panel.curves if c.over == "alpha"] == ["D1 ∪ D2 ∪ D3, mode merge"]
    assert [mark.curve for mark in panel.marks] == ["", "D1 ∪ D2 ∪ D3, mode merge"]


@pytest.mark.parametrize("scenario", ["class", "task"])
def test_paper_003s_importances_are_sums_of_squared_mean_gradients(scenario):
    stream = hf.stream("split", tasks=3, scenario=scenario)
    learner = started(stream, merge="mode", samples=120, emulate="batch sums")
    _, squares = learn_again(learner, stream.tasks[0], 120)
    expected = sum(squares(slice(i, i + 50)) for i in (0, 50, 100)) + 1e-8  # batches of 50, 50 and 20
    np.testing.assert_allclose(learner.own_importance.numpy(), expected, rtol=1e-3, atol=1e-9)


def test_a_task_starts_from_the_last_tasks_own_weights(stream):
    learner = started(stream)
    learn(learner, stream.tasks[0])
    second, _ = learn(learner, stream.tasks[1])
    assert not np.allclose(learner.net.theta.detach().numpy(), second)
    task = stream.tasks[2]
    plain = hf.method("finetune")
    net = learner.net.copy()
    net.set(torch.from_numpy(second).float())
    plain.start(net, SGD(0.1), stream.info, generator(0))
    batch = Batch(task.train.x(torch.arange(10)), task.train.y[:10], 2)
    plain.observe(batch)
    learner.observe(batch)
    torch.testing.assert_close(learner.net.theta, plain.net.theta, rtol=1e-5, atol=1e-6)


def test_l2_transfer_pulls_to_the_last_weights_and_at_first_to_zero(stream):
    for tasks in (0, 1):
        learner, plain = started(stream, strength=0.05), started(stream)
        for task in stream.tasks[:tasks]:
            learn(learner, task)
        plain.net.set(learner.own if tasks else learner.net.theta.detach())
        theta = plain.net.theta.detach().clone()
        anchor = learner.own if tasks else torch.zeros_like(theta)
        batch = Batch(stream.tasks[1].train.x(torch.arange(10)), stream.tasks[1].train.y[:10], 1)
        plain.observe(batch)
        learner.observe(batch)
        expected = plain.net.theta.detach() - 0.1 * 2 * 0.05 * (theta - anchor)
        torch.testing.assert_close(learner.net.theta.detach(), expected, rtol=1e-5, atol=1e-6)


def test_drop_transfer_is_unbiased_around_the_last_weights(stream):
    """θ̂ has mean θ, and a step goes down the gradient of the loss at θ̂ by the chain rule."""
    learner = started(stream, drop=0.4)
    learn(learner, stream.tasks[0])
    batch = Batch(stream.tasks[1].train.x(torch.arange(10)), stream.tasks[1].train.y[:10], 1)
    learner.observe(batch)
    theta, own, state = learner.net.theta.detach().clone(), learner.own, learner.rng.get_state()
    learner.observe(batch)
    found = (theta - learner.net.theta.detach()) / 0.1
    draws = torch.Generator()
    draws.set_state(state)
    m = (torch.rand(len(theta), generator=draws) < 0.4).float()
    leaf = theta.clone().requires_grad_()
    hat = m * own + (1 - m) * (leaf - 0.4 * own) / 0.6
    views = learner.net.unflatten(hat)
    loss = torch.nn.functional.cross_entropy(torch.func.functional_call(learner.net.module, views, (batch.x,)), batch.y)
    (expected,) = torch.autograd.grad(loss, leaf)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-5)


def test_nothing_is_dropped_in_the_first_task(stream):
    dropping, plain = (learn(started(stream, drop=p), stream.tasks[0])[0] for p in (0.4, 0.0))
    assert (dropping == plain).all()


def test_merging_keeps_what_finetuning_loses():
    """Measured on digits, D5-5a: three seeds, every one by more than 0.1."""
    stream = hf.stream("slt", parts="D5-5a")
    settings = {"protocol": hf.protocol("epochs", epochs=20, batch=20, lr=0.05), "seeds": 3, "jobs": 1}
    found = hf.compare([hf.method("imm", merge="mode", samples=500), "finetune"], stream, **settings)
    acc = {m: [r.acc for r in found.records if r.method == m] for m in ("imm", "finetune")}
    assert min(a - b for a, b in zip(acc["imm"], acc["finetune"], strict=True)) > 0.1, acc
