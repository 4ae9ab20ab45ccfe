"""Tables 11 and 12: the streams that were usual before, Permuted MNIST and Split CIFAR-100, ten tasks each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Recipe, Scale, published
from holdfast.papers.ctrl import rows
from holdfast.papers.ctrl.rows import ROWS

TASKS = 10
COLUMNS: Mapping[str, str] = {"table11": "Permuted MNIST", "table12": "Split CIFAR-100"}
DATA: Mapping[str, str] = {"table11": "mnist", "table12": "cifar-100"}
WIDER = {"table11": 4.0, "table12": 3.2}  # HAT (wide)
VAL = {"mnist": 1 / 12, "cifar-100": 0.1}  # 500 and 50 rows of each class
SAID: Mapping[str, Mapping[Scale, str]] = {
    "table11": {
        "smoke": "In place of MNIST: digits, four tasks, a network of 20-20.",
        "laptop": "One learning rate, 0.001, no decay, 3 epochs of batches of 256; the authors' settings are not "
        "released. Networks and rows are the paper's. RCL has 3 trials per task, not 50.",
        "full": "2 learning rates × 2 decays, 300 epochs at most; the authors' settings are not released.",
    },
    "table12": {
        "smoke": "In place of CIFAR-100: synth, four tasks, a network of width 4.",
        "laptop": "The ResNet has width 16, not 64, the AlexNet 24 and 512, not 64 and 2048, and they learn "
        "in 40 epochs of batches of 64 with Adam at 0.003; of "
        "each class there are as many rows as are here.",
        "full": "As the paper: width 64, 2 rates × 3 decays, 300 epochs at most.",
    },
}


def recipes() -> list[Recipe]:
    return [recipe(table) for table in COLUMNS]


def recipe(table: str) -> Recipe:
    (title, cells), data = published("ctrl", table), DATA[table]
    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": ("digits",) if data == "mnist" else (), "laptop": (data,), "full": (data,)},
        {"smoke": 0.5, "laptop": 60 if data == "mnist" else 150, "full": 10_000},
        lambda scale: [entry(row, table, scale) for row in rows.rows_on(table == "table11")],
        rows.measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID[table],
        notes=rows.NOTES[1:],
        missing=lambda scale: rows.missing(cells),
    )


def entry(row: str, table: str, scale: Scale) -> Entry:
    permuted = table == "table11"
    stream = hf.stream("permuted" if permuted else "split", **_shown(row, table, scale))
    net = hf.net("mlp", hidden=(20, 20) if scale == "smoke" else (1000, 1000))
    if not permuted:
        net = rows.convolutional(row, scale)
    own: dict[str, Any] = {"labels": "true", "samples": 1000} if permuted and ROWS[row].tuned else {}
    own |= {"width": WIDER[table]} if ROWS[row].wide else {"trials": rows.TRIALS[scale]} if row == "RCL" else {}
    return Entry(
        row,
        COLUMNS[table],
        rows.method(row, stream, **own),
        stream,
        net,
        hf.protocol("crossval", **_training(permuted, scale)),
        setting="" if permuted else rows.setting(row, scale),
        grid=rows.grid(row, scale),
    )


def _shown(row: str, table: str, scale: Scale) -> dict[str, Any]:
    data = DATA[table]
    shown: dict[str, Any] = {"data": data, "tasks": TASKS, "scenario": "task", "val": VAL[data]}
    if table == "table12":
        heads = {"head": "task"} if ROWS[row].heads else {"outputs": "common"}
        shown |= {"augment": True, "scale": "task", **heads}
    if scale == "smoke":
        shown |= {"tasks": 4, "examples": 60, "test_examples": 30, "val": 0.2}
        shown |= {"data": "digits"} if table == "table11" else {"data": "synth"}
    return shown


def _training(permuted: bool, scale: Scale) -> dict[str, Any]:
    scored: dict[str, Any] = {"score": "ends", "score_first": 5}
    if scale == "full":
        return {**scored, "lr": (1e-4, 1e-3), "decay": (0.0, 1e-5)} if permuted else scored
    fixed = {"decay": (0.0,), "patience": None}
    if scale == "smoke":
        return {**scored, **fixed, "lr": (3e-3,), "batch": 20, "epochs": 2}
    if permuted:
        return {**scored, **fixed, "lr": (1e-3,), "batch": 256, "epochs": 3}
    return {**scored, **fixed, "lr": (3e-3,), "batch": 64, "epochs": 40}
