"""Tables 13 to 17 and Figures 9 to 13: the transfer streams S⁻, S⁺, S^in, S^out and S^pl."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Recipe, Scale, published
from holdfast.papers.ctrl import figures, rows
from holdfast.papers.ctrl.rows import ROWS

TABLES: Mapping[str, tuple[str, str]] = {  # the stream as the paper calls it, and its kind
    "table13": ("S-", "minus"),
    "table14": ("S+", "plus"),
    "table15": ("S_in", "in"),
    "table16": ("S_out", "out"),
    "table17": ("S_pl", "pl"),
}
DATA = ("cifar-10", "mnist", "dtd", "fashion-mnist", "svhn")
WIDER = 2.5  # HAT (wide)
SAID: Mapping[Scale, str] = {
    "smoke": "In place of the paper's data sets: procedural ones, the first task and the last with a two-hundredth of "
    "their rows, a network of width 4, one pass.",
    "laptop": "The ResNet has width 16, not 64, the AlexNet 24 and 512, not 64 and 2048, and they learn in "
    "40 epochs (the 50 rows of S_in's last task: 280) or 1,600 steps of batches of 64 with Adam at 0.003, not at "
    "the best of 2 rates × 3 decays and of up to 300 epochs of batches of 256; paths are compared by their "
    "looks at the validation rows in the later half of their steps, not by the highest; rows of the "
    "first and of the last task are disjoint draws, which the paper's are not. "
    "So no number can be held against the paper's.",
    "full": "As the paper: width 64, 2 rates × 3 decays, 300 epochs at most; the rows of two tasks may overlap. But "
    "MNTDP-S's Γ has one learning rate, 0.01, where the paper tries two, and HAT the rates and decays of all others.",
}
CHEAP = f"{rows.CHEAP}: `search=halving`, no row of the paper's; benchmarks/search.py holds it beside the whole search."
FIGURES = {f"figure{i}": table for i, table in enumerate(TABLES, 9)}


def recipes() -> list[Recipe]:
    tables = {table: recipe(table) for table in TABLES}
    return [*tables.values(), *(_pictured(figure, tables[table]) for figure, table in FIGURES.items())]


def recipe(table: str) -> Recipe:
    (column, kind), (title, cells) = TABLES[table], published("ctrl", table)
    names = rows.rows_on("transfer")
    unprinted = [(row, f"{column}, {rows.ALONE}", rows.LAST) for row in names]
    unprinted += [(rows.CHEAP, column, metric) for metric in dict.fromkeys(cell["metric"] for cell in cells)]
    ours = [{"row": row, "column": place, "metric": metric, "published": None} for row, place, metric in unprinted]
    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": (), "laptop": DATA, "full": DATA},
        {"smoke": 0.2, "laptop": 180, "full": 20_000},
        lambda scale: [made for row in names for made in _entries(row, column, kind, scale)],
        rows.measured,
        (*cells, *ours),
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID,
        notes=(*rows.NOTES, CHEAP),
        figures=lambda found: figures.bars(found, cells, [(column, m) for m in figures.MEASURES], rows.measured),
        missing=lambda scale: rows.missing(cells),
    )


def _pictured(figure: str, table: Recipe) -> Recipe:
    """A figure is its table, drawn: the runs are the same, and so is their folder."""
    note = f"The figure draws the numbers of {table.id}, whose runs it has; both have the same output folder."
    return replace(table, id=f"ctrl/{figure}", title=published("ctrl", figure)[0], notes=(note, *table.notes))


def _entries(row: str, column: str, kind: str, scale: Scale) -> list[Entry]:
    """Below the full scale the authors' batch normalisation is run for one row, to see what it does."""
    both_ways = ROWS[row].learns_on and (scale == "full" or row == "Finetune")
    theirs = [entry(row, column, kind, scale, emulated=True)] if both_ways else []
    return [*and_alone(entry(row, column, kind, scale)), *theirs]


def and_alone(whole: Entry) -> list[Entry]:
    """A stream and its last task alone."""
    return [whole, rows.alone(whole)]


def entry(row: str, column: str, kind: str, scale: Scale, emulated: bool = False) -> Entry:
    shown = stream(kind, head(row), scale)
    return Entry(
        row,
        column,
        rows.method(row, shown, **({"width": WIDER} if ROWS[row].wide else {})),
        shown,
        rows.convolutional(row, scale, **({"statistics": "first task"} if emulated else {})),
        hf.protocol("crossval", **training(scale)),
        emulated=emulated,
        setting=rows.setting(row, scale),
        grid=rows.grid(row, scale),
    )


def head(row: str) -> str:
    return "task" if ROWS[row].heads else "shared"


@cache  # rows differ in the method alone
def stream(kind: str, head: str, scale: Scale) -> hf.Stream:
    shown: dict[str, Any] = {"kind": kind, "head": head}
    if scale == "smoke":
        return hf.stream("ctrl", **shown, data="synth", tasks=2, rows=0.005, test=2)
    return hf.stream("ctrl", **shown, data="paper", **({"test": 200} if scale == "laptop" else {"disjoint": False}))


def training(scale: Scale) -> dict[str, Any]:
    scored: dict[str, Any] = {"score": "ends", "score_first": 5}
    if scale == "full":
        return scored
    fixed = {"lr": (3e-3,), "decay": (0.0,), "patience": None, "judged_by": "later looks"}
    if scale == "laptop":
        return {**scored, **fixed, "batch": 64, "epochs": 40, "steps": 1600, "least": 280}
    return {**scored, **fixed, "batch": 2, "epochs": 1}
