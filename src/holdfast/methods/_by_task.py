"""What methods share whose network has a part for each task."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn

from holdfast.audit.lease import Lease
from holdfast.engine import Growing, Net, Optimiser, cross_entropy
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.nets._modules import modules_of
from holdfast.types import Batch, Lesson, StreamInfo

FIRST, LAST = 0, -1  # which of its modules a task has for itself


class ByTask(Learner):
    """The task says which part of a growing network answers. A task not seen yet is not guessed: it has none."""

    needs_task = True

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        if train is not None:  # else the first batch says which task it is
            self._open(f"task{train.task}")

    def observe(self, batch: Batch) -> Tensor:
        part = f"task{batch.task}"
        self._open(part)
        logits = self.net(batch.x, part)
        return self.descend(cross_entropy(logits, batch.y, self.allowed(batch.task)))

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        part = f"task{task}"
        if part not in self.parts():
            return torch.zeros(len(x), self.info.classes, device=x.device)
        with self.net.evaluating():
            return self.net(x, part)

    def parts(self) -> list[str]:
        return list(self.net.module.parts)  # type: ignore[arg-type]

    @abstractmethod
    def leave(self, part: str) -> None:
        """The task that has this part is over, and another begins: freeze what stays as it is."""

    def enter(self, part: str) -> None:
        """A task without a part begins, and gets one."""
        self.net.grow(part, seed=int(torch.randint(2**62, (), generator=self.rng)))

    def _open(self, part: str) -> None:
        if part not in self.parts():
            for last in self.parts()[-1:]:
                self.leave(last)
            self.enter(part)


class Branching(ByTask):
    """A network of which each task has one module for itself, the first or the last; all others are shared."""

    own: int
    freeze: bool

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given, as under methods that share all of it."""
        grown = Branches(net.module, net.build, self.own, first="task0")
        super().start(Net(grown, device=net.device), optimiser, info, rng)

    def leave(self, part: str) -> None:
        self.net.freeze(None if self.freeze else part)


class Branches(Growing):
    """A stack of modules of which one, the first or the last, exists once per part."""

    def __init__(self, module: nn.Module, make: Callable[[], nn.Module], own: int, first: str | None = None) -> None:
        """`first`: the part that has the module's own; without it the first to grow is new, too."""
        super().__init__()
        self.make, self.own = make, own
        modules = modules_of(module)
        if len(modules) < 2:
            raise BadInput("a network of one module cannot be shared in part; try net 'mlp' with a hidden layer")
        mine = modules.pop(own)
        self.shared = nn.Sequential(*modules)
        if first is not None:
            self.parts[first] = mine

    def build(self, name: str) -> nn.Module:
        return modules_of(self.make())[self.own]

    def forward(self, x: Tensor, part: str) -> Tensor:
        if self.own == FIRST:
            return self.shared(self.parts[part](x))  # type: ignore[no-any-return]
        return self.parts[part](self.shared(x))  # type: ignore[no-any-return]
