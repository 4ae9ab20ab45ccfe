"""A net is a recipe: settings as dataclass fields, and `build`, which makes the module for a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod

from torch import nn

from holdfast.errors import BadInput
from holdfast.types import StreamInfo


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
