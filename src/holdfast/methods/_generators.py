"""Networks that make rows like those they were shown: generative adversarial ones, and variational autoencoders."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.engine import Adam, Growing, Net
from holdfast.errors import BadInput

Kind = Literal["conv", "dense"]
LEAK = 0.2  # slope of leaky ReLUs below 0
CHUNK_ROWS = 500  # rows made at once


class Range(nn.Module):
    """Between which numbers rows lie, [0, 1] and whatever came beyond it."""

    low: Tensor
    high: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("low", torch.zeros(()))
        self.register_buffer("high", torch.ones(()))

    def widen(self, x: Tensor) -> None:
        self.low.copy_(torch.minimum(self.low, x.min()))
        self.high.copy_(torch.maximum(self.high, x.max()))

    def to_unit(self, x: Tensor) -> Tensor:
        return (x - self.low) / (self.high - self.low)

    def from_unit(self, u: Tensor) -> Tensor:
        return torch.addcmul(self.low, self.high - self.low, u)


class Generators(Growing):
    """A generator per part; the caller says which one makes rows (B, *shape) of noise (B, latent)."""

    def __init__(self, shape: tuple[int, ...], kind: Kind, width: int, latent: int) -> None:
        super().__init__()
        self.shape, self.kind, self.width, self.latent = shape, kind, width, latent

    def build(self, name: str) -> nn.Module:
        made = _conv_generator if self.kind == "conv" else _dense_generator
        return nn.ModuleDict({"rows": made(self.shape, self.width, self.latent), "range": Range()})

    def forward(self, z: Tensor, part: str) -> Tensor:
        inside = self.parts[part]
        made: Tensor = inside["range"].from_unit(inside["rows"](z).sigmoid())  # type: ignore[index]
        return made

    def range(self, part: str) -> Range:
        return self.parts[part]["range"]  # type: ignore[index,no-any-return]


def refuse_shape(shape: tuple[int, ...], kind: Kind, method: str) -> None:
    """Convolutions double the size of maps twice."""
    if kind == "conv" and (len(shape) != 3 or any(side % 4 for side in shape[1:])):
        what = f"vectors of {shape[0]}" if len(shape) == 1 else "×".join(map(str, shape))
        raise BadInput(
            f"generator 'conv' of method {method!r} needs images whose sides are multiples of 4, not {what}; "
            "try generator=dense"
        )


def discriminator(shape: tuple[int, ...], kind: Kind, width: int) -> nn.Module:
    """(B, *shape) -> (B, 1): the logit of a row being real."""
    if kind == "dense":
        widths = (math.prod(shape), 32 * width, 16 * width)
        hidden = [m for a, b in pairwise(widths) for m in (nn.Linear(a, b), nn.LeakyReLU(LEAK))]
        return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(widths[-1], 1))
    channels, height, width_ = shape
    layers: list[nn.Module] = []
    for n in (width, 2 * width):
        layers += [nn.Conv2d(channels, n, 5, stride=2, padding=2), nn.LeakyReLU(LEAK)]
        channels = n
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(channels * (height // 4) * (width_ // 4), 1))


def contest(
    generators: Net,
    part: str,
    critic: Net,
    real: Callable[[int], Tensor],
    batch: int,
    lr: float,
    rng: torch.Generator,
) -> Callable[[int], Tensor]:
    """One step of a generative adversarial network (Goodfellow et al., 2014), to be repeated; gives both losses' sum.

        discriminator D:  −log D(x) − log(1 − D(G(z)));   generator G:  −log D(G(z))

    `real` gives so many rows x. Adam with β₁ 0.5, as usual since Radford et al. (2016).
    """
    latent: int = generators.module.latent  # type: ignore[assignment]
    judging, making = (Adam(lr, betas=(0.5, 0.999)) for _ in range(2))
    said = torch.cat([torch.ones(batch, 1), torch.zeros(batch, 1)]).to(critic.device)

    def step(_: int) -> Tensor:
        x = real(batch)
        made = generators(torch.randn(batch, latent, generator=rng).to(x.device), part)
        critic.zero_grad()
        judged = F.binary_cross_entropy_with_logits(critic(torch.cat([x, made.detach()])), said)
        judged.backward()  # type: ignore[no-untyped-call]
        judging.step(critic)
        fooled = F.softplus(-critic(made)).mean()
        (pull,) = torch.autograd.grad(fooled, made)  # the discriminator's own gradient is not needed
        generators.zero_grad()
        (made * pull).sum().backward()  # type: ignore[no-untyped-call]  # given `pull`, torch loads its compiler (2 s)
        making.step(generators)
        return judged.detach() + fooled.detach()

    return step


@torch.no_grad()
def made_rows(generators: Net, part: str, n: int, rng: torch.Generator) -> Tensor:
    """(n, *shape) rows of one generator."""
    latent: int = generators.module.latent  # type: ignore[assignment]
    z = torch.randn(n, latent, generator=rng).to(generators.device)
    with generators.evaluating():
        return torch.cat([generators(chunk, part) for chunk in z.split(CHUNK_ROWS)])


class Autoencoder(nn.Module):
    """Variational autoencoder (Kingma & Welling, 2014) of perceptrons, for rows x scaled to [0, 1].

    L = −Σ_i [x_i log x̂_i + (1 − x_i) log(1 − x̂_i)] + ½ Σ_j (μ_j² + σ_j² − 1 − log σ_j²),   x̂ = G(μ + σε)
    """

    def __init__(self, shape: tuple[int, ...], hidden: tuple[int, ...], latent: int) -> None:
        super().__init__()
        self.shape, self.latent = shape, latent
        self.range = Range()
        size = math.prod(shape)
        self.encoder = _perceptron((size, *hidden, 2 * latent))
        self.decoder = _perceptron((latent, *reversed(hidden), size))

    def forward(self, x: Tensor, rng: torch.Generator) -> Tensor:
        """L, the mean over the rows."""
        unit = self.range.to_unit(x).flatten(1)
        mean, log_variance = self.encoder(unit).chunk(2, 1)
        noise = torch.randn(mean.shape, generator=rng).to(x.device)
        logits = self.decoder(torch.addcmul(mean, (log_variance / 2).exp(), noise))
        away = F.binary_cross_entropy_with_logits(logits, unit, reduction="sum")
        divergence = (mean.square() + log_variance.expm1() - log_variance).sum() / 2
        return (away + divergence) / len(x)

    @torch.no_grad()
    def rows(self, n: int, rng: torch.Generator) -> Tensor:
        """(n, *shape)"""
        z = torch.randn(n, self.latent, generator=rng).to(self.range.low.device)
        return self.range.from_unit(self.decoder(z).sigmoid()).view(n, *self.shape)


def _perceptron(widths: tuple[int, ...]) -> nn.Sequential:
    layers = [m for a, b in pairwise(widths) for m in (nn.Linear(a, b), nn.ReLU())]
    return nn.Sequential(*layers[:-1])


def _dense_generator(shape: tuple[int, ...], width: int, latent: int) -> nn.Module:
    """Hidden layers of 16, 32 and 64 times the width: 256-512-1024, as in paper 001, where it is 16."""
    widths = (latent, 16 * width, 32 * width, 64 * width)
    hidden = [m for a, b in pairwise(widths) for m in (nn.Linear(a, b), nn.LeakyReLU(LEAK))]
    return nn.Sequential(*hidden, nn.Linear(widths[-1], math.prod(shape)), nn.Unflatten(1, shape))


def _conv_generator(shape: tuple[int, ...], width: int, latent: int) -> nn.Module:
    """A linear layer to maps of a quarter of the size, then twice: double it, and a 5×5 convolution (paper 001 C.5)."""
    channels, height, width_ = shape
    small = (width, height // 4, width_ // 4)
    first = [nn.Linear(latent, math.prod(small)), nn.Unflatten(1, small), nn.BatchNorm2d(width), nn.LeakyReLU(LEAK)]
    second = [Doubling(width, width), nn.BatchNorm2d(width), nn.LeakyReLU(LEAK)]
    return nn.Sequential(*first, *second, Doubling(width, channels))


class Doubling(nn.Conv2d):
    """Every pixel becomes 2×2 like it, and a 5×5 convolution that keeps the size follows.

    Of the five pixels under a row of the filter, pairs are alike. So each of the four places in a 2×2 block sees 3×3
    different pixels, and a 3×3 convolution with sums of weights gives the same in a third of the time.
    """

    pairs: Tensor  # (2, 3, 5): place in the block, pixel, column of the filter; 1 where it lies on the pixel

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__(inputs, outputs, 5, padding=2)
        pixel = (torch.arange(2)[:, None] + torch.arange(5) - 2).div(2, rounding_mode="floor") + 1  # (2, 5)
        self.register_buffer("pairs", F.one_hot(pixel, 3).transpose(1, 2).float())

    def forward(self, z: Tensor) -> Tensor:
        weight = torch.einsum("oikl,puk,qvl->opqiuv", self.weight, self.pairs, self.pairs).flatten(0, 2)
        bias = None if self.bias is None else self.bias.repeat_interleave(4)
        return F.pixel_shuffle(F.conv2d(z, weight, bias, padding=1), 2)
