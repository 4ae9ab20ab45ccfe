"""A method and a network of your own. Run me: python examples/own_method.py"""

from dataclasses import dataclass

import torch
from torch import nn

import holdfast as hf
from holdfast.checks import check_learner


@dataclass
class Leash(hf.Learner):
    """Stay near the weights the last task left: L(θ) = CE(θ) + λ/2 · ‖θ − θ*‖²."""

    strength: float = 0.1  # λ

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.anchor = None  # θ*, (P,)

    def observe(self, batch):
        loss = self.cross_entropy(batch)
        if self.anchor is not None:
            loss = loss + self.strength / 2 * ((self.net.theta - self.anchor) ** 2).sum(-1)
        return self.descend(loss)

    def finish(self, train):
        self.anchor = self.net.theta.detach().clone()


class Wide(nn.Module):
    """Any module from a batch to logits; `info` has the shapes."""

    def __init__(self, info):
        super().__init__()
        self.inner = nn.Linear(torch.Size(info.shape).numel(), 300)
        self.outer = nn.Linear(300, info.classes)

    def forward(self, x):
        return self.outer(torch.tanh(self.inner(x.flatten(1))))


if __name__ == "__main__":
    check_learner(Leash)  # the contracts that our own methods pass
    stream = hf.stream("rotated", data="digits", tasks=5)
    record = hf.run(Leash(strength=0.3), stream, net=Wide, seed=0)
    print(record.R.round(2), record.acc, record.bwt)
    print(hf.compare([Leash(strength=0.3), "finetune", "gem"], stream, seeds=3, net=Wide))
