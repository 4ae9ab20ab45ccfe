"""Progressive networks: columns that read those before them, and never change again."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, StreamInfo

STREAM = {"tasks": 3, "examples": 200, "test_examples": 90, "scenario": "task"}
PROTOCOL = {"epochs": 5, "batch": 20, "lr": 0.01, "optimiser": "adam"}


def run(method="pnn", stream="permuted", seed=0, net=None, protocol=None, **settings):
    net = net or hf.net("mlp", hidden=(20, 20))
    return hf.run(hf.method(method, **settings), hf.stream(stream, **STREAM), net=net,
                  protocol=protocol or hf.protocol("epochs", **PROTOCOL), seed=seed)  # fmt: skip


@pytest.mark.parametrize("lateral", ["copy", "adapter"])
@pytest.mark.parametrize("net", [hf.net("mlp", hidden=(20,)), hf.net("ctrl_resnet", width=4)], ids=["mlp", "resnet"])
def test_nothing_that_was_learned_ever_changes(lateral, net):
    record = run(net=net, lateral=lateral, protocol=hf.protocol("epochs", **{**PROTOCOL, "epochs": 1}))
    for t, found in enumerate(record.predictions):
        assert (found[t:] == found[t]).all()  # of each row, whatever was learned since
    assert record.bwt == 0.0


def test_logits_of_old_tasks_are_bit_for_bit_the_same_after_later_ones_on_a_ctrl_stream():
    stream, answers = hf.stream("ctrl", kind="minus", data="synth", rows=0.01, test=2), {}
    x = torch.stack([task.test.x() for task in stream.tasks])

    class Watched(type(hf.method("pnn"))):
        def finish(self, train):
            answers[train.task] = [self.predict(x[t], t) for t in range(train.task + 1)]

    hf.run(Watched(), stream, net=hf.net("alexnet", width=2), protocol=hf.protocol("epochs", **PROTOCOL), seed=0)
    for now in answers.values():
        assert all(torch.equal(found, answers[t][t]) for t, found in enumerate(now))


def test_the_first_task_is_learned_as_finetune_learns_it():
    assert run().R[0][0] == run("finetune").R[0][0]


@pytest.mark.parametrize("lateral", ["copy", "adapter"])
def test_three_columns_equal_a_plain_loop_without_growing(lateral):
    """784 in small: 6-5-4-3 and laterals, all of it there from the beginning, in plain torch."""
    info = StreamInfo("hand-made", "task", (6,), 3, ((0, 1, 2),) * 3)
    build = lambda: hf.net("mlp", hidden=(5, 4)).build(info)  # noqa: E731
    with seeded(1):
        module = build()
    learner = hf.method("pnn", lateral=lateral)
    learner.start(Net(module, build), SGD(0.3), info, generator(0))
    rng = torch.Generator().manual_seed(0)
    batches = [Batch(torch.rand(4, 6, generator=rng), torch.tensor([0, 1, 2, 1]), t) for t in (0, 0, 1, 1, 2, 2, 2)]
    plain = {}

    def answer(x, t):
        """Column by column, layer by layer, as the equation has it."""
        h = [x] * (t + 1)
        for i, last in ((1, False), (2, False), (3, True)):
            before, h = h, []
            for k in range(t + 1):
                z = before[k] @ plain[k][f"W{i}"].T + plain[k][f"b{i}"]
                if i > 1 and lateral == "copy":
                    for j in range(k):
                        z = z + before[j] @ plain[k][f"U{i}{j}"].T + plain[k][f"c{i}{j}"]
                elif i > 1 and k:
                    read = torch.cat([plain[k][f"a{i}"][j] * before[j] for j in range(k)], 1)
                    v = F.relu(read @ plain[k][f"V{i}"].T + plain[k][f"d{i}"])
                    z = z + v @ plain[k][f"U{i}"].T + plain[k][f"c{i}"]
                h.append(z if last else F.relu(z))
        return h[t]

    def taken(column):
        mine = {}
        for i, W in enumerate(column.weights, 1):
            mine[f"W{i}"], mine[f"b{i}"] = W[-1].weight, W[-1].bias
        for i, each in enumerate(column.laterals, 2):
            for j, U in enumerate(each):
                if lateral == "copy":
                    mine[f"U{i}{j}"], mine[f"c{i}{j}"] = U[-1].weight, U[-1].bias
                else:
                    mine |= {f"a{i}": U.alpha, f"V{i}": U.V.weight, f"d{i}": U.V.bias}
                    mine |= {f"U{i}": U.U[-1].weight, f"c{i}": U.U[-1].bias}
        return {name: p.detach().clone().requires_grad_() for name, p in mine.items()}

    for batch in batches:
        learner._open(f"task{batch.task}")
        columns = learner.net.module.parts
        if batch.task not in plain:
            plain[batch.task] = taken(columns[f"task{batch.task}"])
        loss = F.cross_entropy(answer(batch.x, batch.task), batch.y)
        moving = list(plain[batch.task].values())
        with torch.no_grad():
            for p, g in zip(moving, torch.autograd.grad(loss, moving), strict=True):
                p -= 0.3 * g
        assert learner.observe(batch).item() == pytest.approx(loss.item(), rel=1e-5)
    for t in range(3):
        for name, p in taken(columns[f"task{t}"]).items():
            torch.testing.assert_close(p, plain[t][name])
        torch.testing.assert_close(learner.predict(batches[0].x, t), answer(batches[0].x, t).detach())


def test_it_keeps_what_finetune_forgets():
    for seed in range(3):
        assert run(seed=seed).acc > run("finetune", seed=seed).acc + 0.1


@pytest.mark.parametrize(
    ("tasks", "net", "shape", "printed"),
    [
        (10, hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 253.8),
        (6, hf.net("ctrl_resnet"), (3, 32, 32), 51.1),
        (10, hf.net("ctrl_resnet"), (3, 32, 32), 133.8),
    ],
)
def test_mem_is_what_paper_000_prints(tasks, net, shape, printed):
    x, y = torch.zeros(10, *shape), torch.arange(10)
    blank = hf.stream("permuted", tasks=tasks, scenario="task", head="shared", data=(x, y, x, y))
    cell = hf.Cell(hf.method("pnn"), blank, net, hf.protocol("epochs"), seed=0)
    assert round(4 * cell.numbers()[-1] / 1e6, 1) == printed


def test_a_network_that_cannot_be_cut_is_refused():
    with pytest.raises(hf.BadInput, match="one module"):
        run(net=hf.net("mlp", hidden=()))
