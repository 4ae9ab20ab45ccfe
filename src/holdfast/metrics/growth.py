"""What a stream reaches and takes, task by task (paper 000, Fig. 4): `hf.growth.memory(record)` and the like."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

import numpy as np

from holdfast.types import Record


def learned(record: Record) -> list[float]:
    """After each task the mean accuracy on the tasks so far, each as it was when it was learned."""
    return means(np.diag(record.final))


def kept(record: Record) -> list[float]:
    """The same, each as it is when the stream is over: less, where something was forgotten."""
    return means(record.final[-1])


def memory(record: Record) -> list[float]:
    """MB after each task, as paper 000 counts them: 4 bytes for every number that a method is said to keep."""
    return [4 * numbers / 1e6 for numbers in record.resources["numbers"]]


def reachable(record: Record) -> list[float]:
    """MB after each task, of all that can be reached from the learner."""
    return [each / 1e6 for each in record.resources["bytes"]]


def flops(record: Record) -> list[float]:
    """Operations of training so far: of each task itself, and of its trials that were not chosen."""
    each = [float(found) for found in record.resources["flops"]]
    for trial in record.study.get("trials", ()):
        if not trial["chosen"] and trial["task"] is not None:
            each[trial["task"]] += trial["flops"]
    return list(accumulate(each))


def means(values: Iterable[float]) -> list[float]:
    """Of the values so far.

    >>> means([0.5, 1.0, 0.0])
    [0.5, 0.75, 0.5]
    """
    return [float(total / n) for n, total in enumerate(accumulate(values), 1)]
