"""Figures 13 and 14: the accuracy of the last model against the seconds of training, over settings of VGR and VCL."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Place, Recipe, Scale, across, published
from holdfast.papers.robust import replay, split
from holdfast.papers.robust.replay import Training

FIGURES: Mapping[str, str] = {"figure13": "single", "figure14": "multi"}
SECONDS = "train_seconds"
VGR: Mapping[Scale, Sequence[Training]] = {
    "smoke": (replay.USUAL["smoke"], Training(1, 5, 20)),
    "laptop": (
        Training(1, 300, 2000),
        Training(3, 300, 2000),
        Training(10, 300, 4000),
        Training(3, 1500, 2000),
        replay.USUAL["laptop"],
        Training(10, 1500, 6000),
    ),
    "full": (
        Training(1, 10, None, 2000),
        replay.QUICK["full"],
        Training(120, 10, None, 4000),
        Training(1, 50, None, 6000),
        Training(20, 50, None, 2000),
        Training(20, 50, None, 6000),
        Training(120, 50, None, 4000),
        replay.LONGEST,
    ),
}
VCL: Mapping[Scale, Sequence[tuple[int, int]]] = {  # epochs, and steps on the coreset
    "smoke": ((1, 5), (3, 10)),
    "laptop": ((1, 10), (5, 120), (20, 120)),
    "full": ((1, 1), (10, 10), (20, 20), (60, 60), (120, 120)),
}
SAID: Mapping[Scale, str] = {
    "smoke": replay.SAID["smoke"],
    "laptop": "Thinned: six settings of VGR between 1 and 10 epochs, 300 and 1,500 generator steps, 2,000 and 6,000 "
    "rows of each class, learned and made; VCL between 1 and 20 epochs of batches of 256. One seed.",
    "full": "As the paper, on other hardware: 1 to 120 epochs, generators of 10 and 50 epochs, 2,000, 4,000 and 6,000 "
    "made rows; not every combination.",
}


def recipe(figure: str) -> Recipe:
    shown, (title, cells) = replay.HEADS[FIGURES[figure]], published("robust", figure)
    return Recipe(
        f"robust/{figure}",
        title,
        replay.needs(),
        {"smoke": 0.3, "laptop": 12, "full": 9000},
        lambda scale: _entries(shown, scale),
        split.measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=SAID,
        notes=(
            "Seconds are of training on a wall clock, generators and coresets included, scoring left out. Two runs at "
            "once slow each other down: --jobs 1 gives the cleaner clock. The published ones are of an Nvidia K80.",
            *replay.NOTES,
        ),
        figures=lambda found: _figures(found, title),
        missing=lambda scale: _missing(scale, cells),
        listed=("acc", SECONDS),
    )


def _entries(shown: split.Shown, scale: Scale) -> list[Entry]:
    (_, how), *_ = split.columns(shown).items()
    return [
        *(replay.entry(shown, scale, replay.VGR, each.said(scale), each) for each in VGR[scale]),
        *(
            split.entry(shown, scale, split.VCL, split.counted(epochs, "epoch"), epochs=epochs)
            for epochs, _ in VCL[scale]
        ),
        *(
            split.entry(
                shown,
                scale,
                split.KEPT,
                f"{split.counted(epochs, 'epoch')}, {split.counted(steps, 'coreset step')}",
                {"coreset": split.CORESET, **how, "coreset_steps": steps},
                epochs,
            )
            for epochs, steps in VCL[scale]
        ),
    ]


def _missing(scale: Scale, cells: Sequence[Mapping[str, str]]) -> dict[Place, str]:
    """The settings that the paper gives numbers for."""
    return {} if scale == "full" else {(cell["row"], cell["column"]): replay.ELSEWHERE for cell in cells}


def _figures(found: Found, title: str) -> list[Figure]:
    """A point per setting, mean over seeds; which of all are worth their time."""
    if not found:
        return []
    rows = dict.fromkeys(row for row, _, _ in found)
    made = []
    for row in rows:
        mine = {column: records for (name, column, _), records in found.items() if name == row}
        seconds = across(row, list(mine.values()), lambda r: r.metrics[SECONDS])
        made.append(replace(across(row, list(mine.values()), lambda r: r.acc), x=seconds.mean, told=list(mine)))
    points = [(i, x, y) for i, each in enumerate(made) for x, y in zip(each.x, each.mean, strict=True)]
    best = set(hf.fronts.optimal([(x or 0.0, y or 0.0) for _, x, y in points]))
    flags = [[k in best for k, (i, _, _) in enumerate(points) if i == s] for s in range(len(made))]
    marked = [replace(each, optimal=mine) for each, mine in zip(made, flags, strict=True)]
    return [Figure("scatter", title, [], "training time", marked)]
