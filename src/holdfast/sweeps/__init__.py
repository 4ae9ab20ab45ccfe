"""Cells, the executor that runs them, and the store that keeps them."""

from holdfast.sweeps.asked import together
from holdfast.sweeps.cell import Cell, NetLike, check_all, versions
from holdfast.sweeps.choice import Choice, Grid, choose, trial_cells
from holdfast.sweeps.document import Sweep, gridded, sweep_of
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.executor import execute, read_failures
from holdfast.sweeps.file import read_sweep
from holdfast.sweeps.lock import locked
from holdfast.sweeps.model import Known, Model, no_tasks
from holdfast.sweeps.store import (
    claim,
    claim_sweep,
    read_cells,
    read_experiment,
    read_record,
    read_records,
    write_record,
    write_text,
)
from holdfast.sweeps.tracking import tracked

__all__ = [
    "Cell", "Choice", "Event", "Failure", "Grid", "Known", "Model", "NetLike", "Sweep", "Watcher", "check_all",
    "choose", "claim", "claim_sweep", "execute", "gridded", "locked", "no_tasks", "read_cells", "read_experiment",
    "read_failures", "read_record", "read_records", "read_sweep", "sweep_of", "together", "tracked", "trial_cells",
    "versions", "write_record", "write_text",
]  # fmt: skip
