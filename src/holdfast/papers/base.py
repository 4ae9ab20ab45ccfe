"""A recipe: what to run for a table or figure of a paper, with the published numbers beside the measured ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from typing import Any, Literal

import holdfast as hf
from holdfast.errors import unknown

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
    setting: str = ""  # what differs from the paper's at this scale, e.g. '5 tasks of 360 examples'
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # settings to choose on validation data
    tuned_at: str | None = None  # the column of this row whose choice it takes; None: its own
    choice: hf.Choice | None = None

    @property
    def label(self) -> str:
        """What the report calls its runs."""
        return f"{self.row}, {self.column}{' (authors’ way)' if self.emulated else ''}"

    @property
    def tunes(self) -> bool:
        """Whether trials are run for it."""
        return bool(self.grid) and self.tuned_at in (None, self.column)

    def cell(self, seed: int) -> hf.Cell:
        cell = hf.Cell(self.method, self.stream, self.net, self.protocol, seed)
        return cell if self.choice is None else self.choice.applied(cell)

    def chosen(self, choices: Mapping[tuple[str, str, bool], hf.Choice]) -> Entry | None:
        """With the settings that its trials chose, or those of the column it follows; None where all trials failed."""
        if not self.grid:
            return self
        choice = choices.get((self.row, self.column if self.tuned_at is None else self.tuned_at, self.emulated))
        return None if choice is None else replace(self, choice=choice)

    @property
    def words(self) -> dict[str, str]:
        """By what it can be asked for: the parts of its row and of its column, and whose way it is, each of a kind."""
        parts = {f"{name} {i}": word for name, place in (("row", self.row), ("column", self.column))
                 for i, word in enumerate(place.split(", "))}  # fmt: skip
        return {**parts, "whose": "authors" if self.emulated else "correct"}


def only(
    entries: Sequence[Entry], words: Sequence[str], known: Collection[str] = (), absent: Collection[str] = ()
) -> list[Entry]:
    """The entries that have these words, and those whose choice they take.

    Words of one kind are alternatives: 'fc', 'LWTA' and 'D9-1a' ask for two models on one task. `known`: words of the
    paper's, which may have no runs at this scale; `absent`: those that have none because a data set is not here.
    """
    kinds = {word: kind for entry in entries for kind, word in entry.words.items()}
    wrong = [word for word in dict.fromkeys(words) if word not in kinds]
    if wrong:
        raise hf.BadInput(*(_why_not(word, kinds, known, absent) for word in wrong))
    asked: dict[str, set[str]] = {}
    for word in words:
        asked.setdefault(kinds[word], set()).add(word)
    kept = [e for e in entries if all(e.words.get(kind) in wanted for kind, wanted in asked.items())]
    if not kept:
        raise hf.BadInput(f"no run has all of {', '.join(words)}")
    followed = {(e.row, e.tuned_at, e.emulated) for e in kept}
    return [e for e in entries if e in kept or (e.row, e.column, e.emulated) in followed]


def _why_not(word: str, runs: Collection[str], known: Collection[str], absent: Collection[str]) -> str:
    if word in absent:
        return f"{word!r} has no runs, for the data set is not here; `holdfast data status` says how to get it"
    if word not in known:
        return unknown("row or column", word, runs)
    near = [run for run in runs if run.startswith(word) or word.startswith(run)]
    why = f"is made of the runs {', '.join(near)}; name them" if near else "has no runs at this scale"
    return f"{word!r} {why}"


Found = Mapping[tuple[str, str, bool], Sequence[hf.Record]]  # (row, column, emulated) -> records by seed
Measure = Callable[[Found, str, str, str, bool], "list[float] | None"]  # row, column, metric, emulated -> per seed


@dataclass(frozen=True)
class Series:
    """One method in a figure: the mean over seeds of each number, and its 95% interval."""

    name: str
    scenario: str  # 'domain, task label hidden'
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]
    x: list[float | None] = field(default_factory=list)  # its own, where a figure's series do not share theirs
    told: list[str] = field(default_factory=list)  # what is said of each number where one points
    optimal: list[bool] = field(default_factory=list)  # of `scatter`: on the Pareto front of all series
    outline: bool = False  # of `bars` and `radar`: what others are compared with, drawn as such


@dataclass(frozen=True)
class Figure:
    """A figure to draw. `bars`, `lines`, `radar` and `matrix` have series over x, `scatter` and `roc` over x of their
    own; the others have panels.

    `radar`: a polygon per series over the axes x, from 0 to 1. `matrix`: a row per series, numbers from 0 to 1.
    `scatter`: accuracy against the seconds of training, a point per setting. `roc`: at each θ, found in x, true
    positives over false ones. `course`: accuracy over time, a panel per experiment. `waterfall`: the same in space, an
    experiment behind the other. `tuning`: accuracy over α.
    """

    kind: Literal["bars", "lines", "radar", "matrix", "scatter", "roc", "course", "waterfall", "tuning"]
    title: str
    x: list[Any]
    axis: str
    series: list[Series]
    panels: list[hf.panels.Panel] = field(default_factory=list)
    quantity: str = "accuracy"  # of `bars` and `lines`
    logarithmic: bool = False
    note: str = ""  # how to read it
    small: bool = False  # of `radar`: one of many


def series(name: str, records: Sequence[hf.Record], numbers: Callable[[hf.Record], Sequence[float | None]]) -> Series:
    """The numbers of each record, one list per seed, as a series."""
    points = [hf.interval(values) for values in zip(*(numbers(record) for record in records), strict=True)]
    mean, low, high = ([getattr(point, which) for point in points] for which in ("mean", "low", "high"))
    return Series(name, hf.panels.scenario_of(records[0]), mean, low, high)


def across(name: str, settings: Sequence[Sequence[hf.Record]], number: Callable[[hf.Record], float | None]) -> Series:
    """One number of each setting, from the records of its seeds, as a series over the settings."""
    points = [hf.interval([number(record) for record in records]) for records in settings]
    mean, low, high = ([getattr(point, which) for point in points] for which in ("mean", "low", "high"))
    return Series(name, hf.panels.scenario_of(settings[0][0]), mean, low, high)


ABSENT = "data set absent"  # why a cell has no runs
Place = tuple[str, str]  # row and column
Forgets = Literal["forgetting", "none", "undecided"]


@dataclass(frozen=True, eq=False)
class Recipe:
    """One table or figure. Published numbers come from the paper's data file, never from code.

    A cell may have a `threshold`: below it, a network has forgotten.
    """

    id: str  # paper/table
    title: str
    needs: Mapping[Scale, tuple[str, ...]]  # data sets
    minutes: Mapping[Scale, float]  # estimated, on two cores, with the usual number of seeds
    entries: Callable[[Scale], list[Entry]]
    measure: Measure
    published: tuple[Mapping[str, Any], ...]
    seeds: Mapping[Scale, int] = field(default_factory=lambda: {"smoke": 1, "laptop": 3, "full": 5})
    notes: tuple[str, ...] = ()  # what differs from the paper, and what was tried
    said: Mapping[Scale, str] = field(default_factory=dict)  # how large a scale is, against the paper
    figures: Callable[[Found], list[Figure]] | None = None
    behind: Callable[[str, str], Sequence[Place]] = lambda row, column: ((row, column),)  # the entries of a cell
    missing: Callable[[Scale], Mapping[Place, str]] = lambda scale: {}  # why a cell has no runs at this scale
    data: Callable[[str, str], str] | None = None  # the data set of a cell, where a table has several
    listed: tuple[str, ...] = ()  # metrics that every run has a row for, whether or not the paper prints a number


def absent(recipe: Recipe, scale: Scale) -> set[str]:
    """The data sets of a table that are not here, as it calls them."""
    places = [place for place, why in recipe.missing(scale).items() if why == ABSENT]
    return {recipe.data(*place) for place in places} if recipe.data else set()


def published(paper: str, item: str) -> tuple[str, tuple[Mapping[str, Any], ...]]:
    """Title and cells of a table as the paper prints them."""
    text = resources.files("holdfast.papers").joinpath(f"{paper}.json").read_text()
    content = json.loads(text)[item]
    return content["title"], tuple(content["cells"])


def smaller(grid: Mapping[str, Sequence[Any]], scale: Scale) -> dict[str, Sequence[Any]]:
    """Two values of the first setting and one of the others are enough to see that a grid works."""
    if scale != "smoke":
        return dict(grid)
    return {name: values[-1:] if i else values[-2:] for i, (name, values) in enumerate(grid.items())}


def judged(
    recipe: Recipe, found: Found, scale: Scale, entries: Sequence[Entry] = (), whole: Sequence[Entry] = ()
) -> list[dict[str, Any]]:
    """One row per published number: measured with its interval, emulated, and whether it is within tolerance.

    A cell is judged on the number under the authors' procedure where it says so, else on the correct one. Numbers
    that the paper does not print have `published` None; those measured under another setting than the paper's, as all
    are at smoke, or from a part of their runs, cannot be within tolerance or out of it. `entries`: what was asked for;
    `whole`: all that could be, if that is more. A cell that has nothing that was asked for is no row then. Data sets
    that were run come first, those that are absent last.
    """
    settings = {(entry.row, entry.column): entry.setting for entry in entries}
    wanted = {(entry.row, entry.column, entry.emulated) for entry in whole or entries}
    lacking = wanted - set(found)
    of_authors = {key: records for key, records in found.items() if (*key[:2], True) not in lacking}
    missing = recipe.missing(scale)
    cells = []
    for cell in (*_in_order(recipe, missing), *_unprinted(recipe, whole or entries)):
        place = (cell["row"], cell["column"], cell["metric"])
        values, theirs = recipe.measure(found, *place, False), recipe.measure(of_authors, *place, True)
        mean, low, high = hf.interval(values) if values else (None, None, None)
        emulated = hf.interval(theirs).mean if theirs else None
        by_authors = cell.get("judge") == "emulated"
        against = emulated if by_authors else mean
        tolerance = cell.get("tolerance")
        behind = recipe.behind(*place[:2])
        setting = missing.get(place[:2]) or next((settings[one] for one in behind if settings.get(one)), "")
        if whole and not any(one in settings for one in behind):
            continue
        runs = [(*one, by_authors and (*one, True) in wanted) for one in behind]
        if not setting and against is not None and any(run in lacking for run in runs):
            setting = "run in part"
        within = None
        as_published = not setting and scale != "smoke"
        if against is not None and tolerance is not None and cell["published"] is not None and as_published:
            within = abs(against - cell["published"]) <= tolerance + 1e-9
        cells.append(
            {
                **cell,
                "tolerance": tolerance,
                "setting": setting,
                "scenario": next((hf.panels.scenario_of(found[key][0]) for key in found if key[:2] in behind), None),
                "measured": mean,
                "low": low,
                "high": high,
                "emulated": emulated,
                "within": within,
                "verdict": forgets(values, cell.get("threshold")),
                "judged": bool(cell.get("judged", False)) and scale != "smoke",
            }
        )
    return cells


def _unprinted(recipe: Recipe, entries: Sequence[Entry]) -> list[Mapping[str, Any]]:
    """A cell for each number that is listed of these runs and not published: settings may differ between scales."""
    printed = {(cell["row"], cell["column"], cell["metric"]) for cell in recipe.published}
    places = ((entry.row, entry.column, metric) for entry in entries for metric in recipe.listed)
    left = dict.fromkeys(place for place in places if place not in printed)
    return [{"row": row, "column": column, "metric": metric, "published": None} for row, column, metric in left]


def _in_order(recipe: Recipe, missing: Mapping[Place, str]) -> list[Mapping[str, Any]]:
    """The cells, as published but for those of data sets that have no runs: those go below, absent ones last."""
    if recipe.data is None:
        return list(recipe.published)
    places = [(cell["row"], cell["column"]) for cell in recipe.published]
    data = [recipe.data(*place) for place in places]
    run = {name for name, place in zip(data, places, strict=True) if place not in missing}
    gone = {name for name, place in zip(data, places, strict=True) if missing.get(place) == ABSENT}
    ranks = [0 if name in run else 2 if name in gone else 1 for name in data]
    return [cell for rank in range(3) for cell, own in zip(recipe.published, ranks, strict=True) if own == rank]


def forgets(values: Sequence[float] | None, threshold: float | None) -> Forgets | None:
    """Whether a network has forgotten: below the threshold, or undecided where the 95% interval contains it.

    >>> forgets([0.1, 0.2, 0.1], 0.5), forgets([0.4, 0.6, 0.7], 0.5), forgets([0.95], 0.9)
    ('forgetting', 'undecided', 'none')
    """
    if not values or threshold is None:
        return None
    mean, low, high = hf.interval(values)
    assert mean is not None
    if low is not None and high is not None and low <= threshold <= high:
        return "undecided"
    return "forgetting" if mean < threshold else "none"
