"""MNTDP-S: its distribution over paths, REINFORCE against the exact expectation, and what it keeps."""

from __future__ import annotations

from itertools import product

import pytest
import torch

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.methods._gamma import Gamma, reinforce
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, StreamInfo


def test_gamma_is_a_product_of_choices_layer_by_layer():
    gamma = Gamma(3)
    with torch.no_grad():
        gamma.logits.copy_(torch.tensor([[0.0, 0.0], [2.0, 0.0], [-1.0, 1.0]]))
    old = gamma.logits.softmax(1)[:, 0].tolist()
    by_hand = [1 - old[0], old[0] * (1 - old[1]), old[0] * old[1] * (1 - old[2]), old[0] * old[1] * old[2]]
    torch.testing.assert_close(gamma().exp(), torch.tensor(by_hand))


@pytest.mark.parametrize("rows", [2, 3])
def test_reinforce_is_the_gradient_of_the_exact_expectation(rows):
    """Over all draws of paths for all rows of a batch, on three layers. A baseline that holds a row's own reward takes
    1/n of the gradient away: (1 − 1/n) ∇ mean_i Σ_d Γ(d) CE_i(d)."""
    gamma = Gamma(3).double()
    rng = torch.Generator().manual_seed(0)
    with torch.no_grad():
        gamma.logits.copy_(torch.randn(3, 2, generator=rng))
    losses = torch.rand(rows, 4, generator=rng, dtype=torch.float64)  # of each row along each path

    def gradient(loss):
        return torch.autograd.grad(loss, gamma.logits)[0]

    exact = gradient((gamma().exp() * losses).sum(1).mean())
    expected = torch.zeros_like(exact)
    for drawn in product(range(4), repeat=rows):
        paths = torch.tensor(drawn)
        chance = gamma().detach().exp()[paths].prod()
        expected += chance * gradient(reinforce(gamma(), paths, -losses[torch.arange(rows), paths]))
    torch.testing.assert_close(expected, (1 - 1 / rows) * exact)


def started(**settings):
    info = StreamInfo("hand-made", "task", (4,), 2, ((0, 1),) * 2)
    build = lambda: hf.net("mlp", hidden=(6, 5)).build(info)  # noqa: E731
    with seeded(0):
        module = build()
    learner = hf.method("mntdp_s", **settings)
    learner.start(Net(module, build), SGD(0.1), info, generator(0))
    learner.open(1)
    learner.old = [0, 0, 0]
    return learner


def test_each_row_goes_along_its_own_path():
    learner = started()
    x = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))
    depths = torch.tensor([3, 0, 2, 1, 0, 3, 1, 2])
    found = learner.along(x, depths)
    for i, d in enumerate(depths.tolist()):
        h = learner.reused(x[i : i + 1], learner.old[:d])
        alone = learner.fresh(h, [("1-0", layer) for layer in range(d, 3)])
        torch.testing.assert_close(found[i : i + 1], alone)


def test_rows_of_one_half_teach_the_modules_and_those_of_the_other_the_paths():
    learner = started(path_lr=0.1)
    learner.half, learner.left = torch.tensor([True] * 4 + [False] * 4), 5
    x, y = torch.randn(8, 4), torch.arange(8) % 2
    before = learner.fresh.theta.detach().clone(), learner.gamma.theta.detach().clone()
    learner.observe(Batch(x[:4], y[:4], 1, torch.arange(4)))
    assert torch.equal(learner.fresh.theta, before[0]) and not torch.equal(learner.gamma.theta, before[1])
    moved = learner.gamma.theta.detach().clone()
    learner.observe(Batch(x[4:], y[4:], 1, torch.arange(4, 8)))
    assert not torch.equal(learner.fresh.theta, before[0]) and torch.equal(learner.gamma.theta, moved)


def test_a_sure_path_is_the_only_one_and_so_is_the_likeliest_after_half_of_the_steps():
    learner = started()
    learner.half, learner.left = torch.zeros(4, dtype=torch.bool), 5
    with torch.no_grad():
        learner.gamma.theta.copy_(torch.tensor([9.0, 0.0, 9.0, 0.0, 0.0, 9.0]))  # old, old, new
    learner.observe(Batch(torch.randn(4, 4), torch.arange(4) % 2, 1, torch.arange(4)))
    assert learner.left == 0 and learner.path == [0, 0, 1]
    below = learner.fresh.module.parts["1-0"][0].state_dict()
    kept = {name: tensor.clone() for name, tensor in below.items()}
    learner.observe(Batch(torch.randn(4, 4), torch.arange(4) % 2, 1, torch.arange(4)))
    assert all(torch.equal(below[name], tensor) for name, tensor in kept.items())  # no row takes that module
    head = learner.fresh.module.parts["1-0"][2].weight.detach().clone()
    learner.close()
    assert learner.paths == [[0, 0, 0], [0, 0, 1]] and list(learner.net.module.parts) == ["0-0", "1-2"]
    assert torch.equal(learner.net.module.parts["1-2"][0].weight, head)


@pytest.mark.parametrize("prior", ["nearest", "random"])
def test_nothing_that_was_learned_ever_changes_also_on_augmented_images(prior):
    stream = hf.stream("ctrl", kind="out", data="synth", rows=0.01, test=4)
    protocol = hf.protocol("crossval", lr=(0.01, 0.001), decay=(0.0,), epochs=4, batch=10)
    record = hf.run(hf.method("mntdp_s", prior=prior), stream, net=hf.net("mlp", hidden=(8, 8)), protocol=protocol)
    for t, found in enumerate(record.predictions):
        assert (found[t:] == found[t]).all()
    rows = record.study["paths"]
    assert [len(row["knn"]) for row in rows] == ([0, 1, 2, 3, 4, 5] if prior == "nearest" else [0] * 6)
