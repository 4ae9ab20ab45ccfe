"""Generators: what they compute, that they learn what they are shown, and which shapes they take."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Normal, kl_divergence
from torch.nn import functional as F

import holdfast as hf
from holdfast.engine import Adam, Net, repeat
from holdfast.methods._generators import (
    Autoencoder,
    Doubling,
    Generators,
    Range,
    contest,
    discriminator,
    made_rows,
    refuse_shape,
)
from holdfast.seeds import generator, seeded


def test_doubling_is_doubling_and_then_a_convolution():
    with seeded(0):
        layer, z = Doubling(3, 4), torch.randn(2, 3, 5, 7, requires_grad=True)
        pull = torch.randn(2, 4, 10, 14)
    fast = layer(z)
    slow = F.conv2d(F.interpolate(z, scale_factor=2), layer.weight, layer.bias, padding=2)
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-5)
    inputs = (z, layer.weight, layer.bias)
    for a, b in zip(*(torch.autograd.grad(out, inputs, pull) for out in (fast, slow)), strict=True):
        torch.testing.assert_close(a, b, atol=1e-4, rtol=1e-4)


def test_a_range_is_widened_and_never_narrowed():
    known = Range()
    known.widen(torch.tensor([0.2, 0.4]))
    assert (known.low, known.high) == (0, 1)
    known.widen(torch.tensor([-3.0, 0.4]))
    known.widen(torch.tensor([0.0, 5.0]))
    x = torch.tensor([-3.0, 1.0, 5.0])
    assert known.to_unit(x).tolist() == [0, 0.5, 1] and known.from_unit(known.to_unit(x)).tolist() == x.tolist()


def test_the_loss_of_an_autoencoder_is_the_bound():
    """By torch's own distributions, with the same noise."""
    with seeded(0):
        auto, x = Autoencoder((1, 2, 3), (5,), 4), torch.rand(7, 1, 2, 3) * 4 - 2
    auto.range.widen(torch.tensor([-2.0, 2.0]))
    unit = (x.flatten(1) + 2) / 4
    mean, log_variance = auto.encoder(unit).chunk(2, 1)
    told = Normal(mean, (log_variance / 2).exp())
    z = mean + told.scale * torch.randn(7, 4, generator=generator(1))
    likelihood = Bernoulli(logits=auto.decoder(z), validate_args=False).log_prob(unit).sum(1)
    bound = likelihood - kl_divergence(told, Normal(0.0, 1.0)).sum(1)
    torch.testing.assert_close(auto(x, generator(1)), -bound.mean())


@pytest.mark.parametrize(
    ("kind", "shape"), [("conv", (1, 8, 8)), ("conv", (3, 32, 32)), ("dense", (5,)), ("dense", (3, 9, 5))]
)
def test_rows_have_the_shape_and_the_range_of_what_was_shown(kind, shape):
    made = Net(Generators(shape, kind, 2, 6))
    made.grow("a", 0)
    made.module.range("a").widen(torch.tensor([-2.0, 3.0]))
    rows = made_rows(made, "a", 7, generator(0))
    assert rows.shape == (7, *shape) and rows.min() >= -2 and rows.max() <= 3 and rows.min() < 0.5
    critic = Net(discriminator(shape, kind, 2))
    assert critic(rows).shape == (7, 1)


@pytest.mark.parametrize("kind", ["conv", "dense"])
def test_a_contest_moves_one_generator_towards_what_it_is_shown(kind):
    """Of half-dark images; the other generator, and its batch statistics, stay as they are."""
    target = torch.zeros(1, 8, 8)
    target[:, :4] = 0.9
    with seeded(0):
        made, critic = Net(Generators((1, 8, 8), kind, 4, 8)), Net(discriminator((1, 8, 8), kind, 4))
    made.grow("old", 0)
    made.freeze("old")
    made.grow("new", 1)
    before = made_rows(made, "old", 9, generator(0))

    def real(n):
        return (target + 0.05 * torch.rand(n, 1, 8, 8, generator=rng)).clamp(0, 1)

    def distance():
        return (made_rows(made, "new", 50, generator(0)).mean(0) - target).abs().mean().item()

    rng, begun = generator(2), distance()
    repeat(150, contest(made, "new", critic, real, 16, 2e-3, rng), "a generator")
    assert begun > 0.4 and distance() < 0.2
    assert torch.equal(before, made_rows(made, "old", 9, generator(0)))


def test_an_autoencoder_learns_what_it_is_shown():
    with seeded(0):
        net = Net(Autoencoder((4,), (20,), 3))
    x = torch.tensor([[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 1.0]]).repeat(10, 1)
    optimiser, rng = Adam(1e-2), generator(0)
    for _ in range(200):
        net.zero_grad()
        net(x, rng).backward()
        optimiser.step(net)
    rows = net.module.rows(200, rng).round()
    assert rows[:, 2].mean() < 0.02 and rows[:, 3].mean() > 0.98
    assert (rows[:, 0] != rows[:, 1]).float().mean() > 0.85 and 0.25 < rows[:, 0].mean() < 0.75


@pytest.mark.parametrize(("shape", "words"), [((64,), "vectors of 64"), ((1, 28, 30), "1×28×30"), ((1, 9, 8), "1×9×8")])
def test_shapes_that_cannot_be_are_refused(shape, words):
    with pytest.raises(hf.BadInput, match=f"multiples of 4, not {words}; try generator=dense"):
        refuse_shape(shape, "conv", "vgr")
    refuse_shape(shape, "dense", "vgr")
