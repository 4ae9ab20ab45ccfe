"""A CSV file: a line of names, then a row per line, separated by commas, semicolons or tabs; UTF-8."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence, Set
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data import columns
from holdfast.data.columns import Column, Columns, Kind, Mode
from holdfast.data.files import refused
from holdfast.errors import BadInput

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
CELLS = 1_000_000  # of rows that are text at the same time
WANTED = "a line of column names, then rows of as many cells, in UTF-8"

COUNTER = "(counts the rows)"  # stands for the name of a column that has none
Cells = list[Any]  # of one column: arrays of numbers, chunk by chunk, or its texts


def read(path: Path, kinds: Mapping[str, Kind | None], mode: Mode, faults: list[str]) -> Columns:
    """All columns but those to skip; adds the faults of single columns."""
    try:
        return _read(path, kinds, mode, {name for name, kind in kinds.items() if kind == "category"}, faults)
    except UnicodeDecodeError as error:
        raise refused(path, _undecodable(path), "UTF-8; save it as that") from error
    except csv.Error as error:
        raise refused(path, f"a broken file ({error})", WANTED) from error
    except OSError as error:
        raise refused(path, f"a broken file ({error.strerror or error})", "one that can be read") from error


def _read(path: Path, kinds: Mapping[str, Kind | None], mode: Mode, texts: Set[str], faults: list[str]) -> Columns:
    """`texts`: columns that are known not to be numbers."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        separator = _separator(path, file.readline(2**20))
        file.seek(0)
        lines = (line for line in csv.reader(file, delimiter=separator, skipinitialspace=True, strict=True) if line)
        names = _names(path, next(lines, []))
        cells, rows, late = _cells(path, lines, names, {n for n in names if columns.wanted(n, kinds, mode)}, texts)
    if late:
        return _read(path, kinds, mode, texts | late, faults)
    told = () if separator == "," else (f"its cells are separated by {SEPARATORS[separator]}",)
    faults += columns.strange(names, kinds, mode)
    each = {name: _column(name, found, kinds.get(name), mode, faults) for name, found in cells.items()}
    if names[0] == COUNTER:
        told = (*told, "its first column, which has no name, is left out")
        each.pop(COUNTER, None)
    return Columns(each, rows, tuple(name for name in names if name != COUNTER), told)


def _separator(path: Path, line: str) -> str:
    if not line.strip():
        raise refused(path, "an empty file" if not line else "an empty first line", WANTED)
    return "\t" if path.suffix == ".tsv" else max(SEPARATORS, key=line.count)


def _names(path: Path, line: Sequence[str]) -> list[str]:
    """Of the columns; the first one has none where pandas wrote the numbers of the rows."""
    names = [name.strip() for name in line]
    if names and columns.numbers(names) is not None and not all(map(columns.is_missing, names)):
        raise refused(path, "numbers in its first line", "the names of the columns; write a line of names above it")
    if len(names) > 1 and not names[0]:
        names[0] = COUNTER
    if faults := columns.bad_names(names):
        raise BadInput(*(f"{path}: {fault}" for fault in faults))
    return names


def _cells(
    path: Path, lines: Iterator[list[str]], names: Sequence[str], wanted: Set[str], texts: Set[str]
) -> tuple[dict[str, Cells], int, Set[str]]:
    """The cells of each column that is wanted, and how many rows there are; and which columns must be read anew as
    texts from the first row on, because numbers came first.
    """
    found: dict[str, Cells] = {name: [] for name in names if name in wanted}
    texts, late, ragged, rows = set(texts), set[str](), [], 0
    while chunk := list(islice(lines, max(1, CELLS // len(names)))):
        ragged += [(rows + i, len(row)) for i, row in enumerate(chunk, 1) if len(row) != len(names)]
        if ragged or late:
            rows += len(chunk)
            continue
        for name, cells in zip(names, zip(*chunk, strict=True), strict=True):
            if name not in found:
                continue
            values = None if name in texts else columns.numbers(cells)
            if values is None:
                (late if rows and name not in texts else texts).add(name)
            found[name] += cells if values is None else [values]
        rows += len(chunk)
    if ragged:
        row, n = ragged[0]
        more = f" (and {len(ragged) - 1} more rows like it)" if len(ragged) > 1 else ""
        needed = f"{len(names)}, one for each column; mend it, or quote cells"
        raise refused(path, f"{n} cells in row {row}{more}", needed)
    if not rows:
        raise refused(path, "no rows", WANTED)
    return found, rows, late


def _column(name: str, cells: Cells, kind: Kind | None, mode: Mode, faults: list[str]) -> Column:
    if isinstance(cells[0], str):
        return columns.of_texts(name, cells, kind, mode, faults)
    return columns.of_numbers(name, np.concatenate(cells), kind, faults)


def _undecodable(path: Path) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return f"the byte 0x{line[error.start]:02x} in line {number}, which is no text"
    return "bytes that are no text"
