"""Cells, the executor that runs them, and the store that keeps them."""

from holdfast.sweep.cell import Cell, NetLike, versions
from holdfast.sweep.choice import Choice, Grid, choose, trials
from holdfast.sweep.executor import Event, Failure, Watcher, execute, read_failures
from holdfast.sweep.store import claim, read_cells, read_record, read_records, write_record, write_text

__all__ = [
    "Cell",
    "Choice",
    "Event",
    "Failure",
    "Grid",
    "NetLike",
    "Watcher",
    "choose",
    "claim",
    "execute",
    "read_cells",
    "read_failures",
    "read_record",
    "read_records",
    "trials",
    "versions",
    "write_record",
    "write_text",
]  # fmt: skip
