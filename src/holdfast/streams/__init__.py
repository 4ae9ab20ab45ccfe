"""Streams of tasks. `stream("permuted")` finds `streams/permuted.py` by its name."""

from holdfast.settings import Shelf
from holdfast.streams._alone import last_alone
from holdfast.streams._base import BESIDES, Chosen, Plan, Rows, ScaleName, StreamSpec, as_datasets, drawn, dressed
from holdfast.streams._images import CropFlip

streams: Shelf[StreamSpec] = Shelf("holdfast.streams", StreamSpec, "stream")

__all__ = [
    "BESIDES", "Chosen", "CropFlip", "Plan", "Rows", "ScaleName", "StreamSpec", "as_datasets", "drawn", "dressed",
    "last_alone", "streams",
]  # fmt: skip
