"""Paper 000's ResNet, in modules."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.nets._base import NetSpec, image_shape
from holdfast.settings import Count
from holdfast.types import Settling, StreamInfo

# How many of the stem, the eight blocks and the output layer each module has.
CUTS: dict[int, tuple[int, ...]] = {
    3: (5, 4, 1),
    5: (3, 2, 2, 2, 1),
    6: (1, 2, 2, 2, 2, 1),
    7: (1, 2, 2, 2, 1, 1, 1),
    10: (1,) * 10,
}


@final
@dataclass(frozen=True)
class CtrlResNet(NetSpec):
    """The small ResNet-18 of paper 000 (Table 8), all layers equally wide: 607,050 parameters at width 64.

    A 3×3 stem, eight basic blocks, the third, fifth and seventh of stride 2, the mean over all places and a linear
    layer. In 7 modules as the paper has it, in 10 where every module of two blocks is split (§5.3), in 3 and 5 where
    neighbours are merged; 6 is the default of the authors' code. Weights and numbers are the same however it is cut.

    With `statistics=first task` batch normalisation uses, and keeps, the statistics of the first task in all later
    ones, as in the authors' code, where shared modules of later tasks run in eval mode even when they are trained.

    >>> from holdfast.types import StreamInfo
    >>> info = StreamInfo("hand-made", "class", (3, 32, 32), 10, (tuple(range(10)),))
    >>> [sum(p.numel() for p in module.parameters()) for module in CtrlResNet().build(info)]
    [1856, 147968, 152192, 152192, 78208, 73984, 650]
    """

    width: Count = 64  # feature maps of every layer
    modules: Literal[3, 5, 6, 7, 10] = 7  # into which it is cut
    statistics: Literal["each task", "first task"] = "each task"  # of batch normalisation; first task: the authors' way

    def build(self, info: StreamInfo) -> nn.Module:
        channels, _, _ = image_shape(info, "ctrl_resnet", smallest=8)
        width, norm = self.width, FirstTaskNorm if self.statistics == "first task" else nn.BatchNorm2d
        stem: list[nn.Module] = [nn.Conv2d(channels, width, 3, padding=1, bias=False), norm(width), nn.ReLU()]
        blocks: list[list[nn.Module]] = [[Block(width, stride, norm)] for stride in (1, 1, 2, 1, 2, 1, 2, 1)]
        blocks[-1] += [nn.AdaptiveAvgPool2d(1), nn.Flatten()]
        units: list[list[nn.Module]] = [stem, *blocks, [nn.Linear(width, info.classes)]]
        cuts = pairwise([0, *accumulate(CUTS[self.modules])])
        return nn.Sequential(*(nn.Sequential(*(m for unit in units[a:b] for m in unit)) for a, b in cuts))


class Block(nn.Module):
    """relu(norm(conv(relu(norm(conv(x))))) + shortcut(x)); the shortcut is x itself unless the size changes."""

    def __init__(self, width: int, stride: int, norm: Callable[[int], nn.Module]) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, stride, padding=1, bias=False)
        self.norm1 = norm(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.norm2 = norm(width)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(width, width, 1, stride, bias=False), norm(width))

    def forward(self, x: Tensor) -> Tensor:
        h = F.relu(self.norm1(self.conv1(x)))
        return F.relu(self.norm2(self.conv2(h)) + self.shortcut(x))


class FirstTaskNorm(nn.BatchNorm2d, Settling):
    """Batch normalisation whose statistics stay those of the task it was made in; its scale and shift still learn."""

    settled: Tensor

    def __init__(self, width: int) -> None:
        super().__init__(width)
        self.register_buffer("settled", torch.tensor(False))

    def settle(self) -> None:
        self.settled.fill_(True)

    def forward(self, x: Tensor) -> Tensor:
        if not self.settled:
            return super().forward(x)
        return F.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias, False, 0.0, self.eps)
