"""What learning a Gaussian over each weight takes besides its bound: draws, a start, and rows to keep."""

from __future__ import annotations

import copy

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Net, cross_entropy, repeat
from holdfast.methods._base import Learner
from holdfast.seeds import beside
from holdfast.types import Batch, Lesson


def likelihood(net: Net, batch: Batch, samples: int, rng: torch.Generator, allowed: Tensor | None) -> Tensor:
    """Put the gradient of 1/S Σ_s CE(w_s) into `net.grad`; gives that term."""
    net.zero_grad()
    logits = net(batch.x, samples, rng).flatten(0, 1)  # (S·B, C)
    if allowed is not None and allowed.dim() == 2:
        allowed = allowed.repeat(samples, 1)
    loss = cross_entropy(logits, batch.y.repeat(samples), allowed)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach()


def fit_means(learner: Learner, train: Lease, plan: Lesson) -> None:
    """Maximum likelihood: the variances take no part, and so stay as they are."""
    kept, optimiser = train.kept(), copy.deepcopy(learner.optimiser)
    rng, order = beside(learner.rng, "likelihood"), torch.zeros(0, dtype=torch.long)

    def step(i: int) -> Tensor:
        nonlocal order
        if not len(order):
            order = kept[torch.randperm(len(kept), generator=rng)]
        rows, order = order[: plan.batch], order[plan.batch :]
        loss = learner.backward(learner.cross_entropy(train.take(rows)))
        optimiser.step(learner.net)
        return loss

    repeat(plan.steps, step, "maximum likelihood")


def output_means(net: Net, vector: Tensor) -> Tensor:
    """The entries of a (P,) vector that are means of the last layer: they are what weights are in other networks."""
    means = [view for name, view in net.unflatten(vector).items() if name.startswith("means.")]
    return torch.cat([view.flatten() for view in means[-2:]])


def k_center(x: Tensor, n: int) -> Tensor:
    """n rows, each the one farthest from those before it; the first is row 0 (Nguyen et al., 2018).

    >>> k_center(torch.tensor([[0.0], [1.0], [9.0], [5.0]]), 3).tolist()
    [0, 2, 3]
    """
    chosen = [0] * min(n, 1)
    far = torch.full((len(x),), torch.inf, device=x.device)
    while len(chosen) < n:
        far = torch.minimum(far, (x - x[chosen[-1]]).square().sum(1))
        chosen.append(int(far.argmax()))
    return torch.tensor(chosen, dtype=torch.long)
