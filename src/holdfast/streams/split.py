"""Disjoint classes, some per task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from holdfast.streams._classes import DisjointClasses


@final
@dataclass(frozen=True)
class Split(DisjointClasses):
    """The classes are dealt out to the tasks: Split MNIST, incremental CIFAR-100 (papers 001, 002).

    In the `class` scenario one output vector covers all classes; `task` masks it to the task's own; in `domain`
    every task uses the same outputs 0, 1, ... for its first, second, ... class.
    """
