"""What a step of VCL costs: 10 draws of the weights in one pass, beside a loop by hand and beside ten single passes.

    python benchmarks/bayes.py [--repeats 40] [--samples 10] [--batch 256]

784-256-256-10, Adam. By the process's own time, in turns, medians. `hand`: batched products, autograd's KL and torch's
Adam, as one writes it for this network alone. `singles`: S whole steps of one draw each.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor

from holdfast.engine import Adam, Net
from holdfast.methods.vcl import VCL
from holdfast.nets.bayes import MeanField
from holdfast.seeds import generator, seeded
from holdfast.types import Batch, StreamInfo

WIDTHS = (784, 256, 256, 10)
ROWS = 12_000  # N of KL/N
TO_HAND, TO_SINGLES = 1.2, 0.5  # at most


def ours(samples: int, sampling: Literal["weights", "local"], batch: Batch) -> Callable[[], object]:
    with seeded(0):
        net = Net(MeanField(WIDTHS, -6.0, sampling, "tenth0"))
    learner = VCL(samples=samples, likelihood_start=False)
    info = StreamInfo("bench", "class", (WIDTHS[0],), WIDTHS[-1], (tuple(range(WIDTHS[-1])),))
    learner.start(net, Adam(1e-3), info, generator(0))
    learner.rows = ROWS
    return lambda: learner.observe(batch)


def by_hand(samples: int, sampling: Literal["weights", "local"], batch: Batch) -> Callable[[], object]:
    rng = torch.Generator().manual_seed(0)
    shapes = [shape for a, b in pairwise(WIDTHS) for shape in ((b, a), (b,))]
    means = [(0.1 * torch.randn(shape, generator=rng)).requires_grad_() for shape in shapes]
    rhos = [torch.full(shape, -6.0).requires_grad_() for shape in shapes]
    adam = torch.optim.Adam(means + rhos, 1e-3)
    y = batch.y.repeat(samples)

    def layer(h: Tensor, i: int) -> Tensor:
        if sampling == "weights":
            W, b = (
                m + (r / 2).exp() * torch.randn(samples, *m.shape, generator=rng)
                for m, r in zip(means[i : i + 2], rhos[i : i + 2], strict=True)
            )
            return torch.baddbmm(b[:, None], h, W.transpose(1, 2))
        mean = h @ means[i].T + means[i + 1]
        variance = h**2 @ rhos[i].exp().T + rhos[i + 1].exp()
        return mean + variance.sqrt() * torch.randn(samples, *mean.shape[-2:], generator=rng)

    def step() -> None:
        adam.zero_grad()
        h = batch.x.expand(samples, *batch.x.shape) if sampling == "weights" else batch.x
        for i in (0, 2, 4):
            h = layer(h, i)
            h = h.relu() if i < 4 else h
        kl = sum(0.5 * (r.exp() + m**2 - 1 - r).sum() for m, r in zip(means, rhos, strict=True))
        (torch.nn.functional.cross_entropy(h.flatten(0, 1), y) + kl / ROWS).backward()
        adam.step()

    return step


def seconds(step: Callable[[], object], times: int) -> float:
    before = time.process_time()
    for _ in range(times):
        step()
    return time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--samples", type=int, default=10)
    parser.add_argument("--batch", type=int, default=256)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    batch = Batch(
        torch.rand(asked.batch, WIDTHS[0], generator=rng), torch.randint(10, (asked.batch,), generator=rng), 0
    )
    print(f"{asked.samples} draws, batches of {asked.batch}; milliseconds of a step, medians of {asked.repeats}")
    print(f"{'sampling':<10}{'vcl':>8}{'hand':>8}{'singles':>9}{'÷ hand':>8}{'÷ singles':>11}")
    for sampling in ("weights", "local"):
        contestants = {
            "vcl": (ours(asked.samples, sampling, batch), 1),
            "hand": (by_hand(asked.samples, sampling, batch), 1),
            "singles": (ours(1, sampling, batch), asked.samples),
        }
        for step, _ in contestants.values():
            seconds(step, 3)
        taken: dict[str, list[float]] = {name: [] for name in contestants}
        for _ in range(asked.repeats):
            for name, (step, times) in contestants.items():
                taken[name].append(seconds(step, times))
        vcl, hand, singles = (1000 * statistics.median(found) for found in taken.values())
        verdict = "met" if vcl <= TO_HAND * hand and vcl <= TO_SINGLES * singles else "not met"
        print(f"{sampling:<10}{vcl:8.1f}{hand:8.1f}{singles:9.1f}{vcl / hand:8.2f}{vcl / singles:11.2f}  {verdict}")


if __name__ == "__main__":
    main()
