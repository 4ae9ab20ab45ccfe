"""Squared gradients of single examples, layer by layer: one pass for all of them, then a product per layer and example.

For convolutional networks that are a plain sequence of layers, each of which treats every row by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.engine.layout import channels_last, in_row

CHUNK_BYTES = 2**26  # of a convolution's windows and gradients at once
Weighted = nn.Linear | nn.Conv2d


def sequence(module: nn.Module, parameters: Sequence[nn.Parameter]) -> list[nn.Module] | None:
    """The layers of a plain sequence with convolutions, if its parameters lie in θ as it has them; or None."""
    if type(module) is not nn.Sequential:  # a subclass may do more in its forward
        return None
    layers = list(_unwrapped(module))
    mine = [id(p) for m in layers for p in m._parameters.values() if p is not None]
    if mine != [id(p) for p in parameters] or not any(type(m) is nn.Conv2d for m in layers):
        return None
    return layers if all(_known(m) and not _hooked(m) for m in layers) else None


def _unwrapped(module: nn.Module) -> Iterator[nn.Module]:
    """The layers of sequences within sequences."""
    if type(module) is nn.Sequential and not _hooked(module):
        for inner in module:
            yield from _unwrapped(inner)
    else:
        yield module


def squares(layers: list[nn.Module], x: Tensor, loss: Callable[[Tensor], Tensor]) -> Tensor:
    """(P,) Σ over the rows of their squared gradients. x: (n, *shape); loss: of all logits, the sum over rows."""
    pieces: list[Tensor] = []
    for layer, a, delta in _passed(layers, x, loss):
        if isinstance(layer, nn.Conv2d):
            pieces.append(in_row(_convolved_squares(layer, a, delta), layer.weight))
            delta = delta.sum((2, 3))  # (n, O), the gradient of the bias
        else:
            pieces.append(torch.mm(delta.square().t(), a.square()).flatten())  # (δ aᵀ)² = δ² (a²)ᵀ
        if layer.bias is not None:
            pieces.append(delta.square().sum(0))
    return torch.cat(pieces)


@torch.enable_grad()
def _passed(
    layers: list[nn.Module], x: Tensor, loss: Callable[[Tensor], Tensor]
) -> Iterator[tuple[Weighted, Tensor, Tensor]]:
    """(layer, its input, the loss's derivative by its output) of those that have weights."""
    given: list[tuple[Weighted, Tensor]] = []
    gave: list[Tensor] = []
    z = channels_last(x)
    for m in layers:
        if isinstance(m, nn.Linear | nn.Conv2d):
            given.append((m, z.detach()))
            weight, bias = m.weight.detach(), None if m.bias is None else m.bias.detach()
            z = F.linear(z, weight, bias) if isinstance(m, nn.Linear) else m._conv_forward(z, weight, bias)
            gave.append(z if z.requires_grad else z.requires_grad_())
        else:
            z = m(z)
    deltas = torch.autograd.grad(loss(z), gave)
    return ((m, a, delta) for (m, a), delta in zip(given, deltas, strict=True))


def _convolved_squares(layer: nn.Conv2d, a: Tensor, delta: Tensor) -> Tensor:
    """(O, I, kH, kW) Σ_n (δ_n u_n)², δ (n, O, L) at the L places times the windows u (n, L, kH·kW·I) seen from them."""
    weight, (height, width) = layer.weight, delta.shape[2:]
    rows = max(1, CHUNK_BYTES // (4 * weight[0].numel() * (height * width + len(weight))))
    total = torch.zeros(len(weight), weight[0].numel(), device=a.device)
    for some, d in zip(a.split(rows), delta.split(rows), strict=True):
        total += torch.bmm(d.flatten(2), _windows(layer, some, height, width)).square_().sum(0)
    return total.view(len(weight), *layer.kernel_size, layer.in_channels).movedim(-1, 1)


def _windows(layer: nn.Conv2d, a: Tensor, height: int, width: int) -> Tensor:
    """(n, H'·W', kH·kW·I)"""
    padded = F.pad(a, layer._reversed_padding_repeated_twice).movedim(1, -1).contiguous()  # (n, H, W, I)
    row, down, right, channel = padded.stride()
    step, apart = layer.stride, layer.dilation
    strides = (row, down * step[0], right * step[1], down * apart[0], right * apart[1], channel)
    seen = padded.as_strided((len(a), height, width, *layer.kernel_size, layer.in_channels), strides)
    return seen.reshape(len(a), height * width, -1)


def _known(m: nn.Module) -> bool:
    """Whether it is one of the layers that treat every row by itself."""
    if type(m) is nn.Conv2d:
        return m.groups == 1 and m.padding_mode == "zeros"
    if type(m) is nn.ReLU:
        return not m.inplace  # or what a layer gave would be lost
    if type(m) is nn.Flatten:
        return (m.start_dim, m.end_dim) == (1, -1)
    if isinstance(m, nn.Dropout):
        return m.p == 0 or not m.training
    return type(m) in (nn.Linear, nn.Identity, nn.MaxPool2d, nn.AvgPool2d)


def _hooked(m: nn.Module) -> bool:
    return bool(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks)
