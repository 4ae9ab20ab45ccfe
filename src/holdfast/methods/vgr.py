"""Variational generative replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, Optimiser, cross_entropy, repeat
from holdfast.errors import BadInput, RunFailed
from holdfast.methods._base import Learner
from holdfast.methods._generators import Generators, Kind, contest, discriminator, made_rows, refuse_shape
from holdfast.nets._base import dropout_samples, drops
from holdfast.nets.bayes import bayesian, descend_divergence
from holdfast.seeds import beside, seeded
from holdfast.settings import Count, Positive
from holdfast.types import Batch, Lesson, StreamInfo


@final
@dataclass
class VGR(Learner):
    """Variational generative replay (Farquhar & Gal, 2018; paper 001, appendix C and Algorithm 1).

        L(θ) = 1/S Σ_s CE(w_s; D_T ∪ G) + KL(q_θ ‖ N(0, 1)) / (N T),   w_s ~ q_θ

    D_T are the rows of the task, G rows that generators made of the classes of all tasks before, N T how many both are.
    A generative adversarial network per task and class is trained when the task is over, and is all that stays of it.
    Every task begins from the weights that the last one left. G is drawn anew for each task; a step has a batch of D_T
    and as much of G as makes one pass over G of a pass over D_T. In the task scenario outputs are masked only to
    predict (C.6). What takes the place of the KL with dropout is ‖θ‖² / 2, that of a narrow q.
    G is kept until the next task begins, and counts as memory.

    Departures: 1. Generators have 16 channels, 1,500 steps at most; the paper's have 64 and 50 passes, 9,400 steps on
    a class of MNIST. With 2,000 rows of each class and 10 epochs it is 0.91 on Split MNIST; the paper, with 6,000 and
    120, has 0.96, and 0.90 when short. 2. Rows of G are drawn with replacement in place of shuffled passes. 3. With
    dropout the paper adds 0.01 ‖θ‖² (C.8.1): the protocol's `decay` of 0.02. The paper does not say what the
    discriminator, the latent size and the generators' batch are.

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=100, test_examples=50)
    >>> record = hf.run(hf.method("vgr", generator_steps=50, test_samples=5), stream, net="bayes", seed=0)
    >>> record.card["no_old_data"]["value"], record.resources["bytes"][1] > record.resources["bytes"][0]
    (0, True)
    """

    classifier: Literal["bayes", "dropout"] = "bayes"  # where uncertainty comes from: weights, or dropout of units
    samples: Count = 1  # S: draws of the weights per step
    test_samples: Count = 100  # draws of the weights, or of units, per prediction
    real: Count | None = None  # rows of each class that are learned; none: all
    replay: Count | None = None  # made rows of each past class; none: as many as were learned (paper: 6000)
    generator: Kind = "conv"  # for images whose sides are multiples of 4, or dense
    width: Count = 16  # channels of its maps (paper: 64); dense: 256-512-1024 units
    latent: Count = 100  # numbers that a row is made of
    generator_steps: Count = 1500  # of each generator at most
    generator_epochs: Count = 50  # passes of each generator over the rows of its class at most (paper: 50, dense: 200)
    generator_batch: Count = 32  # rows per step of a generator
    generator_lr: Positive = 2e-4  # Adam's, with β₁ 0.5

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        refuse_shape(info.shape, self.generator, "vgr")
        super().start(self._classifier(net), optimiser, info, rng)
        made = Generators(info.shape, self.generator, self.width, self.latent)
        self.generators = Net(made, device=net.device)
        self.learned: dict[str, tuple[int, int]] = {}  # by generator: its class, and how many rows of it were learned
        self.rows = 1  # of D_T
        self.made_x = torch.zeros(0, *info.shape, dtype=torch.half, device=net.device)  # G
        self.made_y = torch.zeros(0, dtype=torch.long, device=net.device)

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        self.rows = -(-plan.steps // plan.epochs) * plan.batch if train is None else len(train)
        if self.real is not None:
            if train is None:
                raise RunFailed("real of method 'vgr' keeps rows out of training, which a single pass does not allow")
            order = torch.randperm(len(train), generator=self.rng)
            groups = [order[train.y[order].cpu() == c] for c in train.y.unique().tolist()]
            train.withhold(torch.cat([group[self.real :] for group in groups]))
            self.rows = len(train.kept())
        x, y = [self.made_x[:0]], [self.made_y[:0]]
        for part, (label, learned) in self.learned.items():
            rows = made_rows(self.generators, part, self.replay or learned, self.rng)
            x.append(rows.half())  # finer than bytes, in half the memory
            y.append(self.made_y.new_full((len(rows),), label))
        self.made_x, self.made_y = torch.cat(x), torch.cat(y)

    def observe(self, batch: Batch) -> Tensor:
        n = round(len(batch) * len(self.made_y) / self.rows)
        index = torch.randint(max(len(self.made_y), 1), (n,), generator=self.rng).to(self.made_y.device)
        x, y = torch.cat([batch.x, self.made_x[index].float()]), torch.cat([batch.y, self.made_y[index]])
        return self.learn(x, y, 1 / (self.rows + len(self.made_y)))

    def learn(self, x: Tensor, y: Tensor, share: float) -> Tensor:
        """One step on L, the KL by its share; gives the first term."""
        if self.classifier == "dropout":
            loss = self.net.collect(x, y)
            for span in self.net.moving:
                span.grad.add_(span.theta, alpha=share)
        else:
            self.net.zero_grad()
            loss = cross_entropy(self.net(x, self.samples, self.rng).flatten(0, 1), y.repeat(self.samples))
            loss.backward()  # type: ignore[no-untyped-call]
            standard = torch.zeros(2, device=x.device)  # N(0, 1), for all weights
            descend_divergence(self.net.grad, self.net.theta, standard, share)
        self.optimiser.step(self.net)
        return loss.detach()

    def finish(self, train: Lease) -> None:
        for label in train.y.unique().tolist():
            part, rows = f"task{train.task}class{label}", (train.y.cpu() == label).nonzero().flatten()
            self.learned[part] = label, min(len(rows), self.real or len(rows))
            self._train_generator(train, part, rows)

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        rng = beside(self.rng, "predictions")  # the same draws for all rows
        with self.net.evaluating():
            if self.classifier == "dropout":
                return dropout_samples(self.net.module, x, self.test_samples, rng)
            return self.net(x, self.test_samples, rng)

    def _train_generator(self, train: Lease, part: str, rows: Tensor) -> None:
        steps = min(self.generator_steps, self.generator_epochs * -(-len(rows) // self.generator_batch))
        seed = int(torch.randint(2**62, (), generator=self.rng))
        self.generators.grow(part, seed)
        self.generators.module.range(part).widen(train.take(rows).x)  # type: ignore[operator]
        with seeded(seed + 1):
            critic = Net(discriminator(self.info.shape, self.generator, self.width).to(self.net.device))

        def real(n: int) -> Tensor:
            return train.take(rows[torch.randint(len(rows), (n,), generator=self.rng)]).x

        step = contest(self.generators, part, critic, real, self.generator_batch, self.generator_lr, self.rng)
        repeat(steps, step, f"the generator of class {self.learned[part][0]}")
        self.generators.freeze(part)

    def _classifier(self, net: Net) -> Net:
        who = f"classifier {self.classifier!r} of method 'vgr'"
        if self.classifier == "dropout":
            if not drops(net.module):
                raise BadInput(f"{who} needs a network with dropout: net 'mlp' or 'conv' with dropout=0.25")
            return net
        module = bayesian(net.module)
        if module is None:
            raise BadInput(f"{who} needs a perceptron without dropout: net 'bayes', or 'mlp'")
        return net if module is net.module else Net(module.to(net.device))
