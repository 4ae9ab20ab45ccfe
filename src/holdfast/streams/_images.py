"""What streams do to images: bring them to one size, crop and flip them at random, and scale their channels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.types import Augment, Part, Scale

_BLOCK = 1024  # rows that are floats at the same time


@final
@dataclass(frozen=True)
class Fitted:
    """Images of bytes, resized bilinearly to size × size; grey ones get their channel repeated, others their mean."""

    size: int
    channels: int  # 1 or 3

    def __call__(self, pixels: Tensor) -> Tensor:
        return torch.cat([self._fit(block) for block in pixels.split(_BLOCK)])

    def _fit(self, pixels: Tensor) -> Tensor:
        x = pixels.float()
        if x.shape[1] > self.channels:
            x = x.mean(1, keepdim=True)
        if x.shape[2:] != (self.size, self.size):
            x = F.interpolate(x, (self.size, self.size), mode="bilinear", antialias=True)
        return x.round_().to(pixels.dtype).expand(-1, self.channels, -1, -1).contiguous()


@final
@dataclass(frozen=True)
class OnColour:
    """Light figures on a dark ground, resized to size × size, white on one of red, green and blue.

    A grey image in all three channels, one of which is full everywhere.
    """

    size: int
    channel: int

    def __call__(self, pixels: Tensor) -> Tensor:
        images = Fitted(self.size, 1)(pixels).repeat(1, 3, 1, 1)
        images[:, self.channel] = 255
        return images


@final
@dataclass(frozen=True)
class CropFlip(Augment):
    """Black pixels around the image, a random crop of the old size, and mirrored left to right every other time."""

    margin: int  # pixels added on each side

    def __call__(self, pixels: Tensor, rng: torch.Generator) -> Tensor:
        n, channels, height, width = pixels.shape
        down, right = torch.randint(2 * self.margin + 1, (2, n, 1), generator=rng)
        mirrored = torch.randint(2, (n, 1), generator=rng).bool()
        rows, columns = torch.arange(height).expand(n, -1), torch.arange(width).expand(n, -1)
        rows, columns = down + rows, right + torch.where(mirrored, columns.flip(-1), columns)
        padded = F.pad(pixels, [self.margin] * 4).flatten(2)  # (n, C, H'·W')
        places = rows[:, :, None] * (width + 2 * self.margin) + columns[:, None, :]  # (n, H, W)
        places = places.view(n, 1, -1).expand(-1, channels, -1).to(pixels.device)
        return padded.gather(2, places).view(pixels.shape)  # six times as fast as an index per dimension


def scale_of(part: Part) -> Scale:
    """That which gives the rows of a part mean 0 and deviation 1 in each channel; all entries of vectors are one."""
    count, total, squares = 0, torch.zeros(1, dtype=torch.int64), torch.zeros(1, dtype=torch.int64)
    for start in range(0, len(part), _BLOCK):
        raw = part.raw(slice(start, start + _BLOCK)).cpu().to(torch.int64)  # sums of whole numbers are exact
        channels = raw.transpose(0, 1).flatten(1) if raw.dim() == 4 else raw.reshape(1, -1)  # (C, ...)
        count += channels.shape[1]
        total, squares = total + channels.sum(1), squares + channels.square().sum(1)
    mean = total.double() / count
    deviation = (squares.double() / count - mean.square()).clamp(min=0).sqrt()
    deviation[deviation == 0] = 255  # a channel of one value
    return Scale.of((mean / 255).tolist(), (deviation / 255).tolist())
