"""Quadratic penalties on θ in two passes over what moves of it, however many anchors they hold."""

from __future__ import annotations

import torch
from torch import Tensor

from holdfast.engine.theta import Net


@torch.no_grad()
def pull(net: Net, importance: Tensor, anchored: Tensor, strength: float) -> None:
    """net.grad ← net.grad + λ (A θ − B), the gradient of λ/2 Σ_i (A_i θ_i² − 2 B_i θ_i).

    With A = Σ_k F_k and B = Σ_k F_k θ*_k this is λ/2 Σ_k F_k (θ − θ*_k)² up to a constant.

    >>> net = Net(torch.nn.Linear(1, 1, bias=False))
    >>> net.set(torch.tensor([3.0]))
    >>> pull(net, torch.tensor([2.0]), torch.tensor([2.0]), strength=1.0)  # F = 2, θ* = 1
    >>> net.grad  # F (θ − θ*)
    tensor([4.])
    """
    for span in net.moving:
        here = slice(span.start, span.stop)
        span.grad.addcmul_(importance[here], span.theta, value=strength).sub_(anchored[here], alpha=strength)
