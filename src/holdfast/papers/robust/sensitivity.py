"""Figures 19 to 21: VGR with Monte Carlo dropout, over its epochs, and over the number of rows that are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Recipe, Scale, across, published
from holdfast.papers.robust import replay, split
from holdfast.papers.robust.replay import USUAL, VGR, Training

BAYES, DROPOUT = "Bayesian network", "Monte Carlo dropout"
SHOWN = replay.HEADS["single"]
NUMBERS = ("acc", split.JUST)
EPOCHS: Mapping[Scale, Sequence[int]] = {
    "smoke": (1, USUAL["smoke"].epochs),
    "laptop": (1, 3, 10, 20),
    "full": (1, 5, 10, 20, 40, 60, 80, 100, 120),
}
MADE: Mapping[Scale, Sequence[int]] = {
    "smoke": (5, 20),
    "laptop": (200, 700, 2000),
    "full": (200, 500, 1000, 2000, 4000, 6000),
}
CONV: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"filters": (4, 8), "hidden": 20},
    "laptop": {"filters": (16, 32), "hidden": 128},
    "full": {"filters": (32, 64), "hidden": 128},
}
DROPOUT_EPOCHS: Mapping[Scale, int] = {"smoke": 3, "laptop": 5, "full": 25}


@dataclass(frozen=True)
class Family:
    """A figure: its runs, what it draws, and what stands below it."""

    entries: Callable[[Scale], list[Entry]]
    figures: Callable[[Found], list[Figure]]
    minutes: float  # at laptop
    notes: tuple[str, ...]


def recipe(figure: str) -> Recipe:
    family, (title, cells) = FIGURES[figure], published("robust", figure)
    return Recipe(
        f"robust/{figure}",
        title,
        replay.needs(),
        {"smoke": 0.2, "laptop": family.minutes, "full": 250 * family.minutes},
        family.entries,
        split.measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=replay.SAID,
        notes=("The figure prints no numbers, so that nothing is judged.", *family.notes, *replay.NOTES),
        figures=family.figures,
        listed=NUMBERS,
    )


def _both(scale: Scale) -> list[Entry]:
    return [replay.entry(SHOWN, scale, VGR, BAYES, USUAL[scale]), _dropout(scale)]


def _dropout(scale: Scale) -> Entry:
    """The same with a convolutional network; what is dropped is drawn anew for each answer."""
    usual = replay.entry(SHOWN, scale, VGR, DROPOUT, USUAL[scale])
    draws = {"test_samples": usual.method.test_samples}  # type: ignore[attr-defined]
    learning = {"optimiser": "adam", "lr": 1e-3, "batch": 20 if scale == "smoke" else 256, "decay": 0.02}
    return replace(
        usual,
        method=hf.method("vgr", classifier="dropout", **replay.generators(scale, USUAL[scale]), **draws),
        net=hf.net("conv", kernel=3, dropout=0.25, map_dropout=0.25, **CONV[scale]),
        protocol=hf.protocol("epochs", epochs=DROPOUT_EPOCHS[scale], **learning),
    )


def _over_epochs(scale: Scale) -> list[Entry]:
    trained = [replace(USUAL[scale], epochs=epochs) for epochs in EPOCHS[scale]]
    return [replay.entry(SHOWN, scale, VGR, split.counted(each.epochs, "epoch"), each) for each in trained]


def _over_rows(scale: Scale) -> list[Entry]:
    trained = {made: _made(scale, made) for made in MADE[scale]}
    return [replay.entry(SHOWN, scale, VGR, split.counted(made, "row"), each) for made, each in trained.items()]


def _made(scale: Scale, rows: int) -> Training:
    """So many made rows; at the full scale those below 2,000 are learned for as long as in the short training."""
    usual = USUAL[scale]
    if scale != "full":
        return usual if rows == usual.rows else replace(usual, made=rows)
    return replace(usual, made=rows, epochs=usual.epochs if rows >= 2000 else replay.QUICK["full"].epochs)


def _over(axis: str) -> Callable[[Found], list[Figure]]:
    """Accuracy after the last task over the number that a column begins with."""

    def figures(found: Found) -> list[Figure]:
        if not found:
            return []
        x = [int(column.split()[0]) for _, column, _ in found]
        runs = list(found.values())
        lines = [
            across("mean of all tasks", runs, lambda record: record.acc),
            across("lowest of all tasks", runs, lambda record: float(record.final[-1].min())),
        ]
        return [Figure("lines", f"accuracy after the last task, over {axis}", x, axis, lines)]

    return figures


FIGURES: Mapping[str, Family] = {
    "figure19": Family(
        _both,
        split.figures,
        6,
        (
            "With dropout: two convolutions of 3×3, each with pooling (the paper has one pooling layer), one hidden "
            "layer of 128, dropout of 0.25 behind each, also to predict; 0.01 ‖θ‖² is the protocol's decay of 0.02. "
            "25 epochs in the paper; at laptop 5 epochs, and filters of 16 and 32 in place of 32 and 64.",
        ),
    ),
    "figure20": Family(
        _over_epochs,
        _over("epochs of the classifier"),
        10,
        ("At laptop four settings, from 1 to 20 epochs; the paper has 1 to 120.",),
    ),
    "figure21": Family(
        _over_rows,
        _over("made rows of each past class"),
        8,
        (
            "At laptop 2,000 rows of each class are learned, so that 200, 700 and 2,000 made ones stand for the "
            "paper's 600, 2,000 and 6,000. At the full scale fewer than 2,000 made rows are learned in 20 epochs in "
            "place of 120: the paper says only that they are learned in fewer.",
        ),
    ),
}
