"""Data sets: images or vectors with labels, read safely from canonical files or made on the spot.

load("mnist")                    by name; any folder of the data folder is one, too
as_dataset((x, y), seed=0)       from what a user has at hand, a path or a DataFrame among it
Source("a.csv", label="kind")    the same, with more to say of it
fetch("mnist")                   download, verify, move into place
verify("mnist"), status()        what is there, and is it what was published?
new_rows("b.csv", reading, ...)  what comes after a model was made, read as the model reads
family("strokes", 400, 100)      procedural images with controlled relatedness
"""

from holdfast.data.arrays import as_dataset
from holdfast.data.catalog import EMBEDDED, NAMES, ON_DISK, Entry
from holdfast.data.columns import kinds_of
from holdfast.data.encoding import Encoding
from holdfast.data.fetch import fetch
from holdfast.data.files import data_folder
from holdfast.data.inventory import FileCheck, StatusRow, Verdict, status, status_of, verify
from holdfast.data.load import at_hand, load, procedural
from holdfast.data.new_rows import NewRows, Reading, is_source, new_rows
from holdfast.data.source import Features, Source, path_of, words_of
from holdfast.data.synth import family

__all__ = [
    "EMBEDDED",
    "NAMES",
    "ON_DISK",
    "Encoding",
    "Entry",
    "Features",
    "FileCheck",
    "NewRows",
    "Reading",
    "Source",
    "StatusRow",
    "Verdict",
    "as_dataset",
    "at_hand",
    "data_folder",
    "family",
    "fetch",
    "is_source",
    "kinds_of",
    "load",
    "new_rows",
    "path_of",
    "procedural",
    "status",
    "status_of",
    "verify",
    "words_of",
]
