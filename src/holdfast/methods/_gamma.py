"""A distribution over paths that branch off one, and how it learns."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Gamma(nn.Module):
    """log Γ of the L + 1 paths that branch off one to the right, a product of choices: old or new, layer by layer."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(layers, 2))

    def forward(self) -> Tensor:
        old, new = self.logits.log_softmax(1).unbind(1)
        stays = F.pad(old.cumsum(0), (1, 0))  # log Π_{l<d} γ_l(old)
        return stays + F.pad(new, (0, 1))


def reinforce(logp: Tensor, drawn: Tensor, reward: Tensor) -> Tensor:
    """The loss whose gradient is −mean_i (r_i − r̄) ∇ log Γ(π_i)."""
    return -((reward - reward.mean()) * logp[drawn]).mean()


def halves(y: Tensor, rng: torch.Generator) -> Tensor:
    """(n,) bool: half of the rows of each class, drawn at random.

    >>> y = torch.tensor([0, 1, 0, 1, 0, 0])
    >>> mine = halves(y, torch.Generator().manual_seed(0))
    >>> [int(mine[y == c].sum()) for c in (0, 1)]
    [2, 1]
    """
    order = torch.randperm(len(y), generator=rng)
    by_class = order[y[order].argsort(stable=True)]
    mine = torch.zeros(len(y), dtype=torch.bool)
    mine[by_class[1::2]] = True
    return mine
