"""The output folder before a run: its name, whether it can be used, and --fresh."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Sequence
from pathlib import Path

from holdfast.disk import unwritable
from holdfast.errors import BadInput
from holdfast.protocols import name_of
from holdfast.sweeps import Cell
from holdfast.sweeps.cell import file_word
from holdfast.sweeps.store import LOCK, OURS, TRIALS, refuse_foreign

LONG = 40  # characters of joined method names


def default(cells: Sequence[Cell]) -> Path:
    """runs/<methods>-<stream>-<data>-<hash>: the same command finds its results again."""
    names = list(dict.fromkeys(name_of(cell.method) for cell in cells))
    together = "+".join(names)
    digest = hashlib.sha256("".join(cell.hash for cell in cells).encode()).hexdigest()[:8]
    first = cells[0].stream
    who = together if len(together) <= LONG else f"{len(names)}-methods"
    words = (who, first.name, str(first.settings["data"]))
    return Path("runs") / f"{'-'.join(map(file_word, words))}-{digest}"


def faults(folder: Path, fresh: bool) -> list[str]:
    """Why results cannot be kept there, as far as can be known before."""
    closed = unwritable(folder)
    if closed:
        return closed
    if not folder.is_dir() or all(path.name == TRIALS for path in folder.iterdir()):
        return []
    try:
        refuse_foreign(folder)
    except BadInput:
        return [f"{folder} is not empty and not an output folder of Holdfast: it has no experiment.json"]
    foreign = sorted(path.name for path in folder.iterdir() if not _is_ours(path.name))
    if fresh and foreign:
        return [f"{folder} also holds {', '.join(foreign)}, so --fresh does not touch it; choose another --out"]
    return []


def clear(folder: Path) -> None:
    """Throw away what an output folder holds; experiment.json goes last, so that a second try is possible."""
    if folder.name != TRIALS:
        clear(folder / TRIALS)
    if not (folder / "experiment.json").is_file():
        return
    if (folder / "sweeps").is_dir():
        raise BadInput(f"{folder} is a store of sweeps, which --fresh does not clear; choose another --out")
    for path in sorted(folder.iterdir(), key=lambda p: p.name == "experiment.json"):
        if not _is_ours(path.name) or path.name == LOCK:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _is_ours(name: str) -> bool:
    """What a run writes, and the temporary files it may leave when it is killed."""
    return name in OURS or any(name.startswith(f".{ours}.") for ours in OURS)
