"""Table 3: six models on twelve tasks of MNIST, prescient evaluation."""

from __future__ import annotations

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.still import mnist

# At laptop the grid is thinned to where the best runs are: in two layers, and with ε₂ = 10⁻⁵ but for DP10-10. A run's
# best accuracy is largely a draw: many small networks are worth more than a few large ones (docs/papers/004.md).
TWO = {"layers": (2,), "mix_sizes": True}
THINNED = {row: {**TWO, "later_lr": (1e-5,)} for row in ("fc", "D-fc", "LWTA")} | {"EWC": {**TWO, "sizes": (400, 800)}}
GRID = (
    "of 36 topologies and three ε₂ those that matter: 2 hidden layers of 200, 400 or 800 each with ε₂ = 10⁻⁵, on "
    "DP10-10 with all; EWC layers of 400 or 800, with all"
)


def recipe() -> Recipe:
    title, cells = published("still", "table3")
    return Recipe(
        "still/table3",
        title,
        {"smoke": ("digits",), "laptop": ("mnist",), "full": ("mnist",)},
        {"smoke": 0.5, "laptop": 300, "full": 60000},
        _entries,
        measured,
        tuple({**cell, "threshold": common.threshold(cell["column"])} for cell in cells),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        said=mnist.said(GRID),
        notes=(
            "Prescient: every model of the grid is retrained with every ε₂ of it, and the highest test accuracy on "
            "D1 ∪ D2 at any step counts. The authors print 0.999 of it.",
            *mnist.NOTES,
        ),
        missing=mnist.missing,
    )


def _entries(scale: Scale) -> list[Entry]:
    return mnist.entries(scale, "prescient", changes=thinned if scale == "laptop" else mnist.unchanged)


def thinned(row: str, slt: str) -> common.Settings:
    """What differs from the grid of Table 4."""
    return {k: v for k, v in THINNED.get(row, {}).items() if not (k == "later_lr" and slt == common.PERMUTED)}


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """The highest accuracy per seed; emulated: 0.999 of it, of the authors' runs where there are any."""
    records = theirs(found, row, column) if emulated else found.get((row, column, False))
    if not records:
        return None
    if not emulated:
        return [hf.study.prescient(record) for record in records]
    on = 0 if column == common.PERMUTED else None
    return [0.999 * hf.study.prescient(record, on) for record in records]


def theirs(found: Found, row: str, column: str) -> list[hf.Record] | None:
    """The runs that stand for the authors': their own, or fc's for D-fc, which was started without dropout."""
    place = {"D-fc": "fc", "D-conv": "conv"}.get(row, row)
    records = found.get((place, column, True)) or found.get((place, column, False))
    return None if records is None else list(records)
