"""What every contestant can do, and the clocks around it. Nothing here imports Holdfast.

python benchmarks/bare.py whole W1 0 DATA.npz     one measurement in one process, as JSON on the last line
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

import torch
from workloads import GROWTH, WORKLOADS, Workload

Tick = Callable[[], None]


class Contestant(ABC):
    """One implementation of a workload, its data in memory, ready to learn. Getting ready is not timed."""

    @abstractmethod
    def learn(self, t: int, tick: Tick | None = None) -> None:
        """Learn task t in one pass; `tick` is called after every step."""

    @abstractmethod
    def score(self) -> list[float]:
        """The accuracy on every task's test set."""


Make = Callable[[Workload, Path, int], Contestant]  # from the workload, the data and the learner's seed


class Clock:
    """Adds up seconds on the wall and seconds of this process; they differ where others use the machine."""

    def __init__(self) -> None:
        self.wall = self.cpu = 0.0

    def __enter__(self) -> None:
        self.wall, self.cpu = self.wall - time.perf_counter(), self.cpu - time.process_time()

    def __exit__(self, *_: object) -> None:
        self.wall, self.cpu = self.wall + time.perf_counter(), self.cpu + time.process_time()


def whole(one: Contestant, work: Workload) -> dict[str, float]:
    """Training on all tasks, then one pass over all test sets."""
    train, score = Clock(), Clock()
    with train:
        for t in range(work.tasks):
            one.learn(t)
    with score:
        accuracies = one.score()
    seconds = {"train": train.wall, "score": score.wall, "train_cpu": train.cpu, "score_cpu": score.cpu}
    return {**seconds, "acc": statistics.mean(accuracies)}


def usual(one: Contestant, work: Workload) -> dict[str, float]:
    """Scoring as papers do it: all test sets after every task."""
    score = Clock()
    for t in range(work.tasks):
        one.learn(t)
        with score:
            one.score()
    return {"score": score.wall, "score_cpu": score.cpu}


def growth(one: Contestant, work: Workload) -> dict[str, list[float]]:
    """Seconds per step with 0, 1, ... past tasks: the mean of the task's steps after the first."""
    found: dict[str, list[float]] = {"per_step": [], "per_step_cpu": []}
    for t in range(work.tasks):
        ticks: list[tuple[float, float]] = []
        one.learn(t, lambda ticks=ticks: ticks.append((time.perf_counter(), time.process_time())))
        for first, last, seconds in zip(ticks[0], ticks[-1], found.values(), strict=True):
            seconds.append((last - first) / (len(ticks) - 1))
    return found


def peak_mb() -> float:
    """The largest memory this process had. Linux's ru_maxrss includes the parent's at the fork; VmHWM does not."""
    status = Path("/proc/self/status")
    if status.exists():
        return next(int(line.split()[1]) / 1024 for line in status.read_text().splitlines() if line.startswith("VmHWM"))
    scale = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / scale


def main(make: Make) -> None:
    mode, name, seed, data = sys.argv[1:]
    torch.set_num_threads(1)
    torch.manual_seed(int(seed))
    work = (GROWTH if mode == "growth" else WORKLOADS)[name]
    one = make(work, Path(data), int(seed))
    found = {"whole": whole, "usual": usual, "growth": growth}[mode](one, work)
    print(json.dumps({**found, "peak_mb": peak_mb()}))
