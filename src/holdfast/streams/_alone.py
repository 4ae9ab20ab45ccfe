"""The last task of a stream by itself."""

from __future__ import annotations

from holdfast.errors import BadInput
from holdfast.types import Stream


def last_alone(stream: Stream) -> Stream:
    """What T(S) is measured against."""
    if len(stream) < 2 or stream.mixtures:
        why = "its tasks are shown mixed" if stream.mixtures else "it has one task"
        raise BadInput(f"the last task of stream {stream.name!r} cannot be shown alone beside it: {why}")
    return stream.only(-1)
