"""Figures 5, 7 and 8: images of the data sets, and the paths that MNTDP discovers on S^out. The report shows those of
every run; these are theirs."""

from __future__ import annotations

from collections.abc import Mapping

import holdfast as hf
from holdfast.papers.base import SCALES, Entry, Found, Recipe, Scale, published
from holdfast.papers.ctrl import transfer

FIGURES: Mapping[str, str] = {"figure7": "MNTDP-D", "figure8": "MNTDP-S"}
TABLE = "table16"
NEW, ALL = "new modules of the last task", "modules in all"


def recipes() -> list[Recipe]:
    return [images(), *(recipe(figure) for figure in FIGURES)]


def images() -> Recipe:
    title, cells = published("ctrl", "figure5")
    return Recipe(
        "ctrl/figure5",
        title,
        {"smoke": (), "laptop": transfer.DATA, "full": transfer.DATA},
        dict.fromkeys(SCALES, 0.1),
        _shown,
        lambda found, row, column, metric, emulated: None,
        cells,
        seeds=dict.fromkeys(SCALES, 1),
        notes=(
            "The images stand below, under each task's name: S_in has five of the paper's data sets, digits on two "
            "grounds. `holdfast reproduce ctrl/figure14` shows CIFAR-100 as well.",
            "A network of one unit sees one row per class of each task, for reports show tasks that were run; what it "
            "reaches says nothing.",
        ),
    )


def _shown(scale: Scale) -> list[Entry]:
    data = "synth" if scale == "smoke" else "paper"
    stream = hf.stream("ctrl", kind="in", data=data, rows=0.0025, test=20)
    net, protocol = hf.net("mlp", hidden=(1,)), hf.protocol("online")
    return [Entry("any network", "S_in", hf.method("finetune"), stream, net, protocol, setting="one row per class")]


def recipe(figure: str) -> Recipe:
    title, cells = published("ctrl", figure)
    return Recipe(
        f"ctrl/{figure}",
        title,
        {"smoke": (), "laptop": transfer.DATA, "full": transfer.DATA},
        {"smoke": 0.2, "laptop": 15, "full": 1_000},
        lambda scale: _entries(FIGURES[figure], scale),
        measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=transfer.SAID,
        notes=(
            "The picture stands below, under Paths through the library, with the first seed; `holdfast export DIR "
            "--svg FOLDER` writes it as a file.",
            f"The runs are those of row {FIGURES[figure]} of ctrl/{TABLE}: with --from and its output folder none is "
            "run again.",
            "What is published is what the caption says of one run; it is not judged.",
        ),
        listed=(ALL,),
    )


def _entries(row: str, scale: Scale) -> list[Entry]:
    column, kind = transfer.TABLES[TABLE]
    return [transfer.entry(row, column, kind, scale)]


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """A path says for each layer which are new; each task's are counted once."""
    made = [[len(path["new"]) for path in record.study["paths"]] for record in found.get((row, column, emulated), ())]
    return [float(new[-1] if metric == NEW else sum(new)) for new in made] or None
