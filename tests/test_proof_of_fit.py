"""The contracts carry what comes later without special cases: each learner here is a later method in miniature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.audit import Lease
from holdfast.checks import check_learner
from holdfast.engine import SGD, Adam, Growing, Net, cross_entropy, fisher
from holdfast.methods._base import Learner
from holdfast.seeds import generator
from holdfast.types import Batch, Lesson

HIDDEN = 24


# A network that grows a column per task with frozen old weights (PNN)


class Columns(Growing):
    """Column t: h_t = ReLU(W x), y_t = V h_t + Σ_{j<t} U_j h_j."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.inputs, self.classes = inputs, classes

    def build(self, name: str) -> nn.Module:
        t = int(name.removeprefix("column"))
        laterals = nn.ModuleList(nn.Linear(HIDDEN, self.classes, bias=False) for _ in range(t))
        return nn.ModuleDict(
            {"hidden": nn.Linear(self.inputs, HIDDEN), "out": nn.Linear(HIDDEN, self.classes), "laterals": laterals}
        )

    def forward(self, x, t):
        h = [self.parts[f"column{j}"]["hidden"](x.flatten(1)).relu() for j in range(t + 1)]
        column = self.parts[f"column{t}"]
        return column["out"](h[t]) + sum(u(h[j]) for j, u in enumerate(column["laterals"]))


@final
@dataclass
class ProgressiveNet(Learner):
    needs_task = True

    def start(self, net, optimiser, info, rng):
        columns = Net(Columns(torch.zeros(info.shape).numel(), info.classes), device=net.device)
        super().start(columns, optimiser, info, rng)
        self.tasks = 0

    def observe(self, batch):
        if batch.task == self.tasks:
            self.net.freeze()
            self.net.grow(f"column{self.tasks}", seed=self.tasks)
            self.tasks += 1
        logits = self.net(batch.x, batch.task)
        return self.descend(cross_entropy(logits, batch.y, self.allowed(batch.task)))

    def predict(self, x, task):
        if task >= self.tasks:
            return torch.zeros(len(x), self.info.classes)
        with self.net.evaluating():
            return self.net(x, task)


# Bayesian weights with a coreset that is withheld, and trained on in a throw-away copy before scoring (VCL)


class BayesLinear(nn.Module):
    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.mean = nn.Parameter(torch.randn(n_out, n_in) / n_in**0.5)
        self.logvar = nn.Parameter(torch.full((n_out, n_in), -6.0))

    def forward(self, x, rng):
        noise = torch.randn(self.mean.shape, generator=rng)
        return x @ (self.mean + noise * (self.logvar / 2).exp()).T


class BayesNet(nn.Module):
    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.first, self.second = BayesLinear(inputs, HIDDEN), BayesLinear(HIDDEN, classes)

    def forward(self, x, rng):
        return self.second(self.first(x.flatten(1), rng).relu(), rng)


@final
@dataclass
class VariationalLearner(Learner):
    """β KL(q‖prior)/N + CE, prior = last posterior: over θ = (means, log-variances); β tempers so few rows."""

    coreset: int = 5

    def start(self, net, optimiser, info, rng):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            bayes = Net(BayesNet(torch.zeros(info.shape).numel(), info.classes))
        super().start(bayes, optimiser, info, rng)
        self.scoring = bayes.copy()  # what predicts
        self.prior = torch.zeros_like(bayes.theta.detach())  # N(0, 1)
        self.x, self.y = torch.zeros(0, *info.shape), torch.zeros(0, dtype=torch.long)
        self.rows = 1

    def begin(self, train, plan):
        if train is None:
            raise hf.BadInput("a coreset is drawn before the first step; use protocol 'epochs'")
        self.rows = len(train)
        core = torch.arange(self.coreset)
        batch = train.take(core)
        train.withhold(core)
        self.x, self.y = torch.cat([self.x, batch.x]), torch.cat([self.y, batch.y])

    def divergence(self, theta, prior):
        means, logvars = zip(
            *((self.net.unflatten(v)[f"{k}.mean"], self.net.unflatten(v)[f"{k}.logvar"])
              for v in (theta, prior) for k in ("first", "second")), strict=True,
        )  # fmt: skip
        m, s, m0, s0 = means[:2], logvars[:2], means[2:], logvars[2:]
        terms = zip(m, s, m0, s0, strict=True)
        return sum(0.5 * (b0 - b + (b.exp() + (a - a0) ** 2) / b0.exp() - 1).sum() for a, b, a0, b0 in terms)

    def observe(self, batch):
        loss = cross_entropy(self.net(batch.x, self.rng), batch.y, self.allowed(batch.task))
        return self.descend(loss + 0.01 * self.divergence(self.net.theta, self.prior) / self.rows)

    def finish(self, train):
        self.prior = self.net.theta.detach().clone()

    def ready(self):
        self.scoring.load(self.net.state())
        rng, step = torch.Generator().manual_seed(1), SGD(0.1)
        for _ in range(5 if len(self.y) else 0):
            self.scoring.zero_grad()
            cross_entropy(self.scoring(self.x, rng), self.y).backward()
            step.step(self.scoring)

    def predict(self, x, task):
        rng = torch.Generator().manual_seed(2)
        with self.scoring.evaluating():
            return torch.stack([self.scoring(x, rng).softmax(-1) for _ in range(3)]).mean(0).log()


