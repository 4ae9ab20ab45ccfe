"""Perceptrons whose hidden layers gain units as tasks come."""

from __future__ import annotations

import copy
import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.audit.lease import Lease
from holdfast.engine import Growing, Net, Optimiser, cross_entropy, repeat
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.seeds import beside
from holdfast.types import Batch, Lesson, StreamInfo


def _nothing() -> None: ...


class Piece(NamedTuple):
    """Weights from some units to some units of the layer above, or biases."""

    weight: nn.Parameter
    layer: int
    out: slice
    read: slice | None  # none: biases


class Weights(NamedTuple):
    """What a part has."""

    layers: list[tuple[Tensor, Tensor, Tensor]]  # rows, columns, biases
    head: Tensor


Moving = tuple[nn.Parameter, Tensor | bool]  # weights, and which of them move


class Widening(Growing):
    """A perceptron of which every part has some units of each hidden layer, and outputs of a task.

        W_l^p = [ W_l^{p−1}  cols_l^p ; rows_l^p ]

    New units read all units of the layer below, and are read by all of the layer above. A task sees what was there when
    it was learned: parts up to its last. Parts are called "task3 1 4 2": the second part of task 3, 4 and 2 units.
    """

    def __init__(self, module: nn.Module, first: str = "task0 0") -> None:
        super().__init__()
        layers = [m for m in module.modules() if isinstance(m, nn.Linear)]
        known = (nn.Sequential, nn.Flatten, nn.Linear, nn.ReLU)
        if len(layers) < 2 or not all(type(m) in known for m in module.modules()):
            raise BadInput("only a plain perceptron with a hidden layer can gain units one by one; try net 'mlp'")
        *hidden, head = layers
        self.inputs, self.classes = hidden[0].in_features, head.out_features
        self.depth = len(hidden)
        name = " ".join([first, *(str(len(m.weight)) for m in hidden)])
        self.parts[name] = self.build(name)
        mine = self.units(name)
        with torch.no_grad():
            for i, m in enumerate(hidden):
                mine.rows[i].copy_(m.weight)
                mine.biases[i].copy_(m.bias)
            mine.head.copy_(head.weight)
            mine.head_bias.copy_(head.bias)

    def build(self, name: str) -> Units:
        task, _, *new = name.split()
        seen = [self.inputs, *(sum(sizes(part)[i] for part in self.parts) for i in range(self.depth))]
        return Units(seen, [0, *map(int, new)], self.classes, whole=not self.of(task))

    def units(self, part: str) -> Units:
        return cast(Units, self.parts[part])

    def of(self, task: str) -> list[str]:
        """The parts of a task."""
        return [part for part in self.parts if part.split()[0] == task]

    def earlier(self) -> list[str]:
        """The parts of the tasks before the last."""
        *_, last = self.parts
        return [part for part in self.parts if part.split()[0] != last.split()[0]]

    def up_to(self, part: str) -> list[str]:
        names = list(self.parts)
        return names[: names.index(part) + 1]

    def forward(self, x: Tensor, part: str) -> Tensor:
        h, names, mine = x.flatten(1), self.up_to(part), [self.units(name) for name in self.of(part.split()[0])]
        for i in range(self.depth):
            h = F.relu(F.linear(h, self.matrix(i, names), torch.cat([self.units(name).biases[i] for name in names])))
        return F.linear(h, torch.cat([units.head for units in mine], 1), mine[0].head_bias)

    def matrix(self, layer: int, names: Sequence[str]) -> Tensor:
        """W_l as these parts have it."""
        W = self.units(names[0]).rows[layer]
        for units in (self.units(name) for name in names[1:]):
            W = torch.cat([torch.cat([W, units.cols[layer]], 1), units.rows[layer]])
        return W

    def pieces(self, names: Sequence[str]) -> Iterator[Piece]:
        """All weights and biases of these parts, which are the first, but for outputs."""
        seen = [self.inputs] + [0] * self.depth
        for name in names:
            units, new = self.units(name), [0, *sizes(name)]
            for i in range(self.depth):
                mine, now = slice(seen[i + 1], seen[i + 1] + new[i + 1]), seen[i] + new[i]
                yield Piece(units.rows[i], i, mine, slice(0, now))
                yield Piece(units.cols[i], i, slice(0, seen[i + 1]), slice(seen[i], now))
                yield Piece(units.biases[i], i, mine, None)
            seen = [a + b for a, b in zip(seen, new, strict=True)]

    def counts(self, part: str) -> list[int]:
        """Units of each layer up to this part."""
        return [sum(sizes(name)[i] for name in self.up_to(part)) for i in range(self.depth)]

    def outputs(self, part: str) -> list[Moving]:
        """The outputs of the part's task, all of which move."""
        mine = [self.units(name) for name in self.of(part.split()[0])]
        return [*((units.head, True) for units in mine), (mine[0].head_bias, True)]

    def between(self, part: str, chosen: Sequence[Tensor]) -> list[Moving]:
        """What joins chosen units, which are given per layer as (N_l,) bool, up to this part."""
        layers = [torch.ones(self.inputs, dtype=torch.bool), *(units.cpu() for units in chosen)]
        return [
            (w, layers[i + 1][out] if read is None else layers[i + 1][out][:, None] & layers[i][read])
            for w, i, out, read in self.pieces(self.up_to(part))
        ]

    def some(self, part: str, kept: Sequence[Tensor]) -> Weights:
        """What a part has of these of its units, per layer (n_l,) bool."""
        units, below, found = self.units(part), [torch.ones(0, dtype=torch.bool), *kept], []
        for rows, cols, biases, mine, read in zip(units.rows, units.cols, units.biases, kept, below, strict=False):
            old = torch.ones(rows.shape[1] - len(read), dtype=torch.bool)
            found.append((rows[mine][:, torch.cat([old, read.cpu()])], cols[:, read], biases[mine]))
        return Weights(found, units.head[:, kept[-1]])

    def twins(self, part: str, split: Sequence[Tensor]) -> Weights:
        """Second copies of units, per layer (n_l,) places. They take the units' place in each other and in the task's
        outputs; others read them with weight 0."""
        names, found = self.up_to(part), []
        below = torch.zeros(0, dtype=torch.long)
        for i, mine in enumerate(split):
            W = self.matrix(i, names).detach().clone()
            biases = torch.cat([self.units(name).biases[i] for name in names])[mine]
            rows = torch.cat([W[mine], W[mine][:, below]], 1)
            rows[:, below] = 0
            found.append((rows, W.new_zeros(len(W), len(below)), biases))
            below = mine
        head = self.units(self.of(part.split()[0])[0]).head
        taken = head.detach()[:, below].clone()
        head.data[:, below] = 0
        return Weights(found, taken)

    @torch.no_grad()
    def write(self, part: str, weights: Weights) -> None:
        units = self.units(part)
        for i, values in enumerate(weights.layers):
            for w, value in zip((units.rows[i], units.cols[i], units.biases[i]), values, strict=True):
                w.copy_(value)
        units.head.copy_(weights.head)


