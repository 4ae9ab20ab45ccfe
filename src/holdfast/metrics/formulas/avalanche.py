"""As Avalanche 0.6.0 computes them, after the evaluation that follows the last task."""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def acc(found: Accuracies) -> float | None:
    """`StreamAccuracy`: over all test rows, so that a task counts by the size of its test set.

    ACC = Σ_i n_i R[T, i] / Σ_i n_i
    """
    return finite(pooled(found))


def bwt(found: Accuracies) -> float | None:
    """`StreamBWT`: the papers'.

    BWT = 1/(T−1) · Σ_{i<T} R[T, i] − R[i, i]
    """
    return papers.bwt(found)


def fwt(found: Accuracies) -> float | None:
    """`StreamForwardTransfer`: the papers'; b̄ from the evaluation before training.

    FWT = 1/(T−1) · Σ_{i>1} R[i−1, i] − b̄[i]
    """
    return papers.fwt(found)


def forgetting(found: Accuracies) -> float | None:
    """`StreamForgetting`: the first accuracy less the last, whatever the best was in between; −BWT.

    F = 1/(T−1) · Σ_{j<T} R[j, j] − R[T, j]
    """
    R = square(found)
    return None if R is None else finite((np.diag(R) - R[-1])[:-1].mean())


FORMULAS = {"acc": acc, "bwt": bwt, "fwt": fwt, "forgetting": forgetting}
