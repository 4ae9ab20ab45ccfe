"""A table becomes a data set: its labels, its rows for training and for test, and an encoding of all other columns."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from holdfast.data import columns, csv_file, frames
from holdfast.data.canonical import check_counts, check_test
from holdfast.data.columns import Columns, Kind, Mode
from holdfast.data.encoding import Encoding
from holdfast.data.files import sha256_of
from holdfast.data.given import Given, Table
from holdfast.data.source import Source, found, is_frame, is_table, path_of
from holdfast.data.split import split_rows
from holdfast.errors import BadInput, unknown
from holdfast.types import DataSet

if TYPE_CHECKING:
    import pandas

KEPT = 8  # tables kept in memory


@dataclass(frozen=True, eq=False)
class Read:
    """A table as it was read, and what is wrong with its columns."""

    what: str  # it is called in messages
    columns: Columns
    fingerprint: str
    faults: tuple[str, ...]

    @property
    def name(self) -> str:
        return Path(self.what).name


def read(data: Any, kinds: Mapping[str, Kind | None], mode: Mode = "all") -> Read:
    """A CSV or Parquet file, or a DataFrame."""
    if not is_table(data):
        raise BadInput(f"expected a table, .csv, .tsv or .parquet, or a DataFrame, not {data!r}")
    if is_frame(data):
        return _read_frame(data, kinds, mode, "DataFrame")
    path = found(path_of(data) or Path())
    state = os.stat(path)
    return _read(path, (state.st_mtime_ns, state.st_size), tuple(kinds.items()), mode)


@lru_cache(maxsize=KEPT)
def _read(path: Path, stamp: tuple[int, int], kinds: Sequence[tuple[str, Kind | None]], mode: Mode) -> Read:
    """`stamp` is the file's time and size: a changed file is read anew."""
    fingerprint = sha256_of([path])
    if path.suffix.lower() in (".csv", ".tsv"):
        faults: list[str] = []
        made = csv_file.read(path, dict(kinds), mode, faults)
        return Read(str(path), made, fingerprint, tuple(faults))
    return _read_frame(frames.read_parquet(path), dict(kinds), mode, str(path), fingerprint)


def _read_frame(
    frame: pandas.DataFrame, kinds: Mapping[str, Kind | None], mode: Mode, what: str, fingerprint: str = ""
) -> Read:
    faults: list[str] = []
    try:
        made = frames.of_frame(frame, kinds, mode, faults)
    except BadInput as error:
        raise BadInput(*(f"{what}: {fault}" for fault in error.faults)) from error
    return Read(what, made, fingerprint or made.fingerprint, tuple(faults))


@dataclass(frozen=True, eq=False)
class Parts:
    """Training rows and perhaps test rows of one table, and their labels."""

    train: Read
    test: Read | None
    label: str
    y: np.ndarray
    y_test: np.ndarray | None
    told: tuple[str, ...]

    @property
    def fingerprint(self) -> str:
        prints = [one.fingerprint for one in (self.train, self.test) if one is not None]
        return prints[0] if len(prints) == 1 else hashlib.sha256(" ".join(prints).encode()).hexdigest()


def parts_of(source: Source, mode: Mode, divided: bool = True, least: int = 2) -> Parts:
    """What a source has; all its faults are found.

    `divided`: its rows become training and test rows, where it has no test rows. `least`: of its classes.
    """
    train = read(source.data, source.kinds, mode)
    faults = [f"{train.what}: {fault}" for fault in train.faults]
    try:
        label, why = columns.label_of(list(train.columns.each), source.label)
    except BadInput as error:
        raise BadInput(*faults, *(f"{train.what}: {fault}" for fault in error.faults)) from error
    y, y_test, test = _labels(train, label, faults), None, None
    features = train.columns.without(label)
    if not features.each:
        faults.append(f"{train.what}: there is no column besides the label {label!r}")
    if mode == "all":
        faults += [f"{train.what}: {fault}" for fault in columns.unfit(features)]
    if source.test is not None:
        encoding = Encoding.fit(train.columns, label)
        test = read(source.test, {**encoding.kinds, label: encoding.label_kind}, "known")
        faults += [f"{test.what}: {fault}" for fault in [*test.faults, *encoding.faults(test.columns, test.faults)]]
        y_test = _labels(test, label, faults)
        mine: list[str] = []
        check_test(None, y, None, y_test, mine)
        faults += [f"{test.what}: {fault}" for fault in mine]
    if y is not None and len(np.unique(y)) < least:
        faults.append(f"{train.what}: the label {label!r} has one class, {y[0]}; at least two are needed")
    elif y is not None and source.test is None and divided:
        mine = []
        check_counts(None, y, mine)
        faults += [f"{train.what}: {fault}" for fault in mine]
    if faults or y is None:
        raise BadInput(*faults)
    rows = f"{train.columns.rows} rows, labels in column {label!r} ({why})"
    return Parts(train, test, label, y, y_test, (*train.columns.told, rows))


