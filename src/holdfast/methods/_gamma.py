"""A distribution over paths that branch off past ones, and how it learns."""

from __future__ import annotations

import json
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from holdfast.engine import Growing
from holdfast.types import Batch

SURE = 0.99  # Γ of the likeliest path from which on it is the only one


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


def halves(y: Tensor, own: int, rng: torch.Generator) -> Tensor:
    """(n,) bool: half of the rows of each class, drawn at random. The first `own` rows stand for their copies, which
    come after all of them.

    >>> y = torch.tensor([0, 1, 0, 1, 0, 0] * 2)
    >>> mine = halves(y, 6, torch.Generator().manual_seed(0))
    >>> [int(mine[:6][y[:6] == c].sum()) for c in (0, 1)], bool((mine[:6] == mine[6:]).all())
    ([2, 1], True)
    """
    order = torch.randperm(own, generator=rng)
    by_class = order[y[order].argsort(stable=True)]
    mine = torch.zeros(own, dtype=torch.bool)
    mine[by_class[1::2]] = True
    return mine.repeat(len(y) // own)


def rows_of(batch: Batch, which: Tensor) -> Batch:
    return Batch(batch.x[which], batch.y[which], batch.task)
