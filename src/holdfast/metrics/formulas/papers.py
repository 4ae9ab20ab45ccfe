"""As the papers define them. These are ours: summary.json has all but the average incremental accuracy.

Lopez-Paz & Ranzato (2017), Chaudhry et al. (2018), Veniat et al. (2021, eq. 1 and 2), Rebuffi et al. (2017).
"""

from __future__ import annotations

from holdfast.metrics.matrix import Accuracies, finite, pooled_seen
from holdfast.metrics.scores import acc, bwt, forgetting, forgetting_ctrl, fwt


def aia(found: Accuracies) -> float | None:
    """Average incremental accuracy (Rebuffi et al., 2017): the mean of the accuracies after each task.

    AIA = 1/T · Σ_i a_i,  a_i the accuracy after task i on the test rows of tasks 1 to i together
    """
    curve = pooled_seen(found)
    return None if curve is None else finite(curve.mean())


FORMULAS = {
    "acc": acc,
    "aia": aia,
    "bwt": bwt,
    "fwt": fwt,
    "forgetting": forgetting,
    "forgetting_ctrl": forgetting_ctrl,
}
