"""Quadratic penalties on θ in two passes over the vector, however many anchors they hold."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor


class _Quadratic(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, theta: Tensor, importance: Tensor, anchored: Tensor) -> Tensor:
        pulled = importance * theta  # A θ
        ctx.save_for_backward(pulled, anchored)
        return 0.5 * pulled.dot(theta) - anchored.dot(theta)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        pulled, anchored = ctx.saved_tensors
        return (pulled - anchored).mul_(grads[0]), None, None


def quadratic(theta: Tensor, importance: Tensor, anchored: Tensor) -> Tensor:
    """½ Σ_i (A_i θ_i² − 2 B_i θ_i).

    With A = Σ_k F_k and B = Σ_k F_k θ*_k this is ½ Σ_k F_k (θ − θ*_k)² up to a constant.

    >>> theta = torch.tensor([3.0], requires_grad=True)
    >>> quadratic(theta, torch.tensor([2.0]), torch.tensor([2.0])).backward()  # F = 2, θ* = 1
    >>> theta.grad  # F (θ − θ*)
    tensor([4.])
    """
    return _Quadratic.apply(theta, importance, anchored)  # type: ignore[no-any-return,no-untyped-call]
