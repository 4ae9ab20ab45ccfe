"""What the kept predictions say: the accuracies again, and two runs example by example."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
from scipy.special import bdtr

from holdfast.errors import BadInput
from holdfast.types import Record

SAME_ROWS = (  # any has the same test rows
    *("examples", "val", "augment", "views", "scale", "scenario", "head", "outputs", "room"),
)


def rescore(record: Record) -> np.ndarray:
    """R (scorings, T) recomputed from the predicted classes: R[i, j] = mean(predictions[j][k] == labels[j]).

    k counts the scorings that asked about task j, the i-th among them; the others have NaN, as in R.
    """
    _must_have_predictions(record)
    found = np.full(record.R.shape, np.nan)
    for j, (p, y) in enumerate(zip(record.predictions, record.labels, strict=True)):
        found[~np.isnan(record.R[:, j]), j] = (p == y).mean(axis=1)
    return found


@dataclass(frozen=True)
class Examples:
    """Two runs on one test set: how many examples each got right, and McNemar's exact p-value."""

    both: int
    only_a: int
    only_b: int
    neither: int
    p_value: float  # two-sided; of equal skill, given the examples on which they differ


def compare_examples(a: Record, b: Record, task: int) -> Examples:
    """Count where the final predictions of two runs differ on a task's test set, counted from 0.

    Two runs of one stream and seed answer the same rows, so that those which both get right, or both wrong, say nothing
    about who is better: under equal skill, only_a ~ Binomial(only_a + only_b, 1/2) (McNemar, 1947). The p-value is of
    these two networks on these rows; whether the methods differ, seeds say (`compare`).

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=100)
    >>> a, b = (hf.run(method, stream, seed=0) for method in ("er", "finetune"))
    >>> found = hf.compare_examples(a, b, task=0)
    >>> found.only_a > found.only_b, found.p_value < 0.01
    (True, True)
    """
    for record in (a, b):
        if not isinstance(record, Record):
            raise BadInput(f"a run must be a Record, as hf.run gives one, not a {type(record).__name__}")
        _must_have_predictions(record)
        if not isinstance(task, int | np.integer):
            raise BadInput(f"task must be a whole number, counted from 0, not {task!r}")
        if not 0 <= task < len(record.labels):
            raise BadInput(f"task must be from 0 to {len(record.labels) - 1}, not {task}")
        if np.isnan(record.R[-1, task]):
            raise BadInput(f"the last scoring of {record.method} (seed {record.seed}) did not ask about task {task}")
    y = a.labels[task]
    if where := _apart(a, b, task):
        raise BadInput(
            f"{a.method} (seed {a.seed}) and {b.method} (seed {b.seed}) were scored on different test sets of "
            f"task {task} ({where}); compare runs of the same stream and seed"
        )
    right_a, right_b = a.predictions[task][-1] == y, b.predictions[task][-1] == y
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    differ = only_a + only_b
    return Examples(
        both=int((right_a & right_b).sum()),
        only_a=only_a,
        only_b=only_b,
        neither=int((~right_a & ~right_b).sum()),
        p_value=min(1.0, 2 * float(bdtr(min(only_a, only_b), differ, 0.5))),
    )


def _apart(a: Record, b: Record, task: int) -> str:
    """Why the test rows of a task are not the same ones, in the same order; empty: they are.

    Labels alone do not tell: another seed can draw as many rows of each class, or permute their pixels.
    """
    for name in [word for word in {**a.stream, **b.stream} if word not in SAME_ROWS]:
        mine, other = a.stream.get(name), b.stream.get(name)
        if json.dumps(mine, default=str) != json.dumps(other, default=str):  # one that was read has lists for tuples
            return "other data" if name == "fingerprint" else f"stream.{name} {mine} and {other}"
    return "" if np.array_equal(a.labels[task], b.labels[task]) else "other labels"


def _must_have_predictions(record: Record) -> None:
    if not record.predictions:
        raise BadInput(
            f"the record of {record.method} (seed {record.seed}) has no predictions; load predictions.npz too"
        )
