"""Samples by dropout: what is asked of a net with `test_samples`, and that nothing else changes by it."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.nets._base import Dropout, dropout_samples
from holdfast.seeds import generator, seeded
from holdfast.types import StreamInfo

INFO = StreamInfo("test", "class", (1, 8, 8), 10, (tuple(range(10)),))
NETS = {
    "mlp": {"hidden": (30, 30), "dropout": 0.5, "input_dropout": 0.2},
    "conv": {"filters": (4, 4), "kernel": 3, "hidden": 20, "dropout": 0.5, "map_dropout": 0.2},
}


def stream():
    return hf.stream("split", tasks=2, examples=60, test_examples=40)


def run(name, samples, method="finetune"):
    return hf.run(method, stream(), net=hf.net(name, test_samples=samples, **NETS[name]), seed=0)


@pytest.mark.parametrize("name", NETS)
def test_training_is_the_same_bit_for_bit_with_samples_and_without(name):
    seen = []

    class Watched(hf.method("finetune").__class__):
        def finish(self, train):
            seen.append((self.net.theta.detach().clone(), self.net(train.x)))  # in training mode: dice, too

    for samples in (0, 3):
        run(name, samples, Watched())
    plain, sampled = ([tensor for pair in half for tensor in pair] for half in (seen[:2], seen[2:]))
    assert all(map(torch.equal, plain, sampled)) and not torch.equal(plain[0], plain[2])


@pytest.mark.parametrize("name", NETS)
def test_a_plain_method_answers_in_samples_when_asked(name):
    plain, sampled = run(name, 0), run(name, 20)
    assert plain.curves[-1].get("information") is None
    assert sampled.curves[-1]["information"] > 0
    assert abs(plain.acc - sampled.acc) < 0.15


@pytest.mark.parametrize("name", NETS)
def test_a_rows_samples_do_not_depend_on_the_rows_beside_it_nor_on_what_was_drawn_before(name):
    with seeded(0):
        module = hf.net(name, test_samples=6, **NETS[name]).build(INFO).eval()
        x = torch.rand(7, 1, 8, 8)
    whole = module.predict(x)
    torch.rand(3)
    assert whole.shape == (6, 7, 10) and not torch.allclose(whole[0], whole[1])
    torch.testing.assert_close(torch.cat([module.predict(x[:2]), module.predict(x[2:])], 1), whole)
    before = torch.get_rng_state()
    assert torch.equal(module.predict(x), whole) and torch.equal(before, torch.get_rng_state())


def test_the_mean_of_many_samples_of_a_linear_layer_is_its_answer():
    """E[mask / (1 − p)] = 1; the deviation of a mean of 4,000 is an eightieth of a sample's."""
    with seeded(0):
        layers, x = nn.Sequential(Dropout(0.3), nn.Linear(5, 2)).eval(), torch.rand(3, 5)
    found = dropout_samples(layers, x, 4000, generator(0)).mean(0)
    torch.testing.assert_close(found, layers(x), atol=0.03, rtol=0)
    kept = dropout_samples(nn.Sequential(Dropout(0.3)), torch.ones(2, 1000), 3, generator(0))
    assert kept.unique().tolist() == [0, pytest.approx(1 / 0.7)]
    assert torch.equal(kept[:, 0], kept[:, 1])  # the same units for all rows
    assert (kept == 0).float().mean().item() == pytest.approx(0.3, abs=0.03)


@pytest.mark.parametrize("name", NETS)
def test_samples_without_dropout_are_refused(name):
    with pytest.raises(hf.BadInput, match=f"test_samples of net '{name}' needs dropout, which is 0; try dropout=0.5"):
        hf.net(name, test_samples=3).build(INFO)
