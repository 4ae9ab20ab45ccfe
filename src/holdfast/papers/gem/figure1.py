"""Figure 1: ACC, BWT and FWT of all methods, and the first task's accuracy as more tasks are learned."""

from __future__ import annotations

from typing import Any

from holdfast.papers.base import SCALES, Entry, Figure, Found, Recipe, Scale, published, series
from holdfast.papers.gem import cifar, mnist
from holdfast.papers.gem.table3 import measured

MNIST = {"permutations": "permuted", "rotations": "rotated"}
CIFAR = "CIFAR-100"
METRICS = {"acc": "ACC", "bwt": "BWT", "fwt": "FWT"}
METHODS = {
    **dict.fromkeys(MNIST, ("single", "independent", "multimodal", "EWC", "GEM")),
    CIFAR: ("single", "independent", "EWC", "iCARL", "GEM"),
}


def recipe() -> Recipe:
    title, _ = published("gem", "figure1")
    return Recipe(
        "gem/figure1",
        title,
        {"smoke": ("digits",), "laptop": ("mnist", "cifar-100"), "full": ("mnist", "cifar-100")},
        {"smoke": 0.3, "laptop": 25, "full": 1500},
        _entries,
        measured,
        tuple(
            {"row": method, "column": column, "metric": metric, "published": None}
            for column, methods in METHODS.items()
            for method in methods
            for metric in METRICS
        ),
        said={scale: f"{mnist.SAID[scale]} {cifar.SAID[scale]}".rstrip() for scale in SCALES},
        notes=(
            "The paper prints the bars without their numbers, so nothing is judged.",
            "Chosen on validation data: the strength of EWC, whose correct form has no released setting, and below the "
            "full scale every learning rate on CIFAR-100. The authors' EWC is shown as the authors' way.",
        ),
        figures=_figures,
    )


def _entries(scale: Scale) -> list[Entry]:
    made = [
        entry
        for column, stream in MNIST.items()
        for method in METHODS[column]
        for entry in mnist.entries((method, column), method, stream, scale)
    ]
    _, icarl, _, gem = cifar.SIZES[scale].memories
    settings: dict[str, dict[str, Any]] = {
        "single": {},
        "independent": {"initial": "clone"},
        "EWC": {"strength": 1.0, "samples": 200},
        "iCARL": {"memories": icarl, "strength": 1.0},
        "GEM": {"memories": cifar.per_task(scale, gem), "margin": 0.5},
    }
    grids = {"EWC": {"strength": (1.0, 10.0)}}
    return made + [
        cifar.entry((method, CIFAR), method, scale, settings[method], grid=grids.get(method))
        for method in METHODS[CIFAR]
    ]


def _figures(found: Found) -> list[Figure]:
    """Bars on the left and curves on the right for each data set, as the paper has them."""
    made = []
    for column, methods in METHODS.items():
        runs = {method: found[method, column, False] for method in methods if (method, column, False) in found}
        if not runs:
            continue
        bars = [series(name, records, lambda r: [r.metrics[m] for m in METRICS]) for name, records in runs.items()]
        curves = [series(name, records, lambda r: [float(a) for a in r.final[:, 0]]) for name, records in runs.items()]
        tasks = list(range(1, len(curves[0].mean) + 1))
        made.append(Figure("bars", f"{column}: ACC, BWT and FWT", list(METRICS.values()), "", bars))
        made.append(Figure("lines", f"{column}: accuracy on the first task", tasks, "after task", curves))
    return made
