"""(b) Holdfast: its session as a protocol drives it, the audit and the count of operations included."""

from __future__ import annotations

from pathlib import Path

import contestant
import numpy as np
import torch
from contestant import Contestant, Tick
from workloads import BUFFER, LR, MARGIN, MEMORIES, STRENGTH, Workload

import holdfast as hf
from holdfast.protocols import Session
from holdfast.seeds import seeded
from holdfast.types import Stream

METHODS = {
    "naive": lambda work: hf.method("finetune"),
    "gem": lambda work: hf.method("gem", memories=MEMORIES, margin=MARGIN),
    "ewc": lambda work: hf.method("ewc", strength=STRENGTH, samples=work.examples),
    "replay": lambda work: hf.method("er", memories=BUFFER),
}


class Holdfast(Contestant):
    def __init__(self, work: Workload, data: Path, seed: int) -> None:
        self.batch = work.batch
        self.stream = hf.stream("permuted", data="mnist", tasks=work.tasks, examples=work.examples, seed=0)
        _check_same(self.stream, data)
        for task in self.stream.tasks:  # what fits into its caches is there before the clock starts, as for the others
            task.train.raw(torch.arange(1)), task.test.raw()
        with seeded(seed):
            net = hf.Net(hf.net("mlp", hidden=work.hidden).build(self.stream.info))
        descent = hf.protocol("online", batch=work.batch, lr=LR).descent()
        self.session = Session(METHODS[work.method](work), self.stream, net, descent, seed)
        self.learned = 0

    def learn(self, t: int, tick: Tick | None = None) -> None:
        for step in self.session.learn(self.stream.tasks[t], 1, self.batch, lease_at_begin=False):
            if tick is not None and step > 0:
                tick()
        self.learned = t

    def score(self) -> list[float]:
        self.session.score(self.learned, self.session.steps)
        return self.session.measured.R[-1]


def _check_same(stream: Stream, data: Path) -> None:
    """The stream has the tasks that the other contestants read from the file."""
    with np.load(data, allow_pickle=False) as found:
        for task, order, rows in zip(stream.tasks, found["orders"], found["rows"], strict=False):
            same = [
                np.array_equal(task.train.transform.order, order),
                np.array_equal(task.train.rows, rows[: len(task.train)]),
            ]
            if not all(same):
                raise RuntimeError(f"task {task.t} is not the one in {data}")


if __name__ == "__main__":
    contestant.main(Holdfast)
