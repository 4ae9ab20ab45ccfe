"""Paper 000, Efficient continual learning with modular networks and task-driven priors: its tables and figures."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.ctrl import described, long, overall, standard, transfer


def recipes() -> list[Recipe]:
    return [recipe for family in (overall, long, described, transfer, standard) for recipe in family.recipes()]
