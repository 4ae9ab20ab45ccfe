"""Figures 7 and 8: the paths that MNTDP discovers on S^out. The report draws those of every run; these are theirs."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.ctrl import transfer

FIGURES: Mapping[str, str] = {"figure7": "MNTDP-D", "figure8": "MNTDP-S"}
TABLE = "table16"
NEW, ALL = "new modules of the last task", "modules in all"


def recipes() -> list[Recipe]:
    return [recipe(figure) for figure in FIGURES]


def recipe(figure: str) -> Recipe:
    title, cells = published("ctrl", figure)
    return Recipe(
        f"ctrl/{figure}",
        title,
        {"smoke": (), "laptop": transfer.DATA, "full": transfer.DATA},
        {"smoke": 0.2, "laptop": 15, "full": 1_000},
        lambda scale: _entries(FIGURES[figure], scale),
        measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=transfer.SAID,
        notes=(
            "The picture stands below, under Paths through the library, with the first seed; `holdfast export DIR "
            "--svg FOLDER` writes it as a file.",
            f"The runs are those of row {FIGURES[figure]} of ctrl/{TABLE}: with --from and its output folder none is "
            "run again.",
            "What is published is what the caption says of one run; it is not judged.",
        ),
        listed=(ALL,),
    )


def _entries(row: str, scale: Scale) -> list[Entry]:
    column, kind = transfer.TABLES[TABLE]
    return [transfer.entry(row, column, kind, scale)]


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """A path says for each layer which are new; each task's are counted once."""
    made = [[len(path["new"]) for path in record.study["paths"]] for record in found.get((row, column, emulated), ())]
    return [float(new[-1] if metric == NEW else sum(new)) for new in made] or None
