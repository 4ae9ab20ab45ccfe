"""Write the tasks of Holdfast's permuted MNIST to a file that every contestant can read: python data.py OUT.npz"""

from __future__ import annotations

import sys
from pathlib import Path

import torch
from workloads import GROWTH, WORKLOADS, save

import holdfast as hf


def write(path: Path) -> None:
    """The longest stream and all rows; a workload takes its first tasks and their first rows, as Holdfast would."""
    tasks = max(work.tasks for work in [*WORKLOADS.values(), *GROWTH.values()])
    stream = hf.stream("permuted", data="mnist", tasks=tasks, seed=0)
    train, test = stream.tasks[0].train, stream.tasks[0].test
    save(
        path,
        x=train.pixels,
        y=torch.empty_like(train.y).scatter_(0, train.rows, train.y),
        test_x=test.pixels[test.rows],
        test_y=test.y,
        orders=torch.stack([task.train.transform.order for task in stream.tasks]),
        rows=torch.stack([task.train.rows for task in stream.tasks]),
    )


if __name__ == "__main__":
    write(Path(sys.argv[1]))
