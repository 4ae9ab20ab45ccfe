"""MNTDP-S: its distribution over paths, REINFORCE against the exact expectation, and what it keeps."""

from __future__ import annotations

from itertools import product

import pytest
import torch

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.methods._gamma import Choices, beginnings, reinforce
from holdfast.methods.mntdp_s import MNTDPS
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, StreamInfo

ONE = [[0, 0, 0]]
TWO = [[0, 0, 0], [0, 1, 1]]  # the first layer is the same


def chances(choices, paths):
    """Γ by hand: at each node the softmax of its own logits, and the product of what is chosen on the way."""
    logits = iter(choices.logits.exp().tolist())
    ends = beginnings(paths)
    steps = {end: next(logits) for end in ends if end}  # into the last module
    news = {end: next(logits) for end in ends if len(end) < 3}
    whole = {node: news[node] + sum(e for end, e in steps.items() if end[:-1] == node) for node in news}
    found = []
    for end in ends:
        chance = news[end] / whole[end] if end in news else 1.0
        for d in range(len(end)):
            chance *= steps[end[: d + 1]] / whole[end[:d]]
        found.append(chance)
    return found


def drawn(paths, seed=0):
    choices = Choices(paths).double()
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        choices.logits.copy_(torch.randn(len(choices.logits), generator=rng))
    return choices, rng


@pytest.mark.parametrize("paths", [ONE, TWO, [[0, 0, 0], [1, 1, 1], [0, 0, 2], [1, 3, 3]]])
def test_gamma_is_a_product_of_choices_at_the_nodes_of_a_tree(paths):
    choices, _ = drawn(paths)
    torch.testing.assert_close(choices().exp(), torch.tensor(chances(choices, paths), dtype=torch.float64))
    assert choices().exp().sum().item() == pytest.approx(1.0)
    assert choices.logits.numel() == len(beginnings(paths)) - 1 + sum(len(end) < 3 for end in beginnings(paths))


def test_gamma_at_first_is_even_at_every_node():
    """Of two past paths that part behind the first module: old or new there, then one of two old ones or new."""
    assert beginnings(TWO) == [(), (0,), (0, 0), (0, 1), (0, 0, 0), (0, 1, 1)]
    torch.testing.assert_close(Choices(TWO)().exp(), torch.tensor([1 / 2, 1 / 6, 1 / 12, 1 / 12, 1 / 12, 1 / 12]))
    torch.testing.assert_close(Choices(ONE)().exp(), torch.tensor([1 / 2, 1 / 4, 1 / 8, 1 / 8]))


@pytest.mark.parametrize(("paths", "rows"), [(ONE, 2), (ONE, 3), (TWO, 2), (TWO, 3)])
def test_reinforce_is_the_gradient_of_the_exact_expectation(paths, rows):
    """Over all draws of paths for all rows of a batch, on three layers. A baseline that holds a row's own reward takes
    1/n of the gradient away: (1 − 1/n) ∇ mean_i Σ_π Γ(π) CE_i(π)."""
    gamma, rng = drawn(paths)
    ends = len(beginnings(paths))
    losses = torch.rand(rows, ends, generator=rng, dtype=torch.float64)  # of each row along each path

    def gradient(loss):
        return torch.autograd.grad(loss, gamma.logits)[0]

    exact = gradient((gamma().exp() * losses).sum(1).mean())
    expected = torch.zeros_like(exact)
    for each in product(range(ends), repeat=rows):
        taken = torch.tensor(each)
        chance = gamma().detach().exp()[taken].prod()
        expected += chance * gradient(reinforce(gamma(), taken, -losses[torch.arange(rows), taken]))
    torch.testing.assert_close(expected, (1 - 1 / rows) * exact)


def started(tasks=1, **settings):
    """A learner that begins a task after one, or two that have the first layer in common."""
    info = StreamInfo("hand-made", "task", (4,), 2, ((0, 1),) * (tasks + 1))
    build = lambda: hf.net("mlp", hidden=(6, 5)).build(info)  # noqa: E731
    with seeded(0):
        module = build()
    learner = hf.method("mntdp_s", **settings)
    learner.start(Net(module, build), SGD(0.1), info, generator(0))
    for t, path in enumerate(TWO[:tasks]):
        learner.open(t)
        learner.path = path
        learner.close()
    learner.open(tasks)
    learner.branch(TWO[:tasks])
    return learner


@pytest.mark.parametrize("tasks", [1, 2])
def test_each_row_goes_along_its_own_path(tasks):
    learner = started(tasks)
    ends = beginnings(TWO[:tasks])
    rng = torch.Generator().manual_seed(1)
    x = torch.randn(3 * len(ends), 4, generator=rng)
    taken = torch.arange(len(ends)).repeat(3)[torch.randperm(3 * len(ends), generator=rng)]
    found = learner.along(x, taken)
    for i, end in enumerate(ends[j] for j in taken):
        h = learner.reused(x[i : i + 1], end)
        alone = learner.fresh(h, [(f"{tasks}-0", layer) for layer in range(len(end), 3)])
        torch.testing.assert_close(found[i : i + 1], alone)
    some = taken % 2 == 1  # not all paths are taken
    torch.testing.assert_close(learner.along(x[some], taken[some]), found[some])


