"""Settings chosen from a grid by validation: the trials, the choice, and what it cost.

Every point of the grid is run on the whole stream and scored on the tasks' validation parts, never on their tests.
Nobody has later tasks' data when a stream begins, so the choice is noted as `val:stream`, which the card holds
against it. A protocol that chooses on validation rows itself (`crossval`) has them in the trials, too: paper 000
chooses EWC's λ so, and marks it (†).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from holdfast.errors import BadInput, RunFailed
from holdfast.nets import NetSpec
from holdfast.settings import changed
from holdfast.sweeps.cell import Cell
from holdfast.sweeps.events import Failure
from holdfast.types import Record

CHOSEN_BY = "val:stream"
TUNABLE = ("method", "protocol", "net")

Grid = Mapping[str, Sequence[Any]]  # setting -> values: a method's own by name, others as 'protocol.lr', 'net.hidden'


@dataclass(frozen=True)
class Trial:
    """One point of a grid: the mean accuracy on validation data after the whole stream; None when the run failed."""

    settings: Mapping[str, Any]
    acc: float | None
    seconds: float  # of training; of a run that failed, until then
    flops: float


@dataclass(frozen=True)
class Choice:
    """The best point of a grid, and all trials behind it."""

    settings: Mapping[str, Any]
    trials: tuple[Trial, ...]

    @property
    def cost(self) -> dict[str, float]:
        """What the trials spent; it counts in the cost of every result that uses the choice."""
        return {
            "runs": len(self.trials),
            "seconds": sum(trial.seconds for trial in self.trials),
            "flops": sum(trial.flops for trial in self.trials),
        }

    def applied(self, cell: Cell) -> Cell:
        """The cell with the chosen settings, each noted as chosen by validation."""
        return replace(set_in(cell, self.settings, CHOSEN_BY), choice_cost=self.cost)


def trial_cells(cell: Cell, grid: Grid) -> list[Cell]:
    """One cell per point of the grid, scored on the validation part of the cell's stream."""
    if not grid or not all(grid.values()):
        raise BadInput("a grid needs at least one setting, and at least one value for each")
    if not all(len(task.val) for task in cell.stream.tasks):
        raise BadInput(f"stream {cell.stream.name!r} keeps no rows for validation; cut it with, e.g., val=0.1")
    stream, faults = cell.stream.held_out(), cell.protocol.faults
    if faults(cell.method, stream) != faults(cell.method, cell.stream):  # it chooses on validation rows, too
        stream = cell.stream.held_out(lend=True)
    scored = replace(cell, stream=stream)
    return [set_in(scored, point, "given") for point in points(grid)]


def choose(grid: Grid, found: Sequence[Record | Failure]) -> Choice:
    """The point of the highest ACC; `found` has the trials' outcomes in order."""
    tried = tuple(_trial(point, record) for point, record in zip(points(grid), found, strict=True))
    finished = [trial for trial in tried if trial.acc is not None]
    if not finished:
        raise RunFailed(f"all {len(tried)} trials failed, so {' and '.join(grid)} cannot be chosen")
    best = max(finished, key=lambda trial: trial.acc or 0.0)
    return Choice(best.settings, tried)


def points(grid: Grid) -> list[dict[str, Any]]:
    """
    >>> points({"strength": [1, 10], "protocol.lr": [0.1]})
    [{'strength': 1, 'protocol.lr': 0.1}, {'strength': 10, 'protocol.lr': 0.1}]
    """
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


def set_in(cell: Cell, settings: Mapping[str, Any], chosen_by: str) -> Cell:
    """The cell with other settings of its method, protocol or net."""
    parts: dict[str, dict[str, Any]] = {role: {} for role in TUNABLE}
    for name, value in settings.items():
        role, dot, field = name.rpartition(".")
        role = role if dot else "method"
        if role not in parts:
            raise BadInput(f"a grid can set the method, protocol.* and net.*, not {name!r}")
        parts[role][field] = value
    if parts["net"] and not isinstance(cell.net, NetSpec):
        raise BadInput("net.* can be set only for a network given by name")
    used = {role: values for role, values in parts.items() if values}
    return replace(cell, **{p: changed(getattr(cell, p), values, chosen_by, f"the {p}") for p, values in used.items()})


def _trial(settings: Mapping[str, Any], record: Record | Failure) -> Trial:
    if isinstance(record, Failure):
        return Trial(settings, None, record.seconds, record.flops)
    acc = record.metrics["acc"]
    return Trial(settings, acc, record.metrics["train_seconds"] or 0.0, record.metrics["flops"] or 0.0)
