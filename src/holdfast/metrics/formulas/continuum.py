"""As Continuum 1.2.7 computes them (continuum/metrics/metrics.py), where after each task all tasks so far are logged.

With one task it gives 0 where we give None. Its sums over pairs leave some out that its divisors count.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def acc(found: Accuracies) -> float | None:
    """`accuracy` after the last task: over all test rows, so that a task counts by the size of its test set.

    ACC = Σ_i n_i R[T, i] / Σ_i n_i
    """
    return finite(pooled(found))


def acc_all(found: Accuracies) -> float | None:
    """`accuracy_A` (Díaz-Rodríguez et al., 2018): the mean over all tasks so far, after every task.

    A = 2/(T(T+1)) · Σ_{j≤i} R[i, j]
    """
    R = square(found, least=1)
    return None if R is None else finite(R[np.tril_indices_from(R)].mean())


def aia(found: Accuracies) -> float | None:
    """`average_incremental_accuracy`: iCaRL's.

    AIA = 1/T · Σ_i a_i,  a_i the accuracy after task i on the test rows of tasks 1 to i together
    """
    return papers.aia(found)


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


FORMULAS = {"acc": acc, "acc_all": acc_all, "aia": aia, "bwt": bwt, "fwt": fwt, "forgetting": forgetting}
