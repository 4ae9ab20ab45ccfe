"""Gradients of many groups of examples at once: per past task (GEM) or per example (Fisher information)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from holdfast.engine.layout import channels_last, in_default, in_row, in_shape, lies_last
from holdfast.engine.per_layer import sequence
from holdfast.engine.per_layer import squares as squares_of
from holdfast.types import Gate

CHUNK_BYTES = 2**27  # the per-example gradients of one chunk stay below 128 MB
CHUNK_ROWS = 4096  # examples at once where their gradients are never written out
PASS_ROWS = 64  # examples in one pass of a convolutional network
PASS_NUMBERS = 4096  # inputs of a group from which a pass of its own is faster where there are convolutions
PASS_WEIGHTS = 10**6  # entries of θ from which it is, too


def cross_entropy(logits: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
    """Mean cross-entropy; outputs that are not allowed take no part. allowed: (C,) or (B, C)."""
    return F.cross_entropy(restrict(logits, allowed), y)


def _summed_cross_entropy(y: Tensor, allowed: Tensor | None, logits: Tensor) -> Tensor:
    return F.cross_entropy(restrict(logits, allowed), y, reduction="sum")


def restrict(logits: Tensor, allowed: Tensor | None) -> Tensor:
    """Logits with −∞ where an output is not allowed."""
    return logits if allowed is None else logits.masked_fill(~allowed, -torch.inf)


def grouped_gradients(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Tensor:
    """(N, P) ∂/∂θ of the mean cross-entropy of each group; x (N, B, *shape), y (N, B), allowed (N, C) or None."""
    chain = chain_in_order(module, parameters)
    if chain is not None:
        return _chain_gradients(chain, x, y, allowed)
    if _pass_each(module, parameters, x):
        return _one_by_one(module, parameters, x, y, allowed)
    return _vmapped(module, parameters, x, y, allowed)


def summed_squares(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Tensor:
    """(P,) Σ over examples of (∂CE/∂θ)²; x (n, *shape), y (n,), allowed (n, C) or None. Memory stays bounded."""
    if not len(y):
        raise ValueError("there are no examples to take gradients of")
    chain, layers = chain_in_order(module, parameters), sequence(module, parameters)
    if chain is not None or layers is not None:  # gradients are never written out
        chunk = CHUNK_ROWS if chain is not None else PASS_ROWS
    elif _pass_each(module, parameters, x):
        return _squares_one_by_one(module, parameters, x, y, allowed)
    else:
        chunk = max(1, CHUNK_BYTES // (4 * sum(p.numel() for p in parameters)))
    total = torch.zeros(sum(p.numel() for p in parameters), device=x.device)
    for i in range(0, len(y), chunk):
        xs, ys, masks = x[i : i + chunk], y[i : i + chunk], None if allowed is None else allowed[i : i + chunk]
        if chain is not None:
            squares = _chain_squares(chain, xs, ys, masks)
        elif layers is not None:
            squares = squares_of(layers, xs, partial(_summed_cross_entropy, ys, masks))
        else:
            squares = _vmapped(module, parameters, xs[:, None], ys[:, None], masks).square_().sum(0)
        total += squares
    return total


def chain_in_order(module: nn.Module, parameters: Sequence[nn.Parameter]) -> list[Layer] | None:
    """The module's linear chain, if its parameters lie in θ as the chain has them."""
    chain = linear_chain(module)
    if chain is None or 2 * len(chain) != len(parameters):
        return None
    for layer, weight, bias in zip(chain, parameters[::2], parameters[1::2], strict=True):
        if layer.weight is not weight or layer.bias is not bias:
            return None
    return chain


class Layer(NamedTuple):
    """A linear layer and the gates before it, each of which passes an entry of its input, scaled, or makes it 0."""

    gates: list[nn.Module]
    weight: Tensor
    bias: Tensor
    scale: float  # of what passes: 1/(1 − p) for dropout

    def slope(self, a: Tensor) -> Tensor:
        """∂a/∂z of the gated input a = gates(z): what passed is not 0."""
        passed = a.sign() if type(self.gates[0]) is nn.ReLU else a.sign().abs_()
        return passed if self.scale == 1 else passed.mul_(self.scale)


