"""Rows that come after a model was made: read as it reads them, whatever they would be read as by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.data import class_folders, columns, npz, tables
from holdfast.data.arrays import raw
from holdfast.data.canonical import examples, labels_of
from holdfast.data.columns import Kind
from holdfast.data.encoding import Encoding
from holdfast.data.features import vectors
from holdfast.data.files import is_file
from holdfast.data.given import Given, Table
from holdfast.data.source import Source, found, is_table, path_of
from holdfast.errors import BadInput, unknown


@dataclass(frozen=True, eq=False)
class NewRows:
    """Rows in the form in which a data set has them, and the names of their classes."""

    x: Tensor  # (N, C, H, W) or (N, D), uint8 or float32
    classes: tuple[str, ...] | None  # of each row; None where they were not asked for
    fingerprint: str  # sha256 over what was read
    told: tuple[str, ...]  # what was done with them, a line each
    features: str = ""  # whose they are, as in the settings of a stream
    encoding: Encoding | None = None  # of a table: as which it was read


def is_source(data: Any) -> bool:
    """Whether it is a file, a folder or a table, or says more of data: what is read, in place of arrays."""
    return isinstance(data, Source) or is_table(data) or path_of(data) is not None


def new_rows(data: Any, encoding: Encoding | None, labelled: bool, first: bool = False) -> NewRows:
    """`data` as `data=` takes them, and a table as `encoding` has it. Without `labelled` there need be no labels.

    `first`: they are those of a first task, which fix the encoding of a table. Of others a single class, or a single
    row, is fine. Test rows that data have of their own are left out.
    """
    source = data if isinstance(data, Source) else Source(data)
    if is_table(source.data) and source.features is None:
        if first:
            return _of_first_table(source)
        if encoding is None:
            raise BadInput(f"a table is not what the model learned from: {source.data!r}")
        return _of_table(source, encoding, labelled)
    if encoding is not None:
        raise BadInput("the model learned from a table; expected .csv, .tsv, .parquet or a DataFrame")
    name, given, _ = (None if labelled else _unlabelled(source)) or raw(source)
    told = [f"{name}: its test rows are left out"] if given.test is not None else []
    given, whose = Given(given.train, None, given.fingerprint), ""
    if source.features is not None:
        given, whose, said = vectors(source, given)
        told.append(f"{name}: {said}")
    faults: list[str] = []
    x = examples(given.train.x, "x", faults)
    y = labels_of(given.train.y, "y", faults) if labelled else None
    if x is not None and y is not None and len(x) != len(y):
        faults.append(f"x has {len(x)} examples but y has {len(y)} labels")
    if faults or x is None:
        raise BadInput(*(f"{name}: {fault}" for fault in faults))
    names = given.train.names
    classes = None if y is None else tuple(names[int(v)] if names else str(v) for v in y)
    return NewRows(torch.from_numpy(np.array(x, order="C")), classes, given.fingerprint, tuple(told), whose)


def _of_first_table(source: Source) -> NewRows:
    whole = tables.parts_of(source, "all")
    encoding = Encoding.fit(whole.train.columns, whole.label)
    x = torch.from_numpy(encoding.encode(whole.train.columns))
    told = [*whole.told, *encoding.told(), *encoding.remarks(whole.train.columns)]
    lines = tuple(f"{whole.train.name}: {line}" for line in told)
    return NewRows(x, tuple(map(str, whole.y)), whole.train.fingerprint, lines, encoding=encoding)


def _of_table(source: Source, encoding: Encoding, labelled: bool) -> NewRows:
    label = source.label or encoding.label
    kinds: dict[str, Kind] = {**encoding.kinds, **({label: encoding.label_kind} if labelled else {})}
    table = tables.read(source.data, kinds, "known")
    faults = [*table.faults, *encoding.faults(table.columns)]
    classes = None
    if labelled and label not in table.columns.each:
        faults.append(unknown("column", label, table.columns.names, ", which has the labels"))
    elif labelled:
        y = columns.labels(table.columns.each[label], faults)
        classes = None if y is None else tuple(map(str, y))
    if faults:
        raise BadInput(*(f"{table.what}: {fault}" for fault in faults))
    told = [f"{table.columns.rows} rows", *table.columns.told, *encoding.remarks(table.columns)]
    x = torch.from_numpy(encoding.encode(table.columns))
    lines = tuple(f"{table.name}: {line}" for line in told)
    return NewRows(x, classes, table.fingerprint, lines, encoding=encoding)


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
