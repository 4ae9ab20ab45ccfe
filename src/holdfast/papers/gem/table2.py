"""Table 2: ACC against the size of the episodic memory on CIFAR-100, GEM and iCaRL."""

from __future__ import annotations

from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.gem import cifar

COLUMNS = ("200", "1280", "2560", "5120")  # examples in all, as the paper has them
ROWS = ("GEM", "iCARL")
BELOW = ("single", "0")  # without a memory: the paper's figure has it, its table has not
KEPT = "rows kept"


def recipe() -> Recipe:
    title, cells = published("gem", "table2")
    extra = [
        {"row": BELOW[0], "column": BELOW[1], "metric": "acc", "published": None},
        *({"row": row, "column": column, "metric": KEPT, "published": None} for row in ROWS for column in COLUMNS),
    ]
    return Recipe(
        "gem/table2",
        title,
        {"smoke": ("digits",), "laptop": ("cifar-100",), "full": ("cifar-100",)},
        {"smoke": 0.3, "laptop": 15, "full": 2000},
        _entries,
        _measured,
        (*cells, *extra),
        said=cifar.SAID,
        notes=(
            "Columns are the paper's memory sizes, examples in all; beside each stands the size that was run. Below "
            "the full scale the tasks are fewer and smaller and the ResNet is narrower, so the numbers are lower and "
            "not judged: what can be compared is whether ACC rises with the memory, and who is above whom.",
            "single has no memory; the paper's table does not print it. Rows kept: past training rows found in the "
            "learner after a task, at most; iCaRL's must stay below its memory, which the authors' code exceeds (it "
            "never cuts old exemplar sets, about 4,600 rows for 1,280).",
            "Below the full scale the learning rate is chosen on validation data, once per method, with the smallest "
            "memory.",
            "Batch normalisation looks at a whole batch, so GEM takes the gradients of past tasks one after another "
            "here, not in one batched pass.",
        ),
    )


def _entries(scale: Scale) -> list[Entry]:
    made = [cifar.entry(BELOW, "single", scale, {})]
    for column, total in zip(COLUMNS, cifar.SIZES[scale].memories, strict=True):
        said = "" if scale == "full" else f"{total} run"
        gem = {"memories": cifar.per_task(scale, total), "margin": 0.5}
        for row, settings in (("GEM", gem), ("iCARL", {"memories": total, "strength": 1.0})):
            made.append(cifar.entry((row, column), row, scale, settings, said, tuned_at=COLUMNS[0]))
    return made


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    records = found.get((row, column, False))
    if not records or emulated:
        return None
    if metric == KEPT:
        return [float(record.card["no_old_data"]["value"]) for record in records]
    return [float(record.metrics[metric] or 0.0) for record in records]
