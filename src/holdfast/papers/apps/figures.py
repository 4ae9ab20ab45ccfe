"""Figures 2 to 8 and appendix B: the best experiments over time, in space and in the plane, and over α."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.apps import grid, table3, table4
from holdfast.papers.base import Entry, Figure, Found, Recipe, Scale, published

Kind = Literal["course", "waterfall", "tuning"]
STANDS_IN = "Where the data sets that the paper draws are not here, the panels show the same tasks of those that are."


@dataclass(frozen=True)
class Shown:
    """What a figure shows: models on tasks, drawn in one or two ways."""

    experiments: tuple[tuple[str, str], ...]  # task, model
    kinds: tuple[Kind, ...]
    over: Literal["data sets", "tasks"]  # what stands one behind the other
    minutes: float  # at laptop
    notes: tuple[str, ...] = ()


SHOWN = {
    "figure2": Shown(((common.PERMUTED, "FC"),), ("waterfall",), "data sets", 30, (table3.PERMUTED,)),
    "figure3": Shown(tuple((slt, "D-FC") for slt in common.FIVE), ("waterfall",), "tasks", 90),
    "figure4": Shown(
        tuple((slt, "EWC") for slt in ("D9-1c", "D9-1a", "D9-1b")), ("course",), "tasks", 120, (STANDS_IN,)
    ),
    "figure5": Shown((("D5-5d", "EWC"),), ("waterfall",), "data sets", 40),
    "figure6": Shown((("D5-5f", grid.IMM),), ("course", "tuning"), "data sets", 30, (STANDS_IN, *table4.NOTES[:2])),
    "figure7": Shown((("D5-5b", grid.IMM),), ("waterfall",), "data sets", 30, table4.NOTES[:2]),
    "figure8": Shown((("D9-1c", grid.IMM),), ("waterfall",), "data sets", 30, table4.NOTES[:2]),
    "appendix_b": Shown(
        (*(("D9-1b", model) for model in (*grid.MODELS, grid.IMM)), ("D5-5d", "EWC")),
        ("course", "tuning"), "data sets", 150, (STANDS_IN,),
    ),
}  # fmt: skip


def recipes() -> list[Recipe]:
    return [_recipe(item, shown) for item, shown in SHOWN.items()]


def _recipe(item: str, shown: Shown) -> Recipe:
    title, _ = published("apps", item)
    merges = all(model == grid.IMM for _, model in shown.experiments)
    mixed = any(model == grid.IMM for _, model in shown.experiments) and not merges
    whole = "apps/table4" if merges else f"apps/table5{', IMM’s of apps/table4' if mixed else ''}"
    return Recipe(
        f"apps/{item}",
        title,
        grid.NEEDS,
        {"smoke": 0.2, "laptop": shown.minutes, "full": 30 * shown.minutes},
        lambda scale: entries(scale, shown),
        _measured,
        tuple(_cells(shown)),
        seeds={"smoke": 1, "laptop": 3 if merges else 1, "full": 3 if merges else 1},
        said=grid.SAID,
        notes=(
            f"The runs are among those of {whole}: with --from and its output folder they are not run again.",
            *shown.notes,
            grid.LISTED,
        ),
        figures=lambda found: _figures(found, title, shown),
        missing=lambda scale: _missing(scale, shown),
        data=grid.of_row,
    )


def entries(scale: Scale, shown: Shown) -> list[Entry]:
    return grid.entries(scale, ((data, slt, model) for data in grid.DATA for slt, model in shown.experiments))


def _cells(shown: Shown) -> Iterator[Mapping[str, Any]]:
    """The figures have no numbers in print; ours stand below them."""
    for slt, model in shown.experiments:
        for data in grid.DATA:
            for metric in ("best",) if model == grid.IMM else ("best", "last"):
                yield {"row": f"{data}, {slt}", "column": model, "metric": metric, "published": None}


def _missing(scale: Scale, shown: Shown) -> dict[tuple[str, str], str]:
    found, here = {}, grid.runs(scale)
    for slt, model in shown.experiments:
        for data in grid.DATA:
            if why := grid.why_not(scale, here, data, [slt], model):
                found[f"{data}, {slt}", model] = why
    return found


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    records = (found.get((row, column, True)) if emulated else None) or found.get((row, column, False))
    if not records:
        return None
    if column == grid.IMM:
        merges = ("mean", "mode")
        return [max(hf.panels.peak(hf.study.blended(r, merge))[1] for merge in merges) for r in records]
    return [table3.READ[metric](record) for record in records]


def _figures(found: Found, title: str, shown: Shown) -> list[Figure]:
    made = []
    for emulated in (False, True):
        for kind in shown.kinds:
            runs = {place: records for place, records in found.items() if place[2] == emulated}
            if kind == "tuning":
                runs = {place: records for place, records in runs.items() if place[1] == grid.IMM}
            axis, over = ("α", ", merged at α") if kind == "tuning" else ("epoch", "")
            for name, panels in _grouped(runs, shown, kind):
                made.append(Figure(kind, f"{title}{name}{over}{table4.said(emulated)}", [], axis, [], panels))
    return made


def _grouped(runs: Found, shown: Shown, kind: Kind) -> Iterator[tuple[str, list[hf.panels.Panel]]]:
    """A waterfall has one task of several data sets, or several tasks of one; small multiples have everything."""
    groups: dict[str, list[hf.panels.Panel]] = {}
    for (row, model, _), records in runs.items():
        data, slt = row.split(", ")
        if kind == "waterfall":
            group, name = ("", data) if shown.over == "data sets" else (f", {data}", slt)
        else:
            group, name = "", f"{model} on {slt}, {data}"
        groups.setdefault(group, []).append(hf.panels.panel(name, records, "epoch"))
    yield from groups.items()
