"""As Mammoth computes them (utils/metrics.py, utils/training.py); it prints percent.

Its accuracy, `backward_transfer` and `forward_transfer` are the papers'. Its rows of R have the tasks so far and the
next one, and 0 for all that come later.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, square


def forgetting(found: Accuracies) -> float | None:
    """`forgetting`: the best includes the last row, so that a task that became better counts 0, not less.

    F = 1/(T−1) · Σ_{j<T} max_{j−1≤l≤T} R[l, j] − R[T, j]
    """
    R = square(found)
    if R is None:
        return None
    known = np.tril(R, 1)  # and 0 where it has not looked
    return finite((known.max(0) - R[-1])[:-1].mean())


FORMULAS = {"acc": papers.acc, "bwt": papers.bwt, "fwt": papers.fwt, "forgetting": forgetting}
