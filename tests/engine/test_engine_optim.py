"""Optimisers on the vector are torch.optim's."""

import copy

import pytest
import torch
import torch.nn.functional as F

from holdfast.engine import Adam, Momentum, Net, optimiser
from holdfast.engine.optim import _grown

CASES = [("sgd", 0.0), ("sgd", 0.02), ("momentum", 0.0), ("momentum", 0.02), ("adam", 0.0), ("adam", 0.02)]


def torch_optimiser(name, parameters, decay):
    if name == "adam":
        return torch.optim.Adam(parameters, 0.01, weight_decay=decay)
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
@pytest.mark.parametrize("name", ["sgd", "momentum", "adam"])
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
@pytest.mark.parametrize("name", ["momentum", "adam"])
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


def test_adam_after_a_rollback_steps_every_entry_once():
    """Entries 0-20 were born at step 0, 20-30 at step 1; rolled back to 10, then grown to 30 again."""
    adam, lr = Adam(0.1), 0.1
    for size in (20, 30, 10, 30):
        theta = torch.zeros(size)
        adam.descend(theta, torch.ones(size), None)
        # with a constant gradient m̂ = v̂ = 1 whatever the age, so every entry moves by lr
        torch.testing.assert_close(theta, torch.full((size,), -lr))


def test_state_follows_the_weights_to_their_device():
    theta = torch.zeros(3, device="meta")
    assert _grown(torch.zeros(3), theta).device == theta.device
    assert _grown(torch.zeros(2), theta).device == theta.device


def test_momentum_is_cut_and_padded_with_the_weights():
    momentum = Momentum(1.0, momentum=0.5)
    momentum.descend(torch.zeros(2), torch.ones(2), None)
    momentum.descend(torch.zeros(3), torch.ones(3), None)
    assert momentum.v.tolist() == [1.5, 1.5, 1.0]
    momentum.descend(torch.zeros(1), torch.zeros(1), None)
    assert momentum.v.tolist() == [0.75]
