"""A model that stays: a learner after its tasks, which predicts, learns more tasks later, and can be saved.

It is a run that is over and can go on. What it has is the state that a checkpoint has after its last task, and of the
data what the learner itself kept: `learn` makes the stream a task longer and lets the run go on from that state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import torch
from torch import Tensor

from holdfast.data import Encoding, NewRows, Reading, as_dataset, is_source, new_rows
from holdfast.engine import Keeper, State, pooled
from holdfast.engine.gradients import restrict
from holdfast.errors import BadInput
from holdfast.methods import Learner
from holdfast.protocols import Session, Watch, name_of
from holdfast.seeds import generator
from holdfast.settings import expected, fits
from holdfast.streams import ScaleName, drawn, dressed
from holdfast.sweeps.cell import Cell, in_threads
from holdfast.types import CENTRED, DataSet, Gone, Part, Record, Scenario, Stream, StreamInfo, Task

CLASSES = 100  # outputs, where nobody says how many classes will come
SHOWN = 10  # names in a complaint

ENCODING, FEATURES = "encoding", "features"  # in the notes
Rows = tuple[Any, Any]  # x, y
Share = float | Rows  # a share of each class's rows, or rows of their own


class Left(Keeper):
    """A run that is over, to be gone on with; nothing is written on the way."""

    def __init__(self, state: State) -> None:
        super().__init__("")
        self.state = state

    def read(self) -> State:
        return self.state

    def write(self, state: State) -> None:
        pass


@dataclass(frozen=True)
class Known:
    """What a model still knows, class by class."""

    classes: Mapping[str, float]  # accuracy on the rows of each class; 0 of those it never learned
    rows: Mapping[str, int]
    never: tuple[str, ...]  # the classes it never learned

    @property
    def accuracy(self) -> float:
        """On all rows together."""
        return sum(self.classes[name] * n for name, n in self.rows.items()) / sum(self.rows.values())

    def __str__(self) -> str:
        width = max(map(len, [*self.classes, "all"]))
        lines = [
            f"{name:<{width}}  {found:.3f}  {self.rows[name]} rows{', never learned' if name in self.never else ''}"
            for name, found in self.classes.items()
        ]
        return "\n".join([*lines, f"{'all':<{width}}  {self.accuracy:.3f}  {sum(self.rows.values())} rows"])


@dataclass(eq=False)
class Model:
    """A learner that stays. Its `record`, with the audit card, says how it got there; none before the first task.

    Outputs are those of the classes it was told of and of those reserved for later ones. It answers among the classes
    it has learned.

    >>> import holdfast as hf
    >>> digits = hf.stream("split", tasks=2)
    >>> model = hf.model("er", classes=10)
    >>> for task in digits.tasks:
    ...     record = model.learn(task.train.raw(), task.train.y)
    >>> model.predict(digits.tasks[0].test.raw(slice(3))).tolist(), record.card["no_old_data"]["value"]
    (['1', '3', '2'], 448)
    """

    cell: Cell = field(repr=False)  # its stream has the tasks learned so far, without their rows
    state: State = field(default=None, repr=False)  # of the run
    record: Record | None = field(default=None, repr=False)
    tests: tuple[str, ...] = ()  # a sum of each task's test rows, by which they are known again; empty: none were given
    closed: str = ""  # why it cannot learn more, besides what its method says
    known: int = 0  # so many of the first outputs are of classes that a warm network knew
    notes: dict[str, Any] = field(default_factory=dict)  # what others keep with it, as JSON

    @staticmethod
    def of(cell: Cell, session: Session, record: Record) -> Model:
        """What a finished run leaves behind."""
        stream = session.stream
        closed = f"stream {stream.name!r} shows its tasks mixed" if stream.mixtures else ""
        tests = tuple(_sum(task.test) for task in stream.tasks)
        mine = replace(cell, stream=without_rows(stream), reseed=False)
        notes: dict[str, Any] = {}
        for data in reversed(stream.sources):
            notes |= _noted(Reading(data.encoding, data.read.get(FEATURES, ""), data.read.get("label", "")))
        return Model(mine, session.left(), replace(record, images=()), tests, closed, notes=notes)

    def __getstate__(self) -> dict[str, Any]:
        """The learner is made again from the state."""
        return {name: value for name, value in vars(self).items() if name != "learner"}

    @property
    def stream(self) -> Stream:
        return self.cell.stream

    @property
    def tasks(self) -> int:
        """How many it has learned."""
        return len(self.stream)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of all classes it knows, in the order of its outputs."""
        return self.names()

    def names(self, task: int | None = None) -> tuple[str, ...]:
        """Those of the columns of `logits`; in a task, of its classes."""
        return tuple(self._names(self.places(task), task))

    @property
    def card(self) -> Mapping[str, Any]:
        return self._begun.card

    @property
    def reading(self) -> Reading:
        """As what it reads files, folders and tables: how columns become numbers, and through which features."""
        encoding = Encoding.from_json(self.notes[ENCODING]) if ENCODING in self.notes else None
        return Reading(encoding, **self.notes.get(FEATURES, {}))

    def read(self, data: Any, labelled: bool = True) -> NewRows:
        """A file, a folder or a table, as the model reads it."""
        return new_rows(data, self.reading, labelled, first=not self.tasks)

    @property
    def bytes(self) -> int:
        """What it keeps: weights, memories, and whatever else can be reached from the learner."""
        return int(self._begun.resources["bytes"][-1])

    def learn(
        self,
        x: Any,
        y: Any = None,
        *,
        test: Share | None = None,
        val: Share = 0.0,
        old_tests: Sequence[Rows | None] | Mapping[int, Rows] = (),
        name: str | None = None,
        watch: Watch | None = None,
    ) -> Record:
        """Learn one more task; gives the record of all tasks. Where anything goes wrong, the model stays as it was.

        `x`, `y` are its rows, all for training, or `x` alone a file, a folder or a table with labels. `x` alone may
        also be whatever else a stream takes as data, whose test rows (or a fifth of each class) test it. `test` and
        `val` are shares of each class's rows, or rows of their own; without test rows the task is not scored.
        `old_tests`: those of earlier tasks, which are not kept, to score them again.
        """
        x, y, reading = self._read(x, y)
        task = self._task(x, y, test, val, name)
        longer = self._longer(task, self._old_tests(old_tests))
        cell = replace(self.cell, stream=longer)
        self._refuse(cell)
        cell.refuse()
        found: list[Model] = []
        keep = None if self.state is None else Left(self.state)
        cell.run(watch, keep, lambda session, record: found.append(Model.of(cell, session, record)))
        new = found[0]
        known = [*self.tests, ""]
        self.tests = tuple(now or before for now, before in zip(new.tests, known, strict=True))
        self.cell, self.state, self.record = new.cell, new.state, new.record
        self.notes |= _noted(reading)
        self.__dict__.pop("learner", None)
        assert self.record is not None
        return self.record

    def predict(self, x: Any, task: int | None = None) -> np.ndarray:
        """The name of each row's class. The task is given in the task scenario, and the class is one of that task's."""
        best = self.logits(x, task).argmax(1)
        return np.array(self.names(task))[best]

    def predict_proba(self, x: Any, task: int | None = None) -> np.ndarray:
        """(n, C) probabilities of the classes known, in the order of `classes`; of the task's where it is given."""
        return torch.from_numpy(self.logits(x, task)).softmax(-1).numpy()

    def logits(self, x: Any, task: int | None = None) -> np.ndarray:
        """(n, C) of the same; of sampled predictions, log-probabilities."""
        return self.outputs(x, task)[:, self.places(task)].numpy()

    def outputs(self, x: Any, task: int | None = None) -> Tensor:
        """(n, O) of all outputs, those of classes that never came included."""
        learner = self.learner
        self._check_task(task)
        shown = self.read(x, labelled=False).x if is_source(x) else _examples(x, self.cell.seed)
        self._check_examples(shown)
        scale = self.stream.tasks[-1 if task is None else task].train.scale
        part = Part(shown, torch.arange(len(shown)), torch.zeros(len(shown), dtype=torch.long), scale=scale)
        found = []
        with torch.inference_mode(), in_threads(self.cell.threads):
            for rows in torch.arange(len(part)).split(learner.net.chunk):
                said = learner.predict(part.x(rows).to(learner.net.device), task)
                found.append((said if said.dim() == 2 else pooled(restrict(said, self._allowed(task, said)))).cpu())
        return torch.cat(found).clone()

    def place(self, name: str, task: int | None = None) -> int | None:
        """The output that stands for a class, in a task; None where it never came and none is reserved."""
        known = self.places(task)
        places = {each: c for c, names in zip(known, self._sets(known, task), strict=True) for each in names}
        return places.get(name, self.stream.reserved.get(name) if task is None else None)

    def with_names(self, names: Iterable[str]) -> Model:
        """A model like this one with the next outputs reserved for these classes, as far as they have none."""
        new = [name for name in names if self.place(name) is None]
        taken = {*self._seen, *self.stream.reserved.values()}
        free = [c for c in range(self.stream.info.classes) if c not in taken]
        reserved = {**self.stream.reserved, **dict(zip(new, free, strict=False))}
        cell = replace(self.cell, stream=replace(self.stream, reserved=reserved))
        return replace(self, cell=cell, notes={**self.notes})

    def score(self, x: Any, y: Any = None, task: int | None = None) -> Known:
        """What is still known of each class in these rows. Of a data set its test rows are scored."""
        x, y, _ = self._read(x, y)
        data = _rows(x, y, self.cell.seed)
        x, y = (data.x, data.y) if y is not None else (data.x_test, data.y_test)
        best = torch.from_numpy(self.logits(x, task)).argmax(1)
        columns = {name: i for i, names in enumerate(self._sets(self.places(task), task)) for name in names}
        right = best == torch.tensor([columns.get(name, -1) for name in data.classes])[y]
        rows = {name: int((y == c).sum()) for c, name in enumerate(data.classes) if (y == c).any()}
        found = {name: right[y == c].double().mean().item() for c, name in enumerate(data.classes) if name in rows}
        return Known(found, rows, tuple(name for name in rows if name not in columns))

    def export(self, path: str | Path) -> None:
        """Write the network as an ONNX file: rows as they were learned to the logits of the classes known, in the order
        of `classes`. Refused where a method answers with more than its network's outputs."""
        from holdfast.sweeps import model_onnx

        model_onnx.write(self, Path(path))

    @cached_property
    def learner(self) -> Learner:
        """The learner as its last task left it."""
        if self.state is None:
            raise BadInput("the model has learned nothing yet; call model.learn(x, y)")
        return self.cell.restored(Left(self.state)).learner

    @property
    def _begun(self) -> Record:
        if self.record is None:
            raise BadInput("the model has learned nothing yet; call model.learn(x, y)")
        return self.record

    def _refuse(self, cell: Cell) -> None:
        """The faults of one more task."""
        why = self.closed or cell.method.needs_length
        if self.tasks and why:
            raise BadInput(f"the model of method {name_of(cell.method)!r} cannot learn another task: {why}")

    def _allowed(self, task: int | None, logits: Tensor) -> Tensor | None:
        allowed = self.stream.info.allowed()
        return None if task is None or allowed is None else allowed[task].to(logits.device)

    def _check_task(self, task: int | None) -> None:
        given, tasks = self.stream.info.task_given, self.tasks
        if given and (type(task) is not int or not 0 <= task < tasks):
            raise BadInput(
                f"the task scenario gives the task: task must be a number from 0 to {tasks - 1}, not {task!r}"
            )
        if not given and task is not None:
            raise BadInput(f"the {self.stream.scenario!r} scenario hides the task; leave task out")

    def _check_examples(self, x: Tensor) -> None:
        if not self.tasks:
            return
        info, like = self.stream.info, self.stream.tasks[0].train
        if tuple(x.shape[1:]) != info.shape:
            raise BadInput(f"examples have shape {tuple(x.shape[1:])}, but the model learned examples of {info.shape}")
        if x.dtype != like.dtype:
            kinds = {torch.uint8: "bytes (uint8)", torch.float32: "floats"}
            raise BadInput(
                f"examples are {kinds[x.dtype]}, but the model learned {kinds[like.dtype]}; scale them alike"
            )

    @property
    def _seen(self) -> list[int]:
        """The outputs of the classes known."""
        return sorted({*range(self.known), *(c for task in self.stream.tasks for c in task.classes)})

    def places(self, task: int | None = None) -> list[int]:
        """The outputs that may answer."""
        return self._seen if task is None else list(self.stream.tasks[task].classes)

    def _sets(self, places: Sequence[int], task: int | None = None) -> list[list[str]]:
        """All names that each of these outputs has, in one task or in all."""
        tasks = self.stream.tasks if task is None else [self.stream.tasks[task]]
        found: dict[int, dict[str, None]] = {c: {} for c in places}
        for name, c in self.stream.reserved.items():
            if task is None and c < self.known:
                found[c][name] = None
        for each in tasks:
            for c, name in zip(each.classes, each.names, strict=True):
                found[c][name] = None
        return [list(names) for names in found.values()]

    def _names(self, places: Sequence[int], task: int | None = None) -> list[str]:
        return ["/".join(names) for names in self._sets(places, task)]

    # One more task

    def _read(self, x: Any, y: Any) -> tuple[Any, Any, Reading]:
        """Arrays, where it is a file, a folder or a table that is given; and how the model reads from then on."""
        if y is not None or not (isinstance(x, NewRows) or is_source(x)):
            return x, y, self.reading
        rows = x if isinstance(x, NewRows) else self.read(x)
        return rows.x, np.array(rows.classes), rows.reading

    def _task(self, x: Any, y: Any, test: Share | None, val: Share, name: str | None) -> Task:
        t, seed = self.tasks, self.cell.seed
        if y is None and test is not None:
            raise BadInput(
                "test is for rows given as x and y; a data set has test rows, or a fifth of each class is cut"
            )
        data = _rows(x, y, seed)
        whole = _part(data.x, data.y)
        own = _part(data.x_test, data.y_test) if y is None else whole.take(_nothing())
        train, tested = (whole, own) if test is None else _divided(whole, x, y, test, "test", seed, t)
        train, kept = _divided(train, x, y, val, "validation", seed, t)
        for part in (train, kept, tested):
            self._check_examples(part.pixels)
        if not len(train):
            raise BadInput("there are no rows to learn from")
        if gone := [name for name, n in zip(data.classes, train.y.bincount(minlength=len(data.classes)), strict=True)
                    if n == 0]:  # fmt: skip
            raise BadInput(f"the shares of test and validation rows leave no row of {some(gone)} to learn from")
        places = torch.tensor(self._outputs(data.classes))
        parts = dressed([replace(part, y=places[part.y]) for part in (train, kept, tested)], *self._look)
        names = dict(sorted(zip(places.tolist(), data.classes, strict=True)))
        title = name or f"classes {' '.join(data.classes)}"
        return Task(t, title, tuple(names), *parts, names=tuple(names.values()))

    @property
    def _look(self) -> tuple[bool, ScaleName]:
        """Whether images are augmented, and how bytes are scaled: as in the last task."""
        if not self.tasks:
            settings = self.stream.settings
            return settings["augment"], settings["scale"]
        part = self.stream.tasks[-1].train
        return part.augment is not None, scale_name(part)

    def _outputs(self, names: Sequence[str]) -> list[int]:
        """The output of each of a new task's classes."""
        info, tasks = self.stream.info, self.stream.tasks
        own = self.stream.settings.get("head") == "task"
        if not self.stream.reserved and (info.scenario == "domain" or self.stream.settings.get("outputs") == "common"):
            many = len(tasks[0].classes) if tasks else len(names)
            if len(names) != many:
                raise BadInput(f"every task has {many} classes, as the first had, not {len(names)}: {some(names)}")
            return list(range(many))
        known = {} if own else {**self.stream.reserved}
        for task in () if own else tasks:
            known |= dict(zip(task.names, task.classes, strict=True))
        taken = {*self._seen, *known.values()}
        free = [c for c in range(info.classes) if c not in taken]
        new = [name for name in names if name not in known]
        if len(new) > len(free):
            what = f"{len(new)} classes are new ({some(new)}), and of the {info.classes} outputs {len(free)} are free"
            raise BadInput(f"{what}; a new model may have more: classes=..., --classes; one of a run: room=...")
        known |= dict(zip(new, free, strict=False))
        return [known[name] for name in names]

    def _old_tests(self, given: Sequence[Rows | None] | Mapping[int, Rows]) -> dict[int, Part]:
        """The test rows of earlier tasks: those that they were scored on, if they ever were."""
        each = given if isinstance(given, Mapping) else {t: rows for t, rows in enumerate(given) if rows is not None}
        found = {}
        if wrong := [t for t, rows in each.items() if not isinstance(rows, tuple | list) or len(rows) != 2]:
            raise BadInput(f"old_tests[{wrong[0]}] must be the rows (x, y) of task {wrong[0]}, not {each[wrong[0]]!r}")
        for t, (x, y) in each.items():
            if not 0 <= t < self.tasks:
                raise BadInput(f"old_tests has rows of task {t}, but the model has learned {self.tasks} tasks, from 0")
            task, data = self.stream.tasks[t], _rows(x, y, self.cell.seed)
            places = dict(zip(task.names, task.classes, strict=True))
            if strange := [name for name in data.classes if name not in places]:
                raise BadInput(f"old_tests[{t}] has classes that task {t} has not: {some(strange)}")
            self._check_examples(data.x)
            y = torch.tensor([places[name] for name in data.classes])[data.y]
            found[t] = replace(_part(data.x, y), scale=task.train.scale)
            if self.tests[t] and _sum(found[t]) != self.tests[t]:
                raise BadInput(
                    f"old_tests[{t}] are not the rows that task {t} was scored on, in their order; model.score scores "
                    "any others"
                )
        return found

    def _longer(self, task: Task, old: Mapping[int, Part]) -> Stream:
        """The stream with one task more, and with the test rows of old ones that are at hand."""
        stream, info = self.stream, self.stream.info
        tasks = (*(replace(each, test=old.get(each.t, each.test)) for each in stream.tasks), task)
        classes = info.classes or len(task.classes)
        info = replace(info, shape=task.train.shape, classes=classes, task_classes=(*info.task_classes, task.classes))
        settings = {k: v for k, v in stream.settings.items() if k != "first"} | {"tasks": len(tasks)}
        return replace(stream, info=info, tasks=tasks, settings=settings, fingerprint=_longer_sum(stream, task))


