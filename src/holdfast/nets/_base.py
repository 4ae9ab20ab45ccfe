"""A net is a recipe: settings as dataclass fields, and `build`, which makes the module for a stream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, TypeVar

import torch
from torch import Tensor, nn

from holdfast.errors import BadInput
from holdfast.seeds import generator
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


class Sampled(nn.Sequential):
    """Layers whose predictions are so many samples, with dropout on (Gal & Ghahramani, 2016); otherwise no others."""

    def __init__(self, layers: Sequence[nn.Module], samples: int) -> None:
        super().__init__(*layers)
        self.samples = samples

    def predict(self, x: Tensor) -> Tensor:
        """(S, B, C): the same samples of units whatever and whenever is asked."""
        return dropout_samples(self, x, self.samples, generator(0, "dropout"))


def sequence(layers: Sequence[nn.Module], test_samples: int, net: str) -> nn.Sequential:
    """The layers one after the other; with samples, predictions have dropout on."""
    if not test_samples:
        return nn.Sequential(*layers)
    made = Sampled(layers, test_samples)
    if not drops(made):
        raise BadInput(f"test_samples of net {net!r} needs dropout, which is 0; try dropout=0.5")
    return made


def drops(module: nn.Module) -> bool:
    """Whether samples can be had of it: layers one after the other, with dropout among them."""
    return isinstance(module, nn.Sequential) and any(isinstance(m, nn.Dropout) and m.p for m in module)


def dropout_samples(layers: nn.Module, x: Tensor, samples: int, rng: torch.Generator) -> Tensor:
    """(S, B, C) outputs of layers in eval mode, but with dropout: each sample lacks the same units for all rows."""
    each = list(layers.children())
    first = next(i for i, m in enumerate(each) if isinstance(m, nn.Dropout))
    z = _dropped(each[:first], x, rng)  # the same for all samples
    return torch.stack([_dropped(each[first:], z, rng) for _ in range(samples)])


def _dropped(layers: list[nn.Module], z: Tensor, rng: torch.Generator) -> Tensor:
    for m in layers:
        if isinstance(m, nn.Dropout):
            kept = torch.rand(z.shape[1:], generator=rng) >= m.p  # drawn on the CPU, whatever the device
            z = z * kept.to(z.device, z.dtype).div_(1 - m.p)
        else:
            z = m(z)
    return z
