"""A net is a recipe: settings as dataclass fields, and `build`, which makes the module for a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from holdfast.errors import BadInput
from holdfast.types import StreamInfo

Init = Literal["torch", "xavier", "truncated", "tenth", "tenth0"]
Layer = TypeVar("Layer", nn.Linear, nn.Conv2d)


class NetSpec(ABC):
    """A backbone of the papers, with its settings."""

    @abstractmethod
    def build(self, info: StreamInfo) -> nn.Module:
        """A module from (B, *info.shape) to (B, info.classes) logits, freshly initialised from torch's generator."""


def image_shape(info: StreamInfo, net: str, smallest: int) -> tuple[int, int, int]:
    """(C, H, W) of the stream's images, or the fault that there are none or that they are too small."""
    if len(info.shape) != 3:
        raise BadInput(f"net {net!r} needs images (channels, height, width), not vectors of {info.shape}; try 'mlp'")
    channels, height, width = info.shape
    if min(height, width) < smallest:
        raise BadInput(f"net {net!r} needs images of at least {smallest}×{smallest}, not {height}×{width}; try 'mlp'")
    return channels, height, width


def begun(layer: Layer, init: Init) -> Layer:
    """The layer with its initial weights.

    `truncated`: normal of deviation 1/√n, n the inputs of a unit, cut at two deviations, biases 0. `tenth`: the same of
    deviation 0.1 with biases 0.1, as in the code of EWC's and IMM's authors. `tenth0`: with biases 0, as in that of
    papers 003 and 004's CONV.
    """
    if init == "torch":
        return layer
    if init == "xavier":
        nn.init.xavier_uniform_(layer.weight)
    else:
        deviation = layer.weight[0].numel() ** -0.5 if init == "truncated" else 0.1
        nn.init.trunc_normal_(layer.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
    if layer.bias is not None:
        nn.init.constant_(layer.bias, 0.1 if init == "tenth" else 0.0)
    return layer


class Dropout(nn.Dropout):
    """Dropout that draws 16 random bits per entry, four entries at once: p is rounded to 1/65,536.

    torch's own takes five times as long, a fifth of the step of a network of 800-800-800.
    """

    def forward(self, z: Tensor) -> Tensor:
        if not self.training or self.p == 0:
            return z
        drawn = torch.randint(-(2**63), 2**63 - 1, (-(-z.numel() // 4),), device=z.device)
        bits = drawn.view(torch.int16)[: z.numel()].view(z.shape)
        least = min(round(self.p * 2**16) - 2**15, 2**15 - 1)  # one more would not fit into 16 bits
        return z * (bits >= least) * (1 / (1 - self.p))