def _labels(table: Read, label: str, faults: list[str]) -> np.ndarray | None:
    """Those of a table, if it has them."""
    mine: list[str] = []
    if label not in table.columns.each:
        mine.append(unknown("column", label, table.columns.names, ", which has the labels"))
        y = None
    else:
        y = columns.labels(table.columns.each[label], mine)
    faults += [f"{table.what}: {fault}" for fault in mine]
    return y


def dataset(source: Source, seed: int) -> DataSet:
    """The data set of a table. Until a stream has a first task, its encoding is fitted on all training rows."""
    whole = parts_of(source, "all")
    words, y = np.unique(whole.y, return_inverse=True)
    if whole.test is None or whole.y_test is None:
        rows = split_rows(y, seed)
        parts, ys = tuple(whole.train.columns.take(part) for part in rows), tuple(y[part] for part in rows)
    else:
        parts, ys = (whole.train.columns, whole.test.columns), (y, np.searchsorted(words, whole.y_test))
    name, nothing = whole.train.name, torch.empty(0)
    blank = DataSet(
        name,
        *(nothing, torch.from_numpy(ys[0]), nothing, torch.from_numpy(ys[1])),
        tuple(map(str, words)),
        whole.fingerprint,
        read={"label": whole.label, **source.said()},
        told=tuple(f"{name}: {line}" for line in whole.told),
    )
    return _encoded(blank, parts[0], parts[1], whole.label, torch.arange(parts[0].rows))


def raw(source: Source, divided: bool = True, least: int = 2) -> tuple[str, Given, dict[str, str]]:
    """A name, the rows as a DataFrame with its labels, and how it was read: what features are computed from."""
    whole = parts_of(source, "raw", divided, least)
    train = Table(_frame(source.data, whole.train, whole.label), whole.y)
    test = None
    if whole.test is not None:
        test = Table(_frame(source.test, whole.test, whole.label)[list(train.x.columns)], whole.y_test)
    fingerprint = "" if is_frame(source.data) or is_frame(source.test) else whole.fingerprint
    said = {"label": whole.label, **source.said()}
    return whole.train.name, Given(train, test, f"{fingerprint} {said}" if fingerprint else ""), said


def unlabelled(source: Source, label: str) -> tuple[str, Given]:
    """The same without labels, whether the table has their column or not."""
    whole = read(source.data, source.kinds, "raw")
    if whole.faults:
        raise BadInput(*(f"{whole.what}: {fault}" for fault in whole.faults))
    return whole.name, Given(Table(_frame(source.data, whole, label), None), None, whole.fingerprint)


def _frame(data: Any, table: Read, label: str) -> pandas.DataFrame:
    """All columns but the label, as they came."""
    names = [name for name in table.columns.each if name != label]
    if not is_frame(data):
        return table.columns.frame()[names]
    whole: pandas.DataFrame = data.set_axis([str(name) for name in data.columns], axis=1)
    return whole[names].reset_index(drop=True)


def _encoded(blank: DataSet, train: Columns, test: Columns, label: str, first: Tensor) -> DataSet:
    """Encoded as these training rows have it."""
    encoding = Encoding.fit(train.take(first.numpy()), label)
    x, x_test = (torch.from_numpy(encoding.encode(part)) for part in (train, test))
    remarks = dict.fromkeys([*encoding.told(), *encoding.remarks(train, test)])
    return replace(
        blank,
        x=x,
        x_test=x_test,
        told=(*blank.told, *(f"{blank.name}: {line}" for line in remarks)),
        encoding=encoding,
        fit=partial(_encoded, blank, train, test, label),
    )
