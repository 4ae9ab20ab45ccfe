"""Data sets: images or vectors with labels, read safely from canonical files or made on the spot.

load("mnist")                    by name; any folder of the data folder is one, too
as_dataset((x, y), seed=0)       from what a user has at hand
fetch("mnist")                   download, verify, move into place
verify("mnist"), status()        what is there, and is it what was published?
family("strokes", 400, 100)      procedural images with controlled relatedness
"""

from holdfast.data.arrays import as_dataset
from holdfast.data.catalog import EMBEDDED, NAMES, ON_DISK, Entry
from holdfast.data.fetch import fetch
from holdfast.data.files import data_folder
from holdfast.data.inventory import FileCheck, StatusRow, Verdict, status, status_of, verify
from holdfast.data.load import at_hand, load, procedural
from holdfast.data.synth import family

__all__ = [
    "EMBEDDED",
    "NAMES",
    "ON_DISK",
    "Entry",
    "FileCheck",
    "StatusRow",
    "Verdict",
    "as_dataset",
    "at_hand",
    "data_folder",
    "family",
    "fetch",
    "load",
    "procedural",
    "status",
    "status_of",
    "verify",
]