def linear_chain(module: nn.Module) -> list[Layer] | None:
    """The layers of a perceptron (Flatten, Linear, ReLU or another gate, Dropout, Linear, ...), or None.

    It is asked at every step, since hooks and modes may have changed; so it looks where torch itself keeps things.
    """
    plain = isinstance(module, nn.Sequential) and type(module).forward is nn.Sequential.forward
    if not plain or _hooked(module):
        return None
    chain: list[Layer] = []
    gates: list[nn.Module] = []
    scale = 1.0
    for m in module._modules.values():
        if m is None or _hooked(m):
            return None
        if type(m) is nn.Linear:
            weight, bias = m._parameters.get("weight"), m._parameters.get("bias")
            if weight is None or bias is None or bool(gates and _activates(gates[0])) != bool(chain):
                return None
            chain.append(Layer(gates, weight, bias, scale))
            gates, scale = [], 1.0
        elif _activates(m):
            gates.append(m)
        elif _passes_through(m):
            continue
        elif isinstance(m, nn.Dropout) and m.p < 1 and not m.inplace:
            gates.append(m)
            scale *= 1 / (1 - m.p)
        else:
            return None
    return chain if chain and not gates else None


def _hooked(m: nn.Module) -> bool:
    return bool(m._forward_hooks or m._forward_pre_hooks or m._backward_hooks)


def _activates(m: nn.Module) -> bool:
    return type(m) is nn.ReLU or isinstance(m, Gate)


def _passes_through(m: nn.Module) -> bool:
    if type(m) is nn.Flatten:
        return (m.start_dim, m.end_dim) == (1, -1)
    return type(m) is nn.Identity or (isinstance(m, nn.Dropout) and (m.p == 0 or not m.training))


@torch.no_grad()
def chain_gradient(chain: list[Layer], x: Tensor, y: Tensor, allowed: Tensor | None, into: Sequence[Tensor]) -> Tensor:
    """The mean cross-entropy; its gradient goes into the tensors `into`: weights and biases as the chain has them."""
    inputs, logits = _forward(chain, x)
    logp = restrict(logits, allowed).log_softmax(-1)
    loss = F.nll_loss(logp, y)
    layer = len(chain)
    for delta, a in _backward(chain, inputs, _error(logp, y).div_(len(y))):
        layer -= 1
        torch.mm(delta.t(), a, out=into[2 * layer])
        torch.sum(delta, 0, out=into[2 * layer + 1])
    return loss


@torch.no_grad()
def _back_propagated(
    chain: list[Layer], x: Tensor, y: Tensor, allowed: Tensor | None, share: int = 1
) -> Iterator[tuple[Tensor, Tensor]]:
    """(∂CE/∂output, input) of every layer, last layer first: (n, out) and (n, in), of Σ CE / share."""
    inputs, logits = _forward(chain, x)
    yield from _backward(chain, inputs, _error(restrict(logits, allowed).log_softmax(-1), y).div_(share))


def _forward(chain: list[Layer], x: Tensor) -> tuple[list[Tensor], Tensor]:
    """The gated input of every layer, and the logits."""
    inputs, z = [], x.flatten(1)
    for gates, weight, bias, _ in chain:
        for gate in gates:
            z = z.relu_() if type(gate) is nn.ReLU else gate(z)
        inputs.append(z)
        z = torch.addmm(bias, z, weight.t())
    return inputs, z


def _error(logp: Tensor, y: Tensor) -> Tensor:
    """∂CE/∂logits = softmax − onehot."""
    return logp.exp().scatter_(1, y.unsqueeze(1), -1.0, reduce="add")


