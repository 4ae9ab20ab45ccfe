"""Cells, the executor that runs them, and the store that keeps them."""

from holdfast.sweeps.cell import Cell, NetLike, versions
from holdfast.sweeps.executor import Event, Failure, Watcher, execute
from holdfast.sweeps.store import claim, read_record, read_records, write_record, write_text

__all__ = [
    "Cell", "Event", "Failure", "NetLike", "Watcher", "claim", "execute", "read_record", "read_records", "versions",
    "write_record", "write_text",
]  # fmt: skip
