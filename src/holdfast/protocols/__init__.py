"""How a stream is shown to a learner. `protocol("online")` finds `protocols/online.py` by its name."""

from holdfast.protocols.base import Protocol, fresh, record_of
from holdfast.protocols.passing import Passing
from holdfast.protocols.session import Progress, Session, Watch, name_of
from holdfast.settings import Shelf

protocols: Shelf[Protocol] = Shelf("holdfast.protocols", Protocol, "protocol")

__all__ = [
    "Passing", "Progress", "Protocol", "Session", "Watch", "fresh", "name_of", "protocols", "record_of",
]  # fmt: skip
