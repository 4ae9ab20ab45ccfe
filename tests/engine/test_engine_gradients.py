"""Gradients of many groups at once, and the Fisher information, against plain loops."""

import copy
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from holdfast.engine import Net, cross_entropy, fisher, gradients, restrict
from holdfast.engine.gradients import linear_chain
from holdfast.engine.penalty import pull
from holdfast.nets.lwta import Winners
from holdfast.types import Batch

MASKS = torch.tensor([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]], dtype=torch.bool)


def close(a, b):
    return ((a - b).abs().max() / b.abs().max()).item() < 1e-5


def groups(examples, b):
    """Four groups of b examples whose labels every mask allows."""
    x, y = examples(4, b)
    return (
        x,
        y,
        torch.stack([mask.nonzero().flatten()[row % int(mask.sum())] for mask, row in zip(MASKS, y, strict=True)]),
    )


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("b", [1, 6])
@pytest.mark.parametrize("module", ["mlp", "conv", "tied", "growing"], indirect=True)
def test_grouped_gradients_equal_a_loop(module, b, masked, examples, plain_gradient):
    module.eval()  # batch statistics have a test of their own
    net = Net(module)
    x, y, y_masked = groups(examples, b)
    y, masks = (y_masked, MASKS) if masked else (y, None)
    expected = torch.stack([plain_gradient(module, x[i], y[i], MASKS[i] if masked else None) for i in range(4)])
    got = net.gradients(x, y, masks)
    assert got.shape == (4, net.size)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-6)
    assert not net.grad.any()


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("module", ["resnet"], indirect=True)
def test_batch_norm_in_training_is_one_pass_per_group(module, masked, examples):
    """Gradients and running statistics are those of ordinary training passes, in order."""
    twin, net = Net(copy.deepcopy(module)), Net(module)
    x, y, y_masked = groups(examples, 3)
    y, masks = (y_masked, MASKS) if masked else (y, None)
    expected = []
    for i in range(4):
        twin.zero_grad()
        F.cross_entropy(restrict(twin(x[i]), None if masks is None else masks[i]), y[i]).backward()
        expected.append(twin.grad.clone())
    torch.testing.assert_close(net.gradients(x, y, masks), torch.stack(expected), rtol=1e-4, atol=1e-6)
    for name, buffer in twin.module.named_buffers():
        assert torch.equal(buffer, dict(module.named_buffers())[name]), name
    assert twin.module[1].num_batches_tracked == 4


