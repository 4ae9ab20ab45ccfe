"""The one batching and the one evaluation loop, and the counting of operations."""

import copy
import sys
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from holdfast.engine import Net, batches, count_flops, entropy, optimiser, score
from holdfast.methods import methods
from holdfast.types import Batch, Part, StreamInfo


def part_of(n, dtype=torch.uint8, transform=None):
    """n of 60 stored rows, in a shuffled order; pixel 0 tells the stored row."""
    pixels = torch.arange(60)[:, None].repeat(1, 4).to(dtype)
    rows = torch.randperm(60, generator=torch.Generator().manual_seed(1))[:n]
    return Part(pixels, rows, rows % 7, transform)


def seeded(seed):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("block", [4096, 12])
@pytest.mark.parametrize("size", [1, 7, 10, 100])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_one_pass_shows_every_row_once(dtype, size, block, monkeypatch):
    monkeypatch.setattr(sys.modules["holdfast.engine.batching"], "BLOCK_ROWS", block)
    part = part_of(53, dtype, transform=lambda pixels: pixels.flip(1))
    shown = list(batches(part, size, seeded(0), task=3))
    assert [len(b) for b in shown] == [size] * (53 // size) + [53 % size] * (53 % size > 0)
    assert {b.task for b in shown} == {3}
    x, y = torch.cat([b.x for b in shown]), torch.cat([b.y for b in shown])
    scale = 255 if dtype == torch.uint8 else 1
    stored = (x[:, 0] * scale).round().long()
    assert torch.equal(stored.sort().values, part.rows.sort().values)
    assert torch.equal(y, stored % 7)
    assert x.dtype == torch.float32
    order = torch.tensor([(part.rows == row).nonzero().item() for row in stored])
    assert torch.equal(x, part.x(order))


def test_the_order_depends_on_the_generator_alone():
    part = part_of(30)

    def order(rng, size):
        torch.rand(3)  # the global generator plays no part
        return torch.cat([b.y for b in batches(part, size, rng, task=None)]).tolist()

    assert order(seeded(0), 10) == order(seeded(0), 7)
    assert order(seeded(0), 10) != order(seeded(1), 10)
    rng = seeded(0)
    assert order(rng, 10) != order(rng, 10)  # the next pass is shuffled anew


def test_only_kept_rows_are_shown_with_each_rows_task():
    part, which = part_of(30), torch.arange(30) % 4
    kept = torch.tensor([3, 8, 9, 20, 29])
    shown = list(batches(part, 2, seeded(0), which, kept))
    assert [len(b) for b in shown] == [2, 2, 1]
    stored = torch.cat([b.x[:, 0] for b in shown]).mul(255).round().long()
    assert sorted(stored.tolist()) == sorted(part.rows[kept].tolist())
    tasks = dict(zip(part.rows.tolist(), which.tolist(), strict=True))
    assert torch.cat([b.task for b in shown]).tolist() == [tasks[row] for row in stored.tolist()]


def test_a_batch_may_be_changed_without_changing_the_data():
    part = part_of(20, torch.float32)
    before = part.x()
    for b in batches(part, 5, seeded(0), task=0):
        b.x.zero_()
        b.y.zero_()
    assert torch.equal(part.x(), before)
    assert part.y.any()


# Scoring


@pytest.mark.parametrize("chunk", [1000, 12, 1, None])
@pytest.mark.parametrize("masked", [False, True])
def test_score_equals_the_direct_computation(masked, chunk, monkeypatch):
    monkeypatch.setattr(sys.modules["holdfast.engine.evaluate"], "CHUNK_ROWS", 13)
    part = part_of(40)
    torch.manual_seed(0)
    net = nn.Linear(4, 7)
    allowed = torch.tensor([1, 0, 1, 1, 0, 1, 1]).bool() if masked else None
    part = part.take(((part.y != 1) & (part.y != 4)).nonzero().flatten()) if masked else part
    sizes = []
    got = score(lambda x, task: sizes.append(len(x)) or 3 * net(x), part, None, allowed, chunk)
    assert max(sizes) == min(chunk or 13, len(part)) and sum(sizes) == len(part)
    spread = entropy(lambda x, task: 3 * net(x), part, None, allowed, rows=len(part))
    logits = 3 * net(part.x()).detach().double().numpy()
    if masked:
        logits[:, [1, 4]] = -np.inf
    p = np.exp(logits - logits.max(1, keepdims=True))
    p /= p.sum(1, keepdims=True)
    y = part.y.numpy()
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = -np.nansum(p * np.log(p), 1).mean()
    assert got.predicted.tolist() == p.argmax(1).tolist()
    assert got.accuracy == (p.argmax(1) == y).mean()
    assert got.loss == pytest.approx(-np.log(p[np.arange(len(y)), y]).mean(), rel=1e-5)
    assert spread == pytest.approx(expected, rel=1e-5)
    if masked:
        assert not set(got.predicted.tolist()) & {1, 4}


def test_what_predict_is_given_and_the_entropy_of_the_first_rows():
    part, seen = part_of(40), []

    def predict(x, task):
        seen.append((x.shape[0], task, torch.is_inference_mode_enabled()))
        return F.one_hot(torch.zeros(len(x), dtype=torch.long), 7).float()

    got = score(predict, part, 3, None)
    assert seen == [(40, 3, True)]
    assert got.accuracy == (part.y == 0).sum().item() / 40
    p = np.array([np.e] + [1.0] * 6) / (np.e + 6)
    assert entropy(predict, part, None, None, rows=12) == pytest.approx(-(p * np.log(p)).sum(), rel=1e-5)
    entropy(predict, part, None, None, rows=500)
    assert [rows for rows, *_ in seen] == [40, 12, 40]


@pytest.mark.parametrize(("classes", "dtype"), [(256, np.uint8), (257, np.uint16)])
def test_predictions_are_as_small_as_the_classes_allow(classes, dtype):
    def predict(x, task):
        return torch.arange(float(classes)).expand(len(x), -1)

    got = score(predict, part_of(5), None, None)
    assert got.predicted.dtype == dtype
    assert got.predicted.tolist() == [classes - 1] * 5


def test_scored_data_can_still_be_trained_on_and_not_be_changed_by_predict():
    part = part_of(20, torch.float32)
    before, net = part.x(), nn.Linear(4, 7)
    score(lambda x, task: net(x.mul_(0)), part, None, None)
    assert torch.equal(part.x(), before)
    F.cross_entropy(net(part.x()), part.y).backward()
    assert net.weight.grad.any()


# Operations


def started(module, name="finetune"):
    learner = methods.make(name, {})
    info = StreamInfo("hand-made", "class", (64,), 5, ((0, 1, 2, 3, 4),))
    learner.start(Net(module), optimiser("sgd", 0.1), info, torch.Generator())
    return learner


@pytest.mark.parametrize("hidden", [(), (30,), (30, 20)])
def test_flops_of_a_training_step_are_the_formula(hidden, examples):
    """Forward 2·B·ΣP_w; backward as much for the weights and, but for the first layer, again for the inputs."""
    sizes = [64, *hidden, 5]
    weights = [a * b for a, b in pairwise(sizes)]
    layers = [nn.Flatten()]
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.ReLU()]
    module = nn.Sequential(*layers[:-1])
    learner, (x, y) = started(module), examples(10)
    _, flops = count_flops(lambda: learner.observe(Batch(x, y, 0)))
    formula = 2 * 10 * (3 * sum(weights) - weights[0])
    assert flops == formula
    _, grouped = count_flops(lambda: learner.net.gradients(*examples(4, 10)))
    assert grouped == 4 * formula


@pytest.mark.parametrize("module", ["conv"], indirect=True)
def test_flops_of_grouped_gradients_equal_those_of_single_ones(module, examples):
    """Also for convolutions, whose per-group gradients torch would count three times too often."""
    net, (x, y) = Net(module), examples(3, 4)

    def plain():
        F.cross_entropy(net(x[0]), y[0]).backward()

    _, one = count_flops(plain)
    _, all_three = count_flops(lambda: net.gradients(x, y))
    assert all_three == 3 * one


def test_counting_returns_the_result_and_changes_nothing(examples):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 5))
    counted, plain = Net(module), Net(copy.deepcopy(module))
    x, y = examples(1, 6)
    got, _ = count_flops(lambda: counted.gradients(x, y))
    assert torch.equal(got, plain.gradients(x, y))
