"""What `holdfast sweep` does."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import run_in_store
from holdfast.commands import folder
from holdfast.commands.experiment import collected
from holdfast.commands.progress import shown
from holdfast.commands.run import Output, alone, said, tell_data
from holdfast.errors import BadInput
from holdfast.settings import Count, make
from holdfast.sweeps import on_ray, read_sweep, tracked, tracking


@dataclass(frozen=True)
class Ways:
    """How the cells are run."""

    jobs: Count | None = None
    on: str | None = None
    checkpoint_every: Count | None = None


def perform_sweep(file: str, given: Mapping[str, str | None], output: Output) -> int:
    """Everything from the file to the exit code; nothing is written unless all of it can be done."""
    faults: list[str] = []
    wanted, ways = None, Ways()
    with collected(faults):
        wanted = read_sweep(file)
    with collected(faults):
        ways = make(Ways, {name: value for name, value in given.items() if value is not None}, "this sweep")
    faults += on_ray.faults(given["on"])
    if output.out is not None:
        faults += folder.faults(Path(output.out), fresh=False)
    faults += tracking.faults(output.track)
    if faults or wanted is None:
        raise BadInput(*faults)
    tell_data(wanted.cells, output.quiet)
    store = Path("runs") / wanted.name if output.out is None else Path(output.out)
    with alone(store):
        if output.fresh and (store / "sweeps").is_dir():  # anything else is refused below, and must be left as it is
            for home in (store / "cells" / cell.name for cell in wanted.cells):
                if home.is_dir() and not home.is_symlink():
                    shutil.rmtree(home)
        with shown(wanted.cells, output.quiet) as board, tracked(wanted.cells, output.track, board.watch) as told:
            board.watch = told
            comparison = run_in_store(wanted, store, ways.jobs, board, ways.on, ways.checkpoint_every)
    return said(comparison, store / "sweeps" / wanted.name, output)