@pytest.mark.parametrize("module", ["conv", "resnet"], indirect=True)
def test_both_ways_to_the_gradients_of_convolutions_agree(module, examples, monkeypatch):
    module.eval()
    net, (x, y) = Net(module), examples(4, 3)
    monkeypatch.setattr(gradients, "PASS_NUMBERS", 0)
    one_by_one = net.gradients(x, y)
    monkeypatch.setattr(gradients, "PASS_NUMBERS", 1e9)
    batched = net.gradients(x, y)
    torch.testing.assert_close(one_by_one, batched, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("module", ["resnet"], indirect=True)
def test_all_ways_to_the_squares_of_convolutions_agree(module, masked, examples, plain_gradient, monkeypatch):
    module.eval()
    net, (x, _, y) = Net(module), groups(examples, 1)
    masks = MASKS if masked else None
    expected = sum(plain_gradient(module, x[i], y[i], MASKS[i] if masked else None).square() for i in range(4))
    for numbers in (0, 1e9):
        monkeypatch.setattr(gradients, "PASS_NUMBERS", numbers)
        torch.testing.assert_close(net.summed_squares(x[:, 0], y[:, 0], masks), expected, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="no examples"):
        net.summed_squares(x[:0, 0], y[:0, 0])


@pytest.mark.parametrize("module", ["dropout"], indirect=True)
def test_dropout_is_off_in_eval_mode_and_drawn_anew_per_group_in_training(module, examples, plain_gradient):
    x, y = examples(1, 6)
    x, y = x.expand(3, -1, -1, -1, -1), y.expand(3, -1)  # three equal groups
    net = Net(module)
    first, second, third = net.gradients(x, y)
    assert not torch.equal(first, second)
    assert not torch.equal(second, third)
    with net.evaluating():
        first, second, third = net.gradients(x, y)
    assert torch.equal(first, third)
    torch.testing.assert_close(second, plain_gradient(module.eval(), x[0], y[0]), rtol=1e-4, atol=1e-6)


class Scaled(nn.Sequential):
    """A Sequential that is more than its children."""

    def forward(self, x):
        return super().forward(2 * x - 1)


def weight_normed():
    return nn.Sequential(nn.Flatten(), nn.utils.weight_norm(nn.Linear(64, 5)))


def half_frozen():
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 5))
    module[1].requires_grad_(False)
    return module


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("build", [lambda: Scaled(nn.Flatten(), nn.Linear(64, 5)), weight_normed, half_frozen])
def test_modules_that_only_look_like_a_perceptron(build, examples):
    torch.manual_seed(0)
    net, (x, y) = Net(build()), examples(2, 6)
    for i, row in enumerate(net.gradients(x, y)):
        net.zero_grad()
        F.cross_entropy(net(x[i]), y[i]).backward()
        torch.testing.assert_close(row, net.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("layers", "linears"),
    [
        ([nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)], 2),
        ([nn.Linear(4, 2)], 1),
        ([nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5).eval(), nn.Linear(3, 2)], 2),
        ([nn.Dropout(0.2), nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5), nn.Linear(3, 2)], 2),
        ([nn.Linear(4, 4), Winners(2), nn.Linear(4, 2)], 2),
        ([nn.ReLU(), nn.Linear(4, 2)], None),
        ([nn.Linear(4, 3), nn.Dropout(0.5), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.ReLU(), nn.Dropout(1.0), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.ReLU(), nn.Dropout(0.5, inplace=True), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2, bias=False)], None),
        ([nn.Linear(4, 3), nn.Linear(3, 2)], None),
        ([nn.Linear(4, 3), nn.ReLU()], None),
        ([], None),
    ],
)
def test_which_modules_are_plain_perceptrons(layers, linears):
    chain = linear_chain(nn.Sequential(*layers))
    assert (None if chain is None else len(chain)) == linears


def test_masked_cross_entropy_on_numbers_worked_by_hand():
    logits = torch.tensor([[0.0, 0.0, 100.0]])
    mask = torch.tensor([True, True, False])
    assert cross_entropy(logits, torch.tensor([0]), mask).item() == pytest.approx(0.6931, abs=1e-4)  # ln 2
    assert restrict(logits, mask).tolist() == [[0.0, 0.0, -torch.inf]]
    assert restrict(logits, None) is logits


# The Fisher information


def fisher_by_loop(module, x, y, masks, plain_gradient):
    rows = [plain_gradient(module, x[i : i + 1], y[i : i + 1], masks[i]) for i in range(len(y))]
    return torch.stack(rows).double().square().mean(0).float()


@pytest.mark.parametrize("mask", [None, "one", "per row"])
@pytest.mark.parametrize("module", ["mlp", "conv", "resnet"], indirect=True)
def test_fisher_equals_the_loop_over_examples(module, mask, examples, plain_gradient):
    x, y = examples(13)
    per_row = MASKS[torch.arange(13) % 4] if mask == "per row" else MASKS[0].expand(13, -1)
    masks = None if mask is None else per_row
    if mask is not None:
        y = per_row.float().argmax(1)
    net = Net(module)
    got = fisher(net, Batch(x, y), masks if mask != "one" else MASKS[0])
    assert module.training
    expected = fisher_by_loop(
        copy.deepcopy(module).eval(), x, y, [None] * 13 if mask is None else masks, plain_gradient
    )
    assert close(got, expected)


