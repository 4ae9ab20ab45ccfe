"""Table 1: training time on MNIST permutations and rotations, as multiples of the plain predictor's."""

from __future__ import annotations

from typing import Any

from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.gem import mnist

STREAMS = {"permutations": "permuted", "rotations": "rotated"}
METHODS = ("single", "independent", "multimodal", "EWC", "GEM")
METRIC = "time, single = 1"
ONE_BY_ONE = ("EWC", "GEM")  # the authors compute them task by task, which changes the time and not the result


def recipe() -> Recipe:
    title, cells = published("gem", "table1")
    seconds = {(cell["row"], cell["column"]): cell["published"] for cell in cells}
    return Recipe(
        "gem/table1",
        title,
        {"smoke": ("digits",), "laptop": ("mnist",), "full": ("mnist",)},
        {"smoke": 0.3, "laptop": 5, "full": 8},
        _entries,
        _measured,
        tuple(
            {
                "row": row,
                "column": column,
                "metric": METRIC,
                "published": spent / seconds[row, "single"],
                "published_seconds": spent,
                "judged": False,
            }
            for (row, column), spent in seconds.items()
        ),
        said=mnist.SAID,
        notes=(
            "Seconds of other machines say little, so times are shown as multiples of single's: published from the "
            "paper's seconds, measured from the training seconds of runs side by side, scoring apart. Not judged.",
            "Measured EWC sums its Fisher matrices into two vectors and GEM takes the gradients of all memories in one "
            "batched pass. The authors' way: EWC adds one penalty per past task, GEM takes one backward pass per past "
            "task; the results are the same. Theirs also loops over the network's parameters, which is not emulated. "
            "benchmarks/batching.py times the Fisher matrix and the memories' gradients alone, batched and one by one.",
            "1,000 test rows per task are scored: scoring is not timed. EWC's λ is 1: the time does not depend on it.",
        ),
    )


def _entries(scale: Scale) -> list[Entry]:
    scored: dict[str, Any] = {} if scale == "smoke" else {"test_examples": 1000}
    return [
        mnist.entry((row, method), method, stream, scale, settings, emulated=emulated, **scored)
        for row, stream in STREAMS.items()
        for method in METHODS
        for settings, emulated in _variants(method)
    ]


def _variants(method: str) -> list[tuple[mnist.Settings, bool]]:
    """Settings as we compute it and, where they differ, as the authors do."""
    ours = {**mnist.ROWS[method].settings, **({"strength": 1.0} if method == "EWC" else {})}
    return [(ours, False), ({**ours, "one_by_one": True}, True)] if method in ONE_BY_ONE else [(ours, False)]


def _measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    """Per seed, the training seconds over single's; emulated only where the authors compute it otherwise."""
    ours, single = found.get((row, column, emulated)), found.get((row, "single", False))
    if not ours or not single:
        return None
    seconds = [[sum(record.resources["train_seconds"]) for record in records] for records in (ours, single)]
    return [mine / plain for mine, plain in zip(*seconds, strict=True)]
