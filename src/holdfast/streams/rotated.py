"""Rotated images."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import torch
import torch.nn.functional as F
from torch import Tensor

from holdfast.seeds import generator
from holdfast.streams._base import Plan, StreamSpec, same_classes
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Rotated(StreamSpec):
    """Every task has all classes; its images are rotated by a fixed angle of its own (paper 002 §4.1).

    Task t's angle is drawn from the t-th of T equal slices of the range, as the paper's authors do.
    """

    angles: tuple[float, ...] | None = None  # degrees anticlockwise: one per task, or a range of two (none: 0 to 180)
    interpolation: Literal["nearest", "bilinear"] = "nearest"  # how pixels between pixels are read

    def faults(self, data: DataSet) -> list[str]:
        found = []
        if len(data.shape) != 3:
            found.append(f"stream 'rotated' needs images, but data set {data.name!r} has vectors of {data.shape[0]}")
        if self.angles is not None and len(self.angles) not in (2, self.tasks):
            found.append(
                f"angles of stream 'rotated' must be a range of two or one per task ({self.tasks}), "
                f"not {len(self.angles)} values"
            )
        return found

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        angles = [self._angle(t, seed) for t in range(self.tasks)]
        plans = same_classes(data, ((f"rotated {a:.1f}°", _Rotation(a, self.interpolation)) for a in angles))
        return self.scenario or "domain", len(data.classes), plans

    def _angle(self, t: int, seed: int) -> float:
        if self.angles is not None and len(self.angles) == self.tasks:
            return self.angles[t]
        low, high = self.angles or (0.0, 180.0)
        u = torch.rand((), generator=generator(seed, "rotated", task=t)).item()
        return low + (high - low) * (t + u) / self.tasks


class _Rotation:
    """Rotation about the image's centre; what comes from outside is black."""

    def __init__(self, angle: float, interpolation: str) -> None:
        self.angle, self.interpolation = angle, interpolation

    def __call__(self, pixels: Tensor) -> Tensor:
        return torch.cat([self._rotate(block) for block in pixels.split(1024)])

    def _rotate(self, pixels: Tensor) -> Tensor:
        n, _, height, width = pixels.shape
        c, s = math.cos(math.radians(self.angle)), math.sin(math.radians(self.angle))
        matrix = torch.tensor([[c, -s * height / width, 0.0], [s * width / height, c, 0.0]], device=pixels.device)
        shape = [1, *pixels.shape[1:]]
        grid = F.affine_grid(matrix[None], shape, align_corners=False).expand(n, -1, -1, -1)
        turned = F.grid_sample(pixels.float(), grid, mode=self.interpolation, padding_mode="zeros", align_corners=False)
        return turned.round_().to(pixels.dtype) if pixels.dtype == torch.uint8 else turned
