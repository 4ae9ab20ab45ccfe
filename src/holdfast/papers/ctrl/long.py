"""Tables 2 and 18 and Figures 4 and 14: the long stream S^long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Place, Recipe, Scale, published, series
from holdfast.papers.ctrl import figures, rows, transfer
from holdfast.papers.ctrl.rows import FLOPS, MEM, ROWS

COLUMN = "S_long"
DATA = ("cifar-10", "cifar-100", "fashion-mnist", "mnist", "svhn")
SMALL, SHARE, PFLOPS = "acc of small tasks", "parameters ÷ Independent's", "PFLOPs"
WIDER = 3.2  # HAT (wide)
NARROW: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"width": 4, "hidden": 16},
    "laptop": {"width": 16, "hidden": 256},
}
IN_PLACE = "procedural data in place of the paper's"
SAID: Mapping[Scale, str] = {
    "smoke": "In place of the paper's data sets: procedural ones, the first three tasks with a two-hundredth of their "
    "rows, an AlexNet of width 4 in place of both networks, one pass.",
    "laptop": "A narrow AlexNet (16 maps, 256 units) in place of the ResNet, in all rows; so MNTDP-D * has no runs of "
    "its own. Adam at 0.001, batches of 64, 60 epochs of small tasks and at most 640 steps of large ones (40 epochs of "
    "1,000 rows), paths compared by their later looks, not the best of 2 rates × 3 decays and of up to 300 "
    "epochs. One instance, that of Tables 5 and 6; its "
    "tasks have no rows in common, and 20 test rows per class. Where a data set is not here, all are procedural, "
    "and large tasks have at most 320 steps. So no number can be held against the paper's.",
    "full": "As the paper: width 64, 2 rates × 3 decays, 300 epochs at most, a new instance of the stream for each of "
    "three seeds; theirs are other instances, for their code draws the data sets from an unseeded generator.",
}
NOTES = (
    f"{rows.CHEAP} is ours, not the paper's (`search=halving`): paths that are behind are dropped before they have "
    "learned to the end. The paper's search is the row MNTDP-D.",
    f"{SMALL}: the mean over the tasks of 5 training rows per class, after the stream. {SHARE}: of the networks after "
    "the last task; of the same network, so rows with * have none at the full scale.",
    "Tasks are scored when they are learned and at the end, so that scoring does not grow with their square.",
    "For MNTDP-D * Table 2 prints a Mem. of 1,782, Table 18 one of 1,803.47; for HAT * Table 2 prints ≈ 0 PFLOPs.",
    "Mem. is counted as the authors do, 4 bytes per number, for the network that was run: at the paper's width rows "
    "without paths have the printed digits, but for HAT (wide) * with 285.1 in place of 285.0. FLOPs are "
    "multiplications and additions of all training, of trials too; how the paper counts is not known. Neither is "
    "judged.",
    *rows.NOTES[2:4],
)
WORDS = {  # what the figures show, as `figures.MEASURES`
    **{metric: figures.MEASURES[metric] for metric in ("acc", "forgetting_ctrl", "lca", MEM, FLOPS)},
    SMALL: ("mean accuracy on the small tasks after the stream", "accuracy"),
    SHARE: ("parameters relative to Independent's", "ratio"),
}


def recipes() -> list[Recipe]:
    table = recipe("table18")
    bars = "The figure draws the numbers of ctrl/table18, whose runs it has; all items of S_long have the same ones."
    lines = (
        "The paper draws the average accuracy on the tasks so far. Here it is drawn twice, each task as it was when "
        "it was learned, and as it is at the end of the stream: where nothing is forgotten both are what the paper "
        "draws. FLOPs are those of the run, without trials of λ."
    )
    return [
        recipe("table2"),
        table,
        replace(table, id="ctrl/figure4", title=_title("figure4"), figures=evolution, notes=(lines, *table.notes)),
        replace(table, id="ctrl/figure14", title=_title("figure14"), notes=(bars, *table.notes)),
    ]


def recipe(table: str) -> Recipe:
    title, cells = published("ctrl", table)
    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": (), "laptop": DATA, "full": DATA},
        {"smoke": 0.3, "laptop": 120, "full": 100_000},
        lambda scale: [entry(row, scale) for row in names(scale)],
        measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID,
        notes=NOTES,
        figures=lambda found: figures.bars(found, cells, [(COLUMN, m) for m in WORDS], measured, WORDS),
        missing=missing,
        listed=tuple(WORDS),
    )


def _title(figure: str) -> str:
    return published("ctrl", figure)[0]


def names(scale: Scale) -> list[str]:
    """The rows that are run: with one network for all, MNTDP-D * is MNTDP-D."""
    asked = {cell["row"] for cell in published("ctrl", "table18")[1]} | {rows.CHEAP}
    return [row for row in ROWS if row in asked and (scale == "full" or row != "MNTDP-D *")]


def missing(scale: Scale) -> dict[Place, str]:
    return {} if scale == "full" else {("MNTDP-D *", COLUMN): "at this scale the row MNTDP-D"}


def entry(row: str, scale: Scale) -> Entry:
    shown = stream(transfer.head(row), scale)
    return Entry(
        row,
        COLUMN,
        rows.method(row, shown, **({"width": WIDER} if ROWS[row].wide else {})),
        shown,
        rows.convolutional(row, scale) if scale == "full" else hf.net("alexnet", **NARROW[scale]),
        hf.protocol("crossval", **training(scale)),
        setting=setting(scale),
        grid=rows.grid(row, scale),
    )


def setting(scale: Scale) -> str:
    if scale == "full":
        return ""
    return f"AlexNet of width {NARROW[scale]['width']}" + (f", {IN_PLACE}" if scale == "laptop" and not here() else "")


def here() -> bool:
    """Whether the paper's data sets are."""
    return all(map(hf.at_hand, DATA))


