"""A small convolutional network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import nn

from holdfast.nets._base import Init, NetSpec, begun, image_shape, sequence
from holdfast.settings import BelowOne, Count, Whole
from holdfast.types import StreamInfo


@final
@dataclass(frozen=True)
class Conv(NetSpec):
    """Convolutions with ReLU and 2×2 max-pooling, then one hidden layer (the shape of papers 003 and 004's CONV)."""

    filters: tuple[Count, ...] = (32, 64)  # of each convolution
    kernel: Count = 5  # side of the filters; padding keeps the size
    hidden: Count = 1024  # units of the fully connected layer
    dropout: BelowOne = 0.0  # of the fully connected layer's units
    map_dropout: BelowOne = 0.0  # of what each convolution's pooling leaves
    input_dropout: BelowOne = 0.0  # of pixels
    init: Init = "torch"  # torch's own, xavier-uniform, truncated normal, tenth, tenth0 (papers 003, 004)
    test_samples: Whole = 0  # so many answers with dropout on (Gal & Ghahramani, 2016); 0: one with it off

    def build(self, info: StreamInfo) -> nn.Module:
        channels, height, width = image_shape(info, "conv", smallest=2 ** len(self.filters))
        layers: list[nn.Module] = [nn.Dropout(self.input_dropout)] if self.input_dropout else []
        for n in self.filters:
            convolution = begun(nn.Conv2d(channels, n, self.kernel, padding="same"), self.init)
            layers += [convolution, nn.ReLU(), nn.MaxPool2d(2)]
            if self.map_dropout:
                layers.append(nn.Dropout(self.map_dropout))
            channels, height, width = n, height // 2, width // 2
        layers += [nn.Flatten(), begun(nn.Linear(channels * height * width, self.hidden), self.init), nn.ReLU()]
        if self.dropout:
            layers.append(nn.Dropout(self.dropout))
        layers.append(begun(nn.Linear(self.hidden, info.classes), self.init))
        return sequence(layers, self.test_samples, "conv")
