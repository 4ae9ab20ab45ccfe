"""A stream is a recipe: settings as dataclass fields, and `cut`, which cuts a data set into tasks."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from holdfast.data import Source, as_dataset, words_of
from holdfast.errors import BadInput
from holdfast.seeds import generator
from holdfast.settings import Count, Fraction, Whole, expected, fits, provenance, settings_of
from holdfast.streams._images import CropFlip, scale_of
from holdfast.types import (
    CENTRED,
    Augment,
    DataSet,
    Part,
    Scenario,
    Segment,
    Stream,
    StreamInfo,
    Task,
    Transform,
    joined,
)

ScaleName = Literal["unit", "centred", "task"]
BESIDES = {"data": str | dict, "seed": Whole}  # what can be said of a stream besides the settings of its recipe


@dataclass(frozen=True)
class StreamSpec(ABC):
    """What all streams share: how many tasks, how much data each, and who knows the task."""

    usual_data: ClassVar[str] = "digits"  # where none is given

    tasks: Count = 5  # number of tasks
    examples: Count | None = None  # training rows per task; none: all there are
    test_examples: Count | None = None  # test rows per task; none: all there are
    val: Fraction = 0.0  # share of each class's training rows kept apart for validation, in all tasks
    scenario: Scenario | None = None  # class, domain or task; none: the stream's own default
    head: Literal["shared", "task"] = "shared"  # task: an output layer for each task, in the task scenario
    augment: bool = False  # training batches show random crops (padded by an eighth of the side) and mirror images
    views: Count | None = None  # of each training row, drawn once and shown beside it; none: drawn anew for each batch
    scale: ScaleName = "unit"  # bytes: from 0 to 1, from −1 to 1 (centred), or to the task's mean 0 and deviation 1
    room: Whole = 0  # outputs besides those of the stream, for classes that a model which is kept learns later

    def sources(self, given: Any, seed: int) -> list[DataSet]:
        """The data sets that the stream is cut from."""
        return as_datasets(given, seed)

    def faults(self, data: DataSet) -> list[str]:
        """What is impossible about these settings for this data set."""
        return []

    @abstractmethod
    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        """The scenario, the number of outputs, and what each task is made of."""

    def plan_all(self, data: Sequence[DataSet], seed: int) -> tuple[Scenario, int, list[Plan]]:
        """The same for several data sets; most streams are cut from one."""
        if len(data) > 1:
            names = ", ".join(one.name for one in data)
            name = type(self).__name__.lower()
            raise BadInput(f"stream {name!r} is cut from one data set, not from {names}; try stream 'assorted'")
        return self.plan(data[0], seed)

    def mixtures(self, tasks: Sequence[Task], seed: int) -> Sequence[Segment]:
        """What is shown where that is not one task after the other: as many segments as there are tasks.

        Each has training rows of any tasks (`Segment.of`). Segments whose task is None hide where tasks end.
        """
        return ()

    def cut(self, name: str, given: Any, seed: int) -> Stream:
        """The stream for one seed, from a data set, several, or whatever can be made one; None: from its usual one."""
        data = self.sources(self.usual_data if given is None else given, seed)
        if faults := [fault for one in data for fault in self._faults_of_data(one)]:
            raise BadInput(*dict.fromkeys(faults))
        scenario, outputs, plans = self._planned(name, data, seed)
        if any(one.fit is not None for one in data):
            data = self._fitted(data, plans, seed)
            scenario, outputs, plans = self._planned(name, data, seed)
        reserved = _reserved(outputs, plans) if self.head == "shared" else {}
        if self.head == "task":
            outputs, plans = _apart(plans)
        outputs += self.room
        used = [*data, *dict.fromkeys(own for _, own in plans if own not in data)]
        held = self._held(plans, seed)
        tasks = tuple(self._task(t, plan, own, held[own], seed) for t, (plan, own) in enumerate(plans))
        _refuse_shapes(name, tasks)
        _refuse_noise(name, tasks)
        mixtures = tuple(self.mixtures(tasks, seed))
        if faults := list(_faults_of_segments(name, scenario, tasks, mixtures)):
            raise BadInput(*faults)
        hidden = any(segment.task is None for segment in mixtures)
        classes, apart = tuple(task.classes for task in tasks), self.head == "task"
        info = StreamInfo(name, scenario, tasks[0].train.shape, outputs, classes, hidden, apart)
        chosen = {k: v["chosen_by"] for k, v in provenance(self).items()}
        names = ",".join(one.name for one in used)
        settings = {"data": names, **_said(used), **settings_of(self), "tasks": len(tasks), "scenario": scenario}
        for unusual in ("room", "views"):
            if not settings[unusual]:
                del settings[unusual]
        again = partial(self.cut, name, given)
        whole = _fingerprint(used)
        return Stream(info, tasks, seed, settings, whole, again, chosen, self, mixtures, tuple(used), reserved)

    def _planned(self, name: str, data: Sequence[DataSet], seed: int) -> tuple[Scenario, int, list[Planned]]:
        """What each task is made of, and from which data set."""
        scenario, outputs, planned = self.plan_all(data, seed)
        plans = [self._whole(plan, data[0]) for plan in planned]
        faults = [*_faults_of_plan(name, scenario, outputs, plans), *self._faults_of_scenario(scenario, plans)]
        if plans and len(plans) != self.tasks and provenance(self)["tasks"]["chosen_by"] == "given":
            faults.append(f"stream {name!r} plans {len(plans)} of the {self.tasks} tasks asked for; leave tasks out")
        if faults:
            raise BadInput(*dict.fromkeys(faults))
        return scenario, outputs, plans

    def _fitted(self, data: Sequence[DataSet], plans: Sequence[Planned], seed: int) -> list[DataSet]:
        """The data sets, a table encoded as the training rows of the first task that is cut from it have it: of later
        tasks nothing is known by then.
        """
        held, found = self._held(plans, seed), dict[DataSet, DataSet]()
        for t, (plan, own) in enumerate(plans):
            if own.fit is not None and own not in found:
                found[own] = own.fit(self._task(t, plan, own, held[own], seed).train.rows)
        return [found.get(one, one) for one in data]

    def _whole(self, plan: Plan, data: DataSet) -> Planned:
        """The plan and its data set, where it leaves something to the stream completed."""
        augment = self.augment if plan.augment is None else plan.augment
        return replace(plan, augment=augment, scale=plan.scale or self.scale), plan.data or data

    def _faults_of_data(self, data: DataSet) -> list[str]:
        faults = self.faults(data)
        if len(data.classes) < 2:
            faults.append(f"data set {data.name!r} has one class; a stream needs at least two")
        if self.val >= 1:
            faults.append(f"val must leave training rows: below 1, not {self.val:g}")
        if self.views and not self.augment:
            faults.append(f"views={self.views} are crops and mirror images, which augment=yes asks for; add it")
        return faults

    def _faults_of_scenario(self, scenario: Scenario, plans: Sequence[Planned]) -> list[str]:
        """What uses the task label, which only the task scenario gives; and a scenario that was asked for in vain."""
        if self.scenario not in (None, scenario):
            return [f"its plan gives the scenario {scenario!r}, not {self.scenario!r} as asked for; leave it out"]
        scaled, headed = any(plan.scale == "task" for plan, _ in plans), self.head == "task"
        needs = {"scale=task": ("to show test rows", scaled), "head=task": ("to choose a layer", headed)}
        found = [
            f"{what} needs the task label {why}, and the {scenario!r} scenario hides it; use scenario 'task'"
            for what, (why, asked) in needs.items()
            if asked and scenario != "task"
        ]
        if self.room and scenario == "domain":
            found.append("room is for classes that come later, and in the 'domain' scenario all tasks have the same")
        return found

    def _held(self, plans: Sequence[Planned], seed: int) -> dict[DataSet, Tensor]:
        """Which rows of each data set are kept for validation; drawn once for all tasks.

        Tasks that show the same images, permuted or rotated, would otherwise train on each other's validation rows.
        """
        found = {}
        for data in dict.fromkeys(own for _, own in plans):
            counts = data.y.bincount(minlength=len(data.classes))
            asked = [plan.rows.val for plan, own in plans if own is data and plan.rows is not None]
            sizes = torch.full_like(counts, max(asked)) if asked else _shares(counts, self.val)
            found[data] = _drawn(data.y, sizes, generator(seed, "validation"))
        return found

    def _task(self, t: int, plan: Plan, data: DataSet, held: Tensor, seed: int) -> Task:
        what, rng = f"task {t} ({plan.name})", generator(seed, "rows", task=t)
        if plan.chosen is not None:
            return self._made(t, plan, data, plan.chosen, seed)
        rows = _rows_of(data.y, plan.source)
        rows = rows[torch.randperm(len(rows), generator=rng)]  # all, so that test rows are the same for any val
        test = _rows_of(data.y_test, plan.source)
        if plan.shares is not None:
            rows = _shared_out(rows, data.y, plan.source, plan.shares, generator(seed, "shares"))
        if plan.test_shares is not None:
            test = _shared_out(test, data.y_test, plan.source, plan.test_shares, generator(seed, "test shares"))
        train, val = rows[~held[rows]], rows[held[rows]]
        if plan.rows is not None:
            test = test[torch.randperm(len(test), generator=rng)]
            names = {c: data.classes[c] for c in plan.source}
            train = _of_each(train, data.y, names, plan.rows.train, f"training rows of {what}")
            val = _of_each(val, data.y, names, plan.rows.val, f"validation rows of {what}")
            test = _of_each(test, data.y_test, names, plan.rows.test, f"test rows of {what}")
        else:
            train = _capped(train, self.examples, f"examples of task {t}", len(val))
            if self.test_examples is not None:
                test = test[torch.randperm(len(test), generator=rng)]
                test = _capped(test, self.test_examples, f"test rows of task {t}")
        if not len(train):
            raise BadInput(f"{what} has no training rows{_after(len(val))}")
        if not len(test):
            raise BadInput(f"{what} has no test rows")
        return self._made(t, plan, data, Chosen(train, val, test), seed)

    def _made(self, t: int, plan: Plan, data: DataSet, rows: Chosen, seed: int) -> Task:
        """The task that has these rows."""
        to_stream = torch.full((len(data.classes),), -1)
        to_stream[list(plan.source)] = torch.tensor(plan.classes)

        def part(pixels: Tensor, y: Tensor, rows: Tensor) -> Part:
            return Part(pixels, rows, to_stream[y[rows]], plan.transform)

        train, val = part(data.x, data.y, rows.train), part(data.x, data.y, rows.val)
        parts = train, val, part(data.x_test, data.y_test, rows.test)
        train, val, test = dressed(parts, bool(plan.augment), plan.scale or self.scale)
        if train.augment is not None and plan.copies:
            val = _with_copies(val, train.augment, plan.copies, generator(seed, "copies", task=t))
        if train.augment is not None and self.views:
            train = _with_copies(train, train.augment, self.views, generator(seed, "views", task=t))
        classes = tuple(sorted(set(plan.classes)))
        return Task(t, plan.name, classes, train, val, test, plan.about, plan.note, _called(plan, data, classes))


Shares = tuple[tuple[float, float], ...]  # from where to where, in one order of a class's rows for all tasks: (0, 1/2)


class Rows(NamedTuple):
    """How many rows of each class a task has."""

    train: int
    val: int = 0
    test: int | None = None  # none: all there are


class Chosen(NamedTuple):
    """Which rows of its data set a task has, in which order."""

    train: Tensor
    val: Tensor
    test: Tensor


@dataclass(frozen=True)
class Plan:
    """What one task is made of."""

    name: str
    source: tuple[int, ...]  # classes of the data set
    classes: tuple[int, ...]  # the stream's class index for each of them
    transform: Transform | None = None
    data: DataSet | None = None  # none: the one that the stream is cut from
    rows: Rows | None = None  # none: what the stream's examples, test_examples and val say
    augment: bool | None = None  # none: as the stream says, here and below
    scale: ScaleName | None = None
    shares: Shares | None = None  # of the training and validation rows of each class; none: all
    test_shares: Shares | None = None
    chosen: Chosen | None = None  # by the stream itself; none: drawn as all that stands above says
    copies: int = 0  # augmented ones of each validation row, after the rows themselves
    about: str = ""  # for Task, as is the next
    note: str = ""


Planned = tuple[Plan, DataSet]  # a task, and the data set it is cut from


def as_datasets(given: Any, seed: int) -> list[DataSet]:
    """What a stream is cut from: names and paths separated by commas, a list of them and of data sets, or any one."""
    if isinstance(given, Source) and isinstance(given.data, str):
        each: list[Any] = [replace(given, data=word) for word in words_of(given.data)]
    elif isinstance(given, str):
        each = words_of(given)
    elif isinstance(given, list | tuple) and any(isinstance(one, str | Path | Source | DataSet) for one in given):
        each = list(given)
    else:
        each = [given]
    found: list[DataSet] = []
    faults: list[str] = []
    for one in each:
        try:
            found.append(as_dataset(one, seed))
        except BadInput as error:
            faults += error.faults
    if faults:
        raise BadInput(*dict.fromkeys(faults))
    return found


def _said(data: Sequence[DataSet]) -> dict[str, str]:
    """How they were read, where that was said."""
    words = dict.fromkeys(word for one in data for word in one.read)
    return {word: ",".join(one.read.get(word, "") for one in data) for word in words}


def _fingerprint(data: Sequence[DataSet]) -> str:
    """One for all of them."""
    prints = [one.fingerprint for one in data]
    return prints[0] if len(prints) == 1 else hashlib.sha256(" ".join(prints).encode()).hexdigest()


def _faults_of_plan(name: str, scenario: str, outputs: int, plans: Sequence[Planned]) -> Iterator[str]:
    """What a stream of a user's may have planned that cannot be."""
    if not fits(Scenario, scenario):
        yield f"scenario of stream {name!r} must be {expected(Scenario)}, not {scenario!r}"
    if not plans:
        yield f"stream {name!r} plans no task"
    for t, (plan, data) in enumerate(plans):
        what = f"task {t} ({plan.name}) of stream {name!r}"
        if len(plan.source) != len(plan.classes):
            yield f"{what} has {len(plan.source)} classes of the data set, but {len(plan.classes)} of the stream"
        elif not plan.source:
            yield f"{what} has no classes"
        elif min(plan.source) < 0 or max(plan.source) >= len(data.classes):
            yield f"{what} needs class {max(plan.source)}, but data set {data.name!r} has {len(data.classes)} classes"
        elif min(plan.classes) < 0 or max(plan.classes) >= outputs:
            yield f"{what} has class {max(plan.classes)}, but the stream has {outputs} outputs, counted from 0"
        if plan.augment and len(data.shape) != 3:
            yield f"augment needs images, but data set {data.name!r} has vectors of {data.shape[0]}"
        if plan.scale == "task" and data.x.dtype != torch.uint8:
            yield f"scale=task is for bytes, but data set {data.name!r} has floats, which are shown as they are"


