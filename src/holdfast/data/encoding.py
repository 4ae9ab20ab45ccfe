"""Columns as numbers for a network, by a rule that is fixed on the rows of the first task and never changes after it.

Numbers are scaled by mean and deviation of the first task. A category has a place for each of its words there, and one
for all others, so that what comes later breaks nothing. A missing number is the mean, a missing category no place at
all; a column in which values were missing in the first task has one more place that says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from holdfast.data.canonical import some
from holdfast.data.columns import LARGEST, MOST, Column, Columns, Kind, counted, numbers
from holdfast.errors import BadInput

SCHEMA = 1
ROUNDING = 1e-9  # a deviation that is less of the mean is none
LIMIT = 2**31  # numbers of all rows together


@dataclass(frozen=True)
class Number:
    """A column of numbers."""

    name: str
    mean: float
    deviation: float  # above 0
    gaps: bool  # whether values were missing in the first task

    @property
    def width(self) -> int:
        return 1 + self.gaps

    def put(self, column: Column, places: np.ndarray) -> None:
        """(N,) values into their places, (N, width), which hold zeros."""
        scaled = np.clip((column.values - self.mean) / self.deviation, -LARGEST, LARGEST)
        places[:, 0] = np.where(column.missing, 0, scaled)
        if self.gaps:
            places[:, 1] = column.missing

    def others(self, column: Column) -> int:
        return 0


@dataclass(frozen=True)
class Category:
    """A column of words."""

    name: str
    words: tuple[str, ...]  # that have a place of their own
    gaps: bool  # whether values were missing in the first task

    @property
    def width(self) -> int:
        return len(self.words) + 1 + self.gaps

    def put(self, column: Column, places: np.ndarray) -> None:
        there = np.flatnonzero(~column.missing)
        mine = {word: place for place, word in enumerate(self.words)}
        to_place = np.array([mine.get(word, len(mine)) for word in column.words or ()], int)
        places[there, to_place[column.values[there].astype(int)]] = 1
        if self.gaps:
            places[:, -1] = column.missing

    def others(self, column: Column) -> int:
        """How many rows have a word without a place."""
        other = np.array([word not in self.words for word in column.words or ()], bool)
        return int(other[column.values[~column.missing].astype(int)].sum()) if len(other) else 0


@dataclass(frozen=True)
class Encoding:
    """What a network sees of a table, column by column."""

    label: str
    label_kind: Kind  # number or category
    columns: tuple[Number | Category, ...]
    label_said: bool = False  # what the label is was said: its numbers are words

    @classmethod
    def fit(cls, first: Columns, label: str) -> Encoding:
        """On the rows of the first task.

        >>> words = Column("colour", np.array([0, np.nan]), ("blue",))
        >>> table = Columns({"size": Column("size", np.array([1.0, 3])), "colour": words, "kind": words}, 2, ())
        >>> Encoding.fit(table, "kind").encode(table).tolist()  # size; blue, another colour, no colour
        [[-1.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 1.0]]
        """
        mine = first.each[label]
        kind: Kind = "number" if mine.words is None else "category"
        return cls(label, kind, tuple(map(_fitted, first.without(label).each.values())), mine.said)

    @property
    def width(self) -> int:
        return sum(column.width for column in self.columns)

    @property
    def kinds(self) -> dict[str, Kind]:
        """As what new rows must be read, besides their labels."""
        return {column.name: "number" if isinstance(column, Number) else "category" for column in self.columns}

    def faults(self, columns: Columns, told: Sequence[str] = ()) -> list[str]:
        """Why these columns cannot be encoded; nothing of those that a line of `told` is about."""
        known = {name for name in self.kinds if any(line.startswith(f"column {name!r} ") for line in told)}
        return list(self._faults(columns, known))

    def encode(self, columns: Columns) -> np.ndarray:
        """(N, width) float32; columns are found by name, in any order."""
        if faults := self.faults(columns):
            raise BadInput(*faults)
        if columns.rows * self.width > LIMIT:
            raise BadInput(f"{columns.rows} rows of {self.width} numbers each are more than {LIMIT}; leave out columns")
        places = np.zeros((columns.rows, self.width), np.float32)
        start = 0
        for mine in self.columns:
            mine.put(columns.each[mine.name], places[:, start : start + mine.width])
            start += mine.width
        return places

    def remarks(self, *tables: Columns, label: str | None = None) -> list[str]:
        """What is told of these rows: what is missing, what is not known, what is not looked at.

        `label`: the column that has the labels here, where it is another than at first.
        """
        gaps, others = Counter[str](), Counter[str]()
        for mine, column in ((mine, table.each[mine.name]) for table in tables for mine in self.columns):
            gaps[mine.name] += int(column.missing.sum())
            others[mine.name] += mine.others(column)
        extra = [n for n in tables[0].names if n not in (*self.kinds, label or self.label)]
        said = {
            "missing values (a number is taken as the mean of the first task, a category as none)": counted(gaps),
            "words that the first task has not, taken as others": counted(others),
            "columns that are not looked at": some(extra),
        }
        return [f"{what}: {which}" for what, which in said.items() if which]

    def told(self) -> list[str]:
        """The rules of its columns."""
        scaled = [c.name for c in self.columns if isinstance(c, Number)]
        placed = [f"{c.name} ({len(c.words)})" for c in self.columns if isinstance(c, Category)]
        said = {
            "numbers, scaled by mean and deviation of the first task": scaled,
            f"categories, with a place for each word of the first task ({MOST} at most) and one for others": placed,
        }
        return [f"{what}: {some(names)}" for what, names in said.items() if names]

    def to_json(self) -> dict[str, Any]:
        label = {"label": self.label, "label_kind": self.label_kind, "label_said": self.label_said}
        return {"schema": SCHEMA, **label, "columns": [asdict(column) for column in self.columns]}

    @classmethod
    def from_json(cls, said: Any) -> Encoding:
        """What `to_json` gave; anything else is refused."""
        try:
            if said["schema"] != SCHEMA:
                raise BadInput(f"an encoding of schema {said['schema']!r} cannot be read, only {SCHEMA}")
            kinds: dict[str, Kind] = {"number": "number", "category": "category"}
            label = _word(said["label"]), kinds[said["label_kind"]]
            made = cls(*label, tuple(map(_read, said["columns"])), said.get("label_said") is True)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput("this is not an encoding as Holdfast wrote it") from error
        return made

    def _faults(self, columns: Columns, known: Set[str]) -> Iterator[str]:
        for mine in (column for column in self.columns if column.name not in known):
            column = columns.each.get(mine.name)
            if column is None:
                near = get_close_matches(mine.name, set(columns.names) - set(self.kinds), n=1)
                yield f"there is no column {mine.name!r}" + (f"; is it {near[0]!r}?" if near else "; it must be there")
                continue
            numeric = column.words is None or _numeric(column.words)
            same = isinstance(mine, Number) if numeric else isinstance(mine, Category)
            if same or column.missing.all() or (isinstance(mine, Category) and _numeric(mine.words)):
                continue
            row = int((~column.missing).argmax())
            held, before = ("numbers", "words") if numeric else ("words", "numbers")
            found = f"{held}, e.g. {column.word(row)} in row {row + 1}"
            yield f"column {mine.name!r} holds {found}, but held {before} before"


def _fitted(column: Column) -> Number | Category:
    missing = column.missing
    there = column.values[~missing]
    if column.words is None:
        mean, deviation = (float(there.mean()), float(there.std())) if len(there) else (0.0, 0.0)
        varies = deviation > ROUNDING * abs(mean)  # else it is the same in the whole first task
        return Number(column.name, mean, deviation if varies else 1.0, bool(missing.any()))
    words, counts = column.words, np.bincount(there.astype(int), minlength=len(column.words))
    frequent = sorted(np.flatnonzero(counts), key=lambda place: (-counts[place], words[place]))[:MOST]
    return Category(column.name, tuple(sorted(words[place] for place in frequent)), bool(missing.any()))


def _numeric(words: tuple[str, ...] | None) -> bool:
    return bool(words) and numbers(words or ()) is not None


def _read(said: Mapping[str, Any]) -> Number | Category:
    if type(said["gaps"]) is not bool:
        raise TypeError
    if "words" in said:
        return Category(_word(said["name"]), tuple(map(_word, said["words"])), said["gaps"])
    mean, deviation = float(said["mean"]), float(said["deviation"])
    if not math.isfinite(mean) or not 0 < deviation < math.inf:
        raise ValueError
    return Number(_word(said["name"]), mean, deviation, said["gaps"])


def _word(said: Any) -> str:
    if not isinstance(said, str):
        raise TypeError
    return said
