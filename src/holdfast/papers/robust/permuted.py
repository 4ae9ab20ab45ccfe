"""Figures 9 and 10: VCL, its coresets and VGR on Permuted MNIST."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Recipe, Scale, published
from holdfast.papers.robust import replay, split

FIGURES: Mapping[str, bool] = {"figure9": False, "figure10": True}  # with VGR


@dataclass(frozen=True)
class Size:
    """How much of the paper's is run."""

    stream: Mapping[str, Any]
    hidden: tuple[int, ...]
    learning: Mapping[str, Any]
    coreset: Mapping[str, int]
    draws: Mapping[str, int]
    vgr: Mapping[str, int]
    vgr_epochs: int


SIZES: Mapping[Scale, Size] = {
    "smoke": Size(
        {"data": "digits", "tasks": 2, "examples": 100},
        (20,),
        {**split.ADAM, "batch": 20, "lr": 0.01, "epochs": 3},
        {"coreset": 10, "coreset_steps": 10},
        {"test_samples": 3},
        {**replay.SMALL, "generator_steps": 5},
        3,
    ),
    "laptop": Size(
        {"data": "mnist", "tasks": 5, "examples": 10_000},
        (100, 100),
        {**split.ADAM, "batch": 256, "epochs": 20},
        {"coreset": 200, "coreset_steps": 100},
        {"test_samples": 20},
        {"generator_steps": 500},
        20,
    ),
    "full": Size(
        {"data": "mnist", "tasks": 10},
        (100, 100),
        {**split.ADAM, "batch": 256, "epochs": 100},
        {"coreset": 200, "coreset_steps": 100},
        {"samples": 10, "test_samples": 100},
        {"replay": 6000, "generator_epochs": 200, "generator_steps": 1_000_000},
        120,
    ),
}
SAID: Mapping[Scale, str] = {
    "smoke": "In place of MNIST: 2 tasks of digits, one small layer, 3 epochs.",
    "laptop": "5 tasks of 10,000 rows, 20 epochs, one draw of the weights per step and 20 per prediction; the paper "
    "has 10 tasks of all 60,000 rows, 100 epochs (VGR 120), 10 draws, and 100. VGR's generators are the paper's, one "
    "per task and class, with 500 steps in place of 200 epochs, and make as many rows as are learned.",
    "full": "As the paper: 10 tasks, 100 epochs of batches of 256 (VGR 120), 200 rows of each task as a coreset; VGR's "
    "generators have 200 epochs and make 6,000 rows of each class of each task.",
}


def recipe(figure: str) -> Recipe:
    generated, (title, cells) = FIGURES[figure], published("robust", figure)
    return Recipe(
        f"robust/{figure}",
        title,
        replay.needs(),
        {"smoke": 0.2, "laptop": 8 if generated else 3, "full": 6000 if generated else 900},
        lambda scale: _entries(scale, generated),
        split.measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 10},
        said=SAID,
        notes=(
            "The figure prints no numbers, so that nothing is judged. The paper says that VCL does well with and "
            "without a coreset, that a coreset alone does worse, and that VGR is marginally better than VCL.",
            "The prior of what learns a coreset is N(0, 1) or the last posterior, which the paper does not say: both "
            "are shown.",
            "robust/figure10 is robust/figure9 and VGR: with --from and its output folder only VGR is run.",
        ),
        figures=split.figures,
    )


def _entries(scale: Scale, generated: bool) -> list[Entry]:
    size = SIZES[scale]
    kept = [
        _vcl(row, f"k-center, {prior}", size, {**size.coreset, **of_task, "coreset_prior": name})
        for row, of_task in split.COMPARED.items()
        for prior, name in split.PRIORS.items()
    ]
    made = [_vcl(split.VCL, split.NONE, size, {}), *kept]
    return [_vgr(size), *made] if generated else made


def _vcl(row: str, column: str, size: Size, settings: Mapping[str, Any]) -> Entry:
    return _entry(row, column, size, hf.method("vcl", **size.draws, **settings), size.learning["epochs"])


def _vgr(size: Size) -> Entry:
    """Permuted pixels have no neighbours, so that its generators are dense."""
    learner = hf.method("vgr", generator="dense", **size.vgr, **size.draws)
    return _entry(replay.VGR, split.NONE, size, learner, size.vgr_epochs)


def _entry(row: str, column: str, size: Size, learner: hf.Learner, epochs: int) -> Entry:
    return Entry(
        row=row,
        column=column,
        method=learner,
        stream=hf.stream("permuted", **size.stream),
        net=hf.net("bayes", hidden=size.hidden, sampling="weights"),
        protocol=hf.protocol("epochs", **{**size.learning, "epochs": epochs}),
    )
