"""Sweep files: TOML, read with care."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput
from holdfast.sweeps.document import Sweep, sweep_of

LARGEST_FILE = 2**20  # bytes


def read_sweep(path: str | Path) -> Sweep:
    """The sweep that a TOML file describes; its faults name the file and the key."""
    path = Path(path)
    document = _document(path)
    try:
        return sweep_of(document, path.stem, path.parent)
    except BadInput as error:
        raise BadInput(*(f"{path}: {fault}" for fault in error.faults)) from error


def _document(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise BadInput(f"{path} is not a file; a sweep is described in a TOML file, see docs/sweeps.md")
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise BadInput(f"{path}: has more than {LARGEST_FILE} bytes, which is no sweep file")
        document = tomllib.loads(path.read_text(encoding="utf-8"))
        faults = list(_too_large(document))
    except OSError as error:
        raise BadInput(f"{path} cannot be read: {error.strerror}") from error
    except RecursionError as error:
        raise BadInput(f"{path}: its tables and lists are nested too deeply") from error
    except BadInput:
        raise
    except ValueError as error:  # not TOML, not UTF-8, or a number of thousands of digits
        raise BadInput(f"{path}: is not valid TOML: {error}") from error
    if faults:
        raise BadInput(*(f"{path}: {fault}" for fault in faults))
    return document


def _too_large(value: Any, key: str = "") -> Iterator[str]:
    """Whole numbers that TOML does not have; Python reads them but cannot always print them."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _too_large(item, f"{key}.{name}" if key else name)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _too_large(item, f"{key}[{i}]")
    elif isinstance(value, int) and abs(value) >= 2**63:
        yield f"{key}: a whole number must have at most 64 bits"