def _faults_of_segments(
    name: str, scenario: Scenario, tasks: Sequence[Task], segments: Sequence[Segment]
) -> Iterator[str]:
    """What a stream may show that cannot be."""
    if not segments:
        return
    if [segment.t for segment in segments] != list(range(len(tasks))):
        numbers = ", ".join(str(segment.t) for segment in segments)
        yield f"stream {name!r} has segments {numbers}; there must be one per task, from 0 to {len(tasks) - 1}"
        return
    hidden = [segment.task is None for segment in segments]
    if any(hidden) and not all(hidden):
        yield f"stream {name!r} hides the task of segment {hidden.index(True)}, but not of all"
    elif any(hidden) and scenario == "task":
        yield f"stream {name!r} hides where tasks end, and the 'task' scenario tells; use scenario 'class' or 'domain'"
    for segment in segments:
        what = f"segment {segment.t} of stream {name!r}"
        if not len(segment.train):
            yield f"{what} has no training rows"
        elif isinstance(segment.task, Tensor) and len(segment.task) != len(segment.train):
            yield f"{what} has {len(segment.train)} training rows, but the task of {len(segment.task)}"
        elif segment.task is None:
            continue
        elif not _known(segment, len(tasks)):
            yield f"{what} has rows of a task that is none of 0 to {len(tasks) - 1}"
        elif scenario == "task" and not _inside(segment, tasks):
            yield f"{what} has rows of classes that the task they are said to be of has not"


