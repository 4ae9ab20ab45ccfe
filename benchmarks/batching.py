"""What batching saves on paper 002's perceptron (784-100-100-10), as ratios in one run: python benchmarks/batching.py

The Fisher information of 200 examples in one pass against a backward pass per example, and the gradients of 19 past
tasks' memories in one pass against a backward pass per task. Both ways must agree. CPU time, medians of several rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import holdfast as hf
from holdfast.engine import fisher

EXAMPLES, TASKS, MEMORIES, ROUNDS = 200, 19, 256, 7


def main() -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layers = [nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 100), nn.ReLU(), nn.Linear(100, 10)]
    net = hf.Net(nn.Sequential(nn.Flatten(), *layers))
    x, y = torch.rand(EXAMPLES, 784), torch.randint(10, (EXAMPLES,))
    compare(
        f"Fisher of {EXAMPLES} examples",
        lambda: fisher(net, hf.Batch(x, y, 0), None, "true"),
        lambda: sum(gradient(net, x[i : i + 1], y[i : i + 1]).square() for i in range(EXAMPLES)) / EXAMPLES,
    )
    xs, ys = torch.rand(TASKS, MEMORIES, 784), torch.randint(10, (TASKS, MEMORIES))
    compare(
        f"gradients of {TASKS} memories of {MEMORIES}",
        lambda: net.gradients(xs, ys),
        lambda: torch.stack([gradient(net, xs[k], ys[k]).clone() for k in range(TASKS)]),
    )


def gradient(net: hf.Net, x: Tensor, y: Tensor) -> Tensor:
    """One backward pass."""
    net.zero_grad()
    F.cross_entropy(net(x), y).backward()
    return net.grad


def compare(what: str, batched: Callable[[], Tensor], looped: Callable[[], Tensor]) -> None:
    assert torch.allclose(batched(), looped(), atol=1e-6), what
    together, apart = (statistics.median(seconds(way) for _ in range(ROUNDS)) for way in (batched, looped))
    print(f"{what}: {1e3 * together:.1f} ms batched, {1e3 * apart:.1f} ms one by one, {apart / together:.1f} times")


def seconds(way: Callable[[], Tensor]) -> float:
    begun = time.process_time()
    way()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
