"""A table column by column: numbers, or categories; whatever a column holds is found out here, once for all sources."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from holdfast.data.canonical import some
from holdfast.errors import BadInput, unknown

if TYPE_CHECKING:
    import pandas

Kind = Literal["number", "category", "skip"]
KINDS = get_args(Kind)
# all: what columns hold is found out, and texts among numbers are a fault; raw: then they are a column of texts;
# known: only columns that are named are read, and it is no fault if one is not there; of labels the kind is found out
Mode = Literal["all", "raw", "known"]
LABELS = ("label", "target", "y", "class")  # the column that has them where none is named; else the last one
MISSING = frozenset(("", "na", "n/a", "nan", "null", "?"))  # in any case
LARGEST = float(np.finfo(np.float32).max)
WHOLE = 2**53  # beyond it whole numbers are no longer told apart
MOST = 100  # categories with a place of their own
DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}([ T].*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")


@dataclass(frozen=True, eq=False)
class Column:
    """One of them, with a value for every row."""

    name: str
    values: np.ndarray  # (N,) float64: numbers, or places in `words`; NaN where it is missing
    words: tuple[str, ...] | None = None  # of categories; none: numbers
    said: bool = False  # what it holds was said and not found out

    @property
    def missing(self) -> np.ndarray:
        return np.isnan(self.values)

    def word(self, row: int) -> str:
        """What stands there, for a message."""
        value = self.values[row]
        return as_word(value) if self.words is None else _short(self.words[int(value)])


@dataclass(frozen=True, eq=False)
class Columns:
    """A table: columns of one length, by name, in their order."""

    each: Mapping[str, Column]
    rows: int
    names: tuple[str, ...]  # of all that are there, also those that were not read
    told: tuple[str, ...] = ()  # what was done with it when it was read

    @property
    def fingerprint(self) -> str:
        """A digest over all that they hold."""
        digest = hashlib.sha256()
        for column in self.each.values():
            digest.update(f"{column.name!r} {column.words!r}".encode("utf-8", "surrogatepass"))
            digest.update(np.ascontiguousarray(column.values).data)
        return digest.hexdigest()

    def frame(self) -> pandas.DataFrame:
        """As a pandas DataFrame: numbers, NaN where they are missing, and words, None where they are."""
        import pandas

        found: dict[str, Any] = {}
        for name, column in self.each.items():
            words = np.array([*(column.words or ()), None], object)
            places = np.where(column.missing, len(words) - 1, column.values)
            found[name] = column.values if column.words is None else words[places.astype(int)]
        return pandas.DataFrame(found)

    def take(self, rows: np.ndarray) -> Columns:
        each = {name: replace(column, values=column.values[rows]) for name, column in self.each.items()}
        return replace(self, each=each, rows=len(rows))

    def without(self, name: str) -> Columns:
        return replace(self, each={k: column for k, column in self.each.items() if k != name})


def kinds_of(said: Mapping[str, str] | str | None) -> dict[str, Kind]:
    """What was said of columns, as a mapping or as text.

    >>> kinds_of("doors=category,id=skip")
    {'doors': 'category', 'id': 'skip'}
    """
    if said is None:
        return {}
    if isinstance(said, str):
        pairs = [text.rpartition("=") for text in said.split(",")]
        faults = [f"columns must be NAME=KIND,..., e.g. doors=category,id=skip, not {said!r}"]
        if not all(name and equals for name, equals, _ in pairs):
            raise BadInput(*faults)
        said = {name.strip(): kind.strip() for name, _, kind in pairs}
    wrong = {name: str(kind) for name, kind in said.items() if kind not in KINDS}
    faults = [unknown("kind", kind, KINDS, f" of column {name!r}") for name, kind in wrong.items()]
    if faults:
        raise BadInput(*faults)
    return {str(name): kind for name, kind in said.items()}  # type: ignore[misc]


def bad_names(names: Sequence[str]) -> list[str]:
    """Why columns cannot be told apart by their names."""
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    faults = [f"{names.count(name)} columns are called {name!r}; give each a name of its own" for name in twice]
    blank = [i for i, name in enumerate(names) if not name.strip() or not name.isprintable()]
    return faults + [f"column {i + 1} has no name that can be printed ({names[i]!r}); give it one" for i in blank]


def strange(names: Sequence[str], kinds: Mapping[str, Kind | None], mode: Mode) -> list[str]:
    """Of what columns something was said that are not there."""
    return [] if mode == "known" else [unknown("column", name, names) for name in kinds if name not in names]


def wanted(name: str, kinds: Mapping[str, Kind | None], mode: Mode) -> bool:
    """Whether a column is read."""
    return kinds.get(name, "skip" if mode == "known" else "") != "skip"


def label_of(names: Sequence[str], said: str | None) -> tuple[str, str]:
    """The column of labels, and who chose it; there is at least one column."""
    if said is not None:
        if said not in names:
            raise BadInput(unknown("column", said, names, ", which was to be the label"))
        return said, "as asked"
    usual = [name for word in LABELS for name in names if name.lower() == word]
    return (usual[0], "by its name") if usual else (names[-1], "the last column")


def numbers(cells: Sequence[str]) -> np.ndarray | None:
    """(N,) with NaN where a cell is missing; None where one is no number."""
    try:
        return np.array(cells, np.float64)
    except ValueError:
        pass
    try:
        return np.array(["nan" if is_missing(cell) else cell for cell in cells], np.float64)
    except ValueError:
        return None


def is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING


def of_numbers(name: str, values: np.ndarray, kind: Kind | None, faults: list[str]) -> Column:
    """A column of numbers, or of categories that are written as numbers."""
    if kind == "category":
        return of_words(name, [None if np.isnan(value) else as_word(value) for value in values], said=True)
    wide = np.abs(values) > LARGEST
    if wide.any():
        row = int(wide.argmax())
        what = f"{as_word(values[row])} in row {row + 1}{_such(wide)}"
        faults.append(f"column {name!r} has {what}, but must have finite numbers; mend it")
    return Column(name, values, said=kind is not None)


def of_texts(name: str, cells: Sequence[str], kind: Kind | None, mode: Mode, faults: list[str]) -> Column:
    """A column in which not all cells are numbers; most of them must not be."""
    gone = {cell for cell in set(cells) if is_missing(cell)}
    said = kind is not None
    if kind == "number" or (kind is None and mode != "raw"):
        odd = {cell for cell in set(cells) - gone if numbers([cell]) is None}
        bad = np.array([cell in odd for cell in cells], bool)
        if bad.any() and (kind == "number" or 2 * bad.sum() < sum(cell not in gone for cell in cells)):
            row, found = int(bad.argmax()), f"column {name!r} has"
            better = "" if said else f", or take all of it as categories: columns {name}=category"
            faults.append(f"{found} {_short(cells[row])} in row {row + 1}{_such(bad)} among numbers; mend it{better}")
            said = True
    return of_words(name, [None if cell in gone else cell.strip() for cell in cells], said)


def of_words(name: str, cells: Sequence[str | None], said: bool = False) -> Column:
    """A column of categories, None where it is missing."""
    words = sorted({cell for cell in cells if cell is not None})
    place = {word: float(i) for i, word in enumerate(words)}
    values = np.array([np.nan if cell is None else place[cell] for cell in cells], np.float64)
    return Column(name, values, tuple(words), said)


def unfit(columns: Columns) -> list[str]:
    """Why some of these columns are nothing that a network could be shown."""
    faults = []
    for column in columns.each.values():
        words, leave = column.words, f"or leave it out: columns {column.name}=skip"
        if not words or column.said:
            continue
        first = f"column {column.name!r} holds"
        if all(DATE.fullmatch(word) for word in words):
            faults.append(f"{first} dates, e.g. {words[0]}; write what of them counts as a number, {leave}")
        elif all(DECIMAL_COMMA.fullmatch(word) for word in words):
            faults.append(f"{first} numbers with a decimal comma, e.g. {words[0]}; write a decimal point, {leave}")
        elif len(words) > MOST and 2 * len(words) > columns.rows:
            what = f"{len(words)} different texts, e.g. {_short(words[0])}"
            faults.append(f"{first} {what}; give features of them, {leave}")
    return faults


def labels(column: Column, faults: list[str]) -> np.ndarray | None:
    """(N,) integers or strings."""
    missing = column.missing
    if missing.any():
        row = int(missing.argmax())
        faults.append(f"the label {column.name!r} is missing in row {row + 1}{_such(missing)}; fill it in")
        return None
    if column.words is not None:
        odd_words = [word for word in column.words if not word.isprintable()]
        if odd_words:
            faults.append(f"the label {column.name!r} has {_short(odd_words[0])}, which cannot be printed; mend it")
        return np.array([column.words[int(i)] for i in column.values], str)
    odd = (column.values != np.floor(column.values)) | (np.abs(column.values) >= WHOLE)
    if odd.any():
        row = int(odd.argmax())
        what = f"{as_word(column.values[row])} in row {row + 1}{_such(odd)}"
        faults.append(
            f"the label {column.name!r} is {what}, which is no class; classes are whole numbers below 2^53 or words: "
            f"name another column, or say columns {column.name}=category"
        )
        return None
    return column.values.astype(np.int64)


def as_word(value: float) -> str:
    """A number as it is written in a file.

    >>> as_word(7.0), as_word(0.5)
    ('7', '0.5')
    """
    return str(int(value)) if abs(value) < WHOLE and value == int(value) else repr(float(value))


def counted(found: Mapping[str, int]) -> str:
    """How many there are in each of these columns, if any.

    >>> counted({"a": 2, "b": 0})
    "2 in 'a'"
    """
    return some([f"{n} in {name!r}" for name, n in found.items() if n])


def _such(bad: np.ndarray) -> str:
    n = int(bad.sum())
    return "" if n == 1 else f" (and in {n - 1} more)"


def _short(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:40] + "…")
