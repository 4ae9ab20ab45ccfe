"""Table 4: incremental moment matching, merged at the best α."""

from __future__ import annotations

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.apps import grid
from holdfast.papers.base import Entry, Figure, Found, Place, Recipe, Scale, published

SHARED, GAIN, AWAY = "at the share of D2", "gain of the best α", "its distance from the share"
NOTES = (
    "Every task has a network, the second one begun with the weights of the first (weight transfer; the paper says "
    "re-initialised, the authors' code does not); plain SGD, no L2. The number is the accuracy of the merged network "
    "on D1 ∪ D2 at the best α, found on test rows as in the paper, the lowest over the tasks of a type: choosing α "
    "needs data of D1. Beside it, what α = |D2|/(|D1|+|D2|) gives, which needs none.",
    "Under the authors' procedure ε₂ is ignored: D2 is learned at 0.01, which D1 chooses, too, and begins with D1's "
    "final weights; networks have three hidden layers and no dropout (those of two have it at test, too, which is not "
    "emulated, and are unlikely to be chosen so); importances are sums over batches of 50 of squared mean gradients, "
    "so that a part counts by its size. This number is judged, because the published one came about so. Not emulated: "
    "a Fisher matrix from another batch in every layer.",
    "Gain of the best α: over the share, at the task where it is largest; its distance: how far that α is from the "
    "share.",
    grid.LISTED,
)


def recipe() -> Recipe:
    title, cells = published("apps", "table4")
    extra = [{"row": r, "column": c, "metric": m, "published": None}
             for r, c in grid.places(cells) for m in (SHARED, GAIN, AWAY)]  # fmt: skip
    return Recipe(
        "apps/table4",
        title,
        grid.NEEDS,
        {"smoke": 0.2, "laptop": 480, "full": 6000},
        entries,
        measured,
        (*({**c, "threshold": common.threshold(c["column"].split(", ")[1])} for c in cells), *extra),
        seeds={"smoke": 1, "laptop": 3, "full": 3},
        said=grid.SAID,
        notes=NOTES,
        figures=_figures,
        behind=behind,
        missing=lambda scale: grid.missing(scale, grid.places(cells), data_in_row=False),
        data=lambda row, column: grid.of_row(column, row),
    )


def entries(scale: Scale) -> list[Entry]:
    slts = (*common.FIVE[:1], *common.NINE[:1]) if scale == "smoke" else (*common.FIVE, *common.NINE)
    return grid.entries(scale, ((d, slt, grid.IMM) for d in grid.DATA for slt in slts))


def behind(row: str, column: str) -> list[Place]:
    return grid.behind(column, grid.IMM)


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """Per seed, at the best α or at the share of D2; of the tasks the lowest, of gains the largest."""
    merge = row.rpartition(" ")[2]
    per_task = grid.records(found, column, grid.IMM, emulated)
    if not per_task:
        return None
    if metric == "best":
        return grid.lowest(per_task, lambda record: hf.panels.peak(hf.study.blended(record, merge))[1])
    if metric == SHARED:
        return grid.lowest(per_task, lambda record: _at_share(record, merge))
    chosen = [
        max((_gain(record, merge) for record in seed), key=lambda g: g[0]) for seed in zip(*per_task, strict=True)
    ]
    return [gain if metric == GAIN else away for gain, away in chosen]


def _at_share(record: hf.Record, merge: str) -> float:
    return hf.panels.near(hf.study.blended(record, merge), hf.panels.share(record))


def _gain(record: hf.Record, merge: str) -> tuple[float, float]:
    """How much better the best α is than the share of D2, and how far from it."""
    alpha, accuracy = hf.panels.peak(hf.study.blended(record, merge))
    return accuracy - _at_share(record, merge), abs(alpha - hf.panels.share(record))


def _figures(found: Found) -> list[Figure]:
    """The tuning curves of every task."""
    made = []
    for emulated in (False, True):
        for data in grid.DATA:
            mine = [(slt, found.get((f"{data}, {slt}", grid.IMM, emulated))) for slt in common.SLTS]
            panels = [hf.panels.panel(slt, records, "epoch") for slt, records in mine if records]
            if panels:
                title = f"{data}: accuracy on D1 ∪ D2 over α{said(emulated)}"
                made.append(Figure("tuning", title, [], "α", [], panels))
    return made


def said(emulated: bool) -> str:
    return ", authors’ way" if emulated else ""
