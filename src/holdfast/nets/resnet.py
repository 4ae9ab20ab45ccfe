"""Paper 002's thin ResNet-18."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.nets._base import NetSpec, image_shape
from holdfast.settings import Count
from holdfast.types import StreamInfo


@final
@dataclass(frozen=True)
class ResNet(NetSpec):
    """ResNet-18 with three times fewer feature maps (paper 002 §4.2): 3×3 stem, no pooling after it.

    1,109,240 parameters at 20 maps, 3 channels and 100 classes, as the paper says. The stages have 1, 2, 4 and 8
    times `maps`; after them a 4×4 average pool, so that 32×32 images leave 8·maps features.
    """

    maps: Count = 20  # feature maps of the first stage

    def build(self, info: StreamInfo) -> nn.Module:
        channels, height, width = image_shape(info, "resnet", smallest=8)
        maps = self.maps
        stages = [
            nn.Sequential(_Block(n_in, n_out, stride), _Block(n_out, n_out, 1))
            for n_in, n_out, stride in [
                (maps, maps, 1), (maps, 2 * maps, 2), (2 * maps, 4 * maps, 2), (4 * maps, 8 * maps, 2)
            ]
        ]  # fmt: skip
        pool = min(4, -(-height // 8), -(-width // 8))
        rows, columns = -(-height // 8) // pool, -(-width // 8) // pool
        return nn.Sequential(
            nn.Conv2d(channels, maps, 3, padding=1, bias=False),
            nn.BatchNorm2d(maps),
            nn.ReLU(),
            *stages,
            nn.AvgPool2d(pool),
            nn.Flatten(),
            nn.Linear(8 * maps * rows * columns, info.classes),
        )


class _Block(nn.Module):
    def __init__(self, n_in: int, n_out: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(n_in, n_out, 3, stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(n_out)
        self.conv2 = nn.Conv2d(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(n_out)
        self.shortcut = nn.Sequential()
        if stride != 1 or n_in != n_out:
            self.shortcut = nn.Sequential(nn.Conv2d(n_in, n_out, 1, stride, bias=False), nn.BatchNorm2d(n_out))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))
