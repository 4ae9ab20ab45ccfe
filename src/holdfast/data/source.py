"""What a user has, and how it is to be read: a file, a folder, a DataFrame or anything else that `data=` takes."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from holdfast.data.columns import Kind, kinds_of
from holdfast.errors import BadInput

TABLES = (".csv", ".tsv", ".parquet", ".pq")
FILES = (*TABLES, ".npz")
Features = Callable[[Any], Any]  # raw rows -> a vector for each, (n, D)


@dataclass(frozen=True, eq=False)
class Source:
    """Data with more to say of them than what they are.

    `hf.Source("flowers.csv", label="species", columns={"id": "skip"})` is a `data=`, as what stands in it alone is.
    """

    data: Any  # a path, a name, a DataFrame, arrays, a torch or a Hugging Face data set
    label: str | None = None  # the column of labels of a table
    test: Any = None  # test rows: another file, folder or DataFrame of the kind that `data` is
    columns: Mapping[str, str] | str | None = None  # of a table: number, category or skip, where it is to be said
    features: Features | None = None  # a frozen network: rows as they are -> vectors, computed once

    @property
    def kinds(self) -> dict[str, Kind]:
        return kinds_of(self.columns)

    def said(self) -> dict[str, str]:
        """What else is said of them, as settings of a stream; a label is the one that was found."""
        columns = ",".join(f"{name}={kind}" for name, kind in self.kinds.items())
        path = path_of(self.test)
        test = path.name if path else "" if self.test is None else type(self.test).__name__
        return {name: value for name, value in (("test", test), ("columns", columns)) if value}


def path_of(given: Any) -> Path | None:
    """The path that is meant by a word, where it is no name: it has a separator, or ends as a file of data does.

    >>> path_of("digits"), path_of("flowers.csv").name, path_of("./photos").name
    (None, 'flowers.csv', 'photos')
    """
    if isinstance(given, Path):
        return given.expanduser()
    if not isinstance(given, str) or "\0" in given:
        return None
    separators = [sep for sep in (os.sep, os.altsep) if sep]
    named = given.startswith((".", "~")) or any(sep in given for sep in separators)
    return Path(given).expanduser() if named or given.lower().endswith(FILES) else None


def found(path: Path) -> Path:
    """The path itself, where something is there that can be read."""
    try:
        there, folder = path.is_dir() or path.is_file(), path.is_dir()
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    if not there:
        try:
            near = get_close_matches(path.name, os.listdir(path.parent), n=1)
        except OSError:
            near = []
        better = f"did you mean {str(path.with_name(near[0]))!r}?" if near else "data are a name, a file or a folder"
        raise BadInput(f"there is no file or folder {str(path)!r}; {better}")
    if folder and path.suffix.lower() in FILES:
        raise BadInput(f"cannot read {path}: found a folder, expected a {path.suffix.lower()} file")
    if not folder and path.suffix.lower() not in FILES:
        raise BadInput(f"cannot read {path}: found a file, expected one of {', '.join(FILES)}, or a folder of images")
    return path.resolve()


def words_of(given: str) -> list[str]:
    """Names and paths separated by commas; a path may have commas of its own."""
    path = path_of(given)
    return [given] if path is not None and os.path.exists(path) else [word.strip() for word in given.split(",")]


def is_frame(given: Any) -> bool:
    """Whether it is a pandas DataFrame; pandas is not imported to find that out."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(given, pandas.DataFrame)


def is_table(given: Any) -> bool:
    path = path_of(given)
    return is_frame(given) or (path is not None and path.suffix.lower() in TABLES)