def test_a_path_may_branch_off_any_of_the_nearest():
    learner = started(2)
    learner.half, learner.left = torch.zeros(4, dtype=torch.bool), 5
    to = {(0,): 9.0, (0, 1): 9.0, ((0, 1), "new"): 9.0}
    ends = beginnings(TWO)
    places = [*(end for end in ends if end), *((end, "new") for end in ends if len(end) < 3)]
    learner.gamma.set(torch.tensor([to.get(place, 0.0) for place in places]))
    learner.observe(Batch(torch.randn(4, 4), torch.arange(4) % 2, 2, torch.arange(4)))
    assert learner.path == [0, 1, 2] and learner.left == 0
    learner.close()
    assert learner.paths == [*TWO, [0, 1, 2]] and list(learner.net.module.parts) == ["0-0", "1-1", "2-2"]


def test_its_state_holds_a_tree_of_any_size():
    """A trial that is taken back begins where Γ had the tree of an earlier task, or none."""
    learner = started(1)
    learner.gamma.set(torch.arange(6.0))
    before = learner.state()
    learner.branch(TWO)
    assert learner.gamma.size == 9
    learner.load(before)
    assert learner.gamma.theta.tolist() == [0, 1, 2, 3, 4, 5] and learner.old == ONE


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
        learner.gamma.theta.copy_(torch.tensor([9.0, 9.0, 0.0, 0.0, 0.0, 9.0]))  # old, old; and new behind them
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


@pytest.mark.parametrize("settings", [{}, {"prior": "random"}, {"nearest_paths": None}], ids=str)
def test_nothing_that_was_learned_ever_changes_also_on_augmented_images(settings):
    stream = hf.stream("ctrl", kind="out", data="synth", rows=0.01, test=4)
    protocol = hf.protocol("crossval", lr=(0.01, 0.001), decay=(0.0,), epochs=4, batch=10)
    record = hf.run(hf.method("mntdp_s", **settings), stream, net=hf.net("mlp", hidden=(8, 8)), protocol=protocol)
    for t, found in enumerate(record.predictions):
        assert (found[t:] == found[t]).all()
    rows = record.study["paths"]
    assert [len(row["knn"]) for row in rows] == ([0] * 6 if settings.get("prior") == "random" else [0, 1, 2, 3, 4, 5])


@pytest.mark.parametrize("paths", [1, None])
@pytest.mark.parametrize(
    ("net", "shape", "printed"),
    [(hf.net("mlp", hidden=(1000, 1000)), (1, 28, 28), 71.8), (hf.net("ctrl_resnet"), (3, 32, 32), 24.4)],
    ids=["table11", "table12"],
)
def test_mem_of_new_paths_is_what_paper_000_prints(net, shape, printed, paths):
    """Γ is not counted."""
    x, y = torch.zeros(10, *shape), torch.arange(10)
    blank = hf.stream("permuted", tasks=10, scenario="task", data=(x, y, x, y))
    method = hf.method("mntdp_s", prior="random", nearest_paths=paths)  # no neighbours are looked for
    cell = hf.Cell(method, blank, net, hf.protocol("epochs"), seed=0)
    assert round(4 * cell.numbers()[-1] / 1e6, 1) == printed


def test_nearest_paths_are_looked_for_once_a_task_whatever_else_is_tried(monkeypatch):
    asked = []
    monkeypatch.setattr(MNTDPS, "nearest", lambda self, train, k: asked.append(train.task) or self.paths[:1])
    shown = hf.stream("split", tasks=3, examples=40, val=0.3, scenario="task")
    words = {"lr": (0.01, 0.001), "decay": (0.0, 1e-4), "epochs": 2, "batch": 10}
    hf.run("mntdp_s", shown, net=hf.net("mlp", hidden=(8, 8)), protocol=hf.protocol("crossval", **words))
    assert asked == [1, 2]


def test_a_row_and_its_views_are_in_one_half():
    halved = []

    class Seen(MNTDPS):
        def begin(self, train, plan):
            super().begin(train, plan)
            halved.append(self.half.clone())

    shown = hf.stream("split", tasks=2, examples=40, val=0.3, scenario="task", augment=True, views=2)
    hf.run(Seen(), shown, net=hf.net("mlp", hidden=(8, 8)), protocol=hf.protocol("epochs", epochs=1))
    rows = halved[1].view(3, 40)
    assert (rows == rows[0]).all() and rows[0].sum() == 20