# Two trained weight sets merged into one (IMM, mode)


@final
@dataclass
class ModeMatching(Learner):
    alpha: float = 0.5

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.seen = 0
        self.merged = net.theta.detach().clone()
        self.importance = torch.zeros_like(self.merged)

    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))

    def finish(self, train):
        batch = self.sample(train, 50)
        new, F = self.net.theta.detach().clone(), fisher(self.net, batch, self.allowed(batch.task)) + 1e-8
        if self.seen:
            a, b = (1 - self.alpha) * self.importance, self.alpha * F
            new, F = (a * self.merged + b * new) / (a + b), a + b
        self.merged, self.importance, self.seen = new, F, self.seen + 1
        self.net.set(new)


# Per-unit masks that block gradients (HAT)


@final
@dataclass
class UnitMasks(Learner):
    """Each task owns some hidden units of an MLP; weights into owned units are blocked for later tasks."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.open = torch.ones_like(net.theta.detach())  # (P,) 1: may learn
        self.done = 0

    def observe(self, batch):
        loss = self.backward(self.cross_entropy(batch))
        self.net.grad.mul_(self.open)
        self.optimiser.step(self.net)
        return loss

    def finish(self, train):
        views = self.net.unflatten(self.open)
        name = next(iter(views)).removesuffix(".weight")  # the first layer
        units = slice(4 * self.done, 4 * (self.done + 1))
        views[f"{name}.weight"][units] = 0
        views[f"{name}.bias"][units] = 0
        self.done += 1


# A generator trained beside the classifier (generative replay)


@final
@dataclass
class GeneratedReplay(Learner):
    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        pixels = torch.zeros(info.shape).numel()
        with torch.random.fork_rng():
            torch.manual_seed(0)
            self.generator = Net(nn.Sequential(nn.Linear(info.classes, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, pixels)))
        self.generator_optimiser = Adam(1e-2)
        self.old = self.generator.copy()
        self.classes = 0

    def observe(self, batch):
        labels, x = batch.y, batch.x
        if self.classes:
            past = torch.randint(self.classes, (len(batch),), generator=self.rng)
            with self.old.evaluating():
                x = torch.cat([x, self.old(self.code(past)).view(-1, *x.shape[1:])])
            labels = torch.cat([labels, past])
        self.generator.zero_grad()
        ((self.generator(self.code(labels)) - x.flatten(1)) ** 2).mean().backward()
        self.generator_optimiser.step(self.generator)
        return self.descend(cross_entropy(self.net(x), labels))

    def code(self, labels):
        return nn.functional.one_hot(labels, self.info.classes).float()

    def finish(self, train):
        self.old.load(self.generator.state())
        self.classes = int(train.y.max()) + 1


# A network that is a path through shared modules, and a protocol that tries paths and rolls back to the best (MNTDP)


class Modules(Growing):
    """Two layers; parts 'first-t' and 'second-t' are task t's own modules, free to be used by any path."""

    def __init__(self, inputs: int, classes: int) -> None:
        super().__init__()
        self.inputs, self.classes = inputs, classes

    def build(self, name: str) -> nn.Module:
        return nn.Linear(self.inputs, HIDDEN) if name.startswith("first") else nn.Linear(HIDDEN, self.classes)

    def forward(self, x, path):
        first, second = path
        return self.parts[second](self.parts[first](x.flatten(1)).relu())


@final
@dataclass
class Paths(Learner):
    needs_task = True

    def start(self, net, optimiser, info, rng):
        modules = Net(Modules(torch.zeros(info.shape).numel(), info.classes), device=net.device)
        super().start(modules, optimiser, info, rng)
        self.paths: list[list[str]] = []
        self.chosen: str | None = None

    def options(self, train):
        return ["new", *(f"reuse first-{t}" for t in range(len(self.paths)))]

    def choose(self, option):
        self.chosen = option

    def observe(self, batch):
        if batch.task == len(self.paths):
            self.open(batch.task)
        path = self.paths[batch.task]
        return self.descend(cross_entropy(self.net(batch.x, path), batch.y, self.allowed(batch.task)))

    def open(self, t):
        self.net.freeze()
        first = self.chosen.split()[1] if self.chosen not in (None, "new") else f"first-{t}"
        for part in (first, f"second-{t}"):
            if part not in self.net.module.parts:
                self.net.grow(part, seed=t)
        self.paths.append([first, f"second-{t}"])

    def predict(self, x, task):
        if task >= len(self.paths):
            return torch.zeros(len(x), self.info.classes)
        with self.net.evaluating():
            return self.net(x, self.paths[task])


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", scenario="task", val=0.2)


