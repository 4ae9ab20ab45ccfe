"""As Continuum 1.2.7 computes them (continuum/metrics/metrics.py), where after each task all tasks so far are logged.

`accuracy` is over all test rows, `average_incremental_accuracy` is iCaRL's. The sums of the others leave pairs out that
their divisors count. With one task it gives 0 where we give None.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def acc_all(found: Accuracies) -> float | None:
    """`accuracy_A` (Díaz-Rodríguez et al., 2018): the mean over all tasks so far, after every task.

    A = 2/(T(T+1)) · Σ_{j≤i} R[i, j]
    """
    R = square(found, least=1)
    return None if R is None else finite(R[np.tril_indices_from(R)].mean())


def bwt(found: Accuracies) -> float | None:
    """`backward_transfer`: after every task, not after the last alone; j = i−1 is left out and still counted.

    BWT = 2/(T(T−1)) · Σ_i Σ_{j<i−1} R[i, j] − R[j, j]
    """
    R = square(found)
    if R is None:
        return None
    change = R - np.diag(R)
    return finite(change[np.tril_indices_from(R, -2)].sum() / _pairs(R))


def fwt(found: Accuracies) -> float | None:
    """`forward_transfer`: the accuracy on tasks that are past (j < i, not j > i), with no baseline to compare with.

    FWT = 2/(T(T−1)) · Σ_{j<i} R[i, j]
    """
    R = square(found)
    return None if R is None else finite(R[np.tril_indices_from(R, -1)].mean())


def forgetting(found: Accuracies) -> float | None:
    """`forgetting`: the last but one task is left out and still counted, and so is the row after it in the best.

    F = 1/(T−1) · Σ_{j<T−1} max_{j≤l<T−1} R[l, j] − R[T, j]
    """
    R = square(found)
    if R is None:
        return None
    before = np.tril(R)[:-2, :-2]  # rows and columns of tasks 1 to T−2
    lost = before.max(0, initial=0) - R[-1, :-2]
    return finite(lost.sum() / (len(R) - 1))


def _pairs(R: np.ndarray) -> float:
    return len(R) * (len(R) - 1) / 2


FORMULAS = {"acc": pooled, "acc_all": acc_all, "aia": papers.aia, "bwt": bwt, "fwt": fwt, "forgetting": forgetting}
