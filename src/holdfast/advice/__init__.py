"""Which method to retrain a deployed model with, where rules forbid what benchmarks allow, and what it would forget."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from holdfast.advice._found import Advice, Limits, Tried
from holdfast.advice._rehearsals import NETS, SWEEP, Rehearsals, rehearsal, with_validation
from holdfast.api import StreamLike, as_stream
from holdfast.errors import BadInput
from holdfast.methods import Learner, methods
from holdfast.protocols import Protocol, protocols
from holdfast.report import advice as told
from holdfast.settings import Count, Positive, expected, fits
from holdfast.sweeps import NetLike, locked, write_text
from holdfast.sweeps.store import dumps, read_experiment, refuse_foreign

__all__ = ["NETS", "Advice", "Limits", "Tried", "advise", "refuse", "rehearsal"]


def advise(
    stream: StreamLike,
    candidates: Sequence[str | Learner] | None = None,
    *,
    memory: int | None = None,
    keep_data: bool = True,
    seconds: float | None = None,
    net: str | NetLike | None = None,
    protocol: Protocol | None = None,
    seeds: int = 3,
    jobs: int | None = None,
    out: str | Path | None = None,
    watch: Callable[[str], None] | None = None,
) -> Advice:
    """Rehearse the stream with every method that the limits allow, cheapest first, and say which one to go on with.

    Each method is first glanced at on a few rows: what does it keep, how long does it take? Those that keep what is not
    allowed are ruled out before they see more. The others learn the stream under `realistic`: the model is chosen on
    the first task, each later one has its own data alone. Those close to the best are tried with further `seeds`.
    Replay keeps as many rows as fit into `memory` bytes; without that, as many as its method usually does. When the
    `seconds` are over, what is not finished is left out. The advice is chosen on the test rows that it is told by: what
    is measured after deployment may be a little lower. In the folder `out` the rehearsals stay, with a report; the next
    advice there goes on with them.

    >>> from holdfast.api import protocol as make
    >>> short = make("realistic", steps=100)
    >>> found = advise(as_stream("slt"), ["finetune", "er"], protocol=short, seeds=1, jobs=1)
    >>> found.best.method, sorted(found.ruled_out)
    ('er', [])
    >>> sorted(advise(as_stream("slt"), ["finetune", "er"], keep_data=False, protocol=short, seeds=1).ruled_out)
    ['er']
    """
    began = time.monotonic()
    _refuse(memory, seconds, seeds, keep_data)
    asked = methods.names() if candidates is None else candidates
    learners = [methods.make(one, {}) if isinstance(one, str) else one for one in asked]
    way = rehearsal(protocols.make("realistic", {}) if protocol is None else protocol)
    shown = with_validation(as_stream(stream))
    if len(shown) < 2:
        raise BadInput(f"stream {shown.name!r} has one task; an advice needs what is known first, and what comes later")
    limits = Limits(memory, keep_data, seconds)
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()) if out is None else out)
        rehearsals = Rehearsals(
            shown, way, net, limits, home, out is not None, jobs, began, watch or (lambda line: None)
        )
        able = rehearsals.able(learners)
        if out is not None:
            stack.enter_context(locked(home, refuse))
        able = rehearsals.glanced(able)
        rehearsals.first_round(able)
        rehearsals.further(seeds)
        rehearsals.left_over(able)
        rehearsals.further(seeds)
        advice = rehearsals.advice()
        if out is not None:
            if watch is not None and _is_of_another(home / told.FILE, advice):
                watch(f"the advice on other tasks that was in {home} is replaced, with its report")
            write_text(home / told.FILE, dumps(advice.summary()))
            advice.comparison.keep(home)
    return advice


def _is_of_another(kept: Path, advice: Advice) -> bool:
    """Whether an advice on other tasks is kept there."""
    try:
        found = json.loads(kept.read_text())
        return (found["tasks"], found["scenario"]) != (list(advice.tasks), advice.scenario)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def refuse(folder: Path) -> None:
    """Results are kept in a new folder, or in that of another advice."""
    refuse_foreign(folder)
    if (folder / "experiment.json").exists() and read_experiment(folder).get("sweeps") != [SWEEP]:
        raise BadInput(f"{folder} holds results of another command; choose another --out")


def _refuse(memory: Any, seconds: Any, seeds: Any, keep_data: Any) -> None:
    kinds = {"memory": (memory, Count | None), "seconds": (seconds, Positive | None), "seeds": (seeds, Count)}
    faults = [
        f"{name} must be {expected(kind)}, not {value!r}"
        for name, (value, kind) in kinds.items()
        if isinstance(value, str) or not fits(kind, value)
    ]
    if type(keep_data) is not bool:
        faults.append(f"keep_data must be True or False, not {keep_data!r}")
    if faults:
        raise BadInput(*faults)
