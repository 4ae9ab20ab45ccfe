"""Readings of a study: what the protocols of papers 003 and 004 make of the trials that a record holds.

A study trains models on the first task D1 and retrains them on the last, D2. Its record has every look at every trial
(`record.study`), so that one record can be read under several rules. χ(t) is the accuracy at step t of a trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from holdfast.errors import BadInput
from holdfast.types import Record

Course = list[tuple[float, float]]  # step (or α), accuracy


def course(record: Record, trial: int, task: int | None) -> Course:
    """χ(t) of a trial on the test set of a task; None: on those of all tasks so far together."""
    rows = (row for row in _part(record, "curves") if row["trial"] == trial and row["task"] == task)
    return [(row["step"], row["accuracy"]) for row in rows]


def union(record: Record, trial: int) -> Course:
    """χ(t) of a trial on D1 ∪ D2."""
    return course(record, trial, None)


def first(record: Record) -> int:
    """The trial that the first task chose: the one of the highest accuracy on it (003 Alg. 1, 004 Alg. 2)."""
    if record.protocol.get("name") != "prescient":  # which chose by the last task
        return next(int(row["trial"]) for row in _trials(record, 0) if row["chosen"])
    return max((row["trial"] for row in _trials(record, 0)), key=lambda trial: _highest(course(record, trial, 0)))


def retrainings(record: Record) -> list[int]:
    """The trials on the last task that began with the chosen model, one for each ε₂."""
    last = len(record.tasks) - 1
    if last == 0:
        raise BadInput("a stream of one task has no retraining")
    rows = list(_trials(record, last))
    return [row["trial"] for row in rows if last > 1 or row["began_from"] == first(record)]


def chosen(record: Record) -> int:
    """The retraining whose ε₂ was best on D2 at any step; where the run chose on validation rows, the one it chose."""
    last = len(record.tasks) - 1
    if record.protocol.get("choose_on") == "val":  # the looks are at test rows
        return next(int(row["trial"]) for row in _trials(record, last) if row["chosen"])
    return max(retrainings(record), key=lambda trial: _highest(course(record, trial, last)))


def prescient(record: Record, on: int | None = None) -> float:
    """max_p max_ε₂ max_t χ(t) on D1 ∪ D2 (004 Alg. 1); `on`: on the test set of this task instead."""
    last = len(record.tasks) - 1
    return max(_highest(course(record, row["trial"], on)) for row in _trials(record, last))


def stopped(
    record: Record, threshold: float = 0.99, pick: Literal["d2", "union"] = "d2", on: int | None = None
) -> tuple[int, float]:
    """Which retraining is taken, and t_E, the step where it is stopped: min {t : χ(t) ≥ μ max χ on D2} (004 Alg. 2).

    ε₂ is picked by the accuracy on D2 at t_E, or as printed by that on D1 ∪ D2. `on`: all looks are at this task's test
    set instead, which is what the authors' code did on DP10-10. The looks are at test rows: what a run made of its
    validation rows is its own result (`pooled`, and the settings `protocol.later_lr` and `protocol.stop`).
    """
    found = []
    for trial in retrainings(record):
        own = course(record, trial, len(record.tasks) - 1 if on is None else on)
        at, reached = next((t, q) for t, q in own if q >= threshold * _highest(own))
        worth = dict(course(record, trial, on))[at] if pick == "union" else reached
        found.append((worth, trial, at))
    _, trial, at = max(found, key=lambda each: each[0])
    return trial, at


def realistic(
    record: Record, threshold: float = 0.99, pick: Literal["d2", "union"] = "d2", on: int | None = None
) -> float:
    """χ(t_E) on D1 ∪ D2 of the retraining that is taken; the arguments are those of `stopped`."""
    trial, at = stopped(record, threshold, pick, on)
    return dict(course(record, trial, on))[at]


def best(record: Record, on: int | None = None) -> float:
    """max_t χ(t) on D1 ∪ D2 while D2 is learned (003 Alg. 1); it needs the data of D1.

    Of a method that merges networks (IMM) this is the network of D2 alone: `blended` has the merged ones.
    """
    return _highest(course(record, chosen(record), on))


def last(record: Record, on: int | None = None) -> float:
    """χ(t_max) on D1 ∪ D2 (003 Alg. 1); of a method that merges networks, of the network of D2 alone."""
    return course(record, chosen(record), on)[-1][1]


def pooled(record: Record) -> float:
    """The accuracy after the last task on the test rows of all tasks together; ACC counts every task alike."""
    rows = [task["n_test"] for task in record.tasks]
    return float(sum(q * n for q, n in zip(record.R[-1], rows, strict=True)) / sum(rows))


def at_once(record: Record) -> float | None:
    """The accuracy on D1 ∪ D2 of the chosen model trained on both at once; None where it was not trained."""
    rows = [row["trial"] for row in _part(record, "trials") if row["task"] is None and "failed" not in row]
    return union(record, rows[0])[-1][1] if rows else None


def omega_all(record: Record) -> float | None:
    """Ω_all = best / the accuracy of all tasks learned at once (Kemker et al., 2018; 003 Tab. 5)."""
    reached = at_once(record)
    return best(record) / reached if reached else None


def blended(record: Record, merge: str) -> Course:
    """(α, accuracy on D1 ∪ D2) of a method that merges networks, after the last task."""
    tests = [task["n_test"] for task in record.tasks]
    final = len(tests) - 1
    pooled: dict[float, float] = {}
    for row in _part(record, "blends"):
        if row["merge"] == merge and row["after_task"] == final:
            share = row["accuracy"] * tests[row["task"]] / sum(tests)
            pooled[row["alpha"]] = pooled.get(row["alpha"], 0.0) + share
    return list(pooled.items())


def _trials(record: Record, task: int) -> Iterator[Mapping[str, Any]]:
    """The trials on a task, without those that failed."""
    return (row for row in _part(record, "trials") if row["task"] == task and "failed" not in row)


def _part(record: Record, name: str) -> list[Mapping[str, Any]]:
    if name not in record.study:
        wanted = "prescient, realistic or application"
        raise BadInput(f"the record of {record.method!r} has no {name} of a study; run it under protocol {wanted}")
    return list(record.study[name])


def _highest(found: Course) -> float:
    return max(q for _, q in found)
