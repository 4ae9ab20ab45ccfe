"""Fully connected networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

from torch import nn

from holdfast.nets.base import NetSpec
from holdfast.settings import Count, Fraction
from holdfast.types import StreamInfo

Init = Literal["torch", "xavier", "truncated", "tenth"]


@final
@dataclass(frozen=True)
class MLP(NetSpec):
    """Fully connected ReLU network (papers 001-004); 784-100-100-10 has paper 002's 89,610 parameters.

    >>> from holdfast.types import StreamInfo
    >>> info = StreamInfo("split", "class", (1, 8, 8), 10, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)))
    >>> sum(p.numel() for p in MLP(hidden=(20,)).build(info).parameters())  # 64·20 + 20 + 20·10 + 10
    1510
    """

    hidden: tuple[Count, ...] = (100, 100)  # units of each hidden layer
    dropout: Fraction = 0.0  # of hidden units
    input_dropout: Fraction = 0.0  # of inputs
    init: Init = "torch"  # torch's own, xavier-uniform (002), truncated normal (003, 004), tenth (003, 004: EWC, IMM)

    def build(self, info: StreamInfo) -> nn.Module:
        width = math.prod(info.shape)
        layers: list[nn.Module] = [nn.Flatten()]
        if self.input_dropout:
            layers.append(nn.Dropout(self.input_dropout))
        for units in self.hidden:
            layers += [linear(width, units, self.init), nn.ReLU()]
            if self.dropout:
                layers.append(nn.Dropout(self.dropout))
            width = units
        return nn.Sequential(*layers, linear(width, info.classes, self.init))


def linear(n_in: int, n_out: int, init: Init) -> nn.Linear:
    """A layer with its initial weights.

    `truncated`: normal of deviation 1/√n_in, cut at two deviations, biases 0. `tenth`: the same of deviation 0.1 with
    biases 0.1, as in the code of EWC's and IMM's authors.
    """
    layer = nn.Linear(n_in, n_out)
    if init == "torch":
        return layer
    if init == "xavier":
        nn.init.xavier_uniform_(layer.weight)
    else:
        deviation = 0.1 if init == "tenth" else n_in**-0.5
        nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    nn.init.constant_(layer.bias, 0.1 if init == "tenth" else 0.0)
    return layer
