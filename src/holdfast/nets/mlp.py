"""Fully connected networks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from torch import nn

from holdfast.nets._base import Dropout, Init, NetSpec, begun, sequence
from holdfast.settings import BelowOne, Count, Whole
from holdfast.types import StreamInfo


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
    dropout: BelowOne = 0.0  # of hidden units
    input_dropout: BelowOne = 0.0  # of inputs
    init: Init = "torch"  # torch's own, xavier-uniform (002), truncated normal (003, 004), tenth (003, 004: EWC, IMM)
    test_samples: Whole = 0  # so many answers with dropout on (Gal & Ghahramani, 2016); 0: one with it off

    def build(self, info: StreamInfo) -> nn.Module:
        width = math.prod(info.shape)
        layers: list[nn.Module] = [nn.Flatten()]
        if self.input_dropout:
            layers.append(Dropout(self.input_dropout))
        for units in self.hidden:
            layers += [begun(nn.Linear(width, units), self.init), nn.ReLU()]
            if self.dropout:
                layers.append(Dropout(self.dropout))
            width = units
        layers.append(begun(nn.Linear(width, info.classes), self.init))
        return sequence(layers, self.test_samples, "mlp")
