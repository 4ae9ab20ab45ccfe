"""Figures 2 to 5: the best runs of EWC and D-fc over time, realistic evaluation."""

from __future__ import annotations

from functools import partial

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.base import Entry, Figure, Found, Recipe, Scale, published
from holdfast.papers.still import mnist, table4

SHOWN = {
    "figure2": ("EWC", common.NINE),
    "figure3": ("EWC", common.FIVE),
    "figure4": ("D-fc", common.NINE),
    "figure5": ("D-fc", common.FIVE),
}


def recipes() -> list[Recipe]:
    return [_recipe(item, row, slts) for item, (row, slts) in SHOWN.items()]


def _recipe(item: str, row: str, slts: tuple[str, ...]) -> Recipe:
    title, _ = published("still", item)
    _, cells = published("still", "table4")
    each = {"EWC": 5, "D-fc": 4}[row]
    return Recipe(
        f"still/{item}",
        title,
        {"smoke": ("digits",), "laptop": ("mnist",), "full": ("mnist",)},
        {"smoke": 0.1, "laptop": each * len(slts), "full": 24 * each * len(slts)},
        partial(_entries, row=row, slts=slts),
        table4.measured,
        tuple(cell for cell in cells if cell["row"] == row and cell["column"] in slts),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        said=mnist.said(),
        notes=(
            "The runs are those of still/table4, and its numbers stand here for the panels: with --from and its "
            "output folder none is run again.",
            mnist.CHOSEN,
            mnist.THEIR_EWC if row == "EWC" else mnist.NO_DROPOUT,
        ),
        figures=partial(_figures, title=title, row=row, slts=slts),
        missing=mnist.missing,
    )


def _entries(scale: Scale, row: str, slts: tuple[str, ...]) -> list[Entry]:
    """With what stands for the authors' runs: fc for D-fc, which they started without dropout."""
    rows = ("D-fc", "fc") if row == "D-fc" else (row,)
    return mnist.entries(scale, table4.PROTOCOL, rows, slts)


def _figures(found: Found, title: str, row: str, slts: tuple[str, ...]) -> list[Figure]:
    made = []
    theirs = (row, True) if row in common.EMULATED else ("fc", False)
    for (name, emulated), said in (((row, False), ""), (theirs, ", authors’ way")):
        stopping = table4.theirs_stopped if said else None
        panels = [
            hf.panels.panel(slt, found[name, slt, emulated], stopping=stopping)
            for slt in slts
            if (name, slt, emulated) in found
        ]
        if panels:
            made.append(Figure("course", f"{title}{said}", [], "step", [], panels))
    return made
