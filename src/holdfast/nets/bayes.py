"""Bayesian perceptrons: every weight has a mean and a variance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from holdfast.nets._base import Init, NetSpec, begun
from holdfast.settings import Count
from holdfast.types import StreamInfo

Sampling = Literal["weights", "local"]


@final
@dataclass(frozen=True)
class Bayes(NetSpec):
    """Mean-field Gaussian ReLU perceptron (Blundell et al., 2015; papers 001, 000): w_i ~ N(μ_i, e^ρ_i), independent.

    θ = (μ, ρ): its first half are all means, its second all log-variances. Without samples the network answers with its
    means; with S of them it gives (S, B, C): by `weights`, one draw of all weights for each, or `local`, one of every
    unit's input for each row (Kingma et al., 2015). A row's answers are distributed alike under both; gradients have
    less noise under the second, and ten samples cost 0.4 of ten passes in place of 0.7 (benchmarks/bayes.py). To
    predict, weights are drawn, the same for all rows, so that what is said of a row does not depend on those beside it.

    >>> from holdfast.types import StreamInfo
    >>> info = StreamInfo("split", "class", (1, 8, 8), 10, ((0, 1, 2, 3, 4), (5, 6, 7, 8, 9)))
    >>> sum(p.numel() for p in Bayes(hidden=(20,)).build(info).parameters())  # twice those of mlp
    3020
    """

    hidden: tuple[Count, ...] = (100, 100)  # units of each hidden layer
    log_variance: float = -6.0  # ρ of every weight at the start
    sampling: Sampling = "local"  # in training: every unit's input is drawn for each row, or weights once per sample
    init: Init = "tenth0"  # of the means: torch's own, xavier, truncated, tenth or tenth0 (deviation 0.1, biases 0)

    def build(self, info: StreamInfo) -> nn.Module:
        widths = (math.prod(info.shape), *self.hidden, info.classes)
        return MeanField(widths, self.log_variance, self.sampling, self.init)


class MeanField(nn.Module):
    """The network behind `bayes`."""

    def __init__(self, widths: Sequence[int], log_variance: float, sampling: Sampling, init: Init) -> None:
        super().__init__()
        layers = [begun(nn.Linear(a, b), init) for a, b in pairwise(widths)]
        each = [p.detach() for layer in layers for p in (layer.weight, layer.bias)]
        self.means = nn.ParameterList(nn.Parameter(p) for p in each)
        self.log_variances = nn.ParameterList(nn.Parameter(torch.full_like(p, log_variance)) for p in each)
        self.sampling = sampling

    def forward(self, x: Tensor, samples: int = 0, rng: torch.Generator | None = None) -> Tensor:
        """(B, C) by the means, or (S, B, C)."""
        h = x.flatten(1)
        layers = list(zip(*(iter(self.means),) * 2, *(iter(self.log_variances),) * 2, strict=True))
        for i, (weight, bias, weight_ρ, bias_ρ) in enumerate(layers):
            if samples == 0:
                h = F.linear(h, weight, bias)
            elif self.sampling == "weights" or not self.training:
                h = _by_weights(h, _drawn(weight, weight_ρ, samples, rng), _drawn(bias, bias_ρ, samples, rng))
            else:
                mean = F.linear(h, weight, bias)
                variance = F.linear(h.square(), weight_ρ.exp(), bias_ρ.exp())
                h = _local(mean, variance, samples, rng)
            if i + 1 < len(layers):
                h = h.relu()
        return h


def _drawn(mean: Tensor, log_variance: Tensor, samples: int, rng: torch.Generator | None) -> Tensor:
    """(S, *shape): μ + e^(ρ/2) ε."""
    noise = torch.randn(samples, *mean.shape, generator=rng).to(mean.device)  # drawn on the CPU, whatever the device
    return torch.addcmul(mean, (log_variance / 2).exp(), noise)


def _by_weights(h: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """(S, B, out) of inputs (B, in), the same for all samples, or (S, B, in)."""
    if h.dim() == 2:  # one product for all samples
        samples, out, _ = weight.shape
        return (h @ weight.flatten(0, 1).T + bias.flatten()).view(len(h), samples, out).transpose(0, 1)
    return torch.baddbmm(bias[:, None], h, weight.transpose(1, 2))


def _local(mean: Tensor, variance: Tensor, samples: int, rng: torch.Generator | None) -> Tensor:
    """(S, B, out): inputs of units, drawn for every row."""
    shape = mean.shape if mean.dim() == 3 else (samples, *mean.shape)
    noise = torch.randn(shape, generator=rng).to(mean.device)
    return torch.addcmul(mean, variance.sqrt(), noise)


def bayesian(module: nn.Module) -> MeanField | None:
    """The Bayesian network whose means are the weights of a plain perceptron; None where the module is none."""
    if isinstance(module, MeanField):
        return module
    layers = [m for m in module.children() if isinstance(m, nn.Linear)]
    others = [m for m in module.children() if not isinstance(m, nn.Linear | nn.ReLU | nn.Flatten)]
    if not isinstance(module, nn.Sequential) or not layers or others or any(m.bias is None for m in layers):
        return None
    spec = Bayes()
    widths = (layers[0].in_features, *(m.out_features for m in layers))
    made = MeanField(widths, spec.log_variance, spec.sampling, "torch")
    with torch.no_grad():
        for mean, weight in zip(made.means, (p for m in layers for p in (m.weight, m.bias)), strict=True):
            mean.copy_(weight)
    return made


def divergence(theta: Tensor, prior: Tensor, among: Tensor | None = None) -> Tensor:
    """KL(q ‖ p) of two mean-field Gaussians, θ = (μ, ρ) each, over the weights `among` whose (P/2,) is true.

    KL = ½ Σ_i (e^(ρ_i − ρ0_i) − 1 − (ρ_i − ρ0_i) + (μ_i − μ0_i)² / e^ρ0_i)

    >>> divergence(torch.tensor([1.0, 0.0]), torch.zeros(2))  # N(1, 1) and N(0, 1)
    tensor(0.5000)
    """
    (mean, rho), (mean0, rho0) = theta.chunk(2, -1), prior.chunk(2, -1)
    wider = rho - rho0
    each = wider.expm1() - wider + (mean - mean0).square() * (-rho0).exp()
    return (each if among is None else each * among).sum(-1) / 2


@torch.no_grad()
def descend_divergence(grad: Tensor, theta: Tensor, prior: Tensor, share: float, among: Tensor | None = None) -> None:
    """grad ← grad + share · ∂KL/∂θ, that is (μ − μ0) / e^ρ0 for means and ½ (e^(ρ − ρ0) − 1) for log-variances.

    Without autograd, which would pass over θ several times more.
    """
    (mean, rho), (mean0, rho0) = theta.chunk(2, -1), prior.chunk(2, -1)
    for_mean, for_rho = (mean - mean0) * (-rho0).exp(), (rho - rho0).expm1()
    if among is not None:
        for_mean, for_rho = for_mean * among, for_rho * among
    grad_mean, grad_rho = grad.chunk(2, -1)
    grad_mean.add_(for_mean, alpha=share)
    grad_rho.add_(for_rho, alpha=share / 2)
