"""iCaRL against NumPy: whom it keeps, what it is pulled to, and whom it answers with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import SGD, Net
from holdfast.engine.memory import earlier_alike
from holdfast.seeds import generator
from holdfast.types import Batch


def started(info, lr=0.1, **settings):
    learner = hf.method("icarl", **settings)
    torch.manual_seed(0)
    learner.start(Net(hf.net("mlp", hidden=(12,)).build(info)), SGD(lr), info, generator(0))
    return learner


def learn(learner, task, steps=3):
    for i in range(steps):
        rows = torch.arange(10 * i, 10 * i + 10)
        learner.observe(Batch(task.train.x(rows), task.train.y[rows], task.t))
    learner.finish(Lease(task.t, task.train, task.val))
    learner.ready()


@pytest.mark.parametrize("scenario", ["domain", "task"])
@pytest.mark.parametrize("name", ["permuted", "rotated"])
def test_classes_that_come_in_every_task_share_the_memory_too(name, scenario):
    stream = hf.stream(name, tasks=3, scenario=scenario)
    learner = started(stream.info, memories=65)
    for t, task in enumerate(stream.tasks):
        learn(learner, task)
        share = 65 // (10 * (t + 1))  # a set for every class of every task
        assert len(learner.x) == len(learner.y) == 10 * (t + 1) * share
        assert learner.y.bincount().tolist() == [(t + 1) * share] * 10
    for task in stream.tasks:  # and all of them are in their class's mean
        x = task.train.x()
        assert sum(bool((x == kept).all(-1).all(-1).all(-1).any()) for kept in learner.x) == 10 * share


def test_what_a_run_keeps_is_what_was_allowed():
    record = hf.run(hf.method("icarl", memories=50), hf.stream("permuted", tasks=4, examples=100), seed=0)
    assert record.card["no_old_data"]["value"] <= 50


def test_a_set_is_cut_to_those_herded_first():
    stream = hf.stream("permuted", tasks=2)
    learner = started(stream.info, memories=60)
    learn(learner, stream.tasks[0])
    first = [learner.x[learner.y == c] for c in range(10)]
    learn(learner, stream.tasks[1])
    assert all(torch.equal(learner.x[learner.y == c][:3], first[c][:3]) for c in range(10))


def test_too_few_memories_for_the_sets_to_come_are_refused():
    info = hf.stream("permuted", tasks=3).info
    with pytest.raises(hf.BadInput, match="at least 30, one per class of every task, not 29"):
        started(info, memories=29)
    started(info, memories=30)
    started(hf.stream("split", tasks=5).info, memories=10)


def test_more_tasks_than_were_announced_stay_within_the_memory_and_keep_every_class():
    stream = hf.stream("permuted", tasks=4)
    learner = started(replace(stream.info, task_classes=stream.info.task_classes[:1]), memories=25)
    for task in stream.tasks:
        learn(learner, task, steps=1)
        assert len(learner.x) <= 25
        assert learner.y.unique().tolist() == list(range(10))
    x = stream.tasks[-1].train.x()  # of each class the newest two sets
    assert sum(bool((x == kept).all(-1).all(-1).all(-1).any()) for kept in learner.x) == 10


def test_earlier_ones_alike_are_counted_in_order():
    y = torch.randint(5, (60,), generator=torch.Generator().manual_seed(0))
    assert earlier_alike(y).tolist() == [int((y[:i] == y[i]).sum()) for i in range(60)]
    assert earlier_alike(torch.zeros(0, dtype=torch.long)).tolist() == []


def test_one_exemplar_per_class_is_drawn_from_large_memories_in_room_for_their_labels():
    """Comparing 200,000 labels with one another would need 40 GB; sorting them needs a few MB."""
    info = hf.stream("split").info
    learner = started(info, memories=200_000)
    learner.y = torch.arange(200_000) % 10
    rows = learner._one_per_class()
    assert sorted(learner.y[rows].tolist()) == list(range(10))


def test_every_exemplar_of_a_class_may_be_drawn():
    learner = started(hf.stream("split").info)
    learner.y = torch.tensor([3, 3, 1, 3, 1])
    drawn = [learner._one_per_class() for _ in range(100)]
    assert all(sorted(learner.y[rows].tolist()) == [1, 3] for rows in drawn)
    assert torch.cat(drawn).unique().tolist() == [0, 1, 2, 3, 4]


def features_of(learner, x):
    """What the network says, scaled to length 1, as NumPy has it."""
    z = learner.net(x).detach().double().numpy()
    return z / np.linalg.norm(z, axis=1, keepdims=True)


def herded(features, n):
    """Places in the order in which they bring the mean of the chosen nearest to the mean of all, by trying each."""
    chosen = []
    for _ in range(n):
        free = [i for i in range(len(features)) if i not in chosen]
        gaps = [np.linalg.norm(features.mean(0) - features[[*chosen, i]].mean(0)) for i in free]
        chosen.append(free[int(np.argmin(gaps))])
    return chosen


def test_exemplars_are_herded_in_the_features_that_classify():
    stream = hf.stream("split", scenario="class")
    learner = started(stream.info, memories=40)
    learn(learner, stream.tasks[0])
    x, y = stream.tasks[0].train.x(), stream.tasks[0].train.y
    for c in stream.tasks[0].classes:
        expected = x[y == c][herded(features_of(learner, x[y == c]), 20)]
        assert torch.equal(learner.x[learner.y == c], expected)


@pytest.mark.parametrize("name", ["split", "permuted"])
def test_the_nearest_mean_of_exemplars_answers(name):
    """Under the network as it is now: it has learned on since the exemplars were chosen."""
    stream = hf.stream(name, tasks=5)
    learner = started(stream.info, memories=50)
    for task in stream.tasks[:2]:
        learn(learner, task)
    now = stream.tasks[2].train
    learner.observe(Batch(now.x(torch.arange(10)), now.y[:10], 2))
    learner.ready()
    x, y = stream.tasks[0].test.x(), learner.y.numpy()
    known, features, kept = np.unique(y), features_of(learner, x), features_of(learner, learner.x)
    means = [kept[y == c].mean(0) / np.linalg.norm(kept[y == c].mean(0)) for c in known]
    gaps = np.stack([np.linalg.norm(features - mean, axis=1) for mean in means], 1)
    answers = learner.predict(x, None)
    assert answers[:, known].argmax(1).tolist() == gaps.argmin(1).tolist()
    np.testing.assert_allclose(answers[:, known].numpy(), -gaps, rtol=1e-3, atol=1e-3)
    unknown = [c for c in range(10) if c not in known and c not in now.y[:10]]
    assert name == "permuted" or 4 <= len(unknown) < 10 - len(known)
    assert (answers[:, unknown] < -1e5).all()  # whatever the features


@pytest.mark.parametrize("scenario", ["class", "task"])
def test_the_loss_holds_every_past_head_to_what_it_said(scenario):
    """One exemplar per class, so that the draw is certain; the network has moved since the targets were taken."""
    stream = hf.stream("split", tasks=3, order=tuple(range(6)), scenario=scenario)
    learner = started(stream.info, memories=6, strength=1.5)
    for task in stream.tasks[:2]:
        learn(learner, task)
    assert learner.y.tolist() == [0, 1, 2, 3]
    x, y, old = learner.x, learner.y, learner.net(learner.x).detach()
    train = stream.tasks[2].train
    before, batch = (Batch(train.x(rows), train.y[rows], 2) for rows in torch.arange(20).split(10))
    learner.observe(before)
    theta = learner.net.theta.detach().clone().requires_grad_()

    def say(x):
        return torch.func.functional_call(learner.net.module, learner.net.unflatten(theta), (x,))

    heads = [[0, 1], [2, 3]] if scenario == "task" else [[0, 1, 2, 3]]
    mine = [4, 5] if scenario == "task" else list(range(10))
    loss = -say(batch.x)[:, mine].log_softmax(-1)[range(10), [mine.index(c) for c in batch.y]].mean()
    for head in heads:
        of = torch.isin(y, torch.tensor(head))
        p, q = old[of][:, head].softmax(-1), say(x[of])[:, head].softmax(-1)
        loss = loss + 1.5 * (p * (p.log() - q.log())).sum(-1).mean()
    (expected,) = torch.autograd.grad(loss, theta)
    said = learner.observe(batch)
    assert said.item() == pytest.approx(loss.item(), rel=1e-5)
    torch.testing.assert_close(learner.net.theta.detach(), theta.detach() - 0.1 * expected, rtol=1e-4, atol=1e-6)


def test_until_a_task_is_over_its_classes_have_the_means_of_what_passes_by():
    stream = hf.stream("split", tasks=5)
    learner, (first, second) = started(stream.info, memories=40), stream.tasks[:2]
    learn(learner, first)
    batches = [Batch(second.train.x(rows), second.train.y[rows], 1) for rows in torch.arange(20).split(10)]
    total = np.zeros((10, 10))
    for batch in batches:
        with torch.no_grad():
            z = learner.net(batch.x).numpy().astype(float)
        learner.observe(batch)
        total *= 0.9
        for feature, c in zip(z / np.linalg.norm(z, axis=1, keepdims=True), batch.y.tolist(), strict=True):
            total[c] += feature
    learner.ready()
    for c in second.classes:
        np.testing.assert_allclose(learner.means[c].numpy(), total[c] / np.linalg.norm(total[c]), atol=1e-5)
    answers = learner.predict(second.test.x(), None).argmax(1)
    assert set(answers.tolist()) <= {*first.classes, *second.classes}
    learner.finish(Lease(1, second.train, second.val))
    assert not len(learner.passing)


def test_a_protocol_that_takes_the_best_look_finds_more_than_the_untrained_network():
    stream = hf.stream("split", tasks=2, val=0.2, examples=300)
    record = hf.run("icarl", stream, protocol=hf.protocol("crossval", lr=(0.01,), decay=(0,), epochs=5), seed=0)
    assert all(stop > 0 for stop in record.settings["protocol.stop"]["value"])
    assert record.acc > 0.7
