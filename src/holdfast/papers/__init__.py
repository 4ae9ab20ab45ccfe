"""The tables and figures of the papers as recipes, with the published numbers beside them.

    holdfast reproduce                      the list of all tables and figures
    holdfast reproduce gem/table3 --scale laptop --seeds 3

Recipes use Holdfast like a user: `import holdfast as hf`.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from importlib import resources

import holdfast as hf
from holdfast.errors import unknown
from holdfast.papers.base import SCALES, Entry, Recipe, Scale, absent, judged, only

BUILT = ("gem", "apps", "still", "robust", "ctrl")  # papers that have recipes; each is a module of this package


@dataclass(frozen=True)
class Item:
    """One table or figure of a paper; `recipe` is None while it is not built."""

    id: str
    paper: str
    title: str
    recipe: Recipe | None


def contents() -> list[Item]:
    """Every table and figure of the five papers that shows results."""
    recipes = {
        recipe.id: recipe for paper in BUILT for recipe in importlib.import_module(f"holdfast.papers.{paper}").recipes()
    }
    papers = json.loads(resources.files("holdfast.papers").joinpath("contents.json").read_text())
    return [
        Item(f"{name}/{item}", paper["paper"], title, recipes.get(f"{name}/{item}"))
        for name, paper in papers.items()
        for item, title in paper["items"].items()
    ]


def find(id: str) -> Recipe:
    """The recipe of a table or figure; an unknown or unbuilt one is bad input."""
    items = {item.id: item for item in contents()}
    if id not in items:
        if inside := [each for each in items if each.startswith(f"{id.rstrip('/')}/") and items[each].recipe]:
            raise hf.BadInput(f"say which table or figure of {id.rstrip('/')!r} is meant: {', '.join(inside)}")
        raise hf.BadInput(unknown("table or figure", id, items))
    recipe = items[id].recipe
    if recipe is None:
        built = ", ".join(item.id for item in items.values() if item.recipe)
        raise hf.BadInput(f"{id} has no recipe yet; those that have one: {built}")
    return recipe


__all__ = ["SCALES", "Entry", "Item", "Recipe", "Scale", "absent", "contents", "find", "judged", "only"]
