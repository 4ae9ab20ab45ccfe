"""What the formulas ask for: a record has it, and a `Matrix` where R came from somewhere else."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from holdfast.errors import BadInput


class Accuracies(Protocol):
    """R, b̄ and the sizes of the test sets, as a record has them."""

    @property
    def final(self) -> np.ndarray:
        """(T, T): accuracy on task j after learning task i; NaN where it was not scored."""

    @property
    def baseline(self) -> np.ndarray:
        """(T,): b̄, the accuracies at random initialisation."""

    @property
    def tasks(self) -> Sequence[Mapping[str, Any]]:
        """Of each task at least n_test, its number of test rows."""

    @property
    def mixed(self) -> bool:
        """Whether all tasks were shown at once."""


@dataclass(frozen=True, eq=False)
class Matrix:
    """Accuracies that are of no record, e.g. those another library printed."""

    final: np.ndarray
    baseline: np.ndarray
    tasks: tuple[Mapping[str, Any], ...]
    mixed: bool = False

    @staticmethod
    def of(R: ArrayLike, baseline: ArrayLike | None = None, n_test: Sequence[int] | None = None) -> Matrix:
        """Without a baseline what needs one is undefined; without `n_test` all tests have as many rows."""
        final = np.asarray(R, dtype=float)
        if final.ndim != 2 or final.shape[0] != final.shape[1]:
            raise BadInput(f"R must be square, a row per task learned and a column per task, not {final.shape}")
        T = len(final)
        before = np.full(T, np.nan) if baseline is None else np.asarray(baseline, dtype=float)
        sizes = [1] * T if n_test is None else list(n_test)
        given = {"baseline": len(before), "n_test": len(sizes)}
        if faults := [f"{name} must have one number per task, {T}, not {n}" for name, n in given.items() if n != T]:
            raise BadInput(*faults)
        return Matrix(final, before, tuple({"n_test": n} for n in sizes))


def square(found: Accuracies, least: int = 2) -> np.ndarray | None:
    """R as (T, T), or None where it says nothing of tasks in turn: too few tasks, tasks mixed, rows not scored."""
    R = found.final
    tasks = R.shape[1]
    return None if found.mixed or tasks < least or len(R) != tasks else R


def pooled(found: Accuracies) -> float | None:
    """Accuracy on all test rows after the last task: a task counts by the size of its test set.

    ACC = Σ_i n_i R[T, i] / Σ_i n_i
    """
    return finite(np.average(found.final[-1], weights=_sizes(found)))


def pooled_seen(found: Accuracies) -> np.ndarray | None:
    """(T,): after each task, the accuracy on the test rows of all tasks so far together."""
    R, n = square(found, least=1), _sizes(found)
    if R is None:
        return None
    return np.array([np.average(row[: i + 1], weights=n[: i + 1]) for i, row in enumerate(R)])


def finite(value: float | np.floating) -> float | None:
    """None in place of NaN."""
    return float(value) if math.isfinite(value) else None


def _sizes(found: Accuracies) -> list[int]:
    return [task["n_test"] for task in found.tasks]
