"""A pandas DataFrame, or a Parquet file, column by column."""

from __future__ import annotations

import datetime
import numbers
import re
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from holdfast.data import columns
from holdfast.data.columns import Column, Columns, Kind, Mode
from holdfast.data.files import refused
from holdfast.errors import BadInput

if TYPE_CHECKING:
    import pandas

LIMIT = 2**30  # cells of a Parquet file
INDEX = re.compile("__index_level_[0-9]+__")  # columns in which pandas keeps the numbers of rows
DATES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def of_frame(frame: pandas.DataFrame, kinds: Mapping[str, Kind | None], mode: Mode, faults: list[str]) -> Columns:
    """All columns but those to skip; adds the faults of single columns."""
    names = [str(name) for name in frame.columns]
    if wrong := [*columns.bad_names(names), *(["it has no rows"] if not len(frame) else [])]:
        raise BadInput(*wrong)
    faults += columns.strange(names, kinds, mode)
    cells = {name: frame.iloc[:, i] for i, name in enumerate(names) if columns.wanted(name, kinds, mode)}
    found = [_column(name, series, kinds.get(name), mode, faults) for name, series in cells.items()]
    return Columns({column.name: column for column in found if column is not None}, len(frame), tuple(names))


def read_parquet(path: Path) -> pandas.DataFrame:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise BadInput(f"{path}: Parquet needs pyarrow; install it with: pip install 'holdfast[parquet]'") from error
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            size = file.metadata.num_rows * file.metadata.num_columns
            if size > LIMIT:
                raise refused(path, f"{size} cells", f"at most {LIMIT}")
            names = [name for name in file.schema_arrow.names if not INDEX.fullmatch(name)]
            read = file.read(columns=names, use_threads=False)
            return read.to_pandas(ignore_metadata=True, use_threads=False)
    except BadInput:
        raise
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError, MemoryError) as error:
        reason = str(error).split("\n")[0] or type(error).__name__
        raise refused(path, f"a broken file ({reason})", "a Parquet file") from error


def _column(name: str, series: pandas.Series, kind: Kind | None, mode: Mode, faults: list[str]) -> Column | None:
    import pandas

    if pandas.api.types.is_numeric_dtype(series.dtype) and not pandas.api.types.is_bool_dtype(series.dtype):
        if series.dtype.kind == "c":
            faults.append(f"column {name!r} holds complex numbers; write their parts as columns")
            return None
        return columns.of_numbers(name, series.to_numpy(np.float64, na_value=np.nan), kind, faults)
    cells = [None if gone else value for value, gone in zip(series.tolist(), series.isna().tolist(), strict=True)]
    there = [value for value in cells if value is not None]
    if all(isinstance(value, str | bool | np.bool_) for value in there):
        words = [None if value is None or columns.is_missing(str(value)) else str(value) for value in cells]
        if kind == "number":
            return columns.of_texts(name, ["" if word is None else word for word in words], kind, mode, faults)
        return columns.of_words(name, words, said=kind is not None)
    if all(_is_number(value) for value in there):
        values = np.array([np.nan if value is None else float(value) for value in cells], np.float64)
        return columns.of_numbers(name, values, kind, faults)
    return _odd(name, cells, kind, mode, faults)


def _odd(name: str, cells: list[Any], kind: Kind | None, mode: Mode, faults: list[str]) -> Column | None:
    """What is neither numbers nor words alone."""
    plain = [value is None or isinstance(value, str | bool) or _is_number(value) for value in cells]
    if all(plain):
        return columns.of_texts(name, ["" if v is None else _text(v) for v in cells], kind, mode, faults)
    if mode == "raw":
        return columns.of_words(name, [None if value is None else str(value) for value in cells])
    row = plain.index(False)
    leave = f"or leave it out: columns {name}=skip"
    if isinstance(cells[row], DATES):
        faults.append(f"column {name!r} holds dates, e.g. {cells[row]}; write what of them counts as a number, {leave}")
    else:
        what = f"a {type(cells[row]).__name__} in row {row + 1}"
        faults.append(f"column {name!r} has {what}, but must hold numbers or words; give features of it, {leave}")
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, numbers.Real | Decimal) and not isinstance(value, bool)


def _text(value: Any) -> str:
    return str(value) if isinstance(value, str | bool) else columns.as_word(float(value))
