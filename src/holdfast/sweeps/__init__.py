"""Cells, the executor that runs them, and the store that keeps them."""

from holdfast.sweeps.cell import Cell, NetLike, versions
from holdfast.sweeps.events import Event, Failure, Watcher
from holdfast.sweeps.executor import execute
from holdfast.sweeps.file import read_sweep
from holdfast.sweeps.lock import locked
from holdfast.sweeps.plan import Plan, gridded, plan
from holdfast.sweeps.store import claim, claim_sweep, read_record, read_records, write_record, write_text

__all__ = [
    "Cell", "Event", "Failure", "NetLike", "Plan", "Watcher", "claim", "claim_sweep", "execute", "gridded",
    "locked", "plan", "read_record", "read_records", "read_sweep", "versions", "write_record", "write_text",
]  # fmt: skip
