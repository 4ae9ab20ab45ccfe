"""Tables 13 to 17: the transfer streams S⁻, S⁺, S^in, S^out and S^pl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Recipe, Scale, published
from holdfast.papers.ctrl import rows
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
    "smoke": "In place of the paper's data sets: procedural ones, a hundredth of the rows, a network of width 4.",
    "laptop": "The ResNet has width 16, not 64, the AlexNet 24 and 512, not 64 and 2048, and they learn in "
    "40 epochs of batches of 64 with Adam at 0.003, not at "
    "the best of 2 rates × 3 decays over up to 300 epochs of batches of 256; rows of the first and of the last task "
    "are disjoint draws, which the paper's are not. So no number can be held against the paper's.",
    "full": "As the paper: width 64, 2 rates × 3 decays, 300 epochs at most; the rows of two tasks may overlap.",
}


def recipes() -> list[Recipe]:
    return [recipe(table) for table in TABLES]


def recipe(table: str) -> Recipe:
    (column, kind), (title, cells) = TABLES[table], published("ctrl", table)
    ends = [
        {"row": row, "column": f"{column}, {rows.ALONE}", "metric": rows.LAST, "published": None}
        for row in rows.rows_on(permuted=False)
    ]  # fmt: skip
    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": (), "laptop": DATA, "full": DATA},
        {"smoke": 1, "laptop": 150, "full": 20_000},
        lambda scale: [
            made
            for row in rows.rows_on(permuted=False)
            for emulated in ((False, True) if _both_ways(row, scale) else (False,))
            for made in _entries(row, column, kind, scale, emulated)
        ],
        rows.measured,
        (*cells, *ends),
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID,
        notes=rows.NOTES,
        missing=lambda scale: rows.missing(cells),
    )


def _both_ways(row: str, scale: Scale) -> bool:
    """Whether the authors' batch normalisation is run, too: below the full scale for one row, to see what it does."""
    return ROWS[row].learns_on and (scale == "full" or row == "Finetune")


def _entries(row: str, column: str, kind: str, scale: Scale, emulated: bool) -> list[Entry]:
    made = entry(row, column, kind, scale, emulated)
    return [made] if emulated else [made, rows.alone(made)]


def entry(row: str, column: str, kind: str, scale: Scale, emulated: bool = False) -> Entry:
    shown: dict[str, Any] = {"kind": kind, "head": "task" if ROWS[row].heads else "shared"}
    if scale == "smoke":
        shown |= {"data": "synth", "rows": 0.01, "test": 5}
    else:
        shown |= {"data": "paper"} | ({"test": 400} if scale == "laptop" else {"disjoint": False})
    stream = hf.stream("ctrl", **shown)
    norms = {"statistics": "first task"} if emulated else {}
    return Entry(
        row,
        column,
        rows.method(row, stream, **({"width": WIDER} if ROWS[row].wide else {})),
        stream,
        rows.convolutional(row, scale, **norms),
        hf.protocol("crossval", **training(scale)),
        emulated=emulated,
        setting=rows.setting(row, scale),
        grid=rows.grid(row, scale),
    )


def training(scale: Scale) -> dict[str, Any]:
    scored: dict[str, Any] = {"score": "ends", "score_first": 5}
    if scale == "full":
        return scored
    fixed = {"lr": (3e-3,), "decay": (0.0,), "patience": None}
    if scale == "laptop":
        return {**scored, **fixed, "batch": 64, "epochs": 40}
    return {**scored, **fixed, "batch": 5, "epochs": 3}
