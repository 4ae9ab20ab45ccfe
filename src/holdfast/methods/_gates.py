"""Networks whose hidden units have gates, one per unit or map, set anew for every task."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.engine import Growing, Net
from holdfast.errors import BadInput
from holdfast.nets._modules import modules_of
from holdfast.nets.ctrl_resnet import Block


class Wire(NamedTuple):
    """A layer, and the gates of the units that it reads and of those that it makes."""

    layer: nn.Module
    reads: int | None  # none: inputs of the network, which have no gate; or it reads only what it makes (a norm)
    makes: int


class Gated(Growing):
    """A stack of modules with a gate behind each hidden layer. A part is an output module, and embeddings of gates."""

    def __init__(self, module: nn.Module, make: Callable[[], nn.Module]) -> None:
        """The first part is task 0's and has the output module as it is."""
        super().__init__()
        *hidden, head = modules_of(module)
        if not hidden:
            raise BadInput("a network of one module has no hidden units to gate; try net 'mlp' with a hidden layer")
        self.make = make
        self.wires: list[Wire] = []
        self.sizes: list[int] = []  # units of each gate
        self.shared = nn.Sequential(*self._laid(_flat(hidden)))
        self.parts["task0"] = Attention(head, self.sizes)

    def build(self, name: str) -> nn.Module:
        return Attention(modules_of(self.make())[-1], self.sizes)

    def forward(self, x: Tensor, part: str, masks: Sequence[Tensor]) -> Tensor:
        """`masks`: one per gate."""
        for layer in self.shared:
            x = layer(x, masks) if isinstance(layer, Gate | GatedBlock) else layer(x)
        return self.parts[part].head(x)  # type: ignore[no-any-return,operator,union-attr]

    def _laid(self, layers: Sequence[nn.Module]) -> Iterator[nn.Module]:
        """The layers, with gates before all that read hidden units."""
        for layer in layers:
            weighs, last = any(p.dim() > 1 for p in layer.parameters()), len(self.sizes) - 1
            if weighs and last >= 0:
                yield Gate(last)
            if isinstance(layer, Block):
                yield self._block(layer, last if last >= 0 else None)
                continue
            if weighs:
                if not isinstance(layer, nn.Linear | nn.Conv2d):
                    raise BadInput(f"hidden units of a {type(layer).__name__} cannot be gated; try net 'mlp'")
                self.sizes.append(len(layer.weight))
                self.wires.append(Wire(layer, last if last >= 0 else None, last + 1))
            elif [*layer.parameters()]:  # a norm
                self.wires.append(Wire(layer, None, last))
            yield layer
        yield Gate(len(self.sizes) - 1)

    def _block(self, block: Block, reads: int | None) -> GatedBlock:
        inner, out = len(self.sizes), len(self.sizes) + 1
        self.sizes += [block.conv1.out_channels, block.conv2.out_channels]
        self.wires += [Wire(block.conv1, reads, inner), Wire(block.norm1, None, inner)]
        self.wires += [Wire(block.conv2, inner, out), Wire(block.norm2, None, out)]
        for m, read in zip(block.shortcut, (reads, None), strict=False):
            self.wires.append(Wire(m, read, out))
        return GatedBlock(block, inner)


class Attention(nn.Module):
    """What a task has for itself."""

    def __init__(self, head: nn.Module, sizes: Sequence[int]) -> None:
        super().__init__()
        self.head = head
        self.embeddings = nn.ParameterList(torch.randn(n) for n in sizes)


class Gate(nn.Module):
    """h ⊙ a. Behind a convolution a map has one gate, also where maps have been flattened."""

    def __init__(self, index: int) -> None:
        super().__init__()
        self.index = index

    def forward(self, h: Tensor, masks: Sequence[Tensor]) -> Tensor:
        return h * (masks[self.index][:, None, None] if h.dim() == 4 else spread(masks[self.index], h.shape[1]))


class GatedBlock(nn.Module):
    """A residual block with a gate between its convolutions."""

    def __init__(self, block: Block, inner: int) -> None:
        super().__init__()
        self.block, self.gate = block, Gate(inner)

    def forward(self, x: Tensor, masks: Sequence[Tensor]) -> Tensor:
        block = self.block
        h = self.gate(F.relu(block.norm1(block.conv1(x))), masks)
        return F.relu(block.norm2(block.conv2(h)) + block.shortcut(x))


def spread(mask: Tensor, n: int) -> Tensor:
    """(n,): what units that came of the same map share."""
    return mask if len(mask) == n else mask.repeat_interleave(n // len(mask))


def used(wire: Wire, masks: Sequence[Tensor]) -> Iterator[tuple[nn.Parameter, Tensor]]:
    """The layer's parameters with min(a_i, a_j) of the units that each entry joins; a_i of a bias, of a norm."""
    out = masks[wire.makes]
    for p in wire.layer.parameters(recurse=False):
        if p.dim() == 1 or wire.reads is None:
            yield p, out.view(-1, *[1] * (p.dim() - 1)).expand_as(p)
        else:
            read = spread(masks[wire.reads], p.shape[1])
            yield p, torch.minimum(out[:, None], read).view(*p.shape[:2], *[1] * (p.dim() - 2)).expand_as(p)


def freeze_used(net: Net, wires: Sequence[Wire], masks: Sequence[Tensor]) -> None:
    """What joins units that are wholly used never changes again."""
    frozen = torch.zeros(net.size, dtype=torch.bool, device=net.device) if net.frozen is None else net.frozen.clone()
    views, names = net.unflatten(frozen), {id(p): name for name, p in net.module.named_parameters()}
    for wire in wires:
        for p, a in used(wire, masks):
            views[names[id(p)]] |= a == 1
    net.frozen = frozen


def widened(make: Callable[[], nn.Module], factor: float) -> nn.Module:
    """A new stack whose hidden layers have so many times the units, with torch's own initial weights.

    >>> widened(lambda: nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 3)), 2.5)
    Sequential(
      (0): Linear(in_features=2, out_features=10, bias=True)
      (1): Linear(in_features=10, out_features=3, bias=True)
    )
    """
    stack = make()
    last = [m for m in stack.modules() if isinstance(m, nn.Linear | nn.Conv2d)][-1]
    width = (1, 1)  # units of the layer before: as they were, and now

    def wider(m: nn.Module) -> nn.Module:
        nonlocal width
        if isinstance(m, nn.Sequential):
            return nn.Sequential(*map(wider, m))
        if isinstance(m, Block):
            return Block(width[1], m.conv1.stride[0], type(m.norm1))
        if isinstance(m, nn.BatchNorm2d):
            return type(m)(width[1])
        if not isinstance(m, nn.Linear | nn.Conv2d):
            return copy.deepcopy(m)
        read, made = m.weight.shape[1] // width[0] * width[1], len(m.weight)
        width = made, made if m is last else round(factor * made)
        if isinstance(m, nn.Linear):
            return nn.Linear(read, width[1], m.bias is not None)
        return nn.Conv2d(read, width[1], m.kernel_size, m.stride, m.padding, bias=m.bias is not None)  # type: ignore[arg-type]

    return wider(stack)


def _flat(modules: Sequence[nn.Module]) -> list[nn.Module]:
    return [layer for m in modules for layer in (_flat([*m]) if isinstance(m, nn.Sequential) else [m])]
