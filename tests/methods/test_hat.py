"""Hard attention: masks, what they block, and how they are learned."""

from __future__ import annotations

import math

import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import SGD, Adam, Net
from holdfast.methods._gates import Gated, widened
from holdfast.methods.hat import HAT, anneal, compensate, crowd
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, Lesson, Part, StreamInfo

STREAM = {"tasks": 3, "examples": 200, "test_examples": 90, "scenario": "task"}
PROTOCOL = {"epochs": 5, "batch": 20, "lr": 0.01, "optimiser": "adam"}
INFO = StreamInfo("hand-made", "task", (2,), 2, ((0, 1),) * 3)


def started(optimiser=None, hidden=(3, 2), **settings):
    build = lambda: hf.net("mlp", hidden=hidden).build(INFO)  # noqa: E731
    with seeded(1):
        module = build()
    learner = HAT(**settings)
    learner.start(Net(module, build), optimiser or SGD(0.1), INFO, generator(0))
    return learner


def batch(t, n=4):
    rng = torch.Generator().manual_seed(t)
    return Batch(torch.rand(n, 2, generator=rng), torch.tensor([0, 1] * (n // 2)), t)


def test_the_sigmoid_grows_steep_within_a_pass():
    assert [anneal(b, 5, 400.0) for b in range(5)] == pytest.approx([0.0025, 100.001875, 200.00125, 300.000625, 400.0])
    assert anneal(0, 1, 400.0) == 400.0
    learner = started()
    learner.begin(None, Lesson(steps=6, epochs=2, batch=4))
    assert learner.batches == 3
    seen = []
    for _ in range(6):
        seen.append(anneal(learner.step % learner.batches, learner.batches, 400.0))
        learner.observe(batch(0))
    assert seen == pytest.approx([0.0025, 200.00125, 400.0] * 2)


def test_a_pass_has_its_length_also_where_the_last_one_is_cut_short():
    learner, x = started(), torch.zeros(9, 2)
    part = Part(x, torch.arange(9), torch.zeros(9, dtype=torch.long))
    learner.begin(Lease(0, part, part), Lesson(steps=4, epochs=2, batch=4))
    assert learner.batches == 3


def test_taken_units_by_hand():
    masks, used = [torch.tensor([0.5, 1.0]), torch.tensor([0.2])], [torch.tensor([0.0, 1.0]), torch.tensor([0.5])]
    assert crowd(masks, used).item() == pytest.approx((0.5 + 0.2 * 0.5) / 1.5)
    assert crowd(masks, [torch.zeros(2), torch.zeros(1)]).item() == pytest.approx(1.7 / 3)  # the first task: the mean
    assert crowd(masks, [torch.ones(2), torch.ones(1)]).item() == 0.0


def test_compensation_by_hand():
    e = torch.tensor([0.0, 0.01, 1.0], requires_grad=True)
    e.grad = torch.tensor([1.0, 2.0, 3.0])
    compensate(e, s=200.0, steepest=400.0)
    by_hand = [2.0, 2 * 2 * (math.cosh(2) + 1) / (math.cosh(0.01) + 1), 3 * 2 * math.cosh(50) / (math.cosh(1) + 1)]
    assert e.grad.tolist() == pytest.approx(by_hand, rel=1e-5)  # 200 is cut to 50


def test_compensated_gradients_are_those_of_a_plain_sigmoid_at_the_steepest():
    """dσ(se)/de = s σ(1 − σ) = s / (2 + 2 cosh(se)): what is left is s_max / (2 + 2 cosh(e)), whatever s is."""
    for s in (0.0025, 3.0, 40.0):
        e = torch.tensor([-0.2, 0.1], requires_grad=True)
        torch.sigmoid(s * e).sum().backward()
        compensate(e, s, 400.0)
        assert e.grad.tolist() == pytest.approx([400 / (2 + 2 * math.cosh(x)) for x in (-0.2, 0.1)], rel=1e-3)


def test_gradients_are_blocked_by_what_both_ends_were_used_for():
    learner = started(hard=False, strength=0.0)
    learner.used = [torch.tensor([0.25, 1.0, 0.0]), torch.tensor([0.5, 1.0])]
    first, second = (m for m in learner.net.module.shared if isinstance(m, torch.nn.Linear))
    for p in learner.net.module.parameters():
        p.grad.fill_(1.0)
    learner.block()
    assert first.weight.grad.tolist() == [[0.75, 0.75], [0.0, 0.0], [1.0, 1.0]]
    assert first.bias.grad.tolist() == [0.75, 0.0, 1.0]
    assert second.weight.grad.tolist() == [[0.75, 0.5, 1.0], [0.75, 0.0, 1.0]]  # 1 − min(A_i, A_j)
    assert second.bias.grad.tolist() == [0.5, 0.0]


def test_what_hard_masks_block_is_frozen_under_momentum_and_decay():
    learner = started(Adam(0.1, decay=0.1))
    learner.begin(None, Lesson(6, 2, 4))
    for _ in range(6):
        learner.observe(batch(0))
    for e, values in zip(learner.embeddings("task0"), ([1.0, 1.0, -1.0], [1.0, -1.0]), strict=True):
        e.data.copy_(torch.tensor(values))
    before = {name: p.detach().clone() for name, p in learner.net.module.shared.named_parameters()}
    answer = learner.predict(batch(0).x, 0)
    learner.begin(None, Lesson(6, 2, 4))
    for _ in range(6):
        learner.observe(batch(1))
    moved = [p.detach() != before[name] for name, p in learner.net.module.shared.named_parameters()]
    assert moved[0].tolist() == [[False] * 2, [False] * 2, [True] * 2]
    assert moved[1].tolist() == [False, False, True]
    assert moved[2].tolist() == [[False, False, True], [True, True, True]]
    assert moved[3].tolist() == [False, True]
    assert torch.equal(learner.predict(batch(0).x, 0), answer)


def test_embeddings_stay_within_six():
    learner = started(SGD(1e4))
    learner.observe(batch(0))
    assert max(e.abs().max().item() for e in learner.embeddings("task0")) == 6.0


def test_maps_are_gated_as_one_also_when_they_are_flattened():
    info = StreamInfo("hand-made", "task", (3, 32, 32), 4, ((0, 1, 2, 3),) * 2)
    with seeded(0):
        module = hf.net("alexnet", width=2).build(info)
    module[2][0].bias.data.fill_(1.0)  # no map is dead
    gated = Gated(module, lambda: module).eval()
    assert gated.sizes == [2, 4, 8, 64, 64]
    x, open_ = torch.rand(2, 3, 32, 32), [torch.ones(n) for n in gated.sizes]
    torch.testing.assert_close(gated(x, "task0", open_), module.eval()(x))
    shut = [*open_[:2], torch.tensor([1.0] * 7 + [0.0]), *open_[3:]]
    before = gated(x, "task0", shut)
    with torch.no_grad():
        module[3][0].weight[:, 28:].fill_(9.0)  # what reads the last map, 2×2 numbers
    assert torch.equal(gated(x, "task0", shut), before)
    assert not torch.equal(gated(x, "task0", open_), before)


NETS = {
    "mlp": hf.net("mlp", hidden=(20, 20)),
    "alexnet": hf.net("alexnet", width=4, hidden=20),
    "resnet": hf.net("ctrl_resnet", width=4),
}


@pytest.mark.parametrize("net", NETS)
def test_logits_of_old_tasks_are_bit_for_bit_the_same_after_later_ones(net):
    stream, answers = hf.stream("ctrl", kind="minus", data="synth", rows=0.01, test=2), {}
    x = [task.test.x() for task in stream.tasks]

    class Watched(HAT):
        def finish(self, train):
            answers[train.task] = [self.predict(x[t], t) for t in range(train.task + 1)]

    protocol = hf.protocol("epochs", **{**PROTOCOL, "epochs": 2, "decay": 0.01})
    record = hf.run(Watched(), stream, net=NETS[net], protocol=protocol, seed=0)
    for now in answers.values():
        assert all(torch.equal(found, answers[t][t]) for t, found in enumerate(now))
    assert len(answers) == 6 and record.metrics["forgetting_ctrl"] == 0.0


def test_it_keeps_what_finetune_forgets():
    """0.75 to 0.85 where independent networks have 0.9 and finetune less than 0.5."""
    for seed in range(3):
        found = {}
        for name in ("hat", "finetune"):
            protocol = hf.protocol("epochs", **{**PROTOCOL, "epochs": 20})
            stream, net = hf.stream("permuted", **STREAM), hf.net("mlp", hidden=(40, 40))
            found[name] = hf.run(hf.method(name), stream, net=net, protocol=protocol, seed=seed).acc
        assert found["hat"] > found["finetune"] + 0.15, found


@pytest.mark.parametrize(
    ("net", "shape", "tasks", "width", "printed"),
    [
        (hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 10, 1.0, 7.6),
        pytest.param(hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 10, 4.0, 78.5, marks=pytest.mark.slow),
        (hf.net("alexnet"), (3, 32, 32), 6, 1.0, 26.6),
        (hf.net("alexnet"), (3, 32, 32), 10, 1.0, 27.0),
        pytest.param(hf.net("alexnet"), (3, 32, 32), 6, 2.5, 164.0, marks=pytest.mark.slow),
    ],
)
def test_mem_is_what_paper_000_prints(net, shape, tasks, width, printed):
    x, y = torch.zeros(10, *shape), torch.arange(10)
    blank = hf.stream("permuted", tasks=tasks, scenario="task", head="shared", data=(x, y, x, y))
    cell = hf.Cell(hf.method("hat", width=width), blank, net, hf.protocol("epochs"), seed=0)
    assert round(4 * cell.numbers()[-1] / 1e6, 1) == printed


def test_a_wider_network_is_of_the_same_kind():
    info = StreamInfo("hand-made", "task", (3, 32, 32), 4, ((0, 1, 2, 3),) * 2)
    for name, size in (("alexnet", {"width": 2}), ("ctrl_resnet", {"width": 2})):
        made = widened(lambda: hf.net(name, **size).build(info), 3.0)  # noqa: B023
        wide = hf.net(name, width=6).build(info)
        assert [p.shape for p in made.parameters()] == [p.shape for p in wide.parameters()]
    with pytest.raises(hf.BadInput, match="no hidden units"):
        hf.run("hat", hf.stream("split", scenario="task"), net=hf.net("mlp", hidden=()))
