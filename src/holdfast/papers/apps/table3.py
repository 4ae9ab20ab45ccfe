"""Table 3: six models on three types of tasks of nine data sets, the `best` and `last` criteria."""

from __future__ import annotations

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.apps import grid
from holdfast.papers.base import Entry, Found, Recipe, Scale, published

READ = {"best": hf.study.best, "last": hf.study.last}
PERMUTED = (
    "DP10-10 is measured as the paper describes it, each part with its own permutation. The authors' code never "
    "permuted (its flag looked at the model's name), so that D1 = D2: their way is trained anew on two equal parts. "
    "That DP10-10 shows no forgetting is then no property of permutations."
)
NOTES = (
    "Over the tasks of a type the lowest number is taken, `best` and `last` each by itself. `best` needs the data of "
    "D1, so no application has it.",
    PERMUTED,
    grid.CHOSEN,
    "EWC's Fisher information comes from all rows of D1. Under the authors' procedure EWC is trained anew: Adam, "
    "initial weights of deviation 0.1, the final weights of D1, true labels, each accuracy from one batch of 100 rows.",
    "LWTA .10/.09 and CONV's last .11 on MNIST D5-5 look like failed trainings in the paper; they are not judged. One "
    "cell (Devanagari, D9-1, D-CONV) is not legible in the copy at hand; Table 5 implies that its best is .88.",
    grid.LISTED,
)


def recipe() -> Recipe:
    title, cells = published("apps", "table3")
    return Recipe(
        "apps/table3",
        title,
        grid.NEEDS,
        {"smoke": 0.5, "laptop": 700, "full": 60000},
        entries,
        _measured,
        tuple({**c, **({"threshold": _threshold(c["row"])} if c["metric"] == "best" else {})} for c in cells),
        seeds={"smoke": 1, "laptop": 1, "full": 1},
        said=grid.SAID,
        notes=(
            *NOTES,
            "At laptop the runs on MNIST are those of still/table4 (with --from and its output folder they are not run "
            "again), but for CONV's on D9-1b and c and the authors' on DP10-10: the trials are the same, only stopped "
            "elsewhere, and `best` and `last` are read from the looks.",
            "Table 5 reads the runs on the other data sets.",
        ),
        behind=grid.behind,
        missing=lambda scale: grid.missing(scale, grid.places(cells)),
        data=grid.of_row,
    )


def entries(scale: Scale, *, shared: bool = True) -> list[Entry]:
    """`shared`: with the runs of still/table4, which learn nothing at once."""
    slts = common.SMOKE if scale == "smoke" else common.SLTS
    wanted = ((d, slt, m) for d in grid.DATA for slt in slts for m in grid.MODELS)
    return grid.entries(scale, wanted, shared=shared)


def _threshold(row: str) -> float:
    return common.threshold(row.split(", ")[1])


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    return grid.lowest(grid.records(found, row, column, emulated), READ[metric])
