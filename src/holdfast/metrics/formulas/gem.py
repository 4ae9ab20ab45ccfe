"""As the code of GEM's authors computes them (metrics/metrics.py), which is not quite as their paper says.

"Final Accuracy" is the paper's. The transfers are means over T numbers of which one is always 0, so they are (T−1)/T of
the paper's.
"""

from __future__ import annotations

from holdfast.metrics.formulas import papers
from holdfast.metrics.matrix import Accuracies


def bwt(found: Accuracies) -> float | None:
    """ "Backward": the last task, which nothing came after, counts as 0.

    BWT = 1/T · Σ_i R[T, i] − R[i, i]
    """
    return _over_all(papers.bwt(found), found)


def fwt(found: Accuracies) -> float | None:
    """ "Forward": the first task, which nothing came before, counts as 0.

    FWT = 1/T · Σ_{i>1} R[i−1, i] − b̄[i]
    """
    return _over_all(papers.fwt(found), found)


def _over_all(mean: float | None, found: Accuracies) -> float | None:
    """A mean over T−1 tasks as one over T of them."""
    T = len(found.tasks)
    return None if mean is None else mean * (T - 1) / T


FORMULAS = {"acc": papers.acc, "bwt": bwt, "fwt": fwt}
