"""Figure 4: how hard the first batches of task B pull at the output layer against the prior."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.robust import early


def recipe() -> Recipe:
    return early.recipe(
        "figure4",
        early.entries,
        "ratio",
        "likelihood’s gradient / prior’s",
        "The ratio of the mean sizes of both terms' gradients in the output layer, taken in each run. The figure "
        "prints no numbers, so that nothing is judged. The runs are those of robust/figure2 under VCL: with --from and "
        "its output folder none is run again.",
        early.PRIOR,
        "At laptop, four repeats: 26,000 and 14,000 at the second batch, 1,500 and 1,900 at the fifteenth: the order "
        "of the first batches is the paper's, and is gone by the last.",
    )
