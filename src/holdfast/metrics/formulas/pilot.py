"""As PILOT computes them (trainer.py, which comes from PyCIL's).

It prints percent, each rounded to two decimals, and forgetting where `print_forget` is set. It has neither BWT nor FWT.
"""

from __future__ import annotations

from holdfast.metrics.formulas import pycil
from holdfast.metrics.matrix import Accuracies


def acc(found: Accuracies) -> float | None:
    """The last entry of its "top1 curve", as in PyCIL.

    ACC = Σ_i n_i R[T, i] / Σ_i n_i
    """
    return pycil.acc(found)


def aia(found: Accuracies) -> float | None:
    """What it calls "Average Accuracy", as PyCIL does: the mean of the top1 curve.

    AIA = 1/T · Σ_i a_i,  a_i the accuracy after task i on the test rows of tasks 1 to i together
    """
    return pycil.aia(found)


def forgetting(found: Accuracies) -> float | None:
    """ "Forgetting", as in PyCIL: the best includes the last row.

    F = 1/(T−1) · Σ_{j<T} max_{j≤l≤T} R[l, j] − R[T, j]
    """
    return pycil.forgetting(found)


FORMULAS = {"acc": acc, "aia": aia, "forgetting": forgetting}
