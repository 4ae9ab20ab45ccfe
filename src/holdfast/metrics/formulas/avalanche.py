"""As Avalanche 0.6.0 computes them, in the evaluation after the last task.

`StreamAccuracy` is over all test rows. `StreamBWT` and `StreamForwardTransfer` are the papers', with b̄ from an
evaluation before training; `StreamForgetting` is −BWT.
"""

from __future__ import annotations

import numpy as np

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies, finite, pooled, square


def forgetting(found: Accuracies) -> float | None:
    """`StreamForgetting`: the first accuracy less the last, whatever the best was in between.

    F = 1/(T−1) · Σ_{j<T} R[j, j] − R[T, j]
    """
    R = square(found)
    return None if R is None else finite((np.diag(R) - R[-1])[:-1].mean())


FORMULAS = {"acc": pooled, "bwt": papers.bwt, "fwt": papers.fwt, "forgetting": forgetting}
