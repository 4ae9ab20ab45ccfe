"""The papers' numbers. Each is a pure function of one record; what is undefined is None, never NaN.

R[i, j] is the accuracy on task j after learning task i, T the number of tasks, b̄ the accuracies at random
initialisation. Formulas count tasks from 1, as the papers do. A metric is undefined where an entry of R that it needs
was not scored (`protocol.score`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.metrics.matrix import Accuracies, finite, square
from holdfast.metrics.uncertainty import ece, unseen_auc
from holdfast.types import Record

LCA_BATCHES = 5  # β of the summary: paper 000's tables show LCA@5


def acc(record: Accuracies) -> float | None:
    """Average accuracy (Lopez-Paz & Ranzato, 2017, eq. 2).

    ACC = 1/T · Σ_i R[T, i]
    """
    return finite(record.final[-1].mean())


def bwt(record: Accuracies) -> float | None:
    """Backward transfer (Lopez-Paz & Ranzato, 2017, eq. 3); negative when the learner forgot.

    BWT = 1/(T−1) · Σ_{i<T} R[T, i] − R[i, i]
    """
    R = square(record)
    if R is None:
        return None
    return finite((R[-1] - np.diag(R))[:-1].mean())


def fwt(record: Accuracies) -> float | None:
    """Forward transfer (Lopez-Paz & Ranzato, 2017, eq. 4); positive when a task is known before it is learned.

    FWT = 1/(T−1) · Σ_{i>1} R[i−1, i] − b̄[i]
    """
    R = square(record)
    if R is None:
        return None
    return finite((np.diag(R, 1) - record.baseline[1:]).mean())


def forgetting(record: Accuracies) -> float | None:
    """Forgetting (Chaudhry et al., 2018): the best a task was before the last one, less what is left. Positive is bad.

    F = 1/(T−1) · Σ_{j<T} max_{l<T} R[l, j] − R[T, j]

    Every R[l, j] with l ≥ j must have been scored, or the best might be missing; with `ends` it is. Those with l < j,
    before the task was learned, count where they were scored: with `seen` R[j−1, j] alone.
    """
    R = square(record)
    if R is None or np.isnan(R[np.tril_indices_from(R)]).any():
        return None
    return finite((np.nanmax(R[:-1, :-1], 0) - R[-1, :-1]).mean())


def forgetting_ctrl(record: Accuracies) -> float | None:
    """Forgetting as Veniat et al. (2021, eq. 2) sign it: negative when the learner forgot.

    F(S) = 1/(T−1) · Σ_{t<T} R[T, t] − R[t, t]

    The paper notes that this is backward transfer under another name; so it is here.
    """
    return bwt(record)


def transfer(record: Record, isolated: Record) -> float | None:
    """What the past was worth to the last task (Veniat et al., 2021, eq. 3).

    T(S) = R[T, T] − R'[T, T],  R' of a learner that saw only task T

    `isolated` is a run on the last task alone, or the whole stream by a method that shares nothing between tasks.
    """
    return finite(record.final[-1, -1] - isolated.final[-1, -1])


def learning_curve(record: Record, task: int) -> list[tuple[int, float]]:
    """(batches seen, accuracy) of a task while it is being learned: A[b, t] of LCA, in order of b."""
    rows = (row for row in record.curves if row["task"] == task == row["after_task"])
    return sorted({row["step"]: row["accuracy"] for row in rows}.items())


def lca(record: Record, beta: int = LCA_BATCHES) -> float | None:
    """Area under the learning curve over the first β batches of each task (Chaudhry et al., 2019).

    LCA@β = 1/T · Σ_t 1/(β+1) · Σ_{b=0..β} A[b, t]

    None unless every task was scored after each of its first β batches, and before them.
    """
    if record.mixed:
        return None
    curves = [dict(learning_curve(record, task)) for task in range(len(record.tasks))]
    early = [curve.get(batches) for curve in curves for batches in range(beta + 1)]
    known = [accuracy for accuracy in early if accuracy is not None]
    return finite(np.mean(known)) if known and len(known) == len(early) else None


def final_bytes(record: Record) -> float | None:
    """Bytes reachable from the learner after the last task."""
    sizes = record.resources.get("bytes")
    return finite(sizes[-1]) if sizes else None


def mem(record: Record) -> float | None:
    """Mem. of Veniat et al. (2021) after the last task: 4 bytes per number of what each method is said to keep.

    Weights and batch statistics, Fisher matrices and anchors, rows of a memory that is full. Unlike `final_bytes` it
    leaves out gradients, optimisers and whatever else is there.
    """
    numbers = record.resources.get("numbers")
    return finite(4 * numbers[-1]) if numbers else None


def flops(record: Record) -> float | None:
    """Floating-point operations of all training, and of the trials that chose its settings."""
    return _total(record, "flops", "flops")


def train_seconds(record: Record) -> float | None:
    """Seconds of all training, and of the trials that chose its settings; scoring apart."""
    return _total(record, "train_seconds", "seconds")


def eval_seconds(record: Record) -> float | None:
    """Seconds of all scoring after training began."""
    seconds = record.resources.get("eval_seconds")
    return None if seconds is None else finite(seconds)


@dataclass(frozen=True)
class Metric:
    """A number of the summary: how to get it, what to call it, and which way is better."""

    label: str
    unit: str  # accuracy, bytes, FLOPs, s
    larger_is_better: bool
    of: Callable[[Record], float | None]


METRICS: dict[str, Metric] = {
    "acc": Metric("ACC", "accuracy", True, acc),
    "bwt": Metric("BWT", "accuracy", True, bwt),
    "fwt": Metric("FWT", "accuracy", True, fwt),
    "forgetting": Metric("Forgetting", "accuracy", False, forgetting),
    "forgetting_ctrl": Metric("Forgetting (CTrL)", "accuracy", True, forgetting_ctrl),
    "lca": Metric(f"LCA@{LCA_BATCHES}", "accuracy", True, lca),
    "unseen_auc": Metric("Unseen AUC", "accuracy", True, unseen_auc),
    "ece": Metric("ECE", "accuracy", False, ece),
    "bytes": Metric("Memory", "bytes", False, final_bytes),
    "mem": Metric("Mem. (CTrL)", "bytes", False, mem),
    "flops": Metric("FLOPs", "FLOPs", False, flops),
    "train_seconds": Metric("Training", "s", False, train_seconds),
    "eval_seconds": Metric("Scoring", "s", False, eval_seconds),
}


RARE = ("lca", "unseen_auc", "ece")  # scored often enough; predictions that are samples


def summary(record: Record) -> dict[str, float | None]:
    """Every metric of a record by name; some are there only when the run has what they need (`RARE`)."""
    values = {name: metric.of(record) for name, metric in METRICS.items()}
    return {name: value for name, value in values.items() if name not in RARE or value is not None}


def _total(record: Record, resource: str, of_trials: str) -> float | None:
    parts = record.resources.get(resource)
    return finite(math.fsum(parts) + record.resources.get("trials", {}).get(of_trials, 0.0)) if parts else None
