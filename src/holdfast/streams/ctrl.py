"""The transfer streams of paper 000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, final

import torch
from torch import Tensor

from holdfast.data import at_hand, data_folder, load, procedural
from holdfast.errors import BadInput
from holdfast.seeds import generator
from holdfast.settings import Count, Range, Whole, changed, provenance
from holdfast.streams._base import Chosen, Plan, Rows, ScaleName, StreamSpec
from holdfast.streams._images import Fitted, OnColour
from holdfast.streams._transfer import LONG_DATA, TABLE_4, Dealt, Wanted, dealt, drawn_long, published
from holdfast.types import DataSet, Scenario, Stream, Transform

Kind = Literal["minus", "plus", "in", "out", "pl", "long"]
SIDE = 32
COPIES = 4  # augmented ones of each validation row of a task with few
COLOURS = ("red", "green", "blue")


class Family(NamedTuple):
    """What stands for a data set of the paper where `data=synth`."""

    name: str
    families: tuple[str, ...]
    seed: int = 0
    shift: float = 0.0


SYNTH = {
    "cifar-10": Family("synth-shapes", ("shapes",)),
    "mnist": Family("synth-strokes", ("strokes",)),
    "dtd": Family("synth-textures", ("textures",)),
    "fashion-mnist": Family("synth-colours", ("colours",)),
    "svhn": Family(
        "synth-strokes-far", ("strokes",), 1, 1.0
    ),  # as house numbers are to MNIST: the same signs elsewhere
    "cifar-100": Family("synth-all", ("strokes", "textures", "shapes", "colours"), 2, 0.5),
}
SYNTH_LONG, SYNTH_TEST = 700, 100  # rows per class that are made for the long stream, and for tests


@final
@dataclass(frozen=True)
class Ctrl(StreamSpec):
    """CTrL, the transfer streams of paper 000: is what was learned before used again, where it helps?

    minus: S⁻, the last task is the first one again with a tenth of its rows: knowledge of the first helps.
    plus: S⁺, the last task is the first one again with ten times its rows: knowledge should be brought up to date.
    in: S^in, the last task is the first one, digits on a ground of another colour, with 5 rows per class.
    out: S^out, the last task is the first one with a tenth of its rows and its labels moved on by one.
    pl: S^pl, five tasks that have nothing to do with one another: plasticity alone counts.
    long: S^long, 100 tasks of five classes, large and small at first, small in the end: does it scale?

    The data sets are the paper's (`data=paper`) or procedural ones in their place (`data=synth`). A task has the
    outputs 0, 1, ..., for classes in an order that is random, the same for all tasks of a data set. Where a data set
    has fewer rows than the paper asks for, the task takes what there is, and its note says so.

    >>> import holdfast as hf
    >>> stream = hf.stream("ctrl", kind="minus", data="synth", rows=0.05)
    >>> [(task.name, len(task.train)) for task in stream.tasks][:2], len(stream), stream.info.classes
    ([('synth-shapes', 200), ('synth-strokes', 20)], 6, 10)
    """

    usual_data: ClassVar[str] = "paper"

    tasks: Count = 6  # as many as the kind has; fewer leave out some before the last, of long all after the first ones
    augment: bool = True  # training batches show random crops (padded by an eighth of the side) and mirror images
    scale: ScaleName = "task"  # to the task's mean 0 and deviation 1, but for kind=in, which has unit
    kind: Kind = "minus"  # which of the six
    disjoint: bool = True  # tasks of the same classes have no row in common; no: each draws for itself, as in the paper
    rows: Annotated[float, Range(0, 1, strict=True)] = 1.0  # of the paper's training and validation rows, so much
    test: Count = 1000  # test rows per class, at most
    instance: Literal["published", "drawn"] | Whole = "published"  # long: of Tables 5, 6, by the stream's seed, by this

    def cut(self, name: str, given: Any, seed: int) -> Stream:
        return super(Ctrl, self._settled()).cut(name, given, seed)

    def _settled(self) -> Ctrl:
        """With the scale that the kind has."""
        if self.kind != "in" or provenance(self)["scale"]["chosen_by"] != "default":
            return self
        return changed(self, {"scale": "unit"}, "default", "stream 'ctrl'")

    def sources(self, given: Any, seed: int) -> list[DataSet]:
        needed = self._needed()
        words = [word.strip() for word in given.split(",")] if isinstance(given, str) else []
        if words in (["paper"], needed):
            if absent := [name for name in needed if not at_hand(name)]:
                raise BadInput(
                    f"kind {self.kind!r} of stream 'ctrl' needs {_listed(absent)}, not found in {data_folder()}; put "
                    f"the {'folder' if len(absent) == 1 else 'folders'} there ("
                    f"{', '.join(f'`holdfast data fetch {name}`' for name in absent)}), or use data=synth or, of a "
                    "recipe, --scale smoke, which run anywhere"
                )
            return [load(name) for name in needed]
        if words in (["synth"], [SYNTH[name].name for name in needed]):
            return [self._procedural(name) for name in needed]
        kind = repr(given) if isinstance(given, str) else f"a {type(given).__name__}"
        raise BadInput(f"stream 'ctrl' has data sets of its own: data must be paper or synth, not {kind}")

    def faults(self, data: DataSet) -> list[str]:
        found = [
            f"kind {self.kind!r} of stream 'ctrl' says how many rows a task has; set rows or test in place of {name}"
            for name in ("examples", "test_examples", "val")
            if getattr(self, name)
        ]
        number, fewest = (100, 1) if self.kind == "long" else (len(TABLE_4[self.kind]), 2)
        if self._given("tasks") and not fewest <= self.tasks <= number:
            found.append(f"kind {self.kind!r} of stream 'ctrl' has {fewest} to {number} tasks, not {self.tasks}")
        if self._given("instance") and self.kind != "long":
            found.append(f"instance is for kind 'long' of stream 'ctrl', not for {self.kind!r}; leave it out")
        if self.scenario == "class":
            found.append(
                "all tasks of stream 'ctrl' have the same outputs; use scenario 'task', or 'domain' with scale=unit"
            )
        return found

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        raise BadInput("stream 'ctrl' is cut from several data sets; data must be paper or synth")

    def plan_all(self, data: Sequence[DataSet], seed: int) -> tuple[Scenario, int, list[Plan]]:
        source = dict(zip(self._needed(), data, strict=True))
        wanted = self._wanted(seed)
        classes = [self._classes(t, task, source[task.data], seed) for t, task in enumerate(wanted)]
        dealt_out: dict[int, Dealt] = {}
        for name, one in source.items():
            mine = {t: (classes[t], task.rows) for t, task in enumerate(wanted) if task.data == name}
            dealt_out |= dealt(one.y, mine, self.disjoint, generator(seed, "ctrl", "rows", data=name))
        colours = torch.randperm(len(COLOURS), generator=generator(seed, "ctrl", "colours")).tolist()
        plans: list[Plan] = []
        for t, task in enumerate(wanted):
            one, last = source[task.data], t == len(wanted) - 1
            rows = self._rows(t, one, classes[t], dealt_out[t], seed)
            colour = None if self.kind != "in" or task.data != "mnist" else colours[1 if last else 0]
            further = int(self.kind == "out" and last)
            name = self._name(one, t, classes[t], colour, again=last and task.data == wanted[0].data)
            if not len(rows.train) or not _all_there(one.y[rows.train], classes[t]):
                raise BadInput(
                    f"task {t} ({name}) of stream 'ctrl' has no training row of one of its classes: data set "
                    f"{one.name!r} has too few; with disjoint=no tasks draw from the same rows"
                )
            n = len(classes[t])
            plans.append(
                Plan(
                    name,
                    source=classes[t],
                    classes=tuple((i + further) % n for i in range(n)),
                    transform=_shown(one, colour),
                    data=one,
                    chosen=rows,
                    copies=COPIES if task.tiny else 0,
                    about=_about(one, classes[t], rows, further),
                    note=_note(one, classes[t], task.rows, rows),
                )
            )
        return self.scenario or "task", max(map(len, classes)), plans

    def _given(self, name: str) -> bool:
        return provenance(self)[name]["chosen_by"] == "given"

    def _needed(self) -> list[str]:
        """The paper's names of the data sets, the same for all seeds."""
        return list(LONG_DATA) if self.kind == "long" else list(dict.fromkeys(task.data for task in self._wanted(0)))

    def _wanted(self, seed: int) -> list[Wanted]:
        if self.kind != "long":
            found: Sequence[Wanted] = TABLE_4[self.kind]
            found = (*found[: self.tasks - 1], found[-1]) if self._given("tasks") else found
        else:
            tasks = self.tasks if self._given("tasks") else 100
            own = seed if self.instance == "drawn" else self.instance
            found = published()[:tasks] if isinstance(own, str) else drawn_long(tasks, own)
        return [task.scaled(self.rows) for task in found]

    def _procedural(self, name: str) -> DataSet:
        if self.kind == "long":
            rows = max(40, round(SYNTH_LONG * self.rows))
        else:
            rows = sum(task.rows.train + task.rows.val for task in self._wanted(0) if task.data == name)
        family = SYNTH[name]
        return procedural(*family[:2], rows, min(self.test, SYNTH_TEST), family.seed, family.shift)

    def _classes(self, t: int, task: Wanted, data: DataSet, seed: int) -> tuple[int, ...]:
        """Those of the data set that the task has, in the order of its labels."""
        if self.kind != "long":
            order = torch.randperm(len(data.classes), generator=generator(seed, "ctrl", "labels", data=task.data))
            return tuple(order[: task.drawn].tolist())
        places = {_plain(name): c for c, name in enumerate(data.classes)}
        if task.classes is not None and all(_plain(name) in places for name in task.classes):
            return tuple(places[_plain(name)] for name in task.classes)
        own = self.instance if isinstance(self.instance, int) else seed
        order = torch.randperm(len(data.classes), generator=generator(own, "ctrl", "classes", task=t))
        return tuple(order[: task.drawn].tolist())

    def _rows(self, t: int, data: DataSet, classes: tuple[int, ...], rows: Dealt, seed: int) -> Chosen:
        """The rows of a task in random order; tests of a class are the same in all tasks."""
        rng = generator(seed, "rows", task=t)
        train, val = (part[torch.randperm(len(part), generator=rng)] for part in rows)
        order = torch.randperm(len(data.y_test), generator=generator(seed, "ctrl", "tests", data=data.name))
        y = data.y_test[order]
        test = torch.cat([order[y == c][: self.test] for c in classes])
        return Chosen(train, val, test[torch.randperm(len(test), generator=rng)])

    def _name(self, data: DataSet, t: int, classes: tuple[int, ...], colour: int | None, again: bool) -> str:
        if self.kind == "long":
            return f"{data.name} {' '.join(data.classes[c] for c in classes)}"
        if colour is not None:
            return f"{data.name} on {COLOURS[colour]}"
        return f"{data.name} {'relabelled' if self.kind == 'out' else 'again'}" if again and t else data.name


