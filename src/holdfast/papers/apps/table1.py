"""Table 1: what the data sets are, measured where they are at hand."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import torch

import holdfast as hf
from holdfast.papers.apps import grid
from holdfast.papers.base import ABSENT, Found, Place, Recipe, Scale, published

UNREADABLE = "cannot be read"  # or has fewer than ten classes; `holdfast data verify NAME` says more
SIDES = {"channels": 0, "height": 1, "width": 2}
READ = tuple(name for data, name in grid.DATA.items() if data not in grid.BY_HAND)  # where they are; none is needed


def recipe() -> Recipe:
    title, _ = published("apps", "table1")
    return Recipe(
        "apps/table1",
        title,
        {"smoke": READ, "laptop": READ, "full": READ},
        {"smoke": 0.1, "laptop": 0.1, "full": 0.1},
        lambda scale: [],
        _measured,
        _cells(),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        notes=(
            "Nothing is trained: rows are counted in the data sets that are here. Imbalance: the largest difference "
            "between two classes' shares, in percentage points.",
            "MNIST has 60,000 training rows; the paper's library kept 5,000 of them for validation. `reduced "
            "here`: the file at hand has fewer rows than the published set, as `holdfast data status` says, too.",
            "The number of classes is not in the paper's table; its text takes ten of every data set.",
            grid.LISTED,
        ),
        missing=_missing,
        data=grid.of_row,
    )


def _cells() -> tuple[Mapping[str, Any], ...]:
    """What the paper prints, and the number of classes."""
    _, cells = published("apps", "table1")
    return (*cells, *({"row": row, "column": "classes", "metric": "number", "published": None} for row in grid.DATA))


def _missing(scale: Scale) -> Mapping[Place, str]:
    """Nothing is run for any place; those whose number is absent, or of a part of the rows, say so."""
    cells = _cells()
    here = {row: hf.at_hand(name) for row, name in grid.DATA.items()}
    nothing = [place for place in grid.places(cells) if _task(place[0]) is None]
    found = {place: UNREADABLE if here[place[0]] else ABSENT for place in nothing}
    for cell in (cell for cell in cells if cell["metric"] == "elements"):
        place = (cell["row"], cell["column"])
        rows = _measured({}, *place, "elements", False)
        if rows and rows[0] < cell["published"]:
            found[place] = "reduced here"
    return found


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    task = _task(row)
    if task is None or emulated:
        return None
    if metric in SIDES:
        return [float(task.train.pixels.shape[1:][SIDES[metric]])]
    if column == "classes":
        return [float(len(task.classes))]
    y = (task.train if column == "train" else task.test).y
    if metric == "elements":
        return [float(len(y))]
    counts = torch.bincount(y)
    return [100.0 * float(counts.max() - counts.min()) / len(y)]


@lru_cache
def _task(row: str) -> hf.Task | None:
    """Ten classes of a data set; None where it cannot be read."""
    try:
        return hf.stream("slt", data=grid.DATA[row], parts="DP10-10", permute=False).tasks[0]
    except hf.BadInput:
        return None
