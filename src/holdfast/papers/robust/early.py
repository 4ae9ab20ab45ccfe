"""What figures 2 to 4 share: two tasks of MNIST, split or permuted, and a look at the first batches of the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

import holdfast as hf
from holdfast.papers.base import Entry, Figure, Found, Measure, Recipe, Scale, published, series

Looked = Literal["entropy", "likelihood", "ratio"]
VCL, LIKELIHOOD = "VCL", "maximum likelihood"
STREAMS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "Split": ("split", {"tasks": 2}),
    "Permuted": ("permuted", {"tasks": 2, "identity": True}),
}
EPOCHS: Mapping[Scale, int] = {"smoke": 5, "laptop": 20, "full": 120}
ROWS: Mapping[Scale, int] = {"smoke": 500, "laptop": 30_000, "full": 30_000}  # N of the prior
SAID: Mapping[Scale, str] = {
    "smoke": "In place of MNIST: digits, one hidden layer of 20, 5 epochs.",
    "laptop": "Task A is learned for 20 epochs, one draw of the weights per step; the paper has 120 epochs, 10 draws.",
    "full": "As the paper: 120 epochs of task A in batches of 256, then 15 batches of 16 rows of task B.",
}
NOTES = (
    "Every repeat learns task A anew, so that deviations are also those of task A; the paper goes back to one model in "
    "each of its 100 runs.",
)
PRIOR = (
    "The prior's term is KL/N. N is the same for both settings, 30,000 on MNIST: with the rows of each task, half of "
    "what the paper's figure shows could be N, of which Permuted has twice as many. At the first batch the prior's "
    "gradient is exactly 0, for the weights are where it has its mean: the ratio begins with the second."
)


def recipe(item: str, rows: Callable[[Scale], list[Entry]], looked: Looked, quantity: str, *notes: str) -> Recipe:
    title, cells = published("robust", item)
    return Recipe(
        f"robust/{item}",
        title,
        {"smoke": ("digits",), "laptop": ("mnist",), "full": ("mnist",)},
        {"smoke": 0.2, "laptop": 6, "full": 1200},
        rows,
        _measure(looked),
        cells,
        seeds={"smoke": 2, "laptop": 3, "full": 100},
        said=SAID,
        notes=(*notes, *NOTES),
        figures=lambda found: _figures(found, title, looked, quantity),
    )


def both(scale: Scale) -> list[Entry]:
    """Under VCL and under maximum likelihood."""
    return entries(scale, (VCL, LIKELIHOOD))


def entries(scale: Scale, methods: Sequence[str] = (VCL,)) -> list[Entry]:
    return [_entry(row, method, scale) for row in STREAMS for method in methods]


def _entry(row: str, column: str, scale: Scale) -> Entry:
    name, settings = STREAMS[row]
    stream = hf.stream(name, data="digits" if scale == "smoke" else "mnist", **settings)
    batch = 20 if scale == "smoke" else 256
    steps = EPOCHS[scale] * -(-len(stream.tasks[0].train) // batch)
    learner = hf.method("vcl", samples=10 if scale == "full" else 1, test_samples=10)
    hidden = (20,) if scale == "smoke" else (100, 100)
    return Entry(
        row=row,
        column=column,
        method=learner if column == VCL else hf.method("finetune"),
        stream=stream,
        net=hf.net("bayes", hidden=hidden, sampling="weights") if column == VCL else hf.net("mlp", hidden=hidden),
        protocol=hf.protocol("early", batch=batch, steps=steps, prior_rows=ROWS[scale]),
    )


def course(record: hf.Record, looked: Looked) -> list[float | None]:
    """A number for each of the first batches of task B."""
    return [point.mean for point in hf.Diagnosis.of([record]).course(looked)]


def _measure(looked: Looked) -> Measure:
    """A metric names its batch; without one it is the first, and `first 15 batches` are all."""

    def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
        records = found.get((row, column, emulated))
        if not records:
            return None
        courses = [[value for value in course(record, looked) if value is not None] for record in records]
        if metric.endswith("batches"):
            return [sum(values) / len(values) for values in courses]
        batch = int(metric.rpartition(" batch ")[2]) if " batch " in metric else 1
        place = batch - (2 if looked == "ratio" else 1)  # which begins with the second batch
        return [values[place] for values in courses]

    return measured


def _figures(found: Found, title: str, looked: Looked, quantity: str) -> list[Figure]:
    lines = [
        series(row if column == VCL else f"{row}, {column}", records, lambda r: course(r, looked))
        for (row, column, _), records in found.items()
    ]
    batches = list(range(1, len(lines[0].mean) + 1)) if lines else []
    if not lines:
        return []
    return [Figure("lines", title, batches, "batch of task B", lines, quantity=quantity, logarithmic=looked == "ratio")]
