"""The one place where batches are cut: shuffled rows, bytes until the last moment, no work per example."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from holdfast.seeds import beside
from holdfast.types import Batch, Part

BLOCK_ROWS = 4096  # rows gathered and transformed together; batches are slices of a block


def batches(
    part: Part,
    size: int,
    rng: torch.Generator,
    task: int | Tensor | None,
    kept: Tensor | None = None,
    *,
    ordered: bool = False,
    rows: bool = False,
) -> Iterator[Batch]:
    """One pass over a part in random order, or as it lies. `task` may be one index per row of the part; `kept` limits
    the rows; `rows`: batches say which they have.

    Augmentation has random numbers of its own, other ones for each pass, so that the order is the same without it.
    """
    dice = beside(rng, "augmentation") if part.augment is not None else rng
    n = len(part) if kept is None else len(kept)
    order = torch.randperm(n, generator=rng)  # also where it is not used: each pass has dice of its own
    if ordered:
        order = torch.arange(n)
    if kept is not None:
        order = kept[order]
    order = order.to(part.y.device)
    for block in order.split(size * max(1, BLOCK_ROWS // size)):
        raw, y = part.raw(block), part.y[block]
        tasks = task[block] if isinstance(task, Tensor) else None
        for i in range(0, len(block), size):
            stop = i + size
            mine = raw[i:stop] if part.augment is None else part.augment(raw[i:stop], dice)
            said = task if tasks is None else tasks[i:stop]
            yield Batch(part.seen(mine, block[i:stop]), y[i:stop], said, block[i:stop] if rows else None)
