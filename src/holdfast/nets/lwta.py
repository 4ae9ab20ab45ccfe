"""Networks whose units compete."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import combinations
from typing import final

import torch
from torch import Tensor, nn

from holdfast.nets._base import Init, NetSpec, begun
from holdfast.settings import Count
from holdfast.types import Gate, StreamInfo


@final
@dataclass(frozen=True)
class LWTA(NetSpec):
    """Fully connected network with local winners (Srivastava et al., 2013; papers 003, 004): no ReLU.

        y_i = z_i if z_i is the largest of its block, else 0

    `hidden` counts blocks, so a layer of S blocks of 2 has 2S units (as in the papers' code).
    """

    hidden: tuple[Count, ...] = (400, 400)  # blocks of each hidden layer
    block: Count = 2  # units that compete
    init: Init = "truncated"  # truncated normal (papers 003, 004), xavier-uniform, torch's own, tenth, tenth0

    def build(self, info: StreamInfo) -> nn.Module:
        layers: list[nn.Module] = [nn.Flatten()]
        width = math.prod(info.shape)
        for blocks in self.hidden:
            units = blocks * self.block
            layers += [begun(nn.Linear(width, units), self.init), Winners(self.block)]
            width = units
        return nn.Sequential(*layers, begun(nn.Linear(width, info.classes), self.init))


class Winners(Gate):
    """Of each block of neighbouring units the largest passes; the others are 0. Of equal ones the first wins.

    >>> Winners(2)(torch.tensor([[1.0, 3.0, -2.0, -5.0]]))
    tensor([[ 0.,  3., -2.,  0.]])
    """

    def __init__(self, block: int) -> None:
        super().__init__()
        self.block = block

    def forward(self, z: Tensor) -> Tensor:
        blocks = z.unflatten(-1, (-1, self.block))
        won = torch.ones_like(blocks, dtype=torch.bool)
        for (i, a), (j, b) in combinations(enumerate(blocks.unbind(-1)), 2):  # max over so short an axis is slow
            first = a >= b
            won[..., i] &= first
            won[..., j] &= ~first
        return torch.where(won.flatten(-2), z, 0.0)
