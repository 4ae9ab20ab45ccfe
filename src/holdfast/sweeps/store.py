"""The output folder: experiment.json, cells/<name>/record.json and the arrays beside it, summary.json; all atomic."""

from __future__ import annotations

import errno
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.disk import write_bytes, write_text
from holdfast.errors import BadInput, NotKept
from holdfast.types import Record

SCHEMA = 1
LONGEST = 100  # characters of a value in a complaint
LOCK = ".lock"
TRIALS = "trials"  # a folder inside: the runs that chose settings, an output folder of their own
MODEL = "model.json"  # in a folder of a model, which is not one of runs
OURS = (
    "experiment.json", "cells", "sweeps", TRIALS, "summary.json", "report.html", "reproduction.json", "diagnosis.json",
    "advice.json", "progress.json", "figures", LOCK,
)  # fmt: skip
HALF_WRITTEN = tuple(f".{name}." for name in OURS)  # how temporary files are called, which a killed process leaves
_FILES = {  # beside record.json
    "predictions.npz": ("predictions", "labels", "uncertainties"),
    "images.npz": ("images",),  # whoever may not pass images on takes this file out
}
_ARRAYS = tuple(name for names in _FILES.values() for name in names)
RECORD = (*_FILES, "record.json")
_ROWS = {
    "tasks": {"name", "classes", "n_train", "n_val", "n_test"},
    "scorings": {"after_task", "step"},
    "curves": {"after_task", "step", "task", "accuracy", "loss"},
}
# What a cut, spoiled or foreign file raises; a spoiled header may also ask for an unknown method or for all memory.
UNREADABLE = (OSError, ValueError, EOFError, RuntimeError, MemoryError, zipfile.BadZipFile, zlib.error)


def dumps(value: Any) -> str:
    """JSON without NaN, which is not JSON."""
    return json.dumps(value, indent=2, allow_nan=False)


def to_json(record: Record) -> dict[str, Any]:
    """The content of record.json; what was not scored is null."""
    values = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in _ARRAYS}
    R = [[None if math.isnan(accuracy) else accuracy for accuracy in row] for row in record.R.tolist()]
    baseline = [None if math.isnan(accuracy) else accuracy for accuracy in record.baseline.tolist()]
    return {"schema": SCHEMA, **values, "R": R, "baseline": baseline}


