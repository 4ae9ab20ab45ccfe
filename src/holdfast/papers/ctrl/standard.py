"""Tables 11 and 12 and Figure 3: the usual streams, Permuted MNIST and Split CIFAR-100, ten tasks each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import holdfast as hf
from holdfast.papers.base import SCALES, Entry, Figure, Found, Recipe, Scale, published
from holdfast.papers.ctrl import figures, rows
from holdfast.papers.ctrl.rows import ROWS

TASKS = 10
COLUMNS: Mapping[str, str] = {"table11": "Permuted MNIST", "table12": "Split CIFAR-100"}
DATA: Mapping[str, str] = {"table11": "mnist", "table12": "cifar-100"}
WIDER = {"table11": 4.0, "table12": 3.2}  # HAT (wide)
VAL = {"mnist": 1 / 12, "cifar-100": 0.1}  # 500 and 50 rows of each class
SAID: Mapping[str, Mapping[Scale, str]] = {
    "table11": {
        "smoke": "In place of MNIST: digits, two tasks, a network of 20-20, one pass.",
        "laptop": "One learning rate, 0.001, no decay, 2 epochs of batches of 256; the "
        "authors' settings are not released. Networks and rows are the paper's. RCL has 3 trials per task, not 50.",
        "full": "2 learning rates × 2 decays, 300 epochs at most; the authors' settings are not released.",
    },
    "table12": {
        "smoke": "In place of CIFAR-100: procedural shapes, two tasks, a network of width 4, one pass.",
        "laptop": "The ResNet has width 16, not 64, the AlexNet 24 and 512, not 64 and 2048, and they learn "
        "in 40 epochs or 1,600 steps of batches of 64 with Adam at 0.003, paths compared by their later looks; of "
        "each class there are as many rows as are here.",
        "full": "As the paper: width 64, 2 rates × 3 decays, 300 epochs at most.",
    },
}


def recipes() -> list[Recipe]:
    tables = [recipe(table) for table in COLUMNS]
    return [*tables, figure3(tables)]


def recipe(table: str) -> Recipe:
    (title, cells), data = published("ctrl", table), DATA[table]
    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": ("digits",) if data == "mnist" else (), "laptop": (data,), "full": (data,)},
        {"smoke": 0.2, "laptop": 65 if data == "mnist" else 160, "full": 10_000},
        lambda scale: [
            entry(row, table, scale) for row in rows.rows_on("permuted" if table == "table11" else "images")
        ],
        rows.measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID[table],
        notes=rows.NOTES[1:],
        figures=lambda found: _figures(found, cells, [COLUMNS[table]]),
        missing=lambda scale: rows.missing(cells),
    )


def figure3(tables: Sequence[Recipe]) -> Recipe:
    """Both tables, drawn."""
    cells = tuple(cell for table in tables for cell in table.published)
    return Recipe(
        "ctrl/figure3",
        published("ctrl", "figure3")[0],
        {scale: tuple(name for table in tables for name in table.needs[scale]) for scale in SCALES},
        {scale: sum(table.minutes[scale] for table in tables) for scale in SCALES},
        lambda scale: [entry for table in tables for entry in table.entries(scale)],
        rows.measured,
        cells,
        seeds=tables[0].seeds,
        said={scale: " ".join(f"{c}: {SAID[t][scale]}" for t, c in COLUMNS.items()) for scale in SCALES},
        notes=(
            "The runs are those of ctrl/table11 and table12: with --from and their output folders none is run again.",
            *rows.NOTES[1:],
        ),
        figures=lambda found: _figures(found, cells, list(COLUMNS.values())),
        missing=lambda scale: rows.missing(cells),
    )


def _figures(found: Found, cells: figures.Cells, columns: Sequence[str]) -> list[Figure]:
    """What the tables print."""
    printed = [metric for metric in figures.MEASURES if any(cell["metric"] == metric for cell in cells)]
    return figures.bars(found, cells, [(column, metric) for column in columns for metric in printed], rows.measured)


def entry(row: str, table: str, scale: Scale) -> Entry:
    permuted = table == "table11"
    shown = stream(table, ROWS[row].heads, scale)
    net = hf.net("mlp", hidden=(20, 20) if scale == "smoke" else (1000, 1000))
    if not permuted:
        net = rows.convolutional(row, scale)
    own: dict[str, Any] = {"labels": "true", "samples": 1000} if permuted and ROWS[row].tuned else {}
    own |= {"width": WIDER[table]} if ROWS[row].wide else {"trials": rows.TRIALS[scale]} if row == "RCL" else {}
    return Entry(
        row,
        COLUMNS[table],
        rows.method(row, shown, **own),
        shown,
        net,
        hf.protocol("crossval", **_training(permuted, scale)),
        setting="" if permuted else rows.setting(row, scale),
        grid=rows.grid(row, scale),
    )


@cache  # rows differ in the method alone
def stream(table: str, heads: bool, scale: Scale) -> hf.Stream:
    data = DATA[table]
    shown: dict[str, Any] = {"data": data, "tasks": TASKS, "scenario": "task", "val": VAL[data]}
    if scale == "smoke":
        small = "digits" if table == "table11" else "synth-shapes"
        shown |= {"data": small, "tasks": 2, "examples": 20, "test_examples": 20, "val": 0.2}
    if table == "table11":
        return hf.stream("permuted", **shown)
    apart: dict[str, Any] = {"head": "task"} if heads else {"outputs": "common"}
    return hf.stream("split", **shown, augment=True, scale="task", **apart)


def _training(permuted: bool, scale: Scale) -> dict[str, Any]:
    scored: dict[str, Any] = {"score": "ends", "score_first": 5}
    if scale == "full":
        return {**scored, "lr": (1e-4, 1e-3), "decay": (0.0, 1e-5)} if permuted else scored
    fixed = {"decay": (0.0,), "patience": None, "judged_by": "later looks"}
    if scale == "smoke":
        return {**scored, **fixed, "lr": (3e-3,), "batch": 4, "epochs": 1}
    if permuted:
        return {**scored, **fixed, "lr": (1e-3,), "batch": 256, "epochs": 2}
    return {**scored, **fixed, "lr": (3e-3,), "batch": 64, "epochs": 40, "steps": 1600}
