"""Deep generative replay: its loss, its labels, what it keeps, and that it does its job."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.methods._generators import Autoencoder
from holdfast.methods.dgr import DGR
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, Lesson, StreamInfo

INFO = StreamInfo("test", "class", (3,), 4, ((0, 1), (2, 3)))


def started(info=INFO, **settings) -> DGR:
    learner = DGR(hidden=(6,), latent=2, **settings)
    with seeded(0):
        net = Net(hf.net("mlp", hidden=(5,)).build(info))
    learner.start(net, SGD(1.0), info, generator(0))
    return learner


@pytest.mark.parametrize("tasks", [1, 2, 3])
def test_a_step_shares_itself_out_between_now_and_before(tasks):
    """The rows made in the step are drawn again from the same dice; the gradient is that of the loss as written."""
    learner = started(replay=9)
    learner.seen[:2] = True
    learner.tasks = tasks - 1
    learner.begin(None, Lesson(1, 1, 5))
    with seeded(1):
        x, y = torch.rand(5, 3), torch.tensor([2, 3, 3, 2, 2])
    net, begun = learner.net, learner.net.theta.detach().clone()
    old = learner.generator_before.module.rows(9, generator(4))
    labels = learner.before(old)[:, :2].argmax(1)  # among the classes seen
    expected = F.cross_entropy(net(x), y) / tasks + (1 - 1 / tasks) * F.cross_entropy(net(old), labels)
    net.zero_grad()
    expected.backward()
    gradient = net.grad.clone()
    learner.rng = generator(4)
    loss = learner.observe(Batch(x, y, tasks - 1))
    torch.testing.assert_close(loss, expected.detach())
    torch.testing.assert_close(begun - net.theta.detach(), gradient)


def test_the_generator_learns_from_what_the_last_one_makes_too(monkeypatch):
    learner = started(replay=9)
    shown = []
    bound = Autoencoder.forward
    monkeypatch.setattr(Autoencoder, "forward", lambda self, x, rng: shown.append(x) or bound(self, x, rng))
    for t in range(2):
        learner.begin(None, Lesson(1, 1, 5))
        before = learner.generator_before.theta.detach().clone()
        learner.observe(Batch(torch.rand(5, 3), torch.tensor([0, 1, 0, 1, 0]) + 2 * t, t))
        assert torch.equal(before, learner.generator_before.theta.detach())
        assert not torch.equal(before, learner.generator.theta.detach())
        learner.generator_before.load(learner.generator.state())
    assert [len(x) for x in shown] == [5, 5, 9]


def small(**settings):
    return hf.method("dgr", hidden=(200,), latent=20, generator_lr=3e-3, **settings)


def test_two_generators_and_two_classifiers_count_and_no_old_row_is_kept():
    stream = hf.stream("split", tasks=3, sizes=(2, 2, 2), examples=40)
    record = hf.run(small(), stream)
    plain = hf.run("finetune", stream)
    numbers = sum(p.numel() for p in Autoencoder((1, 8, 8), (200,), 20).parameters())
    least = plain.resources["bytes"][0] + 4 * (4 * numbers)  # two of them, and Adam's two for one
    assert record.resources["bytes"][0] > least and np.ptp(record.resources["bytes"]) < 100
    assert record.card["no_old_data"]["met"] and record.card["no_old_data"]["value"] == 0


@pytest.mark.parametrize("seed", [0, 1])
def test_it_does_its_job(seed):
    """Single-headed Split digits: 0.8 and more, where fine-tuning has 0.2."""
    stream, protocol = (
        hf.stream("split", tasks=5, seed=seed),
        hf.protocol("epochs", epochs=40, batch=50, optimiser="adam", lr=1e-3),
    )
    replayed, plain = (
        hf.run(m, stream, net=hf.net("mlp", hidden=(100,)), protocol=protocol, seed=seed) for m in (small(), "finetune")
    )
    assert replayed.acc > plain.acc + 0.5


def test_rows_beyond_0_and_1_are_made_too():
    """Standardised pixels: the made rows reach as far as the real ones."""
    seen = []

    class Watched(DGR):
        def finish(self, train):
            super().finish(train)
            known = self.generator_before.module.range
            seen.append((known.low.item(), known.high.item(), train.x.min().item(), train.x.max().item()))

    stream = hf.stream("split", tasks=2, examples=60, scale="centred")
    hf.run(Watched(hidden=(20,), latent=5), stream)
    assert all(low == least and high == most for low, high, least, most in seen)


def test_a_generator_that_diverges_ends_the_run():
    with pytest.raises(hf.RunFailed, match="loss became"):
        hf.run(hf.method("dgr", generator_lr=1e30), hf.stream("split", tasks=2, examples=100))
