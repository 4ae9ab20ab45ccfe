"""Figure 3: how hard the first batches of task B pull at the output layer."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.robust import early


def recipe() -> Recipe:
    return early.recipe(
        "figure3",
        early.both,
        "likelihood",
        "mean |gradient|, output layer",
        "The mean size of the likelihood term's gradient in the weights and biases of the output layer, under VCL in "
        "their means. The figure prints no numbers, so that nothing is judged. The runs are those of robust/figure2: "
        "with --from and its output folder none is run again.",
        "That Split pulls harder is seen under maximum likelihood (0.34 and 0.18 at the first batch, 20 repeats at "
        "laptop), not under VCL (0.14 and 0.15), which is far less sure of permuted pixels and, from "
        "samples of its weights, of everything.",
    )
