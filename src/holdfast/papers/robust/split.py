"""Figures 5 to 8: VCL, its coresets and EWC on Split MNIST and Split Fashion-MNIST, multi- and single-headed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Recipe, Scale, published, series

TASKS = 5
CORESET = 40  # rows per task
NONE = "no coreset"
RULES = ("k-center", "random")
PRIORS: Mapping[str, Literal["initial", "posterior"]] = {"N(0, 1)": "initial", "last posterior": "posterior"}
VCL, KEPT, ONLY, EWC = "VCL", "VCL + coreset", "coreset only", "EWC"
COMPARED: Mapping[str, Mapping[str, Any]] = {KEPT: {}, ONLY: {"prior": "initial"}}
ADAM = {"optimiser": "adam", "lr": 1e-3, "reset_optimiser": True}
JUST = "just learned"  # the lowest accuracy of a task that was just learned


@dataclass(frozen=True)
class Shown:
    """A figure: its data set, and whether the task is known."""

    data: str
    scenario: Literal["task", "class"]
    bayes: tuple[int, ...]  # hidden layers of the Bayesian network
    plain: tuple[int, ...]  # of EWC's


FIGURES: Mapping[str, Shown] = {
    "figure5": Shown("mnist", "task", (256, 256), (256, 256)),
    "figure6": Shown("mnist", "class", (256, 256), (256, 256)),
    "figure7": Shown("fashion-mnist", "task", (200,) * 4, (256,) * 4),
    "figure8": Shown("fashion-mnist", "class", (200,) * 4, (256,) * 4),
}
SAID: Mapping[Scale, str] = {
    "smoke": "In place of the paper's data: 5 tasks of digits, one small layer, 3 epochs.",
    "laptop": "Bayesian networks learn in 5 epochs of batches of 256, multi-headed in 10 of 1,024 (120 steps), with "
    "one draw of the weights per step, and answer with 20; the paper has 120 steps of all rows, 10 draws and 100.",
    "full": "As the paper: 120 steps of all rows of a task, 10 draws of the weights per step, 100 per prediction.",
}
NOTES = (
    "The figures print no numbers. 'VCL and EWC forget old tasks completely' single-headed is read as one known task "
    "of five, 0.20; nothing else is judged.",
    "What learns the coreset before a scoring begins from the network as it is; its prior is N(0, 1) or, as in the "
    "code of VCL's authors, the last posterior. The paper does not say which. Its claim, that a coreset alone is as "
    "good as VCL with one, depends on it: both are shown.",
    "The network begins with a variance of e⁻⁶ (VCL's authors); paper 001's 10⁻⁶ would leave it frozen: Adam moves a "
    "log-variance by 0.12 in 120 steps, and later tasks are never learned.",
    "EWC is Huszár's form: Σ_k F_k, anchored at the latest weights; SGD of rate 0.01, 20 epochs, λ = 10, 200 rows. It "
    "begins as the Bayesian means do, with weights of deviation 0.1: with torch's own, of 0.02 at the inputs, "
    "multi-headed EWC has 0.957 in place of 0.986 (seeds 0 and 1).",
)


def recipe(figure: str) -> Recipe:
    shown, (title, cells) = FIGURES[figure], published("robust", figure)
    data = (shown.data,)
    return Recipe(
        f"robust/{figure}",
        title,
        {"smoke": ("digits",), "laptop": data, "full": data},
        {"smoke": 0.3, "laptop": 8 if shown.scenario == "class" else 4, "full": 240},
        lambda scale: _entries(shown, scale),
        measured,
        cells,
        seeds={"smoke": 1, "laptop": 2, "full": 10},
        said=SAID,
        notes=NOTES,
        figures=figures,
    )


def columns(shown: Shown) -> dict[str, Mapping[str, Any]]:
    """How coresets are chosen and learned; the multi-headed figures have the paper's rule alone, under both priors."""
    every: dict[str, Mapping[str, Any]] = {
        f"{rule}, {prior}": {"rule": rule, "coreset_prior": PRIORS[prior]} for prior in PRIORS for rule in RULES
    }
    return {name: how for name, how in every.items() if shown.scenario == "class" or how["rule"] == "k-center"}


def _entries(shown: Shown, scale: Scale) -> list[Entry]:
    return [
        entry(shown, scale, VCL, NONE),
        entry(shown, scale, EWC, NONE, {"strength": 10.0, "samples": 200, "anchor": "latest"}),
        *(
            entry(shown, scale, row, column, {"coreset": CORESET, **prior, **how})
            for row, prior in COMPARED.items()
            for column, how in columns(shown).items()
        ),
    ]


def entry(
    shown: Shown,
    scale: Scale,
    row: str,
    column: str,
    settings: Mapping[str, Any] | None = None,
    epochs: int | None = None,
) -> Entry:
    """VCL with these settings, or EWC; `epochs` in place of the scale's."""
    plain, given = row == EWC, settings or {}
    hidden = (20,) if scale == "smoke" else shown.plain if plain else shown.bayes
    size = {"epochs": 10, "batch": 1024} if shown.scenario == "task" else {"epochs": 5, "batch": 256}
    training: dict[str, Any] = {**size, **ADAM}
    drawn: dict[str, Any] = {"test_samples": 20}
    if scale == "full":
        training, drawn = {"epochs": 120, "batch": 100_000, **ADAM}, {"samples": 10, "test_samples": 100}
    if plain:
        training = {"epochs": 20, "batch": 256, "lr": 0.01, "reset_optimiser": True}
    if scale == "smoke":
        training, drawn = {**training, "epochs": 3, "batch": 20, "lr": 0.01}, {"test_samples": 3}
        drawn |= {"coreset_steps": 10} if "coreset" in given else {}
    bayes, mlp = hf.net("bayes", hidden=hidden, sampling="weights"), hf.net("mlp", hidden=hidden, init="tenth0")
    return Entry(
        row=row,
        column=column,
        method=hf.method("ewc" if plain else "vcl", **(dict(given) if plain else {**drawn, **given})),
        stream=stream(shown, scale),
        net=mlp if plain else bayes,
        protocol=hf.protocol("epochs", **(training if epochs is None else {**training, "epochs": epochs})),
    )


def stream(shown: Shown, scale: Scale) -> hf.Stream:
    data: dict[str, Any] = {"data": "digits", "examples": 200} if scale == "smoke" else {"data": shown.data}
    return hf.stream("split", tasks=TASKS, scenario=shown.scenario, **data)


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    records = found.get((row, column, emulated))
    if not records:
        return None
    values = [just_learned(r) if metric == JUST else r.metrics[metric] for r in records]
    return [value for value in values if value is not None]


def just_learned(record: hf.Record) -> float:
    """The lowest accuracy of a task when it was just learned."""
    return float(np.diag(record.R).min())


def figures(found: Found) -> list[Figure]:
    """The mean accuracy on the tasks seen so far, as the paper draws it."""
    lines = [
        series(row if column == NONE else f"{row}, {column}", records, so_far)
        for (row, column, _), records in found.items()
    ]
    tasks = list(range(1, len(lines[0].mean) + 1)) if lines else []
    return [Figure("lines", "mean accuracy on the tasks seen so far", tasks, "tasks learned", lines)] if lines else []


def counted(n: int, thing: str) -> str:
    """
    >>> counted(1, "epoch"), counted(20, "generator step")
    ('1 epoch', '20 generator steps')
    """
    return f"{n} {thing}{'' if n == 1 else 's'}"


def so_far(record: hf.Record) -> list[float]:
    """After each task, the mean accuracy on it and those before."""
    return [float(row[: t + 1].mean()) for t, row in enumerate(record.final)]
