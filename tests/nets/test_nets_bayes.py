"""Bayesian perceptrons: their KL, their samples, and what they answer without any."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Normal, kl_divergence

import holdfast as hf
from holdfast.engine import Net, pooled
from holdfast.engine.evaluate import information_of
from holdfast.nets.bayes import MeanField, bayesian, descend_divergence, divergence
from holdfast.seeds import seeded
from holdfast.types import StreamInfo

INFO = StreamInfo("split", "class", (1, 3, 2), 4, ((0, 1), (2, 3)))


@pytest.fixture(autouse=True)
def known():
    """Weights are drawn from torch's generator."""
    with seeded(0):
        yield


def gaussians(theta):
    mean, rho = theta.chunk(2)
    return Normal(mean, (rho / 2).exp())


def drawn(n, seed):
    return torch.randn(n, generator=torch.Generator().manual_seed(seed))


def test_the_divergence_is_that_of_torch():
    q, p = drawn(40, 0), drawn(40, 1)
    each = kl_divergence(gaussians(q), gaussians(p))
    torch.testing.assert_close(divergence(q, p), each.sum())
    some = drawn(20, 2) > 0
    torch.testing.assert_close(divergence(q, p, some), each[some].sum())
    assert divergence(q, q) == 0


def test_its_gradient_is_autograds():
    q, p, some = drawn(40, 0).requires_grad_(), drawn(40, 1), drawn(20, 2) > 0
    (kl_divergence(gaussians(q), gaussians(p))[some].sum() * 0.3).backward()
    grad = torch.ones(40)
    descend_divergence(grad, q, p, 0.3, some)
    torch.testing.assert_close(grad - 1, q.grad)


def test_theta_is_all_means_and_then_all_log_variances():
    net = Net(hf.net("bayes", hidden=(5,), log_variance=-3.0).build(INFO))
    mean, rho = net.theta.detach().chunk(2)
    assert net.size == 2 * (6 * 5 + 5 + 5 * 4 + 4) and (rho == -3).all() and mean.std() > 0.05
    assert torch.equal(mean[:30].view(5, 6), net.module.means[0])


@pytest.mark.parametrize("sampling", ["weights", "local"])
def test_samples_have_the_mean_and_variance_of_a_linear_layer(sampling):
    """One layer: y ~ N(μx + b, Σ_i x_i² e^ρ_i + e^ρ_b)."""
    net = MeanField((6, 3), -1.0, sampling, "torch")
    x = drawn(12, 0).view(2, 6)
    y = net(x, 40_000, torch.Generator().manual_seed(0)).detach()
    assert y.shape == (40_000, 2, 3)
    variance = (x.square().sum(1, keepdim=True) + 1) * torch.tensor(-1.0).exp()
    torch.testing.assert_close(y.mean(0), net(x).detach(), atol=0.03, rtol=0)
    torch.testing.assert_close(y.var(0), variance.expand(2, 3), rtol=0.04, atol=0)


@pytest.mark.parametrize("sampling", ["weights", "local"])
def test_one_batched_pass_is_the_pass_of_each_sample(sampling):
    """By hand, with the same noise: layer after layer, weights before biases."""
    net, x, S = MeanField((6, 5, 3), -2.0, sampling, "torch"), drawn(24, 0).view(4, 6), 3
    found = net(x, S, torch.Generator().manual_seed(7))
    rng = torch.Generator().manual_seed(7)
    h = x.expand(S, 4, 6)
    for layer in range(2):
        W, b = net.means[2 * layer], net.means[2 * layer + 1]
        V, v = (net.log_variances[2 * layer + i].exp() for i in range(2))
        if sampling == "weights":
            W = W + V.sqrt() * torch.randn(S, *W.shape, generator=rng)
            b = b + v.sqrt() * torch.randn(S, *b.shape, generator=rng)
            h = torch.stack([h[s] @ W[s].T + b[s] for s in range(S)])
        else:
            noise = torch.randn(S, 4, len(b), generator=rng)
            h = torch.stack([h[s] @ W.T + b + (h[s] ** 2 @ V.T + v).sqrt() * noise[s] for s in range(S)])
        h = h.relu() if layer == 0 else h
    torch.testing.assert_close(found, h)


def test_a_network_without_variance_has_no_mutual_information():
    point, wide = MeanField((6, 5, 3), -200.0, "weights", "torch"), MeanField((6, 5, 3), 0.0, "weights", "torch")
    x, rng = drawn(24, 0).view(4, 6), torch.Generator().manual_seed(0)
    assert (information_of(point(x, 10, rng)) < 1e-12).all()
    torch.testing.assert_close(pooled(point(x, 10, rng)), point(x).log_softmax(-1))
    assert (information_of(wide(x, 10, rng)) > 0.01).all()


def test_a_perceptron_becomes_bayesian_with_its_weights_as_means():
    plain = hf.net("mlp", hidden=(5, 4)).build(INFO)
    made = bayesian(plain)
    x = drawn(12, 0).view(2, 1, 3, 2)
    torch.testing.assert_close(made(x), plain(x))
    assert bayesian(made) is made
    assert bayesian(hf.net("mlp", dropout=0.5).build(INFO)) is None