class Units(nn.Module):
    """What a part has: `new` units of each layer, beside those `seen` there; the inputs come first."""

    def __init__(self, seen: Sequence[int], new: Sequence[int], classes: int, whole: bool) -> None:
        """`whole`: outputs that read all units, as a task's first part has them; else only the new ones."""
        super().__init__()
        reads = [a + b for a, b in zip(seen, new, strict=True)]
        layers = range(1, len(seen))
        self.rows = nn.ParameterList(_drawn(new[i], reads[i - 1], reads[i - 1]) for i in layers)
        self.cols = nn.ParameterList(_drawn(seen[i], new[i - 1], reads[i - 1]) for i in layers)
        self.biases = nn.ParameterList(_drawn(new[i], 1, reads[i - 1])[:, 0] for i in layers)
        self.head = nn.Parameter(_drawn(classes, reads[-1] if whole else new[-1], reads[-1]))
        if whole:
            self.head_bias = nn.Parameter(_drawn(classes, 1, reads[-1])[:, 0])


class Widens(Learner):
    """A learner that answers with the part of the network that was there when the task was learned."""

    needs_task = True

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given."""
        super().start(Net(Widening(net.module).to(net.device)), optimiser, info, rng)

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        if train is not None:
            self.open(train.task)

    def observe(self, batch: Batch) -> Tensor:
        assert isinstance(batch.task, int)
        return self.descend(cross_entropy(self.net(batch.x, self.open(batch.task)), batch.y, self.allowed(batch.task)))

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        if not (mine := self.module.of(f"task{task}")):
            return torch.zeros(len(x), self.info.classes, device=x.device)
        with self.net.evaluating():
            return self.net(x, mine[-1])

    @property
    def module(self) -> Widening:
        assert isinstance(self.net.module, Widening)
        return self.net.module

    def open(self, task: int) -> str:
        """The last part of a task, which gets one if it has none."""
        mine = self.module.of(f"task{task}")
        return mine[-1] if mine else self.enter(task)

    @abstractmethod
    def enter(self, task: int) -> str:
        """A task without a part begins, and gets one."""

    def move(self, moving: Sequence[Moving]) -> None:
        """These weights move, and no others."""
        frozen = torch.ones(self.net.size, dtype=torch.bool, device=self.net.device)
        views = self.views(frozen)
        for w, which in moving:
            views[id(w)].logical_and_(~torch.as_tensor(which, device=frozen.device))
        self.net.frozen = frozen

    def views(self, vector: Tensor) -> dict[int, Tensor]:
        """Of a (P,) vector what each parameter has, by its id."""
        named = self.net.unflatten(vector)
        return {id(p): named[name] for name, p in self.net.module.named_parameters()}

    def practise(
        self,
        train: Lease,
        steps: int,
        batch: int,
        first: Callable[[], None] = _nothing,
        then: Callable[[], None] = _nothing,
    ) -> None:
        """Steps beside the protocol's, on random rows; `first` and `then` are done before and after each goes down."""
        part, rows = self.open(train.task), train.kept()
        optimiser, rng = copy.deepcopy(self.optimiser), beside(self.rng, part)
        optimiser.reset()

        def step(i: int) -> Tensor:
            drawn = train.take(rows[torch.randint(len(rows), (batch,), generator=rng)])
            loss = self.backward(cross_entropy(self.net(drawn.x, part), drawn.y, self.allowed(train.task)))
            first()
            optimiser.step(self.net)
            then()
            return loss

        repeat(steps, step, f"a stage of {part}")

    def loss_on(self, train: Lease) -> float:
        """CE on all rows of the task."""
        with self.net.evaluating():
            return float(cross_entropy(self.predict(train.x, train.task), train.y, self.allowed(train.task)))

    def widen(self, task: int, new: Sequence[int]) -> str:
        """Another part of a task, with so many units of each layer."""
        part = " ".join([f"task{task}", str(len(self.module.of(f"task{task}"))), *map(str, new)])
        self.net.grow(part, seed=int(torch.randint(2**62, (), generator=self.rng)))
        return part


def sizes(part: str) -> list[int]:
    """
    >>> sizes("task3 1 4 2")
    [4, 2]
    """
    return [int(n) for n in part.split()[2:]]


def shrink(w: Tensor, by: float) -> None:
    """|w| ← max(|w| − by, 0)"""
    w.data.copy_(F.softshrink(w.data, by))


def _drawn(out: int, read: int, fan_in: int) -> Tensor:
    """As torch's linear layers begin."""
    return torch.empty(out, read).uniform_(-1, 1) / math.sqrt(max(fan_in, 1))
