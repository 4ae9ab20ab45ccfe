"""Paper 001, Towards robust evaluations of continual learning: its figures as recipes."""

from __future__ import annotations

from typing import Any

from holdfast.papers.base import Recipe
from holdfast.papers.robust import figure2, figure3, figure4, permuted, replay, sensitivity, split, timed, unseen


def recipes() -> list[Recipe]:
    early = [figure2.recipe(), figure3.recipe(), figure4.recipe()]
    families: tuple[Any, ...] = (split, permuted, replay, timed, unseen, sensitivity)
    return [*early, *(family.recipe(figure) for family in families for figure in family.FIGURES)]
