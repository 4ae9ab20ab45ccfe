"""What papers 003 and 004 share: their twelve tasks, their models, how a record is read, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import holdfast as hf
from holdfast.papers.base import Curve, Entry, Mark, Panel, Scale, curve, scenario_of

FIVE = tuple(f"D5-5{c}" for c in "abcdefgh")
NINE = tuple(f"D9-1{c}" for c in "abc")
PERMUTED = "DP10-10"
SLTS = (*FIVE, *NINE, PERMUTED)
TYPES = {"D5-5": FIVE, "D9-1": NINE, PERMUTED: (PERMUTED,)}  # 003 takes the minimum over the tasks of a type
SMOKE = ("D5-5a", "D9-1a", PERMUTED)
VAL = 1 / 12  # 55,000 of MNIST's 60,000 rows are trained on, as in the papers; the others are kept out

Settings = Mapping[str, Any]
Reading = Callable[[hf.Record], float]
Stopping = Callable[[hf.Record], tuple[int, float]]  # the retraining that is taken, and the step where it is stopped


@dataclass(frozen=True)
class Model:
    """One model of the papers: a method on a network, and what its training has of its own."""

    method: str
    net: str
    settings: Settings = field(default_factory=dict)
    shape: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)
    long: bool = False  # 2,500 steps in paper 004, the others 1,500

    @property
    def convolves(self) -> bool:
        return self.net == "conv"


DROPS = {"dropout": 0.5, "input_dropout": 0.2}
MODELS = {
    "fc": Model("finetune", "mlp", shape={"init": "truncated"}),
    "D-fc": Model("finetune", "mlp", shape={"init": "truncated", **DROPS}),
    "conv": Model("finetune", "conv", shape={"init": "tenth"}),
    "D-conv": Model("finetune", "conv", shape={"init": "tenth", "dropout": 0.5, "input_dropout": 0.5}),
    "LWTA": Model("finetune", "lwta"),
    "EWC": Model("ewc", "mlp", {"strength": "1/lr"}, {"init": "truncated", **DROPS}, long=True),
    "wtIMM": Model("imm", "mlp", {"merge": "mode"}, {"init": "tenth", **DROPS}, {"optimiser": "sgd"}),
}
EMULATED = {  # as the authors' code ran them, where that needs another training
    "EWC": Model(
        "ewc",
        "mlp",
        {"strength": "1/lr", "labels": "true"},
        {"init": "tenth", **DROPS},
        {"optimiser": "adam", "reset_optimiser": True, "test_batch": 100},
        long=True,
    ),
    "wtIMM": Model("imm", "mlp", {"merge": "mode"}, {"init": "tenth"}, {"optimiser": "sgd", "later_lr": (0.01,)}),
}


def kind(slt: str) -> str:
    """
    >>> kind("D9-1c"), kind("DP10-10")
    ('D9-1', 'DP10-10')
    """
    return slt if slt == PERMUTED else slt[:4]


def threshold(slt: str) -> float:
    """Below it, a model has forgotten (003, Table 3)."""
    return 0.9 if kind(slt) == "D9-1" else 0.5


def entry(
    place: tuple[str, str],
    slt: str,
    model: Model,
    scale: Scale,
    protocol: str,
    training: Settings,
    *,
    data: str = "mnist",
    emulated: bool = False,
    permute: bool = True,
    setting: str = "",
) -> Entry:
    """One model on one task of a data set; `training`: the protocol's settings beside the model's own."""
    shown: dict[str, Any] = {"data": data, "parts": slt, "val": VAL, "permute": permute}
    small: dict[str, Any] = {}
    shape = dict(model.shape)
    if scale == "smoke":
        shown |= {"data": "digits", "val": 0.2}
        small = {"layers": (1,), "sizes": (20,), "lr": (0.01,), "later_lr": (0.01, 0.001), "steps": 60, "batch": 20}
        small |= {"score_every": 10, **({"alphas": 10} if protocol == "application" else {})}
        shape |= {"filters": (4,), "hidden": 20} if model.convolves else {}
    return Entry(
        row=place[0],
        column=place[1],
        method=hf.method(model.method, **model.settings),
        stream=hf.stream("slt", **shown),
        net=hf.net(model.net, **shape),
        protocol=hf.protocol(protocol, **{"choose_on": "test", **training, **small, **model.training}),
        emulated=emulated,
        setting=setting,
    )


def retraining(record: hf.Record) -> Mapping[str, Any]:
    """The retraining that was chosen, with the data that the protocol chooses on."""
    last = len(record.tasks) - 1
    return next(row for row in record.study["trials"] if row["task"] == last and row["chosen"])


def at_stop(record: hf.Record) -> float:
    """The accuracy on D1 ∪ D2 where the chosen retraining was stopped."""
    row = retraining(record)
    return dict(hf.study.union(record, row["trial"]))[row["stop"]]


def reached(record: hf.Record, share: float, on: int | None = None) -> float:
    """004's prescient number as its authors read it: per retraining, at the first step that has `share` of the highest
    accuracy on D1 ∪ D2; `on`: on the test set of this task alone."""
    last = len(record.tasks) - 1
    trials = [row["trial"] for row in record.study["trials"] if row["task"] == last and "failed" not in row]
    courses = [hf.study.course(record, trial, on) for trial in trials]
    return max(next(q for _, q in course if q >= share * max(q for _, q in course)) for course in courses)


def share(record: hf.Record) -> float:
    """|D2| / (|D1| + |D2|): the weight of D2 that IMM's authors take."""
    first, second = (task["n_train"] for task in record.tasks)
    return float(second / (first + second))


