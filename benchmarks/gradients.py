"""Gradients per task and per example of convolutional networks beside a loop, as ratios in one run.

    OMP_NUM_THREADS=1 python benchmarks/gradients.py                  every net and size, medians of 5 repeats
    OMP_NUM_THREADS=1 python benchmarks/gradients.py --repeats 9 conv

The loop is what one writes by hand: a forward and a backward pass for every group, its gradients joined to a row, or
squared and added up. `net.gradients` batches the groups or takes one after the other, whichever is faster for the net
and the size; both are measured, and what it takes must not be slower than the loop. So must `net.summed_squares`.
Networks evaluate, as for the Fisher information; CPU time of one thread, and the ways take turns.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable, Iterator

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

import torch
import torch.nn.functional as F
from torch import Tensor

import holdfast as hf
from holdfast.engine import gradients
from holdfast.seeds import seeded
from holdfast.types import StreamInfo

CLASSES = 10
SHAPES = ((1, 8, 8), (1, 28, 28), (3, 32, 32))
GROUPS = ((20, 1), (5, 10), (5, 64))  # (N, B): per example, and per task
EXAMPLES = 64  # behind a Fisher estimate
SLACK = 1.05  # of the loop's time


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("nets", nargs="*", default=["conv", "resnet"])
    ask.add_argument("--repeats", type=int, default=5)
    given = ask.parse_args()
    torch.set_num_threads(1)
    for name in given.nets:
        for shape in SHAPES:
            for n, b in GROUPS:
                print(of_groups(name, shape, n, b, given.repeats), flush=True)
            print(of_squares(name, shape, given.repeats), flush=True)


def of_groups(name: str, shape: tuple[int, int, int], n: int, b: int, repeats: int) -> str:
    net, plain, x, y = made(name, shape, n, b)
    parameters = net._laid
    ways: dict[str, Callable[[], Tensor]] = {
        "loop": lambda: torch.stack(list(loop(plain, x, y))),
        "taken": lambda: net.gradients(x, y),
        "batched": lambda: gradients._vmapped(net.module, parameters, x, y, None),
        "one by one": lambda: gradients._one_by_one(net.module, parameters, x, y, None),
    }
    return f"{name} on {shape}, {n} groups of {b}, {judged(ways, repeats)}"


def of_squares(name: str, shape: tuple[int, int, int], repeats: int) -> str:
    net, plain, x, y = made(name, shape, EXAMPLES, 1)
    ways: dict[str, Callable[[], Tensor]] = {
        "loop": lambda: sum(row.square_() for row in loop(plain, x, y)),  # type: ignore[dict-item, return-value]
        "taken": lambda: net.summed_squares(x[:, 0], y[:, 0]),
    }
    return f"{name} on {shape}, squares of {EXAMPLES} examples, {judged(ways, repeats)}"


def made(name: str, shape: tuple[int, int, int], n: int, b: int) -> tuple[hf.Net, torch.nn.Module, Tensor, Tensor]:
    """A net, the same as a plain module, and n groups of b examples."""
    rng = torch.Generator().manual_seed(0)
    x = torch.rand(n, b, *shape, generator=rng)
    y = torch.randint(CLASSES, (n, b), generator=rng)
    info = StreamInfo("made-up", "class", shape, CLASSES, (tuple(range(CLASSES)),))
    with seeded(0):
        net = hf.Net(hf.net(name).build(info))
    net.module.eval()
    return net, net.build().eval(), x, y


def judged(ways: dict[str, Callable[[], Tensor]], repeats: int) -> str:
    seconds = timed(ways, repeats)
    ratio = seconds["taken"] / seconds["loop"]
    times = ", ".join(f"{way} {1e3 * spent:.1f}" for way, spent in seconds.items())
    return f"ms: {times}; taken ÷ loop {ratio:.2f} ({'met' if ratio <= SLACK else 'MISSED'})"


def timed(ways: dict[str, Callable[[], Tensor]], repeats: int) -> dict[str, float]:
    """Median seconds of every way; each is done once before."""
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for repeat in range(repeats + 1):
        for way, work in ways.items():
            begun = time.process_time()
            work()
            if repeat:
                seconds[way].append(time.process_time() - begun)
    return {way: statistics.median(spent) for way, spent in seconds.items()}


def loop(module: torch.nn.Module, x: Tensor, y: Tensor) -> Iterator[Tensor]:
    """(P,) of each group, as one writes it."""
    for i in range(len(y)):
        module.zero_grad()
        F.cross_entropy(module(x[i]), y[i]).backward()
        yield torch.cat([p.grad.flatten() for p in module.parameters()])  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
