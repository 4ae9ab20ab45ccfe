"""Paper 002, Gradient Episodic Memory: its tables and its figure as recipes, with the authors' released settings."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.gem import figure1, table1, table2, table3


def recipes() -> list[Recipe]:
    return [figure1.recipe(), table1.recipe(), table2.recipe(), table3.recipe()]
