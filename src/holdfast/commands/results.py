"""Small files of measured numbers, each with the command, commit, machine and day behind it: what pages are made of."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.disk import unwritable
from holdfast.errors import BadInput
from holdfast.process import machine
from holdfast.report.reproduction import Reproduction
from holdfast.sweeps import write_text
from holdfast.sweeps.store import dumps

SCHEMA = 1
SAID = (
    "row column metric setting scenario published tolerance judged judge measured low high emulated within verdict "
    "archive"
).split()

Cell = Mapping[str, Any]


def faults(folder: str | None, id: str) -> list[str]:
    """Why numbers cannot be kept there, as far as can be known before anything is run."""
    if folder is None:
        return []
    try:
        read(place(Path(folder), id))
    except BadInput as error:
        return list(error.faults)
    return unwritable(Path(folder), "--keep")


def place(folder: Path, id: str) -> Path:
    return folder / f"{id}.json"


def read(path: Path) -> dict[str, Any]:
    """What is kept of a table so far.

    A run that was not kept when it was run has a `source`, which says where its numbers were found, and null for what
    is not known of it.
    """
    if not path.exists():
        return {"schema": SCHEMA, "runs": [], "cells": []}
    try:
        found = json.loads(path.read_text())
        if found["schema"] == SCHEMA and all(len(found["runs"]) > cell["run"] >= 0 for cell in found["cells"]):
            return dict(found)
    except (OSError, ValueError, TypeError, KeyError):
        pass
    raise BadInput(f"{path} holds no numbers that `holdfast reproduce --keep` wrote; move it away or keep elsewhere")


def keep(folder: Path, reproduction: Reproduction, seeds: int, words: str | None) -> Path:
    """Put the numbers of a reproduction into the file of its table, in place of those that it measured anew."""
    path, told = place(folder, reproduction.id), vars(reproduction)
    old = read(path)
    run = {
        "command": command(reproduction.id, reproduction.scale, seeds, words),
        "seeds": seeds,
        "scale": reproduction.scale,
        **origin(),
    }
    cells = [cell for cell in reproduction.cells if cell["measured"] is not None or cell["emulated"] is not None]
    mine = [{**{name: cell[name] for name in SAID if name in cell}, "run": len(old["runs"])} for cell in cells]
    anew = {_key(cell) for cell in mine}
    runs, cells = _tidy([*old["runs"], run], [*(c for c in old["cells"] if _key(c) not in anew), *mine])
    title = {name: told[name] for name in ("id", "title")}
    write_text(
        path, dumps({"schema": SCHEMA, **title, "notes": list(reproduction.notes), "runs": runs, "cells": cells})
    )
    return path


def command(id: str, scale: str, seeds: int, words: str | None) -> str:
    """What measures these numbers again.

    >>> command("gem/table3", "laptop", 3, "GEM,1 epoch")
    "holdfast reproduce gem/table3 --scale laptop --only 'GEM,1 epoch' --seeds 3"
    """
    only = [] if words is None else ["--only", words]
    return shlex.join(["holdfast", "reproduce", id, "--scale", scale, *only, "--seeds", str(seeds)])


def origin() -> dict[str, str]:
    """Commit, machine and day."""
    return {"commit": _commit(), "machine": machine(), "date": date.today().isoformat()}


def _key(cell: Cell) -> tuple[Any, ...]:
    return cell["row"], cell["column"], cell["metric"]


def _tidy(runs: Sequence[Cell], cells: Sequence[Cell]) -> tuple[list[Cell], list[Cell]]:
    """Runs that no cell is of any more are left out."""
    used = sorted({cell["run"] for cell in cells})
    return [runs[i] for i in used], [{**cell, "run": used.index(cell["run"])} for cell in cells]


def _commit() -> str:
    """Of the checkout that this code lies in, with a + where it has been changed since; else the version."""
    here = Path(__file__).parent
    try:
        said = [
            subprocess.run(["git", "-C", str(here), *asked], capture_output=True, text=True, check=True).stdout.strip()
            for asked in (["rev-parse", "--short=7", "HEAD"], ["status", "--porcelain", "--", ".."])
        ]
    except (OSError, subprocess.CalledProcessError):
        return f"version {__version__}"
    return said[0] + ("+" if said[1] else "")
