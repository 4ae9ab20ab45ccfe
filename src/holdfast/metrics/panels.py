"""A study as a picture: accuracies while the parts of a stream are learned, and over α where networks are merged."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from holdfast.metrics import study
from holdfast.metrics.statistics import interval
from holdfast.types import Record

Stopping = Callable[[Record], tuple[int, float]]  # the retraining that is taken, and the step where it is stopped


@dataclass(frozen=True)
class Curve:
    """One line of a panel: the mean over seeds at each x, and its 95% interval."""

    name: str  # 'D1', 'D2', 'D1 ∪ D2'; of merged networks 'D1 ∪ D2, mean merge'
    x: list[float]
    mean: list[float | None]
    low: list[float | None]
    high: list[float | None]
    over: Literal["time", "alpha"] = "time"


@dataclass(frozen=True)
class Mark:
    """A place to look at on a panel's axis."""

    x: float
    text: str
    curve: str = ""  # whose it is, and so its colour
    over: Literal["time", "alpha"] = "time"


@dataclass(frozen=True)
class Panel:
    """One experiment: accuracies while the parts of a stream are learned, and over α where networks are merged."""

    title: str
    scenario: str
    curves: list[Curve]
    begins: list[float] = field(default_factory=list)  # where each part's training begins, in time
    at_once: float | None = None  # accuracy of one network trained on all parts together
    marks: list[Mark] = field(default_factory=list)


def curve(name: str, runs: Sequence[Sequence[tuple[float, float]]], over: Literal["time", "alpha"] = "time") -> Curve:
    """The points of each seed's run as one curve; x is the same in all of them."""
    points = [interval([accuracy for _, accuracy in at]) for at in zip(*runs, strict=True)]
    x = [float(x) for x, _ in runs[0]]
    return Curve(name, x, [p.mean for p in points], [p.low for p in points], [p.high for p in points], over)


def retraining(record: Record) -> Mapping[str, Any]:
    """The retraining that was chosen, with the data that the protocol chooses on."""
    last = len(record.tasks) - 1
    return next(row for row in record.study["trials"] if row["task"] == last and row["chosen"])


def share(record: Record) -> float:
    """|D2| / (|D1| + |D2|): the weight of D2 that IMM's authors take; of more parts, the last one's share of rows."""
    rows = [task["n_train"] for task in record.tasks]
    return float(rows[-1] / sum(rows))


def peak(course: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(α, accuracy) where the accuracy is highest; the first of equal ones."""
    return max(course, key=lambda point: point[1])


def near(course: Sequence[tuple[float, float]], alpha: float) -> float:
    """The accuracy at the α next to the one asked for."""
    return min(course, key=lambda point: abs(point[0] - alpha))[1]


def panel(
    title: str, records: Sequence[Record], unit: Literal["step", "epoch"] = "step", stopping: Stopping | None = None
) -> Panel:
    """A study's course, mean over seeds: D1 while it is learned and after, D2, and their union.

    Drawn is the retraining that the run chose, or the one that `stopping` takes.
    """
    record = records[0]
    parts = len(record.tasks)
    stops = [(stopping or _stop)(each) for each in records]
    path = [[*_path(each)[:-1], trial] for each, (trial, _) in zip(records, stops, strict=True)]
    lengths = [max(step for step, _ in study.course(record, path[0][t], t)) for t in range(parts)]
    size = [length if unit == "step" else _epochs(record, t, length) for t, length in enumerate(lengths)]
    begins = [float(sum(size[:t])) for t in range(parts)]

    def placed(t: int, course: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(begins[t] + step / lengths[t] * size[t], q) for step, q in course]

    merges = bool(record.study.get("blends"))
    curves = []
    for task in range(parts):
        seen = (task,) if merges else range(task, parts)
        runs = [
            [point for t in seen for point in placed(t, study.course(r, p[t], task))]
            for r, p in zip(records, path, strict=True)
        ]
        curves.append(curve(f"D{task + 1}", runs))
    name = " ∪ ".join(f"D{t + 1}" for t in range(parts))
    if not merges:
        unions = zip(records, path, strict=True)
        curves.append(curve(name, [placed(parts - 1, study.union(r, p[-1])) for r, p in unions]))
    at_once = [study.at_once(r) for r in records]
    return Panel(
        title,
        scenario_of(record),
        [*curves, *_merged(name, records)] if merges else curves,
        begins,
        interval(at_once).mean,
        _alphas(name, records) if merges else _stops([at for _, at in stops], lengths[-1], begins[-1], size[-1], unit),
    )


def _path(record: Record) -> list[int]:
    """The chosen trial of every task."""
    chosen = {row["task"]: int(row["trial"]) for row in record.study["trials"] if row["chosen"]}
    return [chosen[t] for t in range(len(record.tasks))]


def _merged(name: str, records: Sequence[Record]) -> list[Curve]:
    return [
        curve(f"{name}, {merge} merge", [study.blended(r, merge) for r in records], "alpha")
        for merge in dict.fromkeys(row["merge"] for row in records[0].study["blends"])
        if study.blended(records[0], merge)  # after the last part there may be fewer ways to merge than before
    ]


def _alphas(name: str, records: Sequence[Record]) -> list[Mark]:
    """Where D2 has its share, and where the accuracy, mean over seeds, is highest."""
    at = share(records[0])
    last = len(records[0].tasks)
    whole = "+".join(f"|D{t + 1}|" for t in range(last))
    marks = [Mark(at, f"|D{last}|/({whole}) = {at:.2f}", over="alpha")]
    for curve_ in _merged(name, records):
        points = [(x, q) for x, q in zip(curve_.x, curve_.mean, strict=True) if q is not None]
        alpha, q = peak(points)
        word = curve_.name.partition(", ")[2]
        said = f"best {word}: α = {alpha:.2f}, accuracy {q:.3f} (at the share: {near(points, at):.3f})"
        marks.append(Mark(alpha, said, curve_.name, "alpha"))
    return marks


def _stop(record: Record) -> tuple[int, float]:
    row = retraining(record)
    return int(row["trial"]), float(row["stop"])


def _epochs(record: Record, task: int, steps: float) -> float:
    """How many passes over a task so many steps are."""
    if record.protocol["steps"] is None:
        return float(record.protocol["epochs"])
    return steps * float(record.protocol["batch"]) / float(record.tasks[task]["n_train"])


def _stops(steps: Sequence[float], length: float, begin: float, size: float, unit: str) -> list[Mark]:
    """Where retraining was stopped, if before its end."""
    mean = sum(steps) / len(steps) / length * size
    if mean >= size:
        return []
    often = " on average" if len(steps) > 1 else ""
    return [Mark(begin + mean, f"stopped at {unit} {mean:.4g} of retraining{often}")]


def scenario_of(record: Record) -> str:
    """'domain, task label hidden': what an accuracy must stand beside."""
    return f"{record.scenario}, task label {'given' if record.scenario == 'task' else 'hidden'}"
