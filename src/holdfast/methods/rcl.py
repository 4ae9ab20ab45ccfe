"""Reinforced continual learning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor, nn

from holdfast.audit.lease import Lease
from holdfast.engine import Adam, Net, Optimiser
from holdfast.methods._base import Option, Rung
from holdfast.methods._widening import Widens
from holdfast.seeds import seeded
from holdfast.settings import Count, NonNegative, Positive
from holdfast.types import StreamInfo


@final
@dataclass
class RCL(Widens):
    """Reinforced continual learning (Xu & Zhu, 2018): how many units a task adds is learned by trying.

        a ~ π(a) = Π_l π(a_l | a_1 … a_{l−1}),   R(a) = accuracy on validation rows − α Σ_l a_l
        φ ← φ + ε (R(a) − V) ∇ log π(a),   V the mean reward so far;   the a of the best validation accuracy is taken

    An LSTM with weights φ says for one hidden layer after the other how many units to add, 0 to `most`. Only what is
    new is trained, outputs included; what was there is frozen, and older tasks do not see what came later: nothing is
    forgotten. A protocol that selects (`crossval`) makes the trials, and the first task needs none. Elsewhere the first
    draw is taken.

    Departures: 1. V is what a critic of a constant state, as the authors' is, comes to in the end. 2. The LSTM reads
    its last answer, and begins anew with every task. 3. The protocol takes the best accuracy, not the best reward; they
    differ by α per unit. 4. Outputs begin as torch's layers do; in the authors' code with deviation 1.

    >>> import holdfast as hf
    >>> record = hf.run("rcl", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    trials: Count = 50  # per task
    most: Count = 29  # units that a layer may gain
    price: NonNegative = 1e-4  # α: of a unit, in accuracy
    hidden: Count = 100  # units of the controller's two layers
    rate: Positive = 1e-3  # ε: Adam's, of the controller

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        super().start(net, optimiser, info, rng)
        with seeded(self._seed()):
            self.controller = Net(Controller(self.most + 1, self.hidden).to(net.device))
        self.teacher = Adam(self.rate)
        self.rewards: list[float] = []  # of the task's trials
        self.action: list[int] = []  # that is to be tried; none: the next draw

    def options(self, train: Lease) -> Sequence[Option | Rung]:
        if self.module.of(f"task{train.task}"):
            return [None]
        with seeded(self._seed()):
            self.controller.set(Net(Controller(self.most + 1, self.hidden)).theta.detach())
        self.teacher.reset()
        self.rewards = []
        return [written(self.draw())]

    def more_options(self, train: Lease, tried: Sequence[tuple[Option | Rung, float]]) -> Sequence[Option | Rung]:
        option, accuracy = tried[-1]
        if not isinstance(option, str):
            return []
        action = read(option)
        self.reinforce(action, reward(accuracy, action, self.price))
        return [written(self.draw())] if len(tried) < self.trials else []

    def choose(self, option: Option) -> None:
        self.action = [] if option is None else read(option)

    def enter(self, task: int) -> str:
        """New units and outputs; all else is frozen."""
        self.net.freeze()
        part = self.widen(task, self.action or self.draw())
        self.action = []
        return part

    def draw(self) -> list[int]:
        """a ~ π"""
        action: list[int] = []
        for i in range(self.module.depth):
            with torch.no_grad():
                odds = self.controller(torch.tensor([*action, 0], device=self.net.device))[i].exp()
            action.append(int(torch.multinomial(odds.cpu(), 1, generator=self.rng)))
        return action

    def reinforce(self, action: list[int], gained: float) -> None:
        """One step up (R − V) log π(a). A reward that is not finite, of a trial that failed, teaches nothing."""
        if not gained > -torch.inf:
            return
        self.rewards.append(gained)
        surplus = gained - sum(self.rewards) / len(self.rewards)
        taken = torch.tensor(action, device=self.net.device)
        self.controller.zero_grad()
        loss = -surplus * self.controller(taken).gather(1, taken[:, None]).sum()
        loss.backward()  # type: ignore[no-untyped-call]
        self.teacher.step(self.controller)

    def numbers_kept(self, tasks: int) -> int:
        """With the controller."""
        return super().numbers_kept(tasks) + self.controller.size

    def _seed(self) -> int:
        return int(torch.randint(2**62, (), generator=self.rng))


class Controller(nn.Module):
    """log π(a_l = n | a_1 … a_{l−1}), (L, choices), of an action (L,); its last entry is not read."""

    def __init__(self, choices: int, hidden: int) -> None:
        super().__init__()
        self.said = nn.Embedding(choices + 1, hidden)  # the last answer; 0: none yet
        self.lstm = nn.LSTM(hidden, hidden, num_layers=2)
        self.say = nn.Linear(hidden, choices)

    def forward(self, action: Tensor) -> Tensor:
        last = torch.cat([action.new_zeros(1), action[:-1] + 1])
        return self.say(self.lstm(self.said(last)[:, None])[0][:, 0]).log_softmax(-1)  # type: ignore[no-any-return]


def reward(accuracy: float, action: list[int], price: float) -> float:
    """R(a)"""
    return accuracy - price * sum(action)


def written(action: list[int]) -> str:
    return " ".join(map(str, action))


def read(option: str) -> list[int]:
    """
    >>> read(written([4, 2]))
    [4, 2]
    """
    return [int(n) for n in option.split()]
