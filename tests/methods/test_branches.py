"""Methods whose network has parts for each task: heads, legs, whole networks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import holdfast as hf
from holdfast.nets._modules import modules_of
from holdfast.seeds import seeded
from holdfast.types import StreamInfo

STREAM = {"tasks": 3, "examples": 300, "test_examples": 90, "scenario": "task"}
PROTOCOL = {"epochs": 5, "batch": 20, "lr": 0.01, "optimiser": "adam"}
METHODS = ("new_head", "new_leg")


class Whole(torch.nn.Module):
    """A network that is no stack."""

    def __init__(self, info):
        super().__init__()
        self.inner = hf.net("mlp", hidden=(20,)).build(info)

    def forward(self, x):
        return self.inner(x)


def run(method, stream="permuted", seed=0, net=None, **settings):
    net = net or hf.net("mlp", hidden=(20, 20))
    return hf.run(hf.method(method, **settings), hf.stream(stream, **STREAM), net=net,
                  protocol=hf.protocol("epochs", **PROTOCOL), seed=seed)  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("net", [hf.net("mlp", hidden=(20,)), hf.net("ctrl_resnet", width=4)], ids=["mlp", "resnet"])
def test_frozen_nothing_that_was_learned_ever_changes(method, net):
    record = run(method, net=net)
    for t, found in enumerate(record.predictions):
        assert (found[t:] == found[t]).all()  # of each row, whatever was learned since
    assert record.bwt == 0.0


@pytest.mark.parametrize("method", METHODS)
def test_the_first_task_is_learned_as_finetune_learns_it(method):
    frozen, learning, finetune = run(method), run(method, freeze=False), run("finetune")
    first = [record.R[0][0] for record in (frozen, learning, finetune)]
    assert first[0] == first[1] == first[2]
    assert (learning.predictions[0][1] != learning.predictions[0][0]).any()  # what is shared has moved


@pytest.mark.parametrize(("method", "own"), [("new_head", -1), ("new_leg", 0)])
@pytest.mark.parametrize("freeze", [True, False])
def test_steps_equal_a_plain_torch_loop(method, own, freeze):
    from holdfast.engine import SGD, Net
    from holdfast.seeds import generator
    from holdfast.types import Batch

    info = StreamInfo("hand-made", "task", (6,), 3, ((0, 1, 2),) * 2)
    build = lambda: hf.net("mlp", hidden=(5, 4)).build(info)  # noqa: E731
    with seeded(1):
        module = build()
    learner = hf.method(method, freeze=freeze)
    learner.start(Net(module, build), SGD(0.3), info, generator(0))
    rng = torch.Generator().manual_seed(0)
    batches = [
        [Batch(torch.rand(4, 6, generator=rng), torch.tensor([0, 1, 2, 1]), t) for _ in range(3)] for t in (0, 1)
    ]
    for batch in batches[0]:
        learner.observe(batch)
    learner.observe(batches[1][0])  # task 1 has a part of its own now, with one step
    mine, shared = learner.net.module.parts["task1"], learner.net.module.shared
    states = [{k: v.clone() for k, v in m.state_dict().items()} for m in (mine, shared)]
    modules = modules_of(build())
    leg = modules.pop(own)
    trunk = torch.nn.Sequential(*modules)
    leg.load_state_dict(states[0])
    trunk.load_state_dict(states[1])
    order = (leg, trunk) if own == 0 else (trunk, leg)
    moving = [*leg.parameters(), *([] if freeze else trunk.parameters())]
    for batch in batches[1][1:]:
        learner.observe(batch)
        loss = F.cross_entropy(order[1](order[0](batch.x)), batch.y)
        with torch.no_grad():
            for p, g in zip(moving, torch.autograd.grad(loss, moving), strict=True):
                p -= 0.3 * g
    for ours, plain in ((mine, leg), (shared, trunk)):
        for name, tensor in plain.state_dict().items():
            torch.testing.assert_close(ours.state_dict()[name], tensor)


def test_a_head_learns_where_the_first_task_left_features_and_a_leg_where_inputs_moved():
    """What paper 000 has them for: permuted pixels need a new first layer, not a new last one."""
    for seed in range(3):
        legs, heads = run("new_leg", seed=seed), run("new_head", seed=seed)
        assert legs.acc > heads.acc + 0.1


@pytest.mark.parametrize("method", METHODS)
def test_a_network_that_cannot_be_cut_is_refused(method):
    with pytest.raises(hf.BadInput, match="cannot be"):
        run(method, net=Whole)
    with pytest.raises(hf.BadInput, match="one module"):
        run(method, net=hf.net("mlp", hidden=()))


# Mem. of paper 000, in MB as printed, of S⁻, Split CIFAR-100 and Permuted MNIST (Tables 13, 12, 11).
ROWS = {
    "Independent": ("independent", {}, "shared", (14.6, 24.4, 71.8)),
    "Finetune": ("finetune", {}, "shared", (2.4, 2.4, 7.2)),
    "New-head freeze": ("new_head", {}, "shared", (2.5, 2.5, 7.5)),
    "New-leg freeze": ("new_leg", {}, "shared", (2.5, 2.5, 35.4)),
    "EWC": ("ewc", {}, "task", (31.5, 51.0, 150.9)),  # printed 143.7: without the network itself, 20 copies of it
    "Online EWC": ("online_ewc", {}, "task", (7.3, 7.3, 21.6)),
    "ER": ("er", {"rule": "task class ring"}, "shared", (13.5, 20.9, 11.9)),  # printed 15.0: 25 per class, not 15
}


PERCEPTRON = (10, hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28))  # Permuted MNIST


def megabytes(row, tasks, net, shape, per_class=15):
    """Mem. of the real objects; no step is taken."""
    name, settings, head, _ = ROWS[row]
    apart = head == "task" and shape[0] == 3  # on Permuted MNIST all tasks share the output layer
    x, y = torch.zeros(10, *shape), torch.arange(10)
    blank = hf.stream("permuted", tasks=tasks, scenario="task", head="task" if apart else "shared", data=(x, y, x, y))
    memory = {"memories": per_class * 10 * tasks} if name == "er" else {}
    cell = hf.Cell(hf.method(name, **settings, **memory), blank, net, hf.protocol("epochs"), seed=0)
    return 4 * cell.numbers()[-1] / 1e6


@pytest.mark.parametrize("row", ROWS)
def test_mem_is_what_paper_000_prints(row):
    resnet = hf.net("ctrl_resnet"), (3, 32, 32)
    found = [megabytes(row, *of) for of in ((6, *resnet), (10, *resnet), PERCEPTRON)]
    assert tuple(round(each, 1) for each in found) == ROWS[row][3]


def test_what_table_11_prints_for_ewc_and_er_leaves_out_the_network_or_has_more_rows():
    assert round(megabytes("EWC", *PERCEPTRON) - megabytes("Finetune", *PERCEPTRON), 1) == 143.7
    assert round(megabytes("ER", *PERCEPTRON, per_class=25), 1) == 15.0


def test_mem_of_a_run_is_that_of_its_objects():
    record = run("new_leg")
    assert record.metrics["mem"] == 4 * record.resources["numbers"][-1]
    assert record.resources["numbers"][0] == 64 * 20 + 20 + 20 * 20 + 20 + 20 * 10 + 10
    legs = [b - a for a, b in zip(record.resources["numbers"], record.resources["numbers"][1:], strict=False)]
    assert legs == [64 * 20 + 20] * 2