def peak(course: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """(α, accuracy) where the accuracy is highest; the first of equal ones."""
    return max(course, key=lambda point: point[1])


def near(course: Sequence[tuple[float, float]], alpha: float) -> float:
    """The accuracy at the α next to the one asked for."""
    return min(course, key=lambda point: abs(point[0] - alpha))[1]


def panel(
    title: str, records: Sequence[hf.Record], unit: Literal["step", "epoch"] = "step", stopping: Stopping | None = None
) -> Panel:
    """A study's course, mean over seeds: D1 while it is learned and after, D2, and their union.

    Drawn is the retraining that the run chose, or the one that `stopping` takes.
    """
    record = records[0]
    parts = len(record.tasks)
    stops = [(stopping or _stop)(each) for each in records]
    path = [[*_path(each)[:-1], trial] for each, (trial, _) in zip(records, stops, strict=True)]
    lengths = [max(step for step, _ in hf.study.course(record, path[0][t], t)) for t in range(parts)]
    size = [length if unit == "step" else _epochs(record, t, length) for t, length in enumerate(lengths)]
    begins = [float(sum(size[:t])) for t in range(parts)]

    def placed(t: int, course: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
        return [(begins[t] + step / lengths[t] * size[t], q) for step, q in course]

    merges = bool(record.study.get("blends"))
    curves = []
    for task in range(parts):
        seen = (task,) if merges else range(task, parts)
        runs = [
            [point for t in seen for point in placed(t, hf.study.course(r, p[t], task))]
            for r, p in zip(records, path, strict=True)
        ]
        curves.append(curve(f"D{task + 1}", runs))
    name = " ∪ ".join(f"D{t + 1}" for t in range(parts))
    if not merges:
        unions = zip(records, path, strict=True)
        curves.append(curve(name, [placed(parts - 1, hf.study.union(r, p[-1])) for r, p in unions]))
    baselines = [hf.study.baseline(r) for r in records]
    return Panel(
        title,
        scenario_of(record),
        [*curves, *_merged(name, records)] if merges else curves,
        begins,
        hf.interval(baselines).mean,
        _alphas(name, records) if merges else _stops([at for _, at in stops], lengths[-1], begins[-1], size[-1], unit),
    )


def _path(record: hf.Record) -> list[int]:
    """The chosen trial of every task."""
    chosen = {row["task"]: int(row["trial"]) for row in record.study["trials"] if row["chosen"]}
    return [chosen[t] for t in range(len(record.tasks))]


def _merged(name: str, records: Sequence[hf.Record]) -> list[Curve]:
    return [
        curve(f"{name}, {merge} merge", [hf.study.blended(r, merge) for r in records], "alpha")
        for merge in ("mean", "mode")
    ]


def _alphas(name: str, records: Sequence[hf.Record]) -> list[Mark]:
    """Where D2 has its share, and where the accuracy, mean over seeds, is highest."""
    at = share(records[0])
    marks = [Mark(at, f"|D2|/(|D1|+|D2|) = {at:.2f}", over="alpha")]
    for curve_ in _merged(name, records):
        points = [(x, q) for x, q in zip(curve_.x, curve_.mean, strict=True) if q is not None]
        alpha, q = peak(points)
        word = curve_.name.partition(", ")[2]
        said = f"best {word}: α = {alpha:.2f}, accuracy {q:.3f} (at the share: {near(points, at):.3f})"
        marks.append(Mark(alpha, said, curve_.name, "alpha"))
    return marks


def _stop(record: hf.Record) -> tuple[int, float]:
    row = retraining(record)
    return int(row["trial"]), float(row["stop"])


def _epochs(record: hf.Record, task: int, steps: float) -> float:
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
