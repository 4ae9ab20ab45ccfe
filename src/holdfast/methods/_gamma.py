"""A distribution over paths that branch off past ones, and how it learns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from holdfast.engine import Growing


class Gamma(Growing):
    """log Γ of the paths that branch off others to the right. Its one part is named after those: "[[0, 0], [0, 1]]"."""

    def build(self, name: str) -> nn.Module:
        return Choices(json.loads(name))

    def forward(self) -> Tensor:
        return next(iter(self.parts.values()))()  # type: ignore[no-any-return]


class Choices(nn.Module):
    """log Γ(π) = Σ log γ of the choices on the way of π, in the order of `beginnings`.

    At each node of the tree that the others make, γ is a softmax over the modules that follow there, and new ones from
    there on.
    """

    def __init__(self, paths: Sequence[Sequence[int]]) -> None:
        super().__init__()
        ends, layers = beginnings(paths), len(paths[0])
        choices: list[tuple[tuple[int, ...], int | None]] = [(end[:-1], end[-1]) for end in ends if end]
        choices += [(end, None) for end in ends if len(end) < layers]  # new from here on
        ways = [{*((end[:d], end[d]) for d in range(len(end))), (end, None)} for end in ends]
        self.logits = nn.Parameter(torch.zeros(len(choices)))
        self.rivals: Tensor
        self.register_buffer("rivals", torch.tensor([[a[0] == b[0] for b in choices] for a in choices]))
        self.ways: Tensor
        self.register_buffer("ways", torch.tensor([[float(choice in way) for choice in choices] for way in ways]))

    def forward(self) -> Tensor:
        logp = self.logits - torch.where(self.rivals, self.logits, -torch.inf).logsumexp(1)  # of the choices
        return self.ways @ logp


def beginnings(paths: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """What a path that branches off one of these may reuse: nothing first, last all of a path.

    >>> beginnings([[0, 0], [0, 1]])
    [(), (0,), (0, 0), (0, 1)]
    """
    return list(dict.fromkeys(tuple(path[:d]) for d in range(len(paths[0]) + 1) for path in paths))


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