def no_tasks(
    scenario: Scenario,
    classes: int | Sequence[str] | None,
    known: Sequence[str],
    scale: str,
    augment: bool,
    seed: int,
) -> Stream:
    """What a model has before its first task; `classes`: how many will come, or the names of all of them; `known`:
    those of the first outputs."""
    named = () if classes is None or isinstance(classes, int) else tuple(map(str, classes))
    faults = [
        f"{word} must be {expected(kind)}, not {given!r}"
        for word, kind, given in (
            ("scenario", Scenario, scenario),
            ("scale", ScaleName, scale),
            ("augment", bool, augment),
        )
        if not fits(kind, given)
    ]
    counted = type(classes) is int and classes >= 1
    if len(set(named)) < len(named) or not (named or classes is None or counted):
        faults.append(f"classes must be how many will come, or the names of all of them, not {classes!r}")
    if faults:
        raise BadInput(*faults)
    usual = 0 if scenario == "domain" else CLASSES  # in the domain scenario as many as the first task has
    outputs = len(named) or (classes if isinstance(classes, int) else usual)
    first = tuple(map(str, known))
    named = (*first, *(name for name in named if name not in first))
    if len(known) > outputs:
        raise BadInput(f"{len(known)} classes are known from the start, but the model has {outputs} outputs")
    settings = {"tasks": 0, "scenario": scenario, "scale": scale, "augment": augment, "head": "shared"}
    chosen_by = dict.fromkeys(settings, "default")
    reserved = {name: c for c, name in enumerate(named)}
    info = StreamInfo("model", scenario, (), outputs, ())
    return Stream(info, (), seed, settings, "", no_reseed, chosen_by, reserved=reserved)


