"""An epoch of convolutional networks: Holdfast's training loop against hand-written loops in both memory layouts.

    OMP_NUM_THREADS=1 python benchmarks/conv.py                     the thin ResNet and `conv`, medians of 5 repeats
    OMP_NUM_THREADS=1 python benchmarks/conv.py --repeats 9 conv    one of them

4,000 made-up images of 32×32×3 as bytes, 10 classes, batches of 64, SGD. Everything runs in one process with one
thread; the contestants take turns, and who begins changes from repeat to repeat. Seconds are the process's own.
Holdfast is timed as in `speed.py`: a session's first task with audit, count of operations and checks, not its building.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import holdfast as hf
from holdfast.protocols import Session
from holdfast.seeds import seeded
from holdfast.types import Part, Stream, StreamInfo, Task

IMAGES, BATCH, CLASSES, LR = 4000, 64, 10, 0.01
SHAPE = (3, 32, 32)
TARGETS = {  # net -> (of the loop in channels_last, of the loop in the default layout)
    "resnet": (1.05, 0.85),
    "conv": (1.05, 1.05),
}
INFO = StreamInfo("made-up", "class", SHAPE, CLASSES, (tuple(range(CLASSES)),))


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("nets", nargs="*", default=[*TARGETS])
    ask.add_argument("--repeats", type=int, default=5)
    given = ask.parse_args()
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    x = torch.randint(256, (IMAGES, *SHAPE), dtype=torch.uint8, generator=rng)
    y = torch.randint(CLASSES, (IMAGES,), generator=rng)
    for net in given.nets:
        seconds = measured(net, x, y, given.repeats)
        ours, last, default = (statistics.median(times) for times in seconds.values())
        print(f"{net}: " + ", ".join(f"{name} {statistics.median(t):.2f} s" for name, t in seconds.items()))
        for other, ratio, target in zip(
            ("channels_last", "default"), (ours / last, ours / default), TARGETS[net], strict=True
        ):
            print(f"  Holdfast ÷ {other}: {ratio:.3f} (at most {target}: {'met' if ratio <= target else 'MISSED'})")


def measured(net: str, x: Tensor, y: Tensor, repeats: int) -> dict[str, list[float]]:
    """Seconds of one epoch, per contestant and repeat."""
    contestants: dict[str, Callable[[], Callable[[], None]]] = {
        "Holdfast": lambda: with_holdfast(net, x, y),
        "channels_last": lambda: bare(net, x, y, torch.channels_last),
        "default": lambda: bare(net, x, y, torch.contiguous_format),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for repeat in range(repeats):
        for name in names[repeat % 3 :] + names[: repeat % 3]:
            epoch = contestants[name]()
            begun = time.process_time()
            epoch()
            seconds[name].append(time.process_time() - begun)
    return seconds


def module(net: str) -> nn.Module:
    with seeded(0):
        return hf.net(net).build(INFO)


def bare(net: str, x: Tensor, y: Tensor, layout: torch.memory_format) -> Callable[[], None]:
    """What one writes by hand."""
    model = module(net).to(memory_format=layout)
    optimiser = torch.optim.SGD(model.parameters(), lr=LR)

    def epoch() -> None:
        for rows in torch.randperm(len(y)).split(BATCH):
            images = (x[rows].float() / 255).contiguous(memory_format=layout)
            optimiser.zero_grad()
            F.cross_entropy(model(images), y[rows]).backward()
            optimiser.step()

    return epoch


def with_holdfast(net: str, x: Tensor, y: Tensor) -> Callable[[], None]:
    """A session as a protocol drives it."""
    whole, few = Part(x, torch.arange(len(y)), y), Part(x, torch.arange(10), y[:10])
    task = Task(0, "made-up", tuple(range(CLASSES)), whole, few, few)
    stream = Stream(INFO, (task,), 0, {}, "made-up", lambda seed: stream)
    descent = hf.protocol("online", batch=BATCH, lr=LR).descent()
    session = Session(hf.method("finetune"), stream, hf.Net(module(net)), descent, seed=0)

    def epoch() -> None:
        for _ in session.learn(task, 1, BATCH, lease_at_begin=False):
            pass

    return epoch


if __name__ == "__main__":
    main()
