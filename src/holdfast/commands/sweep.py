"""What `holdfast sweep` does."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import Comparison, run_sweep
from holdfast.commands import folder
from holdfast.commands.experiment import collected
from holdfast.commands.progress import shown
from holdfast.commands.run import Output, alone, said
from holdfast.errors import BadInput
from holdfast.settings import Count, make
from holdfast.sweeps import Sweep, on_ray, read_sweep


@dataclass(frozen=True)
class Ways:
    """How the cells are run."""

    jobs: Count | None = None
    on: str | None = None
    checkpoint_every: Count | None = None


def perform_sweep(file: str, given: Mapping[str, str | None], output: Output) -> int:
    """Everything from the file to the exit code; nothing is written unless all of it can be done."""
    faults: list[str] = []
    planned, ways = None, Ways()
    with collected(faults):
        planned = read_sweep(file)
    with collected(faults):
        ways = make(Ways, {name: value for name, value in given.items() if value is not None}, "this sweep")
    faults += on_ray.faults(given["on"])
    if output.out is not None:
        faults += folder.faults(Path(output.out), fresh=False)
    if faults or planned is None:
        raise BadInput(*faults)
    store = Path("runs") / planned.name if output.out is None else Path(output.out)
    return said(_run_kept(planned, ways, store, output), store / "sweeps" / planned.name, output)


def _run_kept(planned: Sweep, ways: Ways, store: Path, output: Output) -> Comparison | None:
    """Run the cells that are not finished in the store, showing how far they are; None when interrupted."""
    homes = [store / "cells" / cell.name for cell in planned.cells]

    def work() -> Comparison:
        if output.fresh and (store / "sweeps").is_dir():  # anything else is refused below, and must be left as it is
            for home in homes:
                if home.is_dir() and not home.is_symlink():
                    shutil.rmtree(home)
        kept = {i for i, home in enumerate(homes) if (home / "record.json").exists()}
        with shown(planned.cells, kept, output.quiet) as watch:
            return run_sweep(planned, store, ways.jobs, watch, ways.on, ways.checkpoint_every)

    return alone(work, store)
