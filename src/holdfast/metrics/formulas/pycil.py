"""As PyCIL computes them (trainer.py, utils/toolkit.py); it prints percent, each rounded to two decimals.

Its columns are groups of ten classes, which are the tasks where tasks have ten classes; ours are the tasks. It has
neither BWT nor FWT.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def acc(found: Accuracies) -> float | None:
    """The last entry of its "top1 curve": over all test rows, so that a task counts by the size of its test set.

    ACC = Σ_i n_i R[T, i] / Σ_i n_i
    """
    return finite(pooled(found))


def aia(found: Accuracies) -> float | None:
    """What it calls "Average Accuracy": the mean of the top1 curve, which is iCaRL's.

    AIA = 1/T · Σ_i a_i,  a_i the accuracy after task i on the test rows of tasks 1 to i together
    """
    return papers.aia(found)


def forgetting(found: Accuracies) -> float | None:
    """ "Forgetting": the best includes the last row, so that a task that became better counts 0, not less.

    F = 1/(T−1) · Σ_{j<T} max_{j≤l≤T} R[l, j] − R[T, j]
    """
    R = square(found)
    return None if R is None else finite((np.tril(R).max(0) - R[-1])[:-1].mean())


FORMULAS = {"acc": acc, "aia": aia, "forgetting": forgetting}
