"""Rows that come after a model was made: read as it reads them, whatever they would be read as by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.data import class_folders, columns, npz, tables
from holdfast.data.arrays import raw
from holdfast.data.canonical import examples, labels_of
from holdfast.data.columns import Kind
from holdfast.data.encoding import Encoding
from holdfast.data.features import signature, vectors
from holdfast.data.files import is_file
from holdfast.data.given import Given, Table
from holdfast.data.load import entry_of
from holdfast.data.source import Source, found, is_table, path_of
from holdfast.errors import BadInput, unknown


@dataclass(frozen=True)
class Reading:
    """As what a model reads rows: fixed by those of its first task. Without all of it, they are as they come."""

    encoding: Encoding | None = None  # of a table
    features: str = ""  # whose vectors it learned from: the name of what made them, and a digest
    label: str = ""  # the column of labels of the table from which they were made


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows in the form in which a data set has them, and the names of their classes."""

    x: Tensor  # (N, C, H, W) or (N, D), uint8 or float32
    classes: tuple[str, ...] | None  # of each row; None where they were not asked for
    fingerprint: str  # sha256 over what was read
    told: tuple[str, ...]  # what was done with them, a line each
    reading: Reading = Reading()  # as what they were read


def is_source(data: Any) -> bool:
    """Whether it is a file, a folder or a table, or says more of data: what is read, in place of arrays."""
    return isinstance(data, Source) or is_table(data) or path_of(data) is not None


def new_rows(data: Any, reading: Reading, labelled: bool, first: bool = False) -> NewRows:
    """`data` as `data=` takes them, read as a model has it. Without `labelled` there need be no labels.

    `first`: they are those of a first task, which fix how later ones are read. Of those a single class, or a single
    row, is fine; of a first table a single class where its label is named. Test rows that data have of their own are
    left out.
    """
    source = data if isinstance(data, Source) else Source(data)
    least = 1 if source.label is not None or not first else 2
    told = [] if first else _compared(source, reading)
    if is_table(source.data) and source.features is None:
        if first:
            return _of_first_table(source, least)
        if reading.encoding is None:
            raise BadInput(f"a table is not what the model learned from: {source.data!r}")
        return _of_table(source, reading.encoding, labelled)
    if reading.encoding is not None:
        what = f", not from {str(source.data)!r}" if _is_named(source) else ""
        raise BadInput(f"the model learned from a table{what}; expected .csv, .tsv, .parquet or a DataFrame")
    name, given, said = _read(source, reading, labelled, least)
    if given.test is not None:
        told.append(f"{name}: its test rows are left out")
    given = Given(given.train, None, given.fingerprint)
    if source.features is not None:
        given, whose, line = vectors(source, given, keep=False)
        told.append(f"{name}: {line}")
        reading = Reading(features=whose, label=said.get("label", "")) if first else reading
    faults: list[str] = []
    x = examples(given.train.x, "x", faults)
    y = labels_of(given.train.y, "y", faults) if labelled else None
    if x is not None and y is not None and len(x) != len(y):
        faults.append(f"x has {len(x)} examples but y has {len(y)} labels")
    if faults or x is None:
        raise BadInput(*(f"{name}: {fault}" for fault in faults))
    names = given.train.names
    classes = None if y is None else tuple(names[int(v)] if names else str(v) for v in y)
    return NewRows(torch.from_numpy(np.array(x, order="C")), classes, given.fingerprint, tuple(told), reading)


def _is_named(source: Source) -> bool:
    """Whether data are a name or a path. A name that nobody knows is refused."""
    if isinstance(source.data, str) and path_of(source.data) is None:
        entry_of(source.data)
    return isinstance(source.data, str | Path)


def _compared(source: Source, reading: Reading) -> list[str]:
    """Whether they are the features that the model learned through; a line where what makes them has changed since."""
    called = reading.features.partition(" ")[0]
    if source.features is None:
        if called:
            raise BadInput(f"the model learned through features of {called}; give them: features=..., --features")
        return []
    now = signature(source.features)
    if reading.encoding is not None:
        raise BadInput(f"the model learned from the columns of a table, not from features of {now.partition(' ')[0]}")
    if called and now.partition(" ")[0] != called:
        raise BadInput(f"the model learned through features of {called}, not of {now.partition(' ')[0]}")
    return [f"{called} has changed since the model learned through it"] if called and now != reading.features else []


def _read(source: Source, reading: Reading, labelled: bool, least: int) -> tuple[str, Given, dict[str, str]]:
    """The rows as they are."""
    if is_table(source.data):
        source = replace(source, label=source.label or reading.label or None)
        if labelled or source.label is None:
            return tables.raw(source, divided=False, least=least)
        return *tables.unlabelled(source, source.label), {}
    return (None if labelled else _unlabelled(source)) or raw(source)


def _of_first_table(source: Source, least: int) -> NewRows:
    whole = tables.parts_of(source, "all", divided=False, least=least)
    encoding = Encoding.fit(whole.train.columns, whole.label)
    x = torch.from_numpy(encoding.encode(whole.train.columns))
    told = [*whole.told, *encoding.told(), *encoding.remarks(whole.train.columns)]
    lines = tuple(f"{whole.train.name}: {line}" for line in told)
    return NewRows(x, tuple(map(str, whole.y)), whole.train.fingerprint, lines, Reading(encoding))


def _of_table(source: Source, encoding: Encoding, labelled: bool) -> NewRows:
    label = source.label or encoding.label
    kinds: dict[str, Kind | None] = {**encoding.kinds}
    if labelled:  # classes are whole numbers or words, whatever the first ones were
        kinds[label] = encoding.label_kind if encoding.label_said else source.kinds.get(label)
    table = tables.read(source.data, kinds, "known")
    faults = [*table.faults, *encoding.faults(table.columns, table.faults)]
    classes = None
    if labelled and label not in table.columns.each:
        faults.append(unknown("column", label, table.columns.names, ", which has the labels"))
    elif labelled:
        y = columns.labels(table.columns.each[label], faults)
        classes = None if y is None else tuple(map(str, y))
    if faults:
        raise BadInput(*(f"{table.what}: {fault}" for fault in faults))
    told = [f"{table.columns.rows} rows", *table.columns.told, *encoding.remarks(table.columns, label=label)]
    x = torch.from_numpy(encoding.encode(table.columns))
    lines = tuple(f"{table.name}: {line}" for line in told)
    return NewRows(x, classes, table.fingerprint, lines, Reading(encoding))


def _unlabelled(source: Source) -> tuple[str, Given, dict[str, str]] | None:
    """An npz with x alone, or images that lie in no class folder."""
    path = path_of(source.data)
    if path is None or is_table(path):
        return None
    path = found(path)
    read = npz.read_alone(path) if is_file(path) else class_folders.read_loose(path)
    if read is None:
        return None
    x, fingerprint = read
    return path.name, Given(Table(x, None), None, fingerprint), {}