@pytest.mark.parametrize("module", ["mlp", "conv"], indirect=True)
def test_fisher_depends_neither_on_chunks_nor_on_order(module, examples, monkeypatch):
    x, y = examples(17)
    net = Net(module)
    whole, guessed = fisher(net, Batch(x, y), None), fisher(net, Batch(x, y), None, "predicted")
    order = torch.randperm(17)
    assert close(fisher(net, Batch(x[order], y[order]), None), whole)
    for rows in (1, 4, 17):
        monkeypatch.setattr(gradients, "CHUNK_BYTES", rows * 4 * net.size)
        for module in (gradients, sys.modules[fisher.__module__]):
            monkeypatch.setattr(module, "CHUNK_ROWS", rows)
        assert close(fisher(net, Batch(x, y), None), whole)
        assert close(fisher(net, Batch(x, y), None, "predicted"), guessed)


@pytest.mark.parametrize("module", ["mlp"], indirect=True)
def test_fisher_labels(module, examples, plain_gradient):
    x, y = examples(40)
    net, batch = Net(module), Batch(x, y)
    predicted = net(x).argmax(-1)
    assert not torch.equal(predicted, y)
    assert close(fisher(net, batch, None, "predicted"), fisher(net, Batch(x, predicted), None))
    once, again, other = (fisher(net, batch, None, "sampled", torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(once, again)
    assert not torch.equal(once, other)
    only = torch.tensor([False, True, False, False, False])
    assert not fisher(net, batch, only, "sampled", torch.Generator()).any()  # the one allowed class is certain


def test_sampled_fisher_is_the_expectation_over_the_models_own_labels():
    """One example, logits = biases: E_y (onehot(y) − p)² = p (1 − p)."""
    net = Net(nn.Sequential(nn.Linear(1, 3)))
    net.set(torch.tensor([0.0, 0.0, 0.0, 1.0, 0.0, -1.0]))
    p = torch.tensor([1.0, 0.0, -1.0]).softmax(0)
    n = 20_000
    batch = Batch(torch.zeros(n, 1), torch.zeros(n, dtype=torch.long))
    got = fisher(net, batch, None, "sampled", torch.Generator().manual_seed(0))
    assert (got[3:] - p * (1 - p)).abs().max() < 0.008  # measured 0.0006 to 0.0036 over 8 seeds
    assert not got[:3].any()


def test_the_square_of_a_mean_gradient_is_not_the_fisher():
    """Two examples whose gradients cancel: the mean's square is 0, the Fisher is not."""
    net = Net(nn.Sequential(nn.Linear(1, 2)))
    net.set(torch.zeros(4))
    batch = Batch(torch.ones(2, 1), torch.tensor([0, 1]))
    mean = net.gradients(batch.x[None], batch.y[None])[0]
    assert mean.square().tolist() == [0.0, 0.0, 0.0, 0.0]
    assert fisher(net, batch, None).tolist() == [0.25, 0.25, 0.25, 0.25]  # (±½)² each


# Quadratic penalties


def test_the_pull_is_the_gradient_of_the_sum_over_anchors():
    rng = torch.Generator().manual_seed(0)
    net = Net(nn.Linear(9, 3))
    F_k, anchors = torch.rand(4, 30, generator=rng), torch.randn(4, 30, generator=rng)
    for strength in (1.0, 3.0):
        theta = torch.randn(30, generator=rng, requires_grad=True)
        (expected,) = torch.autograd.grad(strength / 2 * (F_k * (theta - anchors) ** 2).sum(), theta)
        net.set(theta.detach())
        net.grad.fill_(5.0)  # it adds to what is there
        pull(net, F_k.sum(0), (F_k * anchors).sum(0), strength)
        torch.testing.assert_close(net.grad - 5, expected, rtol=1e-5, atol=1e-5)
