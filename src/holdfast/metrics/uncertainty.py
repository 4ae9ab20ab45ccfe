"""Does a model know what it has not seen? Mutual information, the θ rule of paper 001 (§C.8), and calibration.

M[i, j] is the mean mutual information between predictions on task j and the weights, after learning task i; only
methods whose predictions are samples have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.types import Record

THETAS = tuple(k / 10 for k in range(10, 101))  # θ: from 1 to 10 in steps of 0.1, as in the paper


class Rates(NamedTuple):
    """How the rule does at one θ, over all pairs of a model and a task."""

    theta: float
    false_positive: float  # the share of seen tasks that are called unseen
    true_positive: float  # the share of unseen tasks that are


def information(record: Record) -> np.ndarray | None:
    """M, (T, T) in nats, NaN where a task was not scored; None where predictions are no samples."""
    return _matrix(record, "information")


def calibration(record: Record) -> np.ndarray | None:
    """(T, T): the expected calibration error on task j after learning task i (Guo et al., 2017)."""
    return _matrix(record, "calibration")


def rates(M: np.ndarray) -> list[Rates]:
    """A task is called unseen by model i when M[i, j] > θ · M[i, i]; in order of θ.

    Every model counts, the last one included, which has no unseen task; every task counts, the current one as seen,
    which the rule gets right at any θ ≥ 1. Without these two the rates of paper 001's VCL would be other ones: an AUC
    of .48 to .59 in place of .71 to .81. Each pair of a model and a task counts once; one that was not scored does not.
    """
    scored = ~np.isnan(M)
    unseen = np.triu(np.ones_like(M, dtype=bool), 1)
    current = np.diag(M)[:, None]  # (T, 1)
    found = []
    for theta in THETAS:
        called = theta * current < M
        found.append(Rates(theta, _share(called[scored & ~unseen]), _share(called[scored & unseen])))
    return found


def mean_rates(records: Sequence[Record]) -> list[Rates]:
    """The rates at every θ, mean over those records whose predictions are samples."""
    each = [rates(M) for record in records if (M := information(record)) is not None]
    return [Rates(*map(float, point)) for point in np.mean(each, axis=0)] if each else []


def shares(M: np.ndarray) -> np.ndarray:
    """M with the most uncertain task of each model as 1, as the paper shows it; a model that is sure of all has 0.

    >>> shares(np.array([[1.0, 4.0], [0.0, 0.0]])).tolist()
    [[0.25, 1.0], [0.0, 0.0]]
    """
    top = np.nanmax(M, axis=1, keepdims=True)
    return np.where(np.isnan(M), np.nan, np.divide(M, top, out=np.zeros_like(M), where=top > 0))


def area(found: list[Rates]) -> float:
    """The area under the ROC curve through these points and both corners, by trapezoids.

    >>> area([Rates(1.0, 0.0, 1.0)]), area([Rates(1.0, 0.5, 0.5)])
    (1.0, 0.5)
    """
    points = sorted({(0.0, 0.0), (1.0, 1.0), *((each.false_positive, each.true_positive) for each in found)})
    x, y = np.array(points).T
    return float(np.trapezoid(y, x))


def unseen_auc(record: Record) -> float | None:
    """The area under the θ rule's ROC curve: 1 tells unseen from seen tasks, 0.5 does not; None without samples."""
    M = information(record)
    if M is None or len(M) < 2 or np.isnan(np.diag(M)).any() or np.isnan(M[np.triu_indices_from(M, 1)]).all():
        return None
    return area(rates(M))


def ece(record: Record) -> float | None:
    """The expected calibration error after the last task, mean over tasks, of predictions that are samples."""
    errors = calibration(record)
    if errors is None or information(record) is None or np.isnan(errors[-1]).any():
        return None
    return float(errors[-1].mean())


def _matrix(record: Record, name: str) -> np.ndarray | None:
    """What the last scoring after each task found; None where there is nothing, or all tasks were shown at once."""
    tasks = len(record.tasks)
    last = {scoring["after_task"]: scoring["step"] for scoring in record.scorings}
    rows = [row for row in record.curves if name in row and last.get(row["after_task"]) == row["step"]]
    if not rows or record.mixed or len(last) != tasks:
        return None
    found = np.full((tasks, tasks), np.nan)
    for row in rows:
        found[row["after_task"], row["task"]] = row[name]
    return found


def _share(flags: np.ndarray) -> float:
    return float(flags.mean()) if flags.size else 0.0
