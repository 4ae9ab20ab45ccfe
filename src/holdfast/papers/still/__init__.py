"""Paper 004, Catastrophic forgetting: still a problem for DNNs: its tables and figures as recipes."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.still import figures, table3, table4


def recipes() -> list[Recipe]:
    return [*figures.recipes(), table3.recipe(), table4.recipe()]
