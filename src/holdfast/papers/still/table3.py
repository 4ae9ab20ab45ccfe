"""Table 3: six models on twelve tasks of MNIST, prescient evaluation."""

from __future__ import annotations

import holdfast as hf
from holdfast.papers import study
from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.still import mnist

SIZES = (800,)  # of hidden layers, at laptop: thinned to save time
THIN = "6 topologies: 2 or 3 hidden layers of 200, 400 or 800"


def recipe() -> Recipe:
    title, cells = published("still", "table3")
    thinned = mnist.SAID["laptop"].replace(THIN, "2 topologies, to save time: 2 or 3 hidden layers of 800")
    return Recipe(
        "still/table3",
        title,
        {"smoke": ("digits",), "laptop": ("mnist",), "full": ("mnist",)},
        {"smoke": 0.5, "laptop": 240, "full": 60000},
        _entries,
        measured,
        tuple({**cell, "threshold": study.threshold(cell["column"])} for cell in cells),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        said={**mnist.SAID, "laptop": thinned},
        notes=(
            "Prescient: every model is retrained with every ε₂ and the highest test accuracy on D1 ∪ D2 at any step "
            "counts. The authors take the first step that has 0.999 "
            "of it.",
            *mnist.NOTES[1:],
        ),
        missing=mnist.missing,
    )


def _entries(scale: Scale) -> list[Entry]:
    return mnist.entries(scale, "prescient", changes={"sizes": SIZES} if scale == "laptop" else None)


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """The highest accuracy per seed; emulated: of the authors' runs where there are any, read as they do."""
    records = theirs(found, row, column) if emulated else found.get((row, column, False))
    if not records:
        return None
    if not emulated:
        return [hf.study.prescient(record) for record in records]
    on = 0 if column == study.PERMUTED else None
    return [study.reached(record, 0.999, on) for record in records]


def theirs(found: Found, row: str, column: str) -> list[hf.Record] | None:
    """The runs that stand for the authors': their own, or fc's for D-fc, which was started without dropout."""
    place = {"D-fc": "fc", "D-conv": "conv"}.get(row, row)
    records = found.get((place, column, True)) or found.get((place, column, False))
    return None if records is None else list(records)
