"""Paper 001, Towards robust evaluations of continual learning: its figures as recipes."""

from __future__ import annotations

from holdfast.papers.base import Recipe
from holdfast.papers.robust import split


def recipes() -> list[Recipe]:
    return [split.recipe(figure) for figure in split.FIGURES]