def _known(segment: Segment, tasks: int) -> bool:
    said = torch.as_tensor(segment.task)
    return bool(((said >= 0) & (said < tasks)).all())


def _inside(segment: Segment, tasks: Sequence[Task]) -> bool:
    """Whether each row has a class of the task that it is said to be of."""
    said = torch.as_tensor(segment.task).expand(len(segment.train))
    return all(
        bool(torch.isin(segment.train.y[said == t], torch.tensor(tasks[t].classes)).all()) for t in said.unique()
    )


def _apart(plans: Sequence[Planned]) -> tuple[int, list[Planned]]:
    """The plans with outputs of its own for each task, as many as it has classes: rows of the last layer that no other
    task uses are a layer of its own, in what is computed from them, learned and counted."""
    outputs, found = 0, []
    for plan, data in plans:
        place = {c: outputs + i for i, c in enumerate(sorted(set(plan.classes)))}
        found.append((replace(plan, classes=tuple(place[c] for c in plan.classes)), data))
        outputs += len(place)
    return outputs, found


def dressed(parts: Sequence[Part], augment: bool, scale: ScaleName) -> tuple[Part, Part, Part]:
    """The parts of a task, training rows first, augmented and scaled."""
    train, val, test = parts
    seen = scale_of(train) if scale == "task" else CENTRED if scale == "centred" else None
    changed = CropFlip(min(train.shape[1:]) // 8) if augment else None
    return replace(train, augment=changed, scale=seen), replace(val, scale=seen), replace(test, scale=seen)


def _called(plan: Plan, data: DataSet, classes: Sequence[int]) -> tuple[str, ...]:
    """The name of each of a task's classes; of one that stands for several, all of theirs."""
    found: dict[int, list[str]] = {c: [] for c in classes}
    for source, c in zip(plan.source, plan.classes, strict=True):
        found[c].append(data.classes[source])
    return tuple("/".join(names) for names in found.values())


def _reserved(outputs: int, plans: Sequence[Planned]) -> dict[str, int]:
    """The output of each class of the data set, those that no task has included; nothing where tasks deal them out."""
    sets = {data for _, data in plans}
    data = plans[0][1]
    plain = all(plan.source == plan.classes for plan, _ in plans) and len(data.classes) == outputs
    return {name: c for c, name in enumerate(data.classes)} if len(sets) == 1 and plain else {}


def _with_copies(part: Part, augment: Augment, copies: int, rng: torch.Generator) -> Part:
    """The rows, and after them so many augmented copies of each, made once."""
    pixels = augment(part.cut().repeat(copies, 1, 1, 1), rng)
    made = Part(pixels, torch.arange(len(pixels)), part.y.repeat(copies), scale=part.scale)
    return replace(joined([replace(part, augment=None), made]), copies=copies)


def _refuse_shapes(name: str, tasks: Sequence[Task]) -> None:
    """All tasks are shown to one network."""
    first = tasks[0].train
    for task in tasks:
        if (task.train.shape, task.train.dtype) != (first.shape, first.dtype):
            kinds = [f"{part.shape} {str(part.dtype).partition('.')[2]}" for part in (task.train, first)]
            raise BadInput(f"task {task.t} of stream {name!r} has examples of {kinds[0]}, but task 0 has {kinds[1]}")


def _refuse_noise(name: str, tasks: Sequence[Task]) -> None:
    """A transform that draws anew shows another row each time, and moves the random numbers of whoever looks."""
    for task in tasks:
        if task.train.transform is None:
            continue
        looks = [task.train.cut(slice(0, 2)) for _ in range(2)]
        if not torch.equal(*looks):
            raise BadInput(
                f"task {task.t} ({task.name}) of stream {name!r} shows a row otherwise each time; a transform depends "
                "on the row alone: draw once, in plan, from torch.Generator().manual_seed(seed)"
            )


def same_classes(data: DataSet, transforms: Iterable[tuple[str, Transform | None]]) -> list[Plan]:
    """Tasks that all have the data set's classes and differ by a (named) transform of the pixels."""
    classes = tuple(range(len(data.classes)))
    return [Plan(name, classes, classes, transform) for name, transform in transforms]


def _rows_of(y: Tensor, classes: tuple[int, ...]) -> Tensor:
    return torch.isin(y, torch.tensor(classes)).nonzero().flatten()


def bounds(n: int, share: tuple[float, float]) -> tuple[int, int]:
    """Which of n rows a share of them is: shares that touch have none in common and leave none between them."""
    return round(n * share[0]), round(n * share[1])


def _shared_out(rows: Tensor, y: Tensor, classes: Sequence[int], shares: Shares, rng: torch.Generator) -> Tensor:
    """Those of the rows that the task has of each class, in their order."""
    order = torch.randperm(len(y), generator=rng)
    mine = torch.zeros(len(y), dtype=torch.bool)
    for c, share in zip(classes, shares, strict=True):
        there = order[y[order] == c]
        mine[there[slice(*bounds(len(there), share))]] = True
    return rows[mine[rows]]


def _shares(counts: Tensor, share: float) -> Tensor:
    """How many rows a share of each class is, at least one of two or more; rounded such that they add up.

    1/12 of MNIST is 5,000 rows.
    """
    if not share:
        return torch.zeros_like(counts)
    ends = (counts.cumsum(0).double() * share).round().long()
    return ends.diff(prepend=ends.new_zeros(1)).clamp(min=1) * (counts > 1)


def drawn(y: Tensor, share: float, rng: torch.Generator) -> Tensor:
    """(N,) which rows are drawn: a share of each class."""
    return _drawn(y, _shares(y.bincount(), share), rng)


def _drawn(y: Tensor, sizes: Tensor, rng: torch.Generator) -> Tensor:
    """(N,) which rows are drawn: so many of each class."""
    drawn = torch.zeros(len(y), dtype=torch.bool)
    if not sizes.any():
        return drawn
    order = torch.randperm(len(y), generator=rng)
    classes = y[order]
    for c, size in enumerate(sizes.tolist()):
        drawn[order[classes == c][:size]] = True
    return drawn


def _of_each(rows: Tensor, y: Tensor, names: Mapping[int, str], size: int | None, what: str) -> Tensor:
    """So many rows of each class, the first ones, in their order."""
    if size is None:
        return rows
    classes, kept = y[rows], torch.zeros(len(rows), dtype=torch.bool)
    for c, name in names.items():
        there = (classes == c).nonzero().flatten()
        if len(there) < size:
            raise BadInput(f"{what}: {size} per class asked for, at most {len(there)} there are of class {name!r}")
        kept[there[:size]] = True
    return rows[kept]


def _capped(rows: Tensor, cap: int | None, what: str, held: int = 0) -> Tensor:
    if cap is None:
        return rows
    if cap > len(rows):
        raise BadInput(f"{what}: {cap} asked for, at most {len(rows)} there are{_after(held)}")
    return rows[:cap]


def _after(held: int) -> str:
    return f" (after {held} rows for validation)" if held else ""