def from_json(values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Record:
    content = {k: v for k, v in values.items() if k != "schema"}
    for name, wanted in _ROWS.items():
        content[name] = tuple(content[name])
        if any(not wanted <= row.keys() for row in content[name]):
            raise KeyError(f"a row of {name} lacks one of {', '.join(sorted(wanted))}")
    for name in ("R", "baseline"):
        content[name] = np.array(content[name], dtype=np.float64)  # null is NaN
    for name in _ARRAYS:
        columns = [k for k in arrays if k.startswith(f"{name}_")]
        content[name] = tuple(arrays[f"{name}_{i}"] for i in range(len(columns)))
    return Record(**content)


def record_files(record: Record) -> dict[str, bytes]:
    """What is written of a record, by name; record.json last: it means a whole cell."""
    files = {}
    for file, names in _FILES.items():
        arrays = {f"{name}_{i}": array for name in names for i, array in enumerate(getattr(record, name))}
        if arrays:
            packed = io.BytesIO()
            np.savez_compressed(packed, **arrays)
            files[file] = packed.getvalue()
    return {**files, "record.json": json.dumps(to_json(record), allow_nan=False).encode()}


def write_record(record: Record, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in record_files(record).items():
        write_bytes(folder / name, content)


def read_record(folder: Path) -> Record:
    """The record of a finished cell."""
    try:
        return record_of_files({path.name: path.read_bytes() for name in RECORD if (path := folder / name).exists()})
    except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
        reason = str(error).splitlines() or [type(error).__name__]
        raise BadInput(
            f"{folder} does not hold a readable record: {reason[0]}; without that folder, its run is made again"
        ) from error


def record_of_files(files: Mapping[str, bytes]) -> Record:
    """The record that `record_files` wrote."""
    values = json.loads(files["record.json"])
    if values.get("schema") != SCHEMA:
        raise ValueError(f"record.json has schema {values.get('schema')}, this version reads {SCHEMA}")
    arrays: dict[str, np.ndarray] = {}
    for file in (name for name in _FILES if name in files):
        with np.load(io.BytesIO(files[file]), allow_pickle=False) as found:
            arrays |= dict(found)
    return from_json(values, arrays)


def read_records(folder: Path) -> list[Record]:
    """All finished records of an output folder, of a store of sweeps, or of one sweep in it; in a stable order."""
    return list(read_cells(folder).values())


def read_cells(folder: Path) -> dict[str, Record]:
    """The finished records by the names of their cells."""
    finished = cells_with(folder, "record.json")
    if not finished:
        raise BadInput(f"{folder} has no finished cells yet")
    return {cell.name: read_record(cell) for cell in finished}


def cells_with(folder: Path, file: str) -> list[Path]:
    """The folders of its cells that have this file, in the experiment's order."""
    experiment = read_experiment(folder)
    order = {name: i for i, name in enumerate(experiment.get("cells", []))}
    found = sorted(path.parent for path in cells_folder(folder).glob(f"*/{file}"))
    if "sweeps" in experiment or cells_folder(folder) != folder / "cells":  # others' cells are there, too
        found = [cell for cell in found if cell.name in order]
    return sorted(found, key=lambda cell: order.get(cell.name, len(order)))


def take_over(names: Iterable[str], source: Path, folder: Path) -> None:
    """Copy those of these cells that are finished in another output folder and not in this one."""
    for name in names:
        there, here = cells_folder(source) / name, folder / "cells" / name
        if (there / "record.json").exists() and not (here / "record.json").exists():
            write_record(read_record(there), here)


def read_experiment(folder: Path) -> dict[str, Any]:
    """The content of experiment.json of a folder that must be one of ours."""
    if not (folder / "experiment.json").is_file():
        if any(folder.glob(f"*/{MODEL}")):
            raise BadInput(f"{folder} holds a model, not runs; learn, predict, score and export --onnx take it")
        raise BadInput(f"{folder} is not an output folder of Holdfast: it has no experiment.json")
    return _read_experiment(folder / "experiment.json")


def cells_folder(folder: Path) -> Path:
    """Where the cells of an output folder are; all sweeps of a store, in STORE/sweeps/NAME, share STORE/cells."""
    folder = folder.absolute() if folder.name in ("", "..") else folder
    in_store = folder.parent.name == "sweeps" and not (folder / "cells").is_dir()
    return (folder.parent.parent if in_store else folder) / "cells"


def claim_sweep(store: Path, name: str, experiment: Mapping[str, Any]) -> None:
    """Enter a sweep into a store; one of the same name is replaced, and its cells are kept.

    The store's own experiment.json is the union of its sweeps, so that whatever reads an output folder reads a store.
    """
    path = store / "experiment.json"
    new = json.loads(json.dumps(experiment))
    if path.exists() and "sweeps" not in _read_experiment(path):
        raise BadInput(f"{store} holds an experiment of run, compare or reproduce, not sweeps; choose another --out")
    refuse_foreign(store)
    others = {p.parent.name: _read_experiment(p) for p in sorted((store / "sweeps").glob("*/experiment.json"))}
    try:
        write_text(path, json.dumps(_union({**others, name: new}), indent=2))
        write_text(store / "sweeps" / name / "experiment.json", json.dumps(new, indent=2))
    except OSError as error:
        raise unusable(store, error) from error


def _union(sweeps: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    runs = {json.dumps(run, sort_keys=True): run for sweep in sweeps.values() for run in sweep.get("runs", [])}
    return {
        "schema": SCHEMA,
        "sweeps": sorted(sweeps),
        "runs": list(runs.values()),
        "seeds": sorted({seed for sweep in sweeps.values() for seed in sweep.get("seeds", [])}),
        "cells": list(dict.fromkeys(cell for sweep in sweeps.values() for cell in sweep.get("cells", []))),
        "versions": list(sweeps.values())[-1].get("versions", {}),
        "made": list(sweeps.values())[-1].get("made", {}),
    }


def claim(folder: Path, experiment: Mapping[str, Any], code: Callable[[], Mapping[str, str]] = dict) -> None:
    """Make the folder this experiment's, or refuse it when it is another's, naming the first differing setting.

    How and when it was `made` may differ; the first time stands. `code` gives the digests in it, and what each is the
    digest of.
    """
    path = folder / "experiment.json"
    new = json.loads(json.dumps(experiment))
    if path.exists():
        if "sweeps" in _read_experiment(path):
            raise BadInput(f"{folder} is a store of sweeps; choose another --out")
        old = _read_experiment(path)
        difference = _first_difference({**old, "made": new.get("made")}, new)
        if difference is not None:
            raise BadInput(
                f"{folder} holds another experiment: {_told(*difference, code())}; choose another --out, "
                "or --fresh to start over"
            )
        return
    refuse_foreign(folder)
    try:
        write_text(path, json.dumps(new, indent=2))
    except OSError as error:
        raise unusable(folder, error) from error


def refuse_foreign(folder: Path) -> None:
    """A folder that is not ours is left alone; one whose first process was killed before it had begun is ours."""
    if not folder.exists() or (folder / "experiment.json").exists():
        return
    try:
        names = [path.name for path in folder.iterdir()]
    except NotADirectoryError:
        names = [folder.name]
    except FileNotFoundError:  # another process left nothing in it and removed it just now
        return
    if any(not name.startswith((LOCK, TRIALS, *HALF_WRITTEN)) for name in names):
        raise BadInput(f"{folder} exists and is not an output folder of Holdfast; choose another --out")


def unusable(folder: Path, error: OSError, choose: str = "choose another --out") -> BadInput | NotKept:
    """Why nothing can be kept in a folder; a full disk is nobody's mistake."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return NotKept(error.errno, error.strerror, str(folder))
    return BadInput(f"{folder} cannot be written to ({error.strerror}); {choose}")


def _read_experiment(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read; choose another --out") from error
    if not isinstance(content, dict):
        raise BadInput(f"{path} is not an experiment of Holdfast; choose another --out")
    return content


def _told(where: str, was: Any, now: Any, code: Mapping[str, str]) -> str:
    if was is not None and isinstance(now, str) and now in code:
        return f"the code of {code[now]} changed since"
    return f"{where} was {_short(was)}, is now {_short(now)}"


def _first_difference(old: Any, new: Any, where: str = "") -> tuple[str, Any, Any] | None:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}, key=lambda key: (key == "cells", key)):  # their hashes follow from the rest
            found = _first_difference(old.get(key), new.get(key), f"{where}.{key}" if where else key)
            if found:
                return found
        return None
    if isinstance(old, list) and isinstance(new, list):
        in_words = [isinstance(item, dict) for item in (*old, *new)]
        if len(old) == len(new) or all(in_words):
            pairs = enumerate(zip(old, new, strict=False))
            found = next(filter(None, (_first_difference(a, b, f"{where}[{i}]") for i, (a, b) in pairs)), None)
            return found or (None if len(old) == len(new) else (f"the number of {where}", len(old), len(new)))
    return None if old == new else (where, old, new)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
