"""Paper 000, Efficient continual learning with modular networks and task-driven priors: its tables and figures."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.ctrl import ablation, described, long, overall, pictures, standard, transfer


def recipes() -> list[Recipe]:
    families = (overall, long, described, transfer, ablation, standard, pictures)
    return [recipe for family in families for recipe in family.recipes()]
