"""Optimisers on the vector are torch.optim's."""

import copy

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from holdfast.engine import Adam, Growing, Momentum, Net, optimiser
from holdfast.engine.optim import _beside
from holdfast.engine.theta import Span

CASES = [(name, decay) for name in ("sgd", "momentum", "adam", "adamw") for decay in (0.0, 0.02)]


def torch_optimiser(name, parameters, decay):
    if name in ("adam", "adamw"):
        kind = torch.optim.Adam if name == "adam" else torch.optim.AdamW
        return kind(parameters, 0.01, weight_decay=decay)
    return torch.optim.SGD(parameters, 0.01, momentum=0.8 if name == "momentum" else 0.0, weight_decay=decay)


def step_both(net, ours, twin, theirs, x, y):
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    ours.step(net)
    theirs.zero_grad()
    F.cross_entropy(twin(x), y).backward()
    theirs.step()


@pytest.mark.parametrize("module", ["mlp", "tied"], indirect=True)
@pytest.mark.parametrize(("name", "decay"), CASES)
def test_fifty_steps_equal_torch_optim(module, name, decay, examples):
    twin = copy.deepcopy(module)
    net, ours = Net(module), optimiser(name, 0.01, momentum=0.8, decay=decay)
    theirs = torch_optimiser(name, twin.parameters(), decay)
    start = net.theta.detach().clone()
    for step in range(50):
        step_both(net, ours, twin, theirs, *examples(8, seed=step))
    expected = torch.cat([p.detach().flatten() for p in twin.parameters()])
    assert (expected - start).abs().max() > 0.02  # they went somewhere
    torch.testing.assert_close(net.theta.detach(), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("module", ["mlp"], indirect=True)
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_reset_is_a_new_optimiser(module, name, examples):
    twin = copy.deepcopy(module)
    net, ours = Net(module), optimiser(name, 0.01, momentum=0.8)
    for step in range(20):
        if step in (0, 10):
            ours.reset()
            theirs = torch_optimiser(name, twin.parameters(), 0.0)
        step_both(net, ours, twin, theirs, *examples(8, seed=step))
    expected = torch.cat([p.detach().flatten() for p in twin.parameters()])
    torch.testing.assert_close(net.theta.detach(), expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("module", ["mlp"], indirect=True)
@pytest.mark.parametrize("name", ["momentum", "adam", "adamw"])
def test_state_round_trip_continues_bit_for_bit(module, name, examples):
    net, ours = Net(module), optimiser(name, 0.01)

    def go(descent, steps):
        for step in steps:
            x, y = examples(8, seed=step)
            net.zero_grad()
            F.cross_entropy(net(x), y).backward()
            descent.step(net)

    go(ours, range(5))
    weights, state = net.state(), ours.state()
    go(ours, range(5, 10))
    end = net.theta.detach().clone()
    other = optimiser(name, 0.01)
    other.load(state)
    net.load(weights)
    go(other, range(5, 10))
    assert torch.equal(net.theta, end)


def test_the_step_leaves_the_gradient_alone():
    net = Net(torch.nn.Linear(3, 2))
    net.grad.copy_(torch.arange(8.0))
    net.freeze()
    optimiser("adam", 0.1, decay=0.5).step(net)
    assert torch.equal(net.grad, torch.arange(8.0))


def test_gradients_that_bypass_the_vector_are_an_error_and_not_a_standstill():
    net, sgd = Net(torch.nn.Linear(3, 2)), optimiser("sgd", 0.1)
    net.module.zero_grad()  # sets every parameter's gradient to None
    net(torch.ones(1, 3)).sum().backward()
    with pytest.raises(RuntimeError, match=r"call net\.zero_grad\(\)"):
        sgd.step(net)


class Vectors(Growing):
    """A part named 7 has seven weights."""

    def build(self, name):
        return nn.Linear(int(name), 1, bias=False)

    def forward(self, x):
        raise NotImplementedError


def pushed(descent, net, gradient=1.0):
    """How far a step moves each entry where all have this gradient."""
    before = net.theta.detach().clone()
    net.grad.fill_(gradient)
    descent.step(net)
    return net.theta.detach() - before


def test_adam_after_a_rollback_steps_every_entry_once():
    """Entries 0-20 were born at step 0, 20-30 at step 1; rolled back to 10, then grown to 30 again."""
    adam, lr = Adam(0.1), 0.1
    for sizes in ((10, 11), (10, 11, 9), (10,), (10, 21)):
        net = Net(Vectors())
        for size in sizes:
            net.grow(str(size), seed=0)
        # with a constant gradient m̂ = v̂ = 1 whatever the age, so every entry moves by lr
        torch.testing.assert_close(pushed(adam, net), torch.full((sum(sizes),), -lr))


def test_state_follows_the_weights_to_their_device():
    theta = torch.zeros(3, device="meta")
    assert _beside(torch.zeros(3), [Span(theta, theta, None)]).device == theta.device
    assert _beside(torch.zeros(3), []).device == torch.device("cpu")


def test_momentum_is_cut_and_padded_with_the_weights():
    momentum, net = Momentum(1.0, momentum=0.5), Net(Vectors())
    net.grow("2", seed=0)
    small = net.state()
    pushed(momentum, net)
    net.grow("1", seed=0)
    pushed(momentum, net)
    assert momentum.v.tolist() == [1.5, 1.5, 1.0]
    net.load(small)
    pushed(momentum, net, gradient=0.0)
    assert momentum.v.tolist() == [0.75, 0.75]


@pytest.mark.parametrize("module", ["mlp"], indirect=True)
def test_decay_that_is_decoupled_is_not_added_to_the_gradient(module, examples):
    """Strong decay tells Adam from AdamW."""
    ends = []
    for name in ("adam", "adamw"):
        net, ours = Net(copy.deepcopy(module)), optimiser(name, 0.01, decay=0.5)
        for step in range(5):
            x, y = examples(8, seed=step)
            net.zero_grad()
            F.cross_entropy(net(x), y).backward()
            ours.step(net)
        ends.append(net.theta.detach())
    assert (ends[0] - ends[1]).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["sgd", "momentum", "adam", "adamw"])
def test_frozen_entries_do_not_move_whatever_decays_and_clips(name):
    net = Net(torch.nn.Linear(3, 2))
    start = net.theta.detach().clone()
    net.frozen = torch.arange(8) < 4
    ours = optimiser(name, 0.1, decay=0.5, clip=0.1)
    for _ in range(3):
        net.grad.copy_(torch.arange(8.0))
        ours.step(net)
    assert torch.equal(net.theta[:4], start[:4])
    assert not torch.isclose(net.theta[4:], start[4:]).any()


@pytest.mark.parametrize("module", ["mlp", "tied"], indirect=True)
@pytest.mark.parametrize("name", ["sgd", "adamw"])
@pytest.mark.parametrize("clip", [0.05, 0.5, 50.0])
def test_clipped_steps_equal_torchs(module, name, clip, examples):
    """0.05 always clips, 0.5 now and then, 50 never."""
    twin = copy.deepcopy(module)
    net, ours = Net(module), optimiser(name, 0.01, decay=0.02, clip=clip)
    theirs = torch_optimiser(name, twin.parameters(), 0.02)
    norms = []
    for step in range(50):
        x, y = examples(8, seed=step)
        net.zero_grad()
        F.cross_entropy(net(x), y).backward()
        ours.step(net)
        theirs.zero_grad()
        F.cross_entropy(twin(x), y).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(twin.parameters(), clip).item())
        theirs.step()
    assert (max(norms) > clip) == (clip < 50)
    expected = torch.cat([p.detach().flatten() for p in twin.parameters()])
    torch.testing.assert_close(net.theta.detach(), expected, rtol=1e-5, atol=2e-6)


