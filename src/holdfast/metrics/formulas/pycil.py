"""As PyCIL computes them (trainer.py, utils/toolkit.py); it prints percent, rounded to two decimals.

Its "top1 curve" is over the test rows of all tasks so far: the last entry is its accuracy, the mean its "Average
Accuracy", which is iCaRL's. Its columns are groups of ten classes, which are the tasks where tasks have ten classes;
ours are the tasks. It has neither BWT nor FWT.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def forgetting(found: Accuracies) -> float | None:
    """ "Forgetting": the best includes the last row, so that a task that became better counts 0, not less.

    F = 1/(T−1) · Σ_{j<T} max_{j≤l≤T} R[l, j] − R[T, j]
    """
    R = square(found)
    return None if R is None else finite((np.tril(R).max(0) - R[-1])[:-1].mean())


FORMULAS = {"acc": pooled, "aia": papers.aia, "forgetting": forgetting}
