"""Paper 003, A comprehensive, application-oriented study of catastrophic forgetting in DNNs: tables and figures."""

from __future__ import annotations

from holdfast.papers.apps import figures, table1, table3, table4, table5
from holdfast.papers.base import Recipe


def recipes() -> list[Recipe]:
    return [*figures.recipes(), table1.recipe(), table3.recipe(), table4.recipe(), table5.recipe()]
