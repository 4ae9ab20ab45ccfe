"""Paper 001, Towards robust evaluations of continual learning: its figures as recipes."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.robust import figure2, figure3, figure4, split


def recipes() -> list[Recipe]:
    early = [figure2.recipe(), figure3.recipe(), figure4.recipe()]
    return [*early, *(split.recipe(figure) for figure in split.FIGURES)]