def test_clipping_counts_only_what_moves_and_leaves_the_gradient_alone():
    net = Net(torch.nn.Linear(3, 2))
    start = net.theta.detach().clone()
    net.frozen = torch.arange(8) != 7
    net.grad.fill_(100.0)
    net.grad[7] = 2.0
    optimiser("sgd", 1.0, clip=3.0).step(net)
    torch.testing.assert_close(start[7] - net.theta.detach()[7], torch.tensor(2.0))  # a norm of 2 is not clipped
    assert net.grad[0] == 100.0 and net.grad[7] == 2.0


def torch_schedule(name, theirs, steps):
    if name == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(theirs, steps)
    if name == "step":
        return torch.optim.lr_scheduler.StepLR(theirs, 7, 0.3)
    return torch.optim.lr_scheduler.ConstantLR(theirs, 1.0)


@pytest.mark.parametrize("name", ["constant", "cosine", "step"])
def test_schedules_equal_torchs(name):
    ours = optimiser("sgd", 0.2, schedule=name, schedule_every=7, schedule_factor=0.3)
    theirs = torch.optim.SGD([torch.zeros(1, requires_grad=True)], 0.2)
    schedule, rates, expected = torch_schedule(name, theirs, 40), [], []
    for step in range(40):
        ours.pace(step, 40)
        rates.append(ours.rate)
        expected.append(theirs.param_groups[0]["lr"])
        theirs.step()
        schedule.step()
    assert rates == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert len(set(rates)) == {"constant": 1, "cosine": 40, "step": 6}[name]
    assert ours.lr == 0.2  # methods that read it mean the rate that was given


def test_a_step_schedule_has_three_levels_unless_told_otherwise():
    ours = optimiser("sgd", 1.0, schedule="step", schedule_factor=0.5)
    for steps, levels in ((10, [1.0] * 4 + [0.5] * 4 + [0.25] * 2), (2, [1.0, 0.5]), (1, [1.0])):
        found = []
        for step in range(steps):
            ours.pace(step, steps)
            found.append(ours.rate)
        assert found == levels


@pytest.mark.parametrize("name", ["cosine", "step"])
def test_outside_a_tasks_steps_the_rate_is_the_one_given(name):
    """What a learner does in `begin` and `finish` is not slowed down to nothing."""
    ours = optimiser("sgd", 0.2, schedule=name)
    ours.pace(9, 10)
    assert ours.rate < 0.1
    ours.pace(10, 10)
    assert ours.rate == 0.2
