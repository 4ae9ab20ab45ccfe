"""Paper 000's AlexNet, in modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from torch import nn

from holdfast.errors import BadInput
from holdfast.nets._base import Dropout, NetSpec, image_shape
from holdfast.settings import BelowOne, Count
from holdfast.types import StreamInfo


@final
@dataclass(frozen=True)
class AlexNet(NetSpec):
    """The AlexNet of Serrà et al. (2018) and paper 000 (Table 9): 3 convolutions and 3 linear layers, a module each.

    Convolutions of 4×4, 3×3 and 2×2 without padding, each followed by ReLU, dropout and 2×2 max-pooling; 6,514,117
    parameters at width 64 and 5 classes. The baselines of paper 000's code drop 0.2 after the third convolution, too.

    >>> from holdfast.types import StreamInfo
    >>> info = StreamInfo("hand-made", "class", (3, 32, 32), 5, (tuple(range(5)),))
    >>> [sum(p.numel() for p in module.parameters()) for module in AlexNet().build(info)]
    [3136, 73856, 131328, 2099200, 4196352, 10245]
    """

    width: Count = 64  # feature maps of the first convolution; the second and third have two and four times as many
    hidden: Count | None = None  # units of both hidden layers; none: 32 times the width
    dropout: tuple[BelowOne, ...] = (0.2, 0.2, 0.5, 0.5, 0.5)  # after each layer but the last

    def build(self, info: StreamInfo) -> nn.Module:
        channels, height, width = image_shape(info, "alexnet", smallest=19)
        if len(self.dropout) != 5:
            raise BadInput(f"dropout of net 'alexnet' must have 5 values, one per hidden layer, not {self.dropout}")
        modules = []
        for kernel, times, p in zip((4, 3, 2), (1, 2, 4), self.dropout[:3], strict=True):
            maps = times * self.width
            modules.append([nn.Conv2d(channels, maps, kernel), nn.ReLU(), nn.Dropout(p), nn.MaxPool2d(2)])
            channels, height, width = maps, (height - kernel + 1) // 2, (width - kernel + 1) // 2
        units, hidden = channels * height * width, self.hidden or 32 * self.width
        for p in self.dropout[3:]:
            modules.append([nn.Linear(units, hidden), nn.ReLU(), Dropout(p)])
            units = hidden
        modules[2].append(nn.Flatten())
        modules.append([nn.Linear(units, info.classes)])
        return nn.Sequential(*(nn.Sequential(*layers) for layers in modules))
