"""A recipe: what to run for a table or figure of a paper, with the published numbers beside the measured ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

import holdfast as hf

Scale = Literal["smoke", "laptop", "full"]
SCALES: tuple[Scale, ...] = ("smoke", "laptop", "full")


@dataclass(frozen=True, eq=False)
class Entry:
    """The runs behind one place of a table: a method on a stream, over the seeds."""

    row: str
    column: str
    method: hf.Learner
    stream: hf.Stream
    net: Any
    protocol: Any
    emulated: bool = False  # as the authors' code does it, where that differs from their paper
    setting: str = ""  # what differs from the paper's at this scale, e.g. '100 of 1,800 examples'

    @property
    def label(self) -> str:
        """What the report calls its runs."""
        return f"{self.row}, {self.column}{' (authors’ way)' if self.emulated else ''}"

    def cell(self, seed: int) -> hf.Cell:
        return hf.Cell(self.method, self.stream, self.net, self.protocol, seed)


Found = Mapping[tuple[str, str, bool], Sequence[hf.Record]]  # (row, column, emulated) -> records by seed
Measure = Callable[[Found, str, str, str, bool], "list[float] | None"]  # row, column, metric, emulated -> per seed


@dataclass(frozen=True, eq=False)
class Recipe:
    """One table or figure. Published numbers come from the paper's data file, never from code."""

    id: str  # paper/table
    title: str
    needs: Mapping[Scale, tuple[str, ...]]  # data sets
    minutes: Mapping[Scale, float]  # estimated, on two cores, with the usual number of seeds
    entries: Callable[[Scale], list[Entry]]
    measure: Measure
    published: tuple[Mapping[str, Any], ...]
    seeds: Mapping[Scale, int] = field(default_factory=lambda: {"smoke": 1, "laptop": 3, "full": 5})
    notes: tuple[str, ...] = ()  # what differs from the paper, and what was tried


def published(paper: str, item: str) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Title and cells of a table as the paper prints them."""
    text = resources.files("holdfast.papers").joinpath(f"{paper}.json").read_text()
    content = json.loads(text)[item]
    return content["title"], tuple(content["cells"])


def judged(recipe: Recipe, found: Found, scale: Scale, entries: Sequence[Entry] = ()) -> list[dict[str, Any]]:
    """One row per published number: measured with its interval, emulated, and whether it is within tolerance.

    A cell is judged on the number under the authors' procedure where it says so, else on the correct one. Numbers
    that the paper does not print have `published` None.
    """
    settings = {(entry.row, entry.column): entry.setting for entry in entries}
    cells = []
    for cell in recipe.published:
        place = (cell["row"], cell["column"], cell["metric"])
        values, theirs = (recipe.measure(found, *place, emulated) for emulated in (False, True))
        mean, low, high = hf.interval(values) if values else (None, None, None)
        emulated = hf.interval(theirs).mean if theirs else None
        against = emulated if cell.get("judge") == "emulated" else mean
        tolerance = cell.get("tolerance")
        within = None
        if against is not None and tolerance is not None and cell["published"] is not None:
            within = abs(against - cell["published"]) <= tolerance + 1e-9
        cells.append(
            {
                **cell,
                "tolerance": tolerance,
                "setting": settings.get(place[:2], ""),
                "scenario": _scenario(found, cell["row"], cell["column"]),
                "measured": mean,
                "low": low,
                "high": high,
                "emulated": emulated,
                "within": within,
                "judged": bool(cell.get("judged", False)) and scale != "smoke",
            }
        )
    return cells


def _scenario(found: Found, row: str, column: str) -> str | None:
    """'domain, task label hidden': what an accuracy must stand beside."""
    records = found.get((row, column, False)) or found.get((row, column, True))
    if not records:
        return None
    return f"{records[0].scenario}, task label {'given' if records[0].scenario == 'task' else 'hidden'}"