@pytest.mark.parametrize(
    "learner", [ProgressiveNet, VariationalLearner, ModeMatching, UnitMasks, GeneratedReplay, Paths]
)
def test_passes_every_contract(learner):
    check_learner(learner)


def test_grown_columns_forget_nothing_at_all(stream):
    record = hf.run(ProgressiveNet(), stream, protocol=hf.protocol("epochs", epochs=3))
    assert record.bwt == 0.0 and record.acc > 0.9
    assert sorted(record.resources["bytes"]) == record.resources["bytes"]  # a column per task


def test_the_coreset_is_withheld_from_training_and_found_by_the_audit(stream):
    record = hf.run(VariationalLearner(coreset=5), stream, protocol=hf.protocol("epochs", epochs=1, lr=0.05))
    assert record.card["no_old_data"]["value"] == 5 * len(stream)
    assert record.card["single_pass"]["value"] == 1.0  # 5 rows read as a coreset, and not shown again


def test_the_posterior_is_untouched_by_the_throw_away_copy(stream):
    learner = VariationalLearner()
    net = Net(hf.net("mlp").build(stream.info))
    learner.start(net, SGD(0.1), stream.info, generator(0))
    learner.begin(Lease(0, stream.tasks[0].train, stream.tasks[0].val), Lesson(30, 1, 10))
    before = learner.net.state()["theta"]
    learner.ready()
    assert torch.equal(before, learner.net.state()["theta"])
    assert not torch.equal(before, learner.scoring.state()["theta"])


def test_merged_weights_lie_between_the_two_solutions(stream):
    learner = ModeMatching()
    net = Net(hf.net("mlp", hidden=(8,)).build(stream.info))
    learner.start(net, SGD(0.1), stream.info, generator(0))
    solutions = []
    for task in stream.tasks[:2]:
        batch = Batch(task.train.x(), task.train.y, task.t)
        for _ in range(5):
            learner.observe(batch)
        solutions.append(learner.net.theta.detach().clone())
        learner.finish(Lease(task.t, task.train, task.val))
    low, high = torch.minimum(*solutions), torch.maximum(*solutions)
    assert ((learner.net.theta >= low - 1e-6) & (learner.net.theta <= high + 1e-6)).all()


def test_blocked_units_keep_their_weights_bit_for_bit(stream):
    learner = UnitMasks()
    net = Net(hf.net("mlp", hidden=(16,)).build(stream.info))
    learner.start(net, SGD(0.1), stream.info, generator(0))
    weight = next(iter(net.unflatten(net.theta.detach()).values()))  # a view
    for task in stream.tasks[:2]:
        before = weight.clone()
        learner.observe(Batch(task.train.x(), task.train.y, task.t))
        assert torch.equal(before[: 4 * task.t], weight[: 4 * task.t])
        assert not torch.equal(before[4 * task.t :], weight[4 * task.t :])
        learner.finish(Lease(task.t, task.train, task.val))


def test_generated_rows_are_not_mistaken_for_old_data():
    stream = hf.stream("split")
    record = hf.run(GeneratedReplay(), stream, protocol=hf.protocol("epochs", epochs=3))
    assert record.card["no_old_data"]["met"]
    assert record.acc > hf.run("finetune", stream, protocol=hf.protocol("epochs", epochs=3)).acc + 0.1


def test_options_are_tried_scored_on_validation_data_and_rolled_back(stream):
    protocol = hf.protocol("crossval", optimiser="sgd", lr=(0.1,), decay=(0.0,), epochs=10, batch=10)
    record = hf.run(Paths(), stream, protocol=protocol)
    assert record.bwt == 0.0 and record.acc > 0.9
    # Task t has t + 1 options, all of which are trials; the losers leave no module behind.
    tried = [row["task"] for row in record.study["trials"]]
    assert [tried.count(t) for t in range(5)] == [1, 2, 3, 4, 5]
    assert record.settings["option"]["chosen_by"] == "val:task"
    largest = 4 * len(stream) * (65 * HIDDEN + (HIDDEN + 1) * 10)
    assert record.resources["bytes"][-1] <= largest * 1.5
