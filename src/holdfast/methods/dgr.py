"""Deep generative replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Adam, Net, Optimiser, cross_entropy, restrict
from holdfast.methods._base import Learner
from holdfast.methods._generators import Autoencoder
from holdfast.seeds import seeded
from holdfast.settings import Count, Positive
from holdfast.types import Batch, Lesson, StreamInfo


@final
@dataclass
class DGR(Learner):
    """Deep generative replay (Shin et al., 2017), in the form of van de Ven & Tolias (2018).

        L(θ) = 1/t · CE(θ; x, y) + (1 − 1/t) · CE(θ; x', y'),   x' ~ G',  y' = argmax f'(x')

    t counts the tasks, x' are rows that the generator G' of the tasks before makes, and y' what the network f' of the
    tasks before says they are. The generator G learns by the same steps from the same rows, its own loss shared out
    in the same way; when the task is over, G' and f' become copies of G and the network.

    Departures from Shin et al.: 1. G is a variational autoencoder of perceptrons, where theirs is adversarial. 2. y'
    are classes among those seen. 3. In the task scenario outputs are masked only to predict, as a made row does not
    say which task it is of.

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=100, test_examples=50)
    >>> record = hf.run("dgr", stream, protocol=hf.protocol("epochs", epochs=20), seed=0)
    >>> record.card["no_old_data"]["value"], record.acc > 0.6  # finetune: 0.5
    (0, True)
    """

    replay: Count | None = None  # made rows per step; none: as many as the batch has
    hidden: tuple[Count, ...] = (400, 400)  # units of the generator's encoder, and in reverse of its decoder
    latent: Count = 100  # numbers that a row is made of
    generator_lr: Positive = 1e-3  # Adam's

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        with seeded(int(torch.randint(2**62, (), generator=rng))):
            made = Autoencoder(info.shape, self.hidden, self.latent)
        self.generator, self.generator_optimiser = Net(made.to(net.device)), Adam(self.generator_lr)
        self.before, self.generator_before = net.copy(), self.generator.copy()  # f', G'
        self.seen = torch.zeros(info.classes, dtype=torch.bool, device=net.device)  # classes that f' knows
        self.tasks = 0  # t

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        self.tasks += 1

    def observe(self, batch: Batch) -> Tensor:
        made = self._made(self.replay or len(batch)) if self.tasks > 1 else None
        self.generator.module.range.widen(batch.x)  # type: ignore[union-attr,operator]
        self.generator.zero_grad()
        own = self.generator(batch.x, self.rng)
        loss = cross_entropy(self.net(batch.x), batch.y)
        if made is not None:
            old = 1 - 1 / self.tasks
            own = torch.lerp(own, self.generator(made.x, self.rng), old)
            loss = torch.lerp(loss, cross_entropy(self.net(made.x), made.y), old)
        own.backward()  # type: ignore[no-untyped-call]
        self.generator_optimiser.step(self.generator)
        return self.descend(loss) + 0 * own.detach()  # where either is not finite, the run ends

    def finish(self, train: Lease) -> None:
        self.before.load(self.net.state())
        self.generator_before.load(self.generator.state())
        self.seen[train.y.unique()] = True

    def _made(self, n: int) -> Batch:
        with self.generator_before.evaluating(), self.before.evaluating():
            x = self.generator_before.module.rows(n, self.rng)  # type: ignore[operator]
            return Batch(x, restrict(self.before(x), self.seen).argmax(-1))
