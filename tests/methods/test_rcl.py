"""Reinforced continual learning: rewards, the controller's update, trials through the selection engine."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.methods.rcl import RCL, reward
from holdfast.seeds import generator, seeded
from holdfast.types import StreamInfo

STREAM = {"tasks": 3, "examples": 200, "test_examples": 90, "scenario": "task"}


def started(hidden=(3, 2), **settings):
    info = StreamInfo("hand-made", "task", (2,), 2, ((0, 1),) * 3)
    build = lambda: hf.net("mlp", hidden=hidden).build(info)  # noqa: E731
    learner = RCL(**{"most": 2, "hidden": 4, **settings})
    with seeded(1):
        module = build()
    learner.start(Net(module, build), SGD(0.1), info, generator(0))
    return learner


def test_a_reward_by_hand():
    assert reward(0.9, [10, 20], price=0.001) == pytest.approx(0.87)
    assert reward(0.9, [0, 0], price=0.001) == 0.9


def test_the_controller_goes_up_what_was_better_than_the_mean():
    """Rewards 0.5, 0.9, 0.4: V is 0.5, 0.7, 0.6, so that surpluses are 0, 0.2, −0.2."""
    learner = started(rate=0.1)
    twin = learner.controller.copy()
    plain = twin.module
    adam = torch.optim.Adam(plain.parameters(), 0.1)
    for action, gained, surplus in (([1, 0], 0.5, 0.0), ([2, 1], 0.9, 0.2), ([0, 1], 0.4, -0.2)):
        odds = torch.stack([plain(torch.tensor(action))[i, a] for i, a in enumerate(action)]).sum()
        adam.zero_grad()
        (-surplus * odds).backward()
        adam.step()
        learner.reinforce(action, gained)
        for mine, other in zip(learner.controller.module.parameters(), plain.parameters(), strict=True):
            torch.testing.assert_close(mine, other)
    before = learner.controller.theta.detach().clone()
    learner.reinforce([1, 1], -float("inf"))  # a trial that failed
    assert torch.equal(learner.controller.theta.detach(), before)


def test_the_policy_is_a_product_and_its_gradient_is_that_of_the_expected_reward():
    """Σ_a π(a) R(a) ∇ log π(a) over all nine actions is ∇ Σ_a π(a) R(a)."""
    learner = started()
    actions = torch.cartesian_prod(torch.arange(3), torch.arange(3))
    odds = torch.stack([learner.controller(a).gather(1, a[:, None]).sum().exp() for a in actions])
    assert odds.sum().item() == pytest.approx(1.0, abs=1e-5)
    rewards, weights = torch.arange(9.0), list(learner.controller.module.parameters())
    exact = torch.autograd.grad((odds * rewards).sum(), weights, retain_graph=True)
    score = torch.autograd.grad((odds.detach() * rewards * odds.log()).sum(), weights)
    for a, b in zip(exact, score, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-3)


def test_it_learns_to_draw_what_is_rewarded():
    learner = started(rate=0.02)
    for _ in range(150):
        action = learner.draw()
        learner.reinforce(action, float(action == [2, 0]) + 0.5 * float(action[0] == 2))
    drawn = [learner.draw() for _ in range(50)]
    assert sum(a == [2, 0] for a in drawn) > 40


def crossval(**changes):
    return hf.protocol("crossval", **{"lr": (0.01,), "decay": (0.0,), "epochs": 5, "batch": 20, **changes})


def test_trials_go_through_the_selection_engine_and_the_best_is_taken():
    stream = hf.stream("permuted", **STREAM, val=0.2)
    method = hf.method("rcl", trials=4, most=6, price=0.01)
    record = hf.run(method, stream, net=hf.net("mlp", hidden=(10, 10)), protocol=crossval(epochs=1), seed=0)
    for t in (1, 2):
        rows = [row for row in record.study["trials"] if row["task"] == t]
        assert len(rows) == 4
        (chosen,) = [row["option"] for row in rows if row["chosen"]]
        grown = record.resources["numbers"][t] - record.resources["numbers"][t - 1]
        a, b = map(int, chosen.split())
        done = [r["option"] for s in range(1, t) for r in record.study["trials"] if r["task"] == s and r["chosen"]]
        n1, n2 = (10 + sum(int(o.split()[i]) for o in done) for i in (0, 1))
        assert grown == a * 64 + a + b * (n1 + a) + n2 * a + b + 10 * (n2 + b) + 10
    assert record.settings["option"]["chosen_by"] == "val:task"
    assert record.bwt == 0.0


def test_nothing_is_forgotten_and_it_is_better_than_finetune():
    """0.70 to 0.84 against 0.42 to 0.50."""
    for seed in range(3):
        found = {}
        for name, settings in (("rcl", {"trials": 2, "hidden": 10}), ("finetune", {})):
            stream, net = hf.stream("permuted", **STREAM, val=0.2), hf.net("mlp", hidden=(20, 20))
            record = hf.run(hf.method(name, **settings), stream, net=net, protocol=crossval(), seed=seed)
            found[name] = record.acc
            if name == "rcl":
                for t, predictions in enumerate(record.predictions):
                    assert (predictions[t:] == predictions[t]).all()
        assert found["rcl"] > found["finetune"] + 0.15, found
