"""How a stream is shown to a learner. `protocol("online")` finds `protocols/online.py` by its name."""

from holdfast.protocols._base import Job, Protocol, Reshape, fresh, record_of
from holdfast.protocols._passing import Passing
from holdfast.protocols._session import Progress, Session, Watch, name_of
from holdfast.protocols._showing import Showing
from holdfast.protocols._slips import slips_at_start
from holdfast.settings import Shelf

protocols: Shelf[Protocol] = Shelf("holdfast.protocols", Protocol, "protocol")

__all__ = [
    "Job", "Passing", "Progress", "Protocol", "Reshape", "Session", "Showing", "Watch", "fresh", "name_of", "protocols",
    "record_of", "slips_at_start",
]  # fmt: skip
