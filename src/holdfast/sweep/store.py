"""The output folder: experiment.json, cells/<name>/record.json and predictions.npz, summary.json; all atomic."""

from __future__ import annotations

import io
import json
import os
import tempfile
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.errors import BadInput
from holdfast.types import Record

SCHEMA = 1
TRIALS = "trials"  # a folder inside: the runs that chose settings, an output folder of their own
_ARRAYS = ("predictions", "labels")
# What a cut, spoiled or foreign file raises; a spoiled header may also ask for an unknown method or for all memory.
_UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


_UMASK = _umask()


def dumps(value: Any) -> str:
    """JSON without NaN, which is not JSON."""
    return json.dumps(value, indent=2, allow_nan=False)


def write_text(path: Path, text: str) -> None:
    """Whole or not at all: a temporary file beside it, then a rename."""
    write_bytes(path, text.encode())


def write_bytes(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(part).chmod(0o666 & ~_UMASK)  # as an ordinary new file has it
        os.replace(part, path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


def to_json(record: Record) -> dict[str, Any]:
    """The content of record.json."""
    values = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in _ARRAYS}
    return {"schema": SCHEMA, **values, "R": record.R.tolist(), "baseline": record.baseline.tolist()}


def from_json(values: Mapping[str, Any], predictions: Mapping[str, np.ndarray]) -> Record:
    content = {k: v for k, v in values.items() if k != "schema"}
    for name in ("tasks", "scorings", "curves"):
        content[name] = tuple(content[name])
    for name in ("R", "baseline"):
        content[name] = np.array(content[name], dtype=np.float64)
    for name in _ARRAYS:
        columns = [k for k in predictions if k.startswith(f"{name}_")]
        content[name] = tuple(predictions[f"{name}_{i}"] for i in range(len(columns)))
    return Record(**content)


def write_record(record: Record, folder: Path) -> None:
    """predictions.npz first: a record.json means a whole cell."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {f"{name}_{i}": a for name in _ARRAYS for i, a in enumerate(getattr(record, name))}
    packed = io.BytesIO()
    np.savez_compressed(packed, **arrays)
    write_bytes(folder / "predictions.npz", packed.getvalue())
    write_text(folder / "record.json", json.dumps(to_json(record), allow_nan=False))


def read_record(folder: Path) -> Record:
    """The record of a finished cell."""
    try:
        values = json.loads((folder / "record.json").read_text())
        if values.get("schema") != SCHEMA:
            raise BadInput(f"{folder}/record.json has schema {values.get('schema')}, this version reads {SCHEMA}")
        predictions: dict[str, np.ndarray] = {}
        if (folder / "predictions.npz").exists():
            with np.load(folder / "predictions.npz", allow_pickle=False) as arrays:
                predictions = dict(arrays)
        return from_json(values, predictions)
    except BadInput:
        raise
    except (*_UNREADABLE, KeyError, TypeError, AttributeError) as error:
        reason = str(error).splitlines() or [type(error).__name__]
        raise BadInput(f"{folder} does not hold a readable record: {reason[0]}") from error


def read_records(folder: Path) -> list[Record]:
    """All finished records below an output folder, in a stable order."""
    return list(read_cells(folder).values())


def read_cells(folder: Path) -> dict[str, Record]:
    """The finished records of an output folder by the names of their cells, in a stable order."""
    if not (folder / "experiment.json").is_file():
        raise BadInput(f"{folder} is not an output folder of Holdfast: it has no experiment.json")
    finished = sorted(path.parent for path in (folder / "cells").glob("*/record.json"))
    if not finished:
        raise BadInput(f"{folder} has no finished cells yet")
    order = {name: i for i, name in enumerate(_read_experiment(folder / "experiment.json").get("cells", []))}
    in_order = sorted(finished, key=lambda cell: order.get(cell.name, len(order)))
    return {cell.name: read_record(cell) for cell in in_order}


def claim(folder: Path, experiment: Mapping[str, Any]) -> None:
    """Make the folder this experiment's, or refuse it when it is another's, naming the first differing setting."""
    path = folder / "experiment.json"
    new = json.loads(json.dumps(experiment))
    if path.exists():
        difference = _first_difference(_read_experiment(path), new)
        if difference is not None:
            where, was, now = difference
            raise BadInput(
                f"{folder} holds another experiment: {where} was {was}, is now {now}; choose another --out, "
                "or --fresh to start over"
            )
        return
    if folder.exists() and (not folder.is_dir() or any(path.name != TRIALS for path in folder.iterdir())):
        raise BadInput(f"{folder} exists and is not an output folder of Holdfast; choose another --out")
    try:
        write_text(path, json.dumps(new, indent=2))
    except OSError as error:
        raise BadInput(f"{folder} cannot be written to ({error.strerror}); choose another --out") from error


def _read_experiment(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read; choose another --out") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} is not an experiment of Holdfast; choose another --out")
    return content


def _first_difference(old: Any, new: Any, where: str = "") -> tuple[str, str, str] | None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}, key=lambda key: (key == "cells", key)):  # their hashes follow from the rest
            found = _first_difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return next(filter(None, (_first_difference(a, b, f"{where}[{i}]") for i, (a, b) in pairs)), None)
    return None if old == new else (where, json.dumps(old), json.dumps(new))
