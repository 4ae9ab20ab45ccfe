"""What methods share whose networks are paths through a library of modules (paper 000)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Self
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.audit.lease import Lease
from holdfast.engine import Growing, Net, Optimiser, State
from holdfast.errors import BadInput
from holdfast.methods._base import Learner
from holdfast.nets._modules import modules_of
from holdfast.types import Lesson, StreamInfo

ROWS = 1000  # of the training and of the validation rows among which neighbours are looked for, at most
CHUNK = 250  # rows that go through a past network at once
TILES = 4  # per side, of feature maps that are looked at as a whole

TOGETHER = 16  # past networks whose features are held at once
ROOM = 256 * 2**20  # bytes that the outputs of one module may take for all rows of a task

Path = list[int]  # per layer the task that made its module
Trunk = tuple[int, ...]  # the beginning of a path


class Modular(Learner):
    """Networks are paths through a library of modules. A task adds those of its path that are new, and what is in the
    library never changes again.

    Paths branch to the right (paper 000 §4.2): the first modules are those of an earlier path, the others are new.
    """

    needs_task = True
    not_state = (*Learner.not_state, "make", "net")  # the library's state: see `state`

    prior: Literal["nearest", "random"]
    neighbours: int

    fresh: Net  # the new modules of the task at hand
    paths: list[Path]  # of the tasks that are over
    path: Path  # of the task at hand; empty: not chosen yet
    begun: bool  # the path at hand has its modules
    scores: list[float]  # of the past paths, on the task at hand
    seed: int  # of its new modules: all candidates begin with the same

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given, as under methods that share all of it."""
        modules = modules_of(net.module)
        if len(modules) < 2:
            raise BadInput("a network of one module cannot be shared in part; try net 'mlp' with a hidden layer")
        self.make, self.layers = net.build, len(modules)
        self.sizes = [sum(p.numel() for p in module.parameters()) for module in modules]
        self.fresh = Net(Tails(net.build, {tail_name(0, 0): modules}), device=net.device)
        self.paths, self.path, self.begun, self.scores, self.seed = [], [0] * len(modules), True, [], 0
        super().start(Net(Tails(net.build), device=net.device), optimiser, info, rng)  # the library

    @property
    def task(self) -> int:
        """The one at hand."""
        return len(self.paths)

    @property
    def depth(self) -> int:
        """How many modules the path at hand has from earlier ones."""
        return sum(maker != self.task for maker in self.path)

    @property
    def tail(self) -> str:
        return tail_name(self.task, self.depth)

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        if train is not None:  # else the first batch says which task it is
            self.open(train.task)

    def finish(self, train: Lease) -> None:
        self.close()

    def open(self, task: int | Tensor | None) -> None:
        """The task begins. Where nobody has chosen its path, all of it is new."""
        if self.begun and task == self.task:
            return
        if self.begun:  # of the task before, whose end was not told
            self.close()
        if not self.path:
            self.begin_anew()
        if self.depth < self.layers:
            self.fresh.grow(self.tail, self.seed)
        self.begun = True

    def close(self) -> None:
        """The task is over: its new modules go to the library."""
        if self.depth < self.layers:
            self.net.grow(self.tail, seed=0)
            self.net.module.parts[self.tail].load_state_dict(self.made().state_dict())  # type: ignore[union-attr,index]
        self.net.freeze()
        _RESTING.pop(self.net, None)
        self.fresh = Net(Tails(self.make), device=self.net.device)
        self.paths.append(self.path)
        self.path, self.begun = [], False
        self.shared.clear()

    def made(self) -> nn.Module:
        """The new modules that the path at hand has."""
        return self.fresh.module.parts[self.tail]  # type: ignore[union-attr,index,return-value]

    def begin_anew(self) -> None:
        """All modules of the path at hand are new."""
        self.draw()
        self.path = [self.task] * self.layers

    def draw(self) -> None:
        """What the new modules of the task at hand begin with."""
        self.seed = int(torch.randint(2**62, (), generator=self.rng))

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        if task is not None and task < self.task:
            return self.reused(x, self.paths[task])
        if task != self.task or not self.begun:  # a task not seen yet is not guessed
            return torch.zeros(len(x), self.info.classes, device=x.device)
        with self.fresh.evaluating():
            return self.whole(self.reused(x, self.path[: self.depth]))

    def whole(self, h: Tensor) -> Tensor:
        """The logits that the path at hand makes of what its reused modules put out."""
        return self.fresh(h, [(self.tail, i) for i in range(self.layers - self.depth)])

    def reused(self, x: Tensor, path: Sequence[int], start: int = 0) -> Tensor:
        """What modules of the library make of the output of layer `start`: fixed functions."""
        places = [(self._tail_of(maker), layer) for layer, maker in enumerate(path)]
        with torch.no_grad():
            return self.net(x, [(name, layer - first) for (name, first), layer in places[start:]])

    def outputs(self, train: Lease, path: Path, known: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Per beginning of a path, by its name, what its last module makes of all rows: (n, ...). Left out is what is
        `known`, and what would take more than `ROOM` bytes."""
        names = [" ".join(map(str, path[: d + 1])) for d in range(len(path))]
        found: dict[str, list[Tensor]] = {}
        one = train.take(torch.tensor([0])).x
        for d, name in enumerate(names):
            one = self.reused(one, path[: d + 1], d)
            if one.nbytes * len(train) <= ROOM and name not in known:
                found[name] = []
        if not found:
            return {}
        last = max(names.index(name) for name in found)
        first = max((d + 1 for d in range(last) if names[d] in known), default=0)
        for rows in torch.arange(len(train)).split(CHUNK):
            h = known[names[first - 1]][rows.to(self.net.device)] if first else train.take(rows).x
            for d in range(first, last + 1):
                h = self.reused(h, path[: d + 1], d)
                if names[d] in found:
                    found[names[d]].append(h)
        return {name: torch.cat(parts) for name, parts in found.items()}

    def _tail_of(self, maker: int) -> tuple[str, int]:
        """The modules that a task made, and the layer where they begin."""
        first = self.paths[maker].index(maker)
        return tail_name(maker, first), first

    def numbers_kept(self, tasks: int) -> int:
        new = self.fresh.size + sum(buffer.numel() for buffer in self.fresh.module.buffers())
        return super().numbers_kept(tasks) + new

    def state(self) -> dict[str, State]:
        """That of the library is made once a task, for no trial changes it: else a state would cost what all past
        tasks have left."""
        if self.net not in _RESTING:
            _RESTING[self.net] = self.net.state()
        return {**super().state(), "library": _RESTING[self.net]}

    def load(self, state: dict[str, State]) -> None:
        library = state["library"]
        if _RESTING.get(self.net) is not library:
            self.net.load(library)
            _RESTING[self.net] = library
        super().load({name: saved for name, saved in state.items() if name != "library"})

    def twin(self) -> Self:
        """The library is the same: no trial changes it."""
        return copy.deepcopy(self, {id(same): same for same in (self.shared, self.net, self.make)})

    def journal(self) -> dict[str, list[dict[str, Any]]]:
        path = self.paths[-1]
        new = [layer for layer, maker in enumerate(path) if maker == len(self.paths) - 1]
        return {"paths": [{"path": list(path), "new": new, "knn": list(self.scores), "sizes": list(self.sizes)}]}

    # The data-driven prior (§4.2)

    def nearest(self, train: Lease, k: int | None) -> list[Path]:
        """The k past paths, or all, whose features tell the classes of the new task apart best.

            j* = argmax_j k-NN accuracy of f_j's features, the input of its last module, on the validation rows

        From clean training rows in random order, without views; of few validation rows their copies count, too. The
        earliest of equals comes first. `prior=random`: any k, for comparison.
        """
        if self.prior == "random":
            self.scores = []
            order = torch.randperm(self.task, generator=self.rng).tolist()
            return _different([self.paths[j] for j in order])[:k]
        batch = train.take(torch.randperm(train.own_rows, generator=self.rng)[:ROWS])
        x, y, val_x, val_y = batch.x, batch.y, train.val_x, train.val_y
        some = torch.randperm(len(val_y), generator=self.rng)[:ROWS].to(y.device)
        val_x, val_y = val_x[some], val_y[some]
        if not len(val_y):  # every second training row stands for them
            x, y, val_x, val_y = x[::2], y[::2], x[1::2], y[1::2]
        found: dict[Trunk, float] = {}
        trunks = sorted({tuple(path[:-1]) for path in self.paths})  # paths that differ in their heads alone have one
        for i in range(0, len(trunks), TOGETHER):
            ours, theirs = (self.features(rows, trunks[i : i + TOGETHER]) for rows in (x, val_x))
            for trunk, mine in ours.items():
                found[trunk] = knn_accuracy(mine, y, theirs[trunk], val_y, self.neighbours)
        self.scores = [found[tuple(path[:-1])] for path in self.paths]
        order = sorted(range(self.task), key=lambda j: -self.scores[j])
        return _different([self.paths[j] for j in order])[:k]

    def features(self, x: Tensor, trunks: Sequence[Trunk], *, pooled: bool = False) -> dict[Trunk, Tensor]:
        """(n, F) what modules of the library make of rows; `pooled`: of feature maps the means of 4×4 tiles. What
        several begin with is passed through once."""
        found: dict[Trunk, list[Tensor]] = {trunk: [] for trunk in sorted(trunks)}
        for rows in x.split(CHUNK):
            last, outputs = Trunk(), [rows]  # the one before, and what each of its layers put out
            for trunk, features in found.items():
                alike = _alike(last, trunk)
                del outputs[alike + 1 :]
                for d in range(alike, len(trunk)):
                    outputs.append(self.reused(outputs[d], trunk[: d + 1], d))
                h, last = outputs[-1], trunk
                features.append((F.adaptive_avg_pool2d(h, TILES) if pooled and h.dim() == 4 else h).flatten(1))
        return {trunk: torch.cat(features) for trunk, features in found.items()}


# The state of a library since its last module came. Here and not on the learner, which would keep all of it twice.
_RESTING: WeakKeyDictionary[Net, State] = WeakKeyDictionary()


class Tails(Growing):
    """Modules by the task that made them: all of its path from some layer on."""

    def __init__(self, make: Callable[[], nn.Module], given: dict[str, list[nn.Module]] | None = None) -> None:
        super().__init__()
        self.make = make
        for name, modules in (given or {}).items():
            self.parts[name] = nn.Sequential(*modules)

    def build(self, name: str) -> nn.Module:
        return nn.Sequential(*modules_of(self.make())[int(name.partition("-")[2]) :])

    def forward(self, x: Tensor, places: list[tuple[str, int]]) -> Tensor:
        for name, i in places:
            x = self.parts[name][i](x)  # type: ignore[index]
        return x


def tail_name(task: int, first: int) -> str:
    """Of the modules that a task has made, from this layer on."""
    return f"{task}-{first}"


def knn_accuracy(x: Tensor, y: Tensor, val_x: Tensor, val_y: Tensor, k: int) -> float:
    """Of the vote of the k nearest of x (n, F) on each of val_x (m, F); among equals the lowest class wins.

    >>> x, y = torch.tensor([[0.0], [1.0], [5.0]]), torch.tensor([0, 0, 1])
    >>> knn_accuracy(x, y, torch.tensor([[0.4], [4.0]]), torch.tensor([0, 1]), k=1)
    1.0
    """
    near = torch.cdist(val_x, x).topk(min(k, len(x)), largest=False).indices  # (m, k)
    votes = F.one_hot(y[near], int(y.max()) + 1).sum(1)  # (m, C)
    return (votes.argmax(1) == val_y).double().mean().item()


def _different(paths: list[Path]) -> list[Path]:
    return [path for i, path in enumerate(paths) if path not in paths[:i]]


def _alike(a: Trunk, b: Trunk) -> int:
    """
    >>> _alike((0, 0, 2), (0, 0, 3, 3)), _alike((), (1,))
    (2, 0)
    """
    return next((i for i, (mine, its) in enumerate(zip(a, b, strict=False)) if mine != its), min(len(a), len(b)))
