"""The four ways a run is refused or stopped; everything else is a bug."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

OURS = Path(__file__).parent


class BadInput(ValueError):
    """What the user asked for cannot be done: one whole sentence per fault, all faults at once."""

    def __init__(self, *faults: str) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(faults))


class PastDataError(RuntimeError):
    """A learner reached for data of a task that is over."""


class RunFailed(RuntimeError):
    """A run went wrong while it ran, e.g. its loss became NaN; other runs are not affected."""

    def __init__(self, reason: str, seconds: float = 0.0, flops: float = 0.0) -> None:
        super().__init__(reason)
        self.seconds, self.flops = seconds, flops  # of training until then


class NotKept(OSError):
    """Results cannot be written, e.g. to a full disk: all runs stop, for whatever they did next would be lost."""


def unknown(word: str, given: str, valid: Iterable[str], where: str = "") -> str:
    """The sentence for a name that does not exist, with the nearest one that does.

    >>> unknown("method", "gme", ["gem", "ewc"])
    "unknown method 'gme'; did you mean 'gem'?"
    >>> unknown("method", "GEM", ["gem", "ewc"])
    "unknown method 'GEM'; did you mean 'gem'?"
    >>> unknown("method", "zzz", ["gem", "ewc"])
    "unknown method 'zzz'; choose from ewc, gem"
    """
    names = sorted(valid)
    folded = {name.lower(): name for name in names}
    near = get_close_matches(given, names, n=1, cutoff=0.5)
    near = near or [folded[name] for name in get_close_matches(given.lower(), folded, n=1, cutoff=0.5)]
    if near:
        return f"unknown {word} {given!r}{where}; did you mean {near[0]!r}?"
    return f"unknown {word} {given!r}{where}; choose from {', '.join(names)}"


def said_of(error: BaseException) -> str:
    """What went wrong, in a line, and that of a user's own file where it did, which is where they will look."""
    not_theirs = [OURS, *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))]
    theirs = [
        each
        for each in traceback.extract_tb(error.__traceback__)
        if not each.filename.startswith("<") and not any(map(Path(each.filename).is_relative_to, not_theirs))
    ]
    where = f" ({Path(theirs[-1].filename).name}, line {theirs[-1].lineno})" if theirs else ""
    said = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {said}{where}"


@contextmanager
def guarded(what: str, cannot: str = "be made") -> Iterator[None]:
    """Whatever a user's code raises becomes one line."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # user's code may raise anything
        raise BadInput(f"{what} cannot {cannot}: {said_of(error)}") from error
