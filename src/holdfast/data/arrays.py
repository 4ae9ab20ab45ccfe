"""What a user has at hand, as a data set: a name, a file or folder, arrays, a torch Dataset, or a Hugging Face one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch.utils.data import Dataset

from holdfast.data import folders, tables
from holdfast.data.canonical import canonical
from holdfast.data.catalog import EMBEDDED
from holdfast.data.features import featured
from holdfast.data.files import data_folder
from holdfast.data.given import Given, Table, from_hub, from_splits, from_torch, hub_frame, is_hub
from holdfast.data.load import entry_of, load
from holdfast.data.source import Source, found, is_table, path_of
from holdfast.errors import BadInput
from holdfast.types import DataSet

KINDS = (
    "a data set's name, a file (.csv, .tsv, .parquet, .npz) or a folder, (x, y), (x, y, x_test, y_test), a pandas "
    "DataFrame, a torch Dataset of (x, y) items or (train, test) of them, or a Hugging Face Dataset or DatasetDict"
)


def as_dataset(data: Any, seed: int) -> DataSet:
    """Any data a user may pass, as a data set; without test rows, 20 % of each class become them.

    >>> import numpy as np
    >>> x = np.arange(40.0).reshape(20, 2)
    >>> y = ["cat", "dog"] * 10
    >>> made = as_dataset((x, y), seed=0)
    >>> made.classes, made.x.shape, made.x_test.shape, made.y[:4].tolist()
    (('cat', 'dog'), torch.Size([16, 2]), torch.Size([4, 2]), [0, 1, 0, 1])
    """
    source = _without_hub(data if isinstance(data, Source) else Source(data))
    if source.features is not None:
        return featured(source, seed, *raw(source))
    if is_table(source.data):
        return tables.dataset(source, seed)
    test = _test_of(source)
    if isinstance(source.data, DataSet):
        return source.data
    if path := path_of(source.data):
        data = folders.load(found(path), seed, test)
        return data if test is None else replace(data, read=source.said())
    if isinstance(source.data, str):
        return load(source.data, seed=seed)
    name, given = _given(source.data)
    return canonical(name, given.train, given.test, seed, given.fingerprint)


def _without_hub(source: Source) -> Source:
    """A Hugging Face data set without images is a table."""
    data = source.data
    parts = [data[part] for part in ("train", "test") if part in data] if isinstance(data, Mapping) else [data]
    found = [frame for part in parts if is_hub(part) and (frame := hub_frame(part, source.label))]
    if not found or len(found) < len(parts):
        return source
    return replace(source, data=found[0][0], label=found[0][1], test=found[1][0] if len(found) > 1 else source.test)


def raw(source: Source) -> tuple[str, Given, dict[str, str]]:
    """What features are computed from: a name, the rows as they are, and how they were read."""
    if is_table(source.data):
        return tables.raw(source)
    test, data, said = _test_of(source), source.data, source.said()
    path = path_of(data)
    if isinstance(data, str) and path is None:
        folder = data_folder() / data
        path = folder if entry_of(data) is None and data not in EMBEDDED else None
        data = load(data) if path is None else data
    if path is not None:
        return found(path).name, folders.read(found(path), test), said
    if isinstance(data, DataSet):
        parts = Table(data.x, data.y, data.classes), Table(data.x_test, data.y_test, data.classes)
        return data.name, Given(*parts, data.fingerprint), said
    name, given = _given(data)
    return name, given, said


def _test_of(source: Source) -> Path | None:
    """The path of the test rows of what is no table; what only tables have is refused."""
    faults = [
        f"{word} is for tables (.csv, .tsv, .parquet, DataFrame), and {_word(source.data)} is none; leave it out"
        for word, value in (("label", source.label), ("columns", source.columns))
        if value is not None
    ]
    path, test = path_of(source.data), path_of(source.test)
    if source.test is not None and path is None:
        faults.append(f"test is for files and folders, and {_word(source.data)} is neither; or (x, y, x_test, y_test)")
    elif source.test is not None and (test is None or is_table(source.test)):
        faults.append(f"test must be a folder or .npz, as {_word(source.data)} is, not {_word(source.test)}")
    if faults:
        raise BadInput(*faults)
    return None if test is None else found(test)


def _word(given: Any) -> str:
    return repr(str(given)) if isinstance(given, str | Path) else f"a {type(given).__name__}"


def _given(data: Any) -> tuple[str, Given]:
    """What is in memory, as it came."""
    if isinstance(data, Mapping):
        return "hub", Given(*from_splits(data), "")
    if is_hub(data):
        return "hub", Given(from_hub(data), None, "")
    if isinstance(data, Dataset):
        return "torch", Given(from_torch(data), None, "")
    if isinstance(data, tuple | list) and len(data) == 2:
        if all(isinstance(part, Dataset) for part in data):
            return "torch", Given(from_torch(data[0]), from_torch(data[1]), "")
        return "arrays", Given(Table(*data), None, "")
    if isinstance(data, tuple | list) and len(data) == 4:
        return "arrays", Given(Table(*data[:2]), Table(*data[2:]), "")
    many = f" of {len(data)} items" if isinstance(data, tuple | list) else ""
    raise BadInput(f"data must be {KINDS}, not a {type(data).__name__}{many}")