def _listed(names: Sequence[str]) -> str:
    """data set 'dtd', or: data sets 'dtd' and 'svhn'."""
    *most, last = (repr(name) for name in names)
    return f"data sets {', '.join(most)} and {last}" if most else f"data set {last}"


def _plain(name: str) -> str:
    return name.lower().replace(" ", "-").replace("_", "-")


def _all_there(y: Tensor, classes: Sequence[int]) -> bool:
    return set(y.tolist()) == set(classes)


def _shown(data: DataSet, colour: int | None) -> Transform | None:
    if colour is not None:
        return OnColour(SIDE, colour)
    return None if data.shape == (3, SIDE, SIDE) else Fitted(SIDE, 3)


def _counts(y: Tensor, classes: Sequence[int]) -> str:
    """'40', or '38 to 40', rows of each of the classes."""
    counts = [int((y == c).sum()) for c in classes]
    return str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"


def _about(data: DataSet, classes: Sequence[int], rows: Chosen, further: int) -> str:
    """'cifar-10: cat, dog, ...; rows per class 400 to train, 200 to validate, 400 to test'."""
    names = ", ".join(data.classes[classes[i - further]] for i in range(len(classes)))
    each = [_counts(y, classes) for y in (data.y[rows.train], data.y[rows.val], data.y_test[rows.test])]
    return f"{data.name}: {names}; rows per class {each[0]} to train, {each[1]} to validate, {each[2]} to test"


def _note(data: DataSet, classes: Sequence[int], wanted: Rows, rows: Chosen) -> str:
    """What the data set could not give; nothing where it gave all."""
    asked = {"training": (wanted.train, rows.train), "validation": (wanted.val, rows.val)}
    if all(len(there) == each * len(classes) for each, there in asked.values()):
        return ""
    told = [f"{_counts(data.y[there], classes)} of {each} {word} rows" for word, (each, there) in asked.items()]
    return f"data set {data.name!r} has {' and '.join(told)} per class"