def _backward(chain: list[Layer], inputs: list[Tensor], delta: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    for layer, a in zip(reversed(chain), reversed(inputs), strict=True):
        yield delta, a
        if layer is not chain[0]:
            delta = torch.mm(delta, layer.weight).mul_(layer.slope(a))


def _chain_gradients(chain: list[Layer], x: Tensor, y: Tensor, allowed: Tensor | None) -> Tensor:
    """Back-propagation by hand: the weights are shared, so only the last product is done per group."""
    n, b = y.shape
    allowed = None if allowed is None else allowed.repeat_interleave(b, 0)
    pieces: list[Tensor] = []
    for delta, a in _back_propagated(chain, x.flatten(0, 1), y.flatten(), allowed, share=b):
        d = delta.view(n, b, -1)
        pieces += [d.sum(1), torch.bmm(d.transpose(1, 2), a.view(n, b, -1)).flatten(1)]
    return torch.cat(pieces[::-1], 1)


def _chain_squares(chain: list[Layer], x: Tensor, y: Tensor, allowed: Tensor | None) -> Tensor:
    """Σ_n of the squared gradients of each example: (δ aᵀ)² = δ² (a²)ᵀ, so one product per layer and no (n, P)."""
    pieces: list[Tensor] = []
    for delta, a in _back_propagated(chain, x, y, allowed):
        squared = delta.square()
        pieces += [squared.sum(0), torch.mm(squared.t(), a.square()).flatten()]
    return torch.cat(pieces[::-1])


def _vmapped(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Tensor:
    names = {id(p): name for name, p in module.named_parameters()}
    theta = {names[id(p)]: in_default(p.detach()) for p in parameters}  # torch batches not all that is channels_last
    buffers = dict(module.named_buffers())

    def loss(theta: dict[str, Tensor], x: Tensor, y: Tensor, allowed: Tensor | None) -> Tensor:
        return cross_entropy(functional_call(module, (theta, buffers), (x,)), y, allowed)

    in_dims = (None, 0, 0, None if allowed is None else 0)
    per_name = vmap(grad(loss), in_dims=in_dims, randomness="different")(theta, x, y, allowed)
    return torch.cat([in_row(per_name[names[id(p)]], p) for p in parameters], 1)


def _pass_each(module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor) -> bool:
    """Whether there is one pass for each of the groups x (N, ...)."""
    return _batch_statistics(module) or _much_to_convolve(parameters, x)


def _batch_statistics(module: nn.Module) -> bool:
    """They depend on the whole group and move at every pass, so there must be one pass per group, as in training."""
    return any(isinstance(m, nn.modules.batchnorm._BatchNorm) and m.training for m in module.modules())


def _much_to_convolve(parameters: Sequence[nn.Parameter], x: Tensor) -> bool:
    """Whether one pass per group is faster than all groups batched, of a network with convolutions.

    It is where a pass has much to do, for its cost beside that is saved by batching: `conv` with 8 and 16 filters on
    8×8 images, one by one, takes 7 times as long as batched; on 32×32×3 in groups of 64, 0.6 of the time
    (benchmarks/gradients.py).
    """
    if not any(p.dim() >= 4 for p in parameters):
        return False
    return x[0].numel() >= PASS_NUMBERS or sum(p.numel() for p in parameters) >= PASS_WEIGHTS


def _one_by_one(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Tensor:
    """One pass per group."""
    rows = torch.zeros(len(y), sum(p.numel() for p in parameters), device=x.device)
    for row, found in zip(rows, _passes(module, parameters, x, y, allowed), strict=True):
        for place, g in zip(_places(row, parameters), found, strict=True):
            if g is not None:
                place.copy_(g)
    return rows


def _squares_one_by_one(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Tensor:
    """(P,) Σ over examples of their squared gradients, a pass for each."""
    total = torch.zeros(sum(p.numel() for p in parameters), device=x.device)
    places = _places(total, parameters)
    for found in _passes(module, parameters, x[:, None], y[:, None], allowed):
        for place, g in zip(places, found, strict=True):
            if g is not None:
                place.addcmul_(g, g)
    return total


def _places(row: Tensor, parameters: Sequence[nn.Parameter]) -> list[Tensor]:
    """Views of a (P,) row, one per parameter in its shape."""
    pieces = row.split([p.numel() for p in parameters])
    return [in_shape(piece, p) for piece, p in zip(pieces, parameters, strict=True)]


def _passes(
    module: nn.Module, parameters: Sequence[nn.Parameter], x: Tensor, y: Tensor, allowed: Tensor | None
) -> Iterator[list[Tensor | None]]:
    """Of one group after the other, the gradient of each parameter; None where the loss does not depend on it."""
    moving = [p for p in parameters if p.requires_grad]
    if x.dim() == 5 and any(lies_last(p) for p in parameters):  # (N, B, C, H, W)
        x = channels_last(x)
    for i in range(len(y)):
        with torch.enable_grad():
            loss = cross_entropy(module(x[i]), y[i], None if allowed is None else allowed[i])
            found = iter(torch.autograd.grad(loss, moving, allow_unused=True))
        yield [next(found) if p.requires_grad else None for p in parameters]
