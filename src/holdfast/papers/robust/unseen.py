"""Figures 15 to 18: the mutual information of every model and task, and how well it tells unseen from seen tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Recipe, Scale, Series, published, series
from holdfast.papers.robust import replay, split

COLUMN = "single-headed"
FIGURES: Mapping[str, str] = {
    "figure15": replay.VGR,
    "figure16": split.VCL,
    "figure17": replay.VGR,
    "figure18": split.VCL,
}
MAPS = ("figure15", "figure16")  # the others are ROC curves
AUC, SEEN, UNSEEN = "unseen_auc", "seen tasks, highest", "unseen tasks, lowest"
NOTES = (
    "A task is called unseen by a model when its mutual information is more than θ times the current task's, θ from 1 "
    "to 10 in steps of 0.1. Every model counts, the last one included, and the current task counts as seen: without "
    "these two VCL's area is 0.48 to 0.59.",
    *replay.NOTES,
)
MAPPED = (
    "Numbers are shares of the most uncertain task of each model; the figure prints none, so that nothing is judged. "
    "Seen and unseen tasks are those of all models but the last, which has seen them all; seen ones include the "
    "current. The paper says that VCL's fourth model is nearly as uncertain about the second task as about the fifth."
)


def recipe(figure: str) -> Recipe:
    row, (title, cells) = FIGURES[figure], published("robust", figure)
    generated = row == replay.VGR
    return Recipe(
        f"robust/{figure}",
        title,
        replay.needs(),
        {"smoke": 0.1, "laptop": 5 if generated else 1, "full": 2000 if generated else 60},
        lambda scale: [entry(row, scale)],
        _measured,
        cells,
        seeds={"smoke": 2, "laptop": 2, "full": 10},
        said=replay.SAID if generated else split.SAID,
        notes=(MAPPED, *NOTES) if figure in MAPS else NOTES,
        figures=lambda found: _figures(found, title, figure in MAPS),
    )


def entry(row: str, scale: Scale) -> Entry:
    shown = replay.HEADS["single"]
    if row == replay.VGR:
        return replay.entry(shown, scale, row, COLUMN, replay.USUAL[scale])
    return split.entry(shown, scale, row, COLUMN)


def information(record: hf.Record) -> np.ndarray:
    """M, (T, T): both methods answer with samples."""
    M = hf.uncertainty.information(record)
    assert M is not None
    return M


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    records = found.get((row, column, emulated))
    if not records:
        return None
    if metric == AUC:
        return [value for record in records if (value := record.metrics[AUC]) is not None]
    return [_share(hf.uncertainty.shares(information(record)), metric) for record in records]


def _share(shares: np.ndarray, metric: str) -> float:
    """'model 4, task 2' is one number of the map; the others are over all models that have an unseen task."""
    if metric.startswith("model "):
        model, task = (int(part.split()[1]) for part in metric.split(", "))
        return float(shares[model - 1, task - 1])
    unseen = np.triu(np.ones_like(shares, dtype=bool), 1)
    return float(shares[unseen].min() if metric == UNSEEN else shares[:-1][~unseen[:-1]].max())


def _figures(found: Found, title: str, mapped: bool) -> list[Figure]:
    if not found:
        return []
    if mapped:
        return [_map(title, records) for records in found.values()]
    thetas = list(hf.uncertainty.THETAS)
    return [Figure("roc", title, thetas, "", [_curve(row, records) for (row, _, _), records in found.items()])]


def _map(title: str, records: Sequence[hf.Record]) -> Figure:
    nats = np.mean([information(record) for record in records], axis=0)

    def row(i: int) -> Series:
        made = series(f"after task {i + 1}", records, lambda r: hf.uncertainty.shares(information(r))[i].tolist())
        return replace(made, told=[f"{value:.3g} nats" for value in nats[i]])

    tasks = range(len(nats))
    return Figure("matrix", title, [t + 1 for t in tasks], "task", [row(i) for i in tasks])


def _curve(name: str, records: Sequence[hf.Record]) -> Series:
    found = hf.uncertainty.mean_rates(records)
    none: list[float | None] = [None] * len(found)
    return Series(
        name,
        hf.panels.scenario_of(records[0]),
        [each.true_positive for each in found],
        none,
        none,
        x=[each.false_positive for each in found],
    )
