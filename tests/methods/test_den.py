"""Dynamically expandable networks: what is selected, added, dropped and split."""

from __future__ import annotations

import pytest
import torch

import holdfast as hf
from holdfast.audit import Lease
from holdfast.engine import SGD, Net
from holdfast.methods._widening import shrink
from holdfast.methods.den import DEN
from holdfast.seeds import generator, seeded
from holdfast.types import Lesson, Part, StreamInfo

STREAM = {"tasks": 3, "examples": 200, "test_examples": 90, "scenario": "task"}
PROTOCOL = {"epochs": 10, "batch": 20, "lr": 0.003, "optimiser": "adam"}


def started(hidden=(2, 2), inputs=2, **settings):
    info = StreamInfo("hand-made", "task", (inputs,), 2, ((0, 1),) * 3)
    build = lambda: hf.net("mlp", hidden=hidden).build(info)  # noqa: E731
    with seeded(1):
        learner = DEN(**settings)
        learner.start(Net(build(), build), SGD(0.1), info, generator(0))
    return learner


def lease(task, n=8):
    rng = torch.Generator().manual_seed(task)
    x, rows = torch.rand(n, 2, generator=rng), torch.arange(n)
    return Lease(task, Part(x, rows, rows % 2), Part(x, rows[:0], rows[:0]))


def units(learner, i=-1):
    return learner.module.units(list(learner.module.parts)[i])


def test_weights_are_shrunk_towards_zero():
    w = torch.tensor([0.5, -0.3, 0.05, -0.1])
    shrink(w, 0.1)
    assert w.tolist() == pytest.approx([0.4, -0.2, 0.0, 0.0])


@pytest.mark.parametrize("emulate", ["none", "code"])
def test_units_that_lead_to_the_outputs_are_selected_by_hand(emulate):
    learner = started(hidden=(3, 3), emulate=emulate)
    part = learner.enter(1)
    learner.module.units(part).head.data.copy_(torch.tensor([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
    units(learner, 0).rows[1].data.copy_(torch.tensor([[1.0, 1.0, 1.0], [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]]))
    below, above = learner.selected(part)
    if emulate == "none":
        assert above.tolist() == [False, True, True] and below.tolist() == [True, True, False]
    else:  # by the first output alone
        assert above.tolist() == [False, True, False] and below.tolist() == [False, True, False]
    chosen = learner.module.between(part, [below, above])
    moving = {id(w): which for w, which in chosen}
    rows = units(learner, 0).rows
    assert moving[id(rows[0])].tolist() == [[unit] * 2 for unit in below.tolist()]
    assert moving[id(rows[1])].tolist() == [[a and b for b in below.tolist()] for a in above.tolist()]


@pytest.mark.parametrize(("emulate", "twin"), [("none", 1), ("code", 0)])
def test_a_split_by_hand(emulate, twin):
    """Units drift by 5 and 0.1: the first is over σ, so it is split and restored. One unit at most."""
    learner = started(hidden=(3,), far=0.5, most=1, drift=0.0, emulate=emulate)
    first = units(learner, 0)
    first.rows[0].data.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
    first.biases[0].data.zero_()
    learner.plan = (0, 1)  # stage 4 without steps
    part = learner.enter(1)
    first.rows[0].data += torch.tensor([[0.6, 0.0], [3.0, 4.0], [0.1, 0.0]])
    first.biases[0].data.copy_(torch.tensor([0.1, 0.2, 0.3]))
    head = learner.module.units(part).head
    head.data.copy_(torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]))
    torch.testing.assert_close(learner.drifts()[0], torch.tensor([0.6, 5.0, 0.1]))
    x = torch.rand(5, 2)
    before = learner.predict(x, 1)
    learner.split(lease(1))
    mine = units(learner)
    now = [[1.6, 0.0], [3.0, 5.0]][twin]
    assert mine.rows[0].tolist() == [pytest.approx(now)] and mine.biases[0].tolist() == pytest.approx(
        [[0.1, 0.2][twin]]
    )
    old = [[1.6, 0.0], [3.0, 5.0], [1.1, 1.0]]
    old[twin] = [[1.0, 0.0], [0.0, 1.0]][twin]  # as it was before the task
    torch.testing.assert_close(first.rows[0].data, torch.tensor(old))
    assert first.biases[0][twin] == 0
    assert mine.head.tolist() == [[[1.0], [4.0]], [[2.0], [5.0]]][twin]  # taken over from the unit
    assert (head[:, twin] == 0).all()
    torch.testing.assert_close(learner.predict(x, 1), before)  # nothing is lost by it


def test_a_split_through_two_layers_reads_twins_in_place_of_units():
    learner = started(far=0.0, most=2, drift=0.0)
    part = learner.enter(1)
    for w in units(learner, 0).rows:
        w.data += 1.0
    before = learner.predict(x := torch.rand(5, 2), 1)
    learner.split(lease(1))
    assert learner.module.counts(list(learner.module.parts)[-1]) == [4, 4] and part in learner.module.parts
    torch.testing.assert_close(learner.predict(x, 1), before)


def test_units_of_no_use_are_dropped_and_others_stay():
    for group, left in ((10.0, 0), (0.0, 3)):
        learner = started(units=3, group=group, sparsity=0.0, far=99.0)
        learner.begin(lease(0), Lesson(4, 1, 8))
        learner.finish(lease(0))
        train = lease(1)
        learner.begin(train, Lesson(4, 1, 8))
        learner.finish(train)
        assert learner.module.counts(list(learner.module.parts)[-1]) == [2 + left, 2 + left]
    learner = started(units=3, threshold=99.0, far=99.0)  # good enough as it is
    for task in (0, 1):
        learner.begin(lease(task), Lesson(4, 1, 8))
        learner.finish(lease(task))
    assert learner.net.size == 2 * (2 * 2 + 2) + 2 * (2 * 2 + 2)  # two layers, two tasks' outputs


def test_it_keeps_what_finetune_forgets():
    """0.84 to 0.87 against 0.54 to 0.59."""
    for seed in range(3):
        found = {}
        for name in ("den", "finetune"):
            stream, net = hf.stream("permuted", **STREAM), hf.net("mlp", hidden=(40, 40))
            record = hf.run(hf.method(name), stream, net=net, protocol=hf.protocol("epochs", **PROTOCOL), seed=seed)
            found[name] = record.acc
        assert found["den"] > found["finetune"] + 0.15, found


def test_other_networks_are_refused():
    with pytest.raises(hf.BadInput, match="plain perceptron"):
        hf.run("den", hf.stream("split", scenario="task"), net="conv")
