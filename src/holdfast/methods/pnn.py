"""Progressive neural networks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn

from holdfast.engine import Growing, Net, Optimiser
from holdfast.errors import BadInput
from holdfast.methods._by_task import ByTask
from holdfast.nets._modules import modules_of, tail_of
from holdfast.types import StreamInfo

Lateral = Literal["copy", "adapter"]
Shape = tuple[int, ...]


@final
@dataclass
class PNN(ByTask):
    """Progressive neural networks (Rusu et al., 2016), as paper 000 runs them: a column of modules per task.

        h_l^t = f_l( W_l^t h_{l-1}^t + Σ_{j<t} U_l^{t:j} h_{l-1}^j ),   l ≥ 2;   h_1^t = f_1(W_1^t x)

    W_l is what has weights in module l, f_l the layers behind it (activation, pooling, dropout). U_l^{t:j} is another
    W_l, with weights of its own: a full copy for each earlier column, as the authors of paper 000 have it. Rusu et al.
    reduce all earlier columns to the width of one before (`lateral=adapter`):

        h_l^t = f_l( W_l^t h_{l-1}^t + U_l^t relu(V_l^t [α_j h_{l-1}^j]_{j<t}) )

    V is linear, a 1×1 convolution where there are maps; α_j are learned scalars. Past tasks' columns are frozen, batch
    statistics included: nothing is forgotten. The network must be a stack of modules: `mlp`, `conv`, `ctrl_resnet`,
    `alexnet`. The residual blocks of `ctrl_resnet` end in a ReLU, so there outputs are summed after it.

    >>> import holdfast as hf
    >>> record = hf.run("pnn", hf.stream("split", tasks=2, examples=50, scenario="task"), seed=0)
    >>> record.bwt
    0.0
    """

    lateral: Lateral = "copy"  # a copy of the module for each earlier column (paper 000), or one behind an adapter

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """The first task begins with the network as it was given, as under methods that share all of it."""
        columns = Columns(net.module, net.build, self.lateral, _shapes(net, info.shape))
        super().start(Net(columns, device=net.device), optimiser, info, rng)

    def leave(self, part: str) -> None:
        self.net.freeze()


class Columns(Growing):
    """Stacks of modules side by side, one per part; each reads what those before it found."""

    def __init__(self, module: nn.Module, make: Callable[[], nn.Module], lateral: Lateral, shapes: list[Shape]) -> None:
        super().__init__()
        self.make, self.lateral, self.shapes = make, lateral, shapes
        self.parts["task0"] = Column(modules_of(module), [])

    def build(self, name: str) -> nn.Module:
        """`shapes` are those of what module 2, 3, ... reads."""
        earlier, modules = len(self.parts), modules_of(self.make())
        if self.lateral == "adapter":
            each = zip(self.shapes, _weights(self.make), strict=True)
            return Column(modules, [nn.ModuleList([Adapter(shape, earlier, U)]) for shape, U in each])
        copies = [_weights(self.make) for _ in range(earlier)]
        return Column(modules, [nn.ModuleList(each) for each in zip(*copies, strict=True)])

    def forward(self, x: Tensor, part: str) -> Tensor:
        names = list(self.parts)
        past: list[list[Tensor]] = []  # of each column so far what its modules gave
        for name in names[: names.index(part)]:
            past.append(self.parts[name](x, past, self.lateral, len(self.shapes)))
        return self.parts[part](x, past, self.lateral, len(self.shapes) + 1)[-1]  # type: ignore[no-any-return]


class Column(nn.Module):
    """Modules one after the other, cut into weights W_l and the layers f_l behind them, and laterals U_l from l = 2."""

    def __init__(self, modules: Sequence[nn.Module], laterals: Sequence[nn.Module]) -> None:
        super().__init__()
        cut = [tail_of(module) for module in modules]
        self.weights, self.tails = (nn.ModuleList(each) for each in zip(*cut, strict=True))
        self.laterals = nn.ModuleList(laterals)

    def forward(self, x: Tensor, past: Sequence[Sequence[Tensor]], lateral: Lateral, modules: int) -> list[Tensor]:
        """What each of the first so many modules gives."""
        found: list[Tensor] = []
        for i in range(modules):
            z = self.weights[i](found[-1] if found else x)
            if i and past:
                read = [column[i - 1] for column in past]
                given = [(h,) for h in read] if lateral == "copy" else [(read,)]
                z = z + sum(U(*h) for U, h in zip(self.laterals[i - 1], given, strict=True))  # type: ignore[call-overload]
            found.append(self.tails[i](z))
        return found


class Adapter(nn.Module):
    """U relu(V [α_j h_j])"""

    def __init__(self, shape: Shape, columns: int, U: nn.Module) -> None:
        super().__init__()
        n = shape[0]
        self.alpha = nn.Parameter(torch.ones(columns))
        self.V = nn.Linear(n * columns, n) if len(shape) == 1 else nn.Conv2d(n * columns, n, 1)
        self.U = U

    def forward(self, read: Sequence[Tensor]) -> Tensor:
        weighed = torch.cat([a * h for a, h in zip(self.alpha, read, strict=True)], 1)
        return self.U(torch.relu(self.V(weighed)))  # type: ignore[no-any-return]


def _weights(make: Callable[[], nn.Module]) -> list[nn.Module]:
    """W_2, W_3, ... of a new network."""
    return [tail_of(module)[0] for module in modules_of(make())[1:]]


def _shapes(net: Net, shape: Shape) -> list[Shape]:
    """Of what the second module and those behind it read, without the batch."""
    modules, shapes = modules_of(net.module), []
    if len(modules) < 2:
        raise BadInput("a network of one module has no laterals; try net 'mlp' with a hidden layer")
    with net.evaluating():
        h = torch.zeros(1, *shape, device=net.device)
        for module in modules[:-1]:
            h = module(h)
            shapes.append(tuple(h.shape[1:]))
    return shapes