def without_rows(stream: Stream) -> Stream:
    """What a model knows of the tasks it has learned: their classes, and how many rows of each they had."""
    tasks = []
    for task in stream.tasks:
        train, val = (Gone.like(part, part.y.sort().values.cpu()) for part in (task.train, task.val))
        tasks.append(replace(task, train=train, val=val, test=Gone.like(task.test, task.test.y.cpu())))
    return replace(stream, tasks=tuple(tasks), mixtures=(), reseed=no_reseed, spec=None, sources=())


def no_reseed(seed: int) -> NoReturn:
    raise ValueError("the tasks of a model that was kept cannot be cut anew: their rows are gone")


def scale_name(part: Part) -> ScaleName:
    """How a stream would call the scale of a part."""
    if part.scale is None:
        return "unit"
    return "centred" if part.scale.same(CENTRED) else "task"


def some(names: Sequence[str]) -> str:
    """The first of them."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(map(repr, names[:SHOWN])) + more


def _noted(reading: Reading) -> dict[str, Any]:
    """What of it a model keeps, as JSON."""
    encoding = {} if reading.encoding is None else {ENCODING: reading.encoding.to_json()}
    features = {FEATURES: {"features": reading.features, "label": reading.label}} if reading.features else {}
    return {**encoding, **features}


def _nothing() -> Tensor:
    return torch.zeros(0, dtype=torch.long)


def _part(x: Tensor, y: Tensor) -> Part:
    return Part(x, torch.arange(len(x)), y)


def _rows(x: Any, y: Any, seed: int) -> DataSet:
    """Rows with labels, all in `x` and `y` where both are given."""
    if y is None:
        return as_dataset(x, seed)
    try:
        return as_dataset((x, y, x, y), seed)
    except BadInput as error:  # each fault is that of both pairs
        raise BadInput(*([line for line in error.faults if "_test" not in line] or error.faults)) from error


def _examples(x: Any, seed: int) -> Tensor:
    """Rows without labels."""
    labels = np.zeros(len(x), int)
    return as_dataset((x, labels, x, labels), seed).x


def _divided(part: Part, x: Any, y: Any, share: Share, what: str, seed: int, t: int) -> tuple[Part, Part]:
    """The rows that are left, and those of a share of each class, or rows of their own."""
    if isinstance(share, tuple):
        if y is None:
            raise BadInput(f"{what} rows are for rows given as x and y; of a data set give a share")
        apart = as_dataset((x, y, *share), seed)
        return part, _part(apart.x_test, apart.y_test)
    if not 0 <= share < 1:
        raise BadInput(f"the share of {what} rows must be from 0 to below 1, not {share!r}")
    out = drawn(part.y, share, generator(seed, what, task=t))
    return part.take((~out).nonzero().flatten()), part.take(out.nonzero().flatten())


def _sum(part: Part) -> str:
    """Of rows, by which they are known again; empty where there are none, or none at hand."""
    if isinstance(part, Gone) or not len(part):
        return ""
    digest = hashlib.sha256(part.y.cpu().numpy().tobytes())
    for rows in torch.arange(len(part)).split(1000):
        digest.update(part.cut(rows.to(part.rows.device)).cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()


def _longer_sum(stream: Stream, task: Task) -> str:
    """A fingerprint of all data so far."""
    return hashlib.sha256(" ".join([stream.fingerprint, _sum(task.train), _sum(task.test)]).encode()).hexdigest()