@cache  # rows differ in the method alone
def stream(head: str, scale: Scale) -> hf.Stream:
    shown: dict[str, Any] = {"kind": "long", "head": head}
    if scale == "smoke":
        return hf.stream("ctrl", **shown, data="synth", tasks=3, rows=0.005, test=2)
    if scale == "laptop":
        return hf.stream("ctrl", **shown, data="paper" if here() else "synth", test=20)
    return hf.stream("ctrl", **shown, data="paper", disjoint=False, instance="drawn")


def training(scale: Scale) -> dict[str, Any]:
    scored: dict[str, Any] = {"score": "ends", "score_first": 5}
    if scale == "full":
        return scored
    fixed = {"lr": (1e-3,), "decay": (0.0,), "patience": None, "judged_by": "later looks"}
    if scale == "laptop":
        return {**scored, **fixed, "batch": 64, "epochs": 60, "steps": 640 if here() else 320}
    return {**scored, **fixed, "batch": 1, "epochs": 1}


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    if metric == PFLOPS:
        values = rows.measured(found, row, column, FLOPS, emulated)
        return None if values is None else [value / 1e3 for value in values]
    records = found.get((row, column, emulated), ())
    if metric == SMALL:
        return [*_small(records)] or None
    if metric == SHARE:
        return [*_shares(records, found.get(("Independent", column, False), ()))] or None
    return rows.measured(found, row, column, metric, emulated)


def _small(records: Sequence[hf.Record]) -> Iterator[float]:
    """Small tasks are those that validate on augmented copies, too: on more rows than they train on."""
    for record in records:
        mine = [t for t, task in enumerate(record.tasks) if task["n_val"] > task["n_train"]]
        if mine:
            yield float(record.final[-1, mine].mean())


def _shares(records: Sequence[hf.Record], independent: Sequence[hf.Record]) -> Iterator[float]:
    """Of each seed that both have finished, where both have the same network."""
    mates = {record.seed: record for record in independent}
    for record in records:
        mate = mates.get(record.seed)
        if mate is not None and mate.net["name"] == record.net["name"]:
            yield record.net["parameters"] / mate.net["parameters"]


def evolution(found: Found) -> list[Figure]:
    """What was reached and what it took, task by task."""
    if not found:
        return []
    known = {row: records for (row, _, emulated), records in found.items() if not emulated}
    tasks = list(range(1, len(next(iter(known.values()))[0].tasks) + 1))
    drawn = (
        ("mean accuracy on the tasks so far, when each was learned", hf.growth.learned, "accuracy"),
        ("mean accuracy on the tasks so far, at the end of the stream", hf.growth.kept, "accuracy"),
        ("Mem.: 4 bytes per parameter, and per other number that a method is said to keep", hf.growth.memory, "MB"),
        ("FLOPs of training so far, trials of paths included", spent, "FLOPs (T)"),
    )
    return [
        Figure("lines", title, tasks, "tasks learned", [series(row, records, read) for row, records in known.items()],
               quantity=quantity)
        for title, read, quantity in drawn
    ]  # fmt: skip


def spent(record: hf.Record) -> list[float | None]:
    return [operations / 1e12 for operations in hf.growth.flops(record)]
