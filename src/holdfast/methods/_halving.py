"""Which paths of MNTDP are worth learning to the end: a cheap search that is ours, not paper 000's.

All paths learn for a quarter of the steps, those that may still win for half of them, and what is left to the end.
Short training favours reuse: a path with many new modules is behind at first and may win. So what is dropped must be
behind by a margin, wider the more a path has to learn and the fewer rows it is judged by; and a path is taken for at
least as good as a ridge classifier on the features that it reuses. Only what was learned to the end is ever taken.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from holdfast.audit.lease import Lease
from holdfast.methods._library import Modular, Trunk
from holdfast.seeds import beside

RUNGS = (0.25, 0.5, 1.0)  # of a task's steps
MARGINS = {0.25: 0.08, 0.5: 0.03}  # of accuracy, at each rung but the last
ALIKE = 0.05  # paths whose shares of new weights differ by less are alike: only the best of them goes on
PROBE_ROWS = 1000
RIDGE = 1.0  # times the number of rows, on standardised features


class Racer(NamedTuple):
    """A path that is being learned."""

    name: str
    worth: float  # its best accuracy on the validation rows so far, however the protocol compares trials in the end
    probe: float  # that of a ridge classifier on what it reuses
    learns: float  # the share of its weights that are new
    reuses: tuple[int, ...] = ()  # the makers of its other modules


def survivors(racing: Sequence[Racer], best: float, margin: float, rows: int) -> list[str]:
    """Those that may still be the best: max(q, probe) ≥ best − m (1 + share of new weights) − 1/(4√rows).

    `best`: of all paths, those that have nothing to learn included. Of paths that are alike the better one goes on:
    off the same past path, and nearly as much to learn.

    >>> racing = [Racer("new", 0.45, 0.2, 1.0), Racer("nearly", 0.44, 0.2, 0.99), Racer("head", 0.45, 0.4, 0.01)]
    >>> survivors(racing, best=0.6, margin=0.1, rows=2500)  # 0.6 − 0.2 − 0.005, and 0.6 − 0.101 − 0.005
    ['new']
    """
    noise = 0.25 / math.sqrt(rows)
    able = [r for r in racing if max(r.worth, r.probe) >= best - margin * (1 + r.learns) - noise]
    left: list[Racer] = []
    for racer in sorted(able, key=lambda r: -r.worth):
        if not any(_alike(racer, other) for other in left):
            left.append(racer)
    return [r.name for r in racing if r in left]


def _alike(a: Racer, b: Racer) -> bool:
    one_path = all(mine == its for mine, its in zip(a.reuses, b.reuses, strict=False))
    return one_path and abs(a.learns - b.learns) < ALIKE


def probes(learner: Modular, train: Lease, trunks: Mapping[str, Trunk]) -> dict[str, float]:
    """Per path how well a ridge classifier does on what its reused modules put out: about what it can be held to before
    its new modules have learned."""
    some = torch.randperm(len(train), generator=beside(learner.rng, "probe"))[:PROBE_ROWS]
    batch, val, val_y = train.take(some), train.val_x[:PROBE_ROWS], train.val_y[:PROBE_ROWS]
    ours, theirs = (learner.features(x, list(trunks.values()), pooled=True) for x in (batch.x, val))
    return {name: ridge_accuracy(ours[trunk], batch.y, theirs[trunk], val_y) for name, trunk in trunks.items()}


def ridge_accuracy(x: Tensor, y: Tensor, val_x: Tensor, val_y: Tensor) -> float:
    """Of W = argmin ‖X W − Y‖² + λ‖W‖², with X standardised and Y one-hot, on other rows. x: (n, F), y: (n,)."""
    mean, deviation = x.mean(0), x.std(0).clamp(min=1e-6)
    x, val_x = ((each - mean) / deviation for each in (x, val_x))
    targets = F.one_hot(y, int(max(y.max(), val_y.max())) + 1).to(x.dtype)
    kernel = x @ x.T + RIDGE * len(x) * torch.eye(len(x), dtype=x.dtype, device=x.device)  # (n, n): n < F
    weights = torch.linalg.solve(kernel, targets - targets.mean(0))
    return ((val_x @ x.T @ weights + targets.mean(0)).argmax(1) == val_y).double().mean().item()
