"""Streams of tasks. `stream("permuted")` finds `streams/permuted.py` by its name."""

from holdfast.settings import Shelf
from holdfast.streams._alone import last_alone
from holdfast.streams._base import BESIDES, Chosen, Plan, Rows, StreamSpec, as_datasets

streams: Shelf[StreamSpec] = Shelf("holdfast.streams", StreamSpec, "stream")

__all__ = ["BESIDES", "Chosen", "Plan", "Rows", "StreamSpec", "as_datasets", "last_alone", "streams"]
