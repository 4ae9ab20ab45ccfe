"""Table 5: Table 3 relative to one network trained on both parts together (Ω_all)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import holdfast as hf
from holdfast.papers.apps import grid, table3
from holdfast.papers.base import Found, Recipe, published

THRESHOLD = 0.9  # the paper shades this table from 90%


def recipe() -> Recipe:
    title, cells = published("apps", "table5")
    return Recipe(
        "apps/table5",
        title,
        grid.NEEDS,
        {"smoke": 0.5, "laptop": 700, "full": 60000},
        partial(table3.entries, shared=False),
        _measured,
        tuple({**c, **({"threshold": THRESHOLD} if c["metric"] == "Ω_all" else {})} for c in cells),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        said=grid.SAID,
        notes=(
            "The runs are those of apps/table3: with --from and its output folder none is run again, but for those on "
            "MNIST at laptop, which learn nothing at once. Ω_all is the lowest `best` over the tasks of a type, over "
            "that of all at once: the chosen model trained on D1 ∪ D2 for as many steps as both parts have.",
            *table3.NOTES[1:],
        ),
        behind=grid.behind,
        missing=lambda scale: grid.missing(scale, grid.places(cells)),
        data=grid.of_row,
    )


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    per_task = grid.records(found, row, column, emulated)
    pairs = [_lowest(seed) for seed in zip(*per_task, strict=True)] if per_task else []
    if not pairs or any(not whole for _, whole in pairs):
        return None
    return [whole if metric == "baseline" else value / whole for value, whole in pairs]


def _lowest(records: Sequence[hf.Record]) -> tuple[float, float]:
    """The lowest `best` over the tasks, and what all at once have of that task."""
    record = min(records, key=hf.study.best)
    return hf.study.best(record), hf.study.at_once(record) or 0.0
