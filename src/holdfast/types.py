"""The nouns of Holdfast: data set, stream, task, batch, record. This file imports nothing that does work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

Scenario = Literal["class", "domain", "task"]
Transform = Callable[[Tensor], Tensor]  # (n, *stored shape) pixels -> (n, *shape) pixels, each row by itself

CACHE_BYTES = 16 * 2**20  # a part may keep its own transformed pixels up to this size (MNIST's test set is 8 MB)


@dataclass(frozen=True, eq=False)
class DataSet:
    """Images `(N, C, H, W)` or vectors `(N, D)`, uint8 or float32, with labels `0..len(classes)-1`."""

    name: str
    x: Tensor
    y: Tensor
    x_test: Tensor
    y_test: Tensor
    classes: tuple[str, ...]
    fingerprint: str  # sha256 over what was read
    read: Mapping[str, str] = field(default_factory=dict)  # how, as settings of a stream: label, test, features, ...
    told: tuple[str, ...] = ()  # what was done with it, a line each
    encoding: Any = None  # of a table: how its columns became numbers
    fit: Callable[[Tensor], DataSet] | None = None  # of a table: the same, encoded as these training rows have it

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.x.shape[1:])


class Augment(ABC):
    """Random changes of images, drawn anew whenever a training batch shows them; the same whatever the dtype.

    An image less `margin` pixels on every side is in all that can come of it, moved and perhaps mirrored but otherwise
    as it was: so the audit finds augmented rows that a learner kept.
    """

    margin: int

    @abstractmethod
    def __call__(self, pixels: Tensor, rng: torch.Generator) -> Tensor:
        """(n, C, H, W) -> the same shape, without work per example."""


@dataclass(frozen=True, eq=False)
class Scale:
    """How bytes v become what a network sees: (v/255 − mean) / deviation = v/divisor − offset, for each channel.

    Floats are seen as they come.
    """

    divisor: Tensor  # (C,) float32, or (n, C) where each row has its own; one channel stands for all
    offset: Tensor

    @staticmethod
    def of(mean: Sequence[float], deviation: Sequence[float]) -> Scale:
        means, deviations = (torch.tensor(values, dtype=torch.float64) for values in (mean, deviation))
        return Scale((255 * deviations).float(), (means / deviations).float())

    def rows(self, index: Tensor | slice) -> Scale:
        """What these rows have."""
        return self if self.divisor.dim() == 1 else Scale(self.divisor[index], self.offset[index])

    def same(self, other: Scale) -> bool:
        return torch.equal(self.divisor, other.divisor) and torch.equal(self.offset, other.offset)

    def to(self, device: torch.device) -> Scale:
        return Scale(self.divisor.to(device), self.offset.to(device))


CENTRED = Scale.of([0.5], [0.5])  # bytes become −1 to 1


@dataclass(eq=False)
class Part:
    """Some rows of a data set as one task shows them: train, validation or test.

    The pixels are the whole data set's and shared between tasks; nothing is copied until a batch is cut, save
    for a cache of transformed pixels up to `CACHE_BYTES`.
    """

    pixels: Tensor  # (N, *stored shape), uint8 or float32, shared
    rows: Tensor  # (n,) int64
    y: Tensor  # (n,) int64, class indices of the stream
    transform: Transform | None = None  # always the same for a row; may change its shape
    augment: Augment | None = None  # of training batches alone; on transformed pixels, before they are scaled
    scale: Scale | None = None  # none: bytes become 0 to 1
    copies: int = 0  # augmented ones of each row, which stand after all rows and are rows themselves
    _cache: Tensor | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of one row as it is shown."""
        return tuple(self._example.shape[1:])

    @property
    def dtype(self) -> torch.dtype:
        """Of transformed pixels."""
        return self._example.dtype

    @property
    def nbytes(self) -> int:
        """Of all rows transformed."""
        return len(self) * self._example[0].nbytes

    def raw(self, index: Tensor | slice = slice(None)) -> Tensor:
        """Pixels as stored, transformed; cached when small."""
        if self._cache is not None:
            return _select(self._cache, index)
        if self.nbytes > CACHE_BYTES:
            return self._cut(self.rows[index])
        with torch.inference_mode(False):  # whoever comes first may be scoring; who comes next may train on it
            self._cache = self._cut(self.rows)
        return _select(self._cache, index)

    def cut(self, index: Tensor | slice = slice(None)) -> Tensor:
        """What `raw` gives, made anew and not kept."""
        return self._cut(self.rows[index])

    def x(self, index: Tensor | slice = slice(None)) -> Tensor:
        """What a network sees: float32, bytes as `scale` says; a copy, which may be changed."""
        raw = self.raw(index)
        return self.seen(raw, index) if raw.dtype == torch.uint8 else raw.clone()

    def seen(self, raw: Tensor, index: Tensor | slice = slice(None)) -> Tensor:
        """These of my rows, perhaps augmented, as a network sees them."""
        return as_float(raw, None if self.scale is None else self.scale.rows(index))

    def take(self, index: Tensor) -> Part:
        """The part that has only these of my rows."""
        scale = None if self.scale is None else self.scale.rows(index)
        return replace(self, rows=self.rows[index], y=self.y[index], scale=scale, copies=0, _cache=None)

    def to(self, device: torch.device, moved: dict[int, Any]) -> Part:
        """A copy on `device`; `moved` remembers shared pixels and scales, so that they are moved once."""
        if self.pixels.device == device:
            return self
        for shared in (self.pixels, self.scale):
            if shared is not None and id(shared) not in moved:
                moved[id(shared)] = shared.to(device)
        pixels, scale = moved[id(self.pixels)], None if self.scale is None else moved[id(self.scale)]
        return replace(self, pixels=pixels, rows=self.rows.to(device), y=self.y.to(device), scale=scale, _cache=None)

    @cached_property
    def _example(self) -> Tensor:
        """A row of the data set as the task shows it."""
        return self.pixels[:1] if self.transform is None else self.transform(self.pixels[:1])

    def _cut(self, rows: Tensor) -> Tensor:
        pixels = self.pixels.index_select(0, rows)
        return pixels if self.transform is None else self.transform(pixels)


@dataclass(eq=False)
class Mixture(Part):
    """Rows of several parts, each as its own part shows it; `rows` count through the parts, one after the other."""

    parts: tuple[Part, ...] = ()

    def to(self, device: torch.device, moved: dict[int, Any]) -> Part:
        if self.pixels.device == device:
            return self
        parts = tuple(part.to(device, moved) for part in self.parts)
        scale = None if self.scale is None else self.scale.to(device)
        rows, y = self.rows.to(device), self.y.to(device)
        return replace(self, pixels=parts[0].pixels, rows=rows, y=y, scale=scale, parts=parts, _cache=None)

    @cached_property
    def _example(self) -> Tensor:
        return self.parts[0]._example

    def _cut(self, rows: Tensor) -> Tensor:
        return gathered(self.parts, rows)


class Gone(Part):
    """Rows of a task that is over, which were not kept: their number and labels, and no pixels."""

    @staticmethod
    def like(part: Part, y: Tensor) -> Gone:
        """What is left of a part: how its rows looked, and these labels."""
        blank = torch.zeros(1, *part.shape, dtype=part.dtype)
        scale = None if part.scale is None else part.scale.to(y.device)
        return Gone(blank, torch.zeros_like(y), y, augment=part.augment, scale=scale)

    def _cut(self, rows: Tensor) -> Tensor:
        raise RuntimeError("the rows of this task were not kept")


def joined(parts: Sequence[Part]) -> Part:
    """The rows of several parts as one, in their order; nothing is copied until a batch is cut."""
    first, y, scale = parts[0], torch.cat([part.y for part in parts]), shared_scale(parts)
    if any(part.augment != first.augment for part in parts):
        raise ValueError("parts that are augmented in different ways cannot be shown as one")
    if all(type(part) is Part and part.transform is None and part.pixels is first.pixels for part in parts):
        rows = torch.cat([part.rows for part in parts])
        return Part(first.pixels, rows, y, augment=first.augment, scale=scale)
    rows = torch.arange(len(y), device=y.device)
    return Mixture(first.pixels, rows, y, augment=first.augment, scale=scale, parts=tuple(parts))


def gathered(parts: Sequence[Part], rows: Tensor) -> Tensor:
    """These rows of several parts, counted through all of them, transformed."""
    starts = torch.tensor([0, *(len(part) for part in parts)], device=rows.device).cumsum(0)
    which = torch.bucketize(rows, starts, right=True) - 1
    pieces = [part.cut(rows[which == k] - starts[k]) for k, part in enumerate(parts)]
    return torch.cat(pieces).index_select(0, which.argsort(stable=True).argsort())


def _select(table: Tensor, index: Tensor | slice) -> Tensor:
    """table[index]. `index_select` copies whole rows, many times faster than an index, which goes byte by byte."""
    if isinstance(index, slice):
        return table[index]
    return table.index_select(0, torch.arange(len(table), device=table.device)[index])


def as_float(raw: Tensor, scale: Scale | None = None) -> Tensor:
    """Bytes as a network sees them; floats are left as they are."""
    if raw.dtype != torch.uint8:
        return raw
    if scale is None:
        return raw.float().div_(255)
    wide = (*scale.divisor.shape, *[1] * (raw.dim() - 2))  # per channel, for all pixels
    return raw.float().div_(scale.divisor.view(wide)).sub_(scale.offset.view(wide))


def shared_scale(parts: Sequence[Part]) -> Scale | None:
    """The scale of the rows of these parts, one part after the other."""
    scales = [part.scale for part in parts]
    if all(scale is scales[0] for scale in scales):
        return scales[0]
    plain = Scale.of([0.0], [1.0]).to(parts[0].y.device)
    each = [scale or plain for scale in scales]
    channels = max(scale.divisor.shape[-1] for scale in each)
    tables = [
        torch.cat([getattr(scale, name).expand(len(part), channels) for scale, part in zip(each, parts, strict=True)])
        for name in ("divisor", "offset")
    ]
    return Scale(*tables)


@dataclass(frozen=True, eq=False)
class Task:
    """One item of a stream: its descriptor `t`, its classes, and three parts."""

    t: int
    name: str
    classes: tuple[int, ...]  # class indices of the stream
    train: Part
    val: Part
    test: Part
    about: str = ""  # what it is made of, where its name does not say it all
    note: str = ""  # where it is not what was asked for
    names: tuple[str, ...] = ()  # what its classes are called


@dataclass(frozen=True, eq=False)
class Segment:
    """What a stream shows between two scorings: the rows of one task, or a mixture of several.

    Segment t ends where the stream is scored for the t-th time; task t is what that scoring tests for the first time.
    """

    t: int
    train: Part
    val: Part
    task: int | Tensor | None  # what batches say: the task, that of each row, or nothing where boundaries are hidden
    ordered: bool = False  # rows are shown as they lie, in place of shuffled

    @staticmethod
    def of(t: int, parts: Sequence[Part], val: Part, task: int | Tensor | None, *, ordered: bool = False) -> Segment:
        """A mixture of parts: rows of several tasks."""
        return Segment(t, joined(parts), val, task, ordered)


@dataclass(frozen=True)
class StreamInfo:
    """All a learner may know before the first example: shapes, classes, head policy. Never data."""

    name: str
    scenario: Scenario
    shape: tuple[int, ...]  # of one example
    classes: int  # outputs of the network
    task_classes: tuple[tuple[int, ...], ...]  # per task
    hidden: bool = False  # where one task ends and the next begins is not told
    apart: bool = False  # each task's outputs are a layer of its own (head=task)

    @property
    def tasks(self) -> int:
        return len(self.task_classes)

    @property
    def task_given(self) -> bool:
        return self.scenario == "task"

    def allowed(self) -> Tensor | None:
        """(T, C) which outputs each task may use; None when all may (no mask is then applied)."""
        if not self.task_given or all(len(c) == self.classes for c in self.task_classes):
            return None
        mask = torch.zeros(self.tasks, self.classes, dtype=torch.bool)
        for t, classes in enumerate(self.task_classes):
            mask[t, list(classes)] = True
        return mask


@dataclass(frozen=True, eq=False)
class Stream:
    """An ordered list of tasks: a pure function of (name, settings, data, seed)."""

    info: StreamInfo
    tasks: tuple[Task, ...]
    seed: int
    settings: Mapping[str, Any]  # JSON-able; data by name
    fingerprint: str  # of the data set
    reseed: Callable[[int], Stream] = field(repr=False)  # the same stream with another seed
    chosen_by: Mapping[str, str] = field(default_factory=dict, repr=False)  # who chose each setting
    spec: Any = field(default=None, repr=False)  # the recipe it was cut by
    mixtures: tuple[Segment, ...] = field(default=(), repr=False)  # where what is shown is not task after task
    sources: tuple[DataSet, ...] = field(default=(), repr=False)  # what it was cut from
    reserved: Mapping[str, int] = field(default_factory=dict, repr=False)  # outputs by the names of all known classes

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def told(self) -> tuple[str, ...]:
        """What was done with the data that it was cut from."""
        return tuple(line for data in self.sources for line in data.told)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """What is shown, in order: as many as there are tasks to test."""
        return self.mixtures or tuple(Segment(task.t, task.train, task.val, task.t) for task in self.tasks)

    @property
    def scenario(self) -> Scenario:
        return self.info.scenario

    def held_out(self, lend: bool = False) -> Stream:
        """The same stream scored on each task's validation part; its tests are out of reach.

        No lease has that part, unless it is `lend`ed to protocols that choose on it themselves.
        """
        nothing = torch.zeros(0, dtype=torch.long)

        def left(val: Part) -> Part:
            return val if lend else val.take(nothing)

        tasks = tuple(replace(task, test=task.val, val=left(task.val)) for task in self.tasks)
        mixtures = tuple(replace(mixture, val=left(mixture.val)) for mixture in self.mixtures)
        settings, reseed = {**self.settings, "scored_on": "val"}, partial(_reseed_held_out, self.reseed, lend)
        return replace(self, tasks=tasks, mixtures=mixtures, settings=settings, reseed=reseed)

    def first(self, tasks: int) -> Stream:
        """The same stream, over after so many tasks; the outputs stay those of all its classes."""
        if tasks >= len(self):
            return self
        info = replace(self.info, task_classes=self.info.task_classes[:tasks])
        settings, reseed = {**self.settings, "first": tasks}, partial(_reseed_first, self.reseed, tasks)
        cut = self.tasks[:tasks], self.mixtures[:tasks]
        return replace(self, info=info, tasks=cut[0], mixtures=cut[1], settings=settings, reseed=reseed)

    def only(self, t: int) -> Stream:
        """The same stream with one of its tasks alone, -1 for the last: the same rows and labels, scaled as before."""
        if self.mixtures:
            raise ValueError("tasks that are shown mixed cannot be shown alone")
        if not -len(self) <= t < len(self):
            raise ValueError(f"there is no task {t}; the stream has {len(self)}, counted from 0")
        t %= len(self)
        info = replace(self.info, task_classes=(self.info.task_classes[t],))
        settings, reseed = {**self.settings, "only": t}, partial(_reseed_only, self.reseed, t)
        return replace(self, info=info, tasks=(replace(self.tasks[t], t=0),), settings=settings, reseed=reseed)

    def fixed(self, seed: int) -> Stream:
        """The stream cut with this seed, whatever the seed of the run that asks for it."""
        return _fixed(self.reseed, seed)

    def to(self, device: torch.device) -> Stream:
        moved: dict[int, Any] = {}
        tasks = tuple(
            replace(
                task,
                train=task.train.to(device, moved),
                val=task.val.to(device, moved),
                test=task.test.to(device, moved),
            )
            for task in self.tasks
        )
        mixtures = tuple(
            replace(
                mixture,
                train=mixture.train.to(device, moved),
                val=mixture.val.to(device, moved),
                task=mixture.task.to(device) if isinstance(mixture.task, Tensor) else mixture.task,
            )
            for mixture in self.mixtures
        )
        return replace(self, tasks=tasks, mixtures=mixtures)

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        words = ", ".join(f"{k}={v!r}" for k, v in self.settings.items() if v is not None and k != "seed")
        return f"stream({self.name!r}, {words}, seed={self.seed})"


def _reseed_held_out(reseed: Callable[[int], Stream], lend: bool, seed: int) -> Stream:
    return reseed(seed).held_out(lend)


def _reseed_first(reseed: Callable[[int], Stream], tasks: int, seed: int) -> Stream:
    return reseed(seed).first(tasks)


def _reseed_only(reseed: Callable[[int], Stream], t: int, seed: int) -> Stream:
    return reseed(seed).only(t)


def _fixed(reseed: Callable[[int], Stream], seed: int, of_run: int | None = None) -> Stream:
    """The stream of this seed, which says so among its settings; the seed of a run plays no part."""
    cut = reseed(seed)
    if cut.seed != seed:
        raise ValueError(f"the stream is fixed to seed {cut.seed} already")
    settings, chosen_by = {**cut.settings, "seed": seed}, {**cut.chosen_by, "seed": "given"}
    return replace(cut, settings=settings, chosen_by=chosen_by, reseed=partial(_fixed, reseed, seed))


@dataclass(frozen=True, eq=False)
class Batch:
    """One mini-batch. `task` is an index from 0, one index per row where tasks are mixed, or None when hidden."""

    x: Tensor  # (B, *shape) float32
    y: Tensor  # (B,) int64
    task: int | Tensor | None = None
    rows: Tensor | None = None  # (B,) places in the lease, where several trials share what they make of them

    def __len__(self) -> int:
        return len(self.y)


@dataclass(frozen=True)
class Lesson:
    """What is to come in a task."""

    steps: int  # mini-batches, while no row is withheld
    epochs: int  # passes over the task's rows; the last may be cut short
    batch: int  # rows per mini-batch


class Gate(nn.Module):
    """An activation that passes an entry unchanged or makes it 0, whatever decides. Its gradient is then known."""


class Settling(nn.Module):
    """A layer that is told when a task is over, and does not go on after it as it was."""

    def settle(self) -> None:
        """The task is over."""


@dataclass(frozen=True, eq=False)
class Record:
    """What a run leaves behind. Every metric, table and figure is a pure function of it."""

    method: str
    seed: int
    settings: Mapping[str, Mapping[str, Any]]  # name -> {"value", "chosen_by"}
    stream: Mapping[str, Any]
    scenario: Scenario
    protocol: Mapping[str, Any]
    net: Mapping[str, Any]
    tasks: tuple[Mapping[str, Any], ...]  # name, classes, n_train, n_val, n_test
    R: np.ndarray  # (scorings, T): accuracy on task j at the i-th scoring; NaN where that did not ask about it
    scorings: tuple[Mapping[str, int], ...]  # after_task, step: one per row of R
    baseline: np.ndarray  # (T,) accuracy at random initialisation
    curves: tuple[Mapping[str, Any], ...]  # after_task, step, task, accuracy, loss, entropy, calibration, information
    resources: Mapping[str, Any]
    card: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, float | None] = field(default_factory=dict)
    mixed: bool = False  # all tasks were shown at once
    boundaries: Mapping[str, Any] = field(default_factory=dict)  # where they were detected: found, true, hits, ...
    study: Mapping[str, Any] = field(default_factory=dict)  # what a protocol that selects tried: trials, curves, blends
    predictions: tuple[np.ndarray, ...] = field(default=(), repr=False)  # per task (scorings of it, n_test)
    labels: tuple[np.ndarray, ...] = field(default=(), repr=False)  # per task (n_test,)
    uncertainties: tuple[np.ndarray, ...] = field(default=(), repr=False)  # per task (scorings of it, 2, n_test)
    images: tuple[np.ndarray, ...] = field(default=(), repr=False)  # per task (n, C, H, W) bytes: a few of its test set

    def __repr__(self) -> str:
        found = ", ".join(f"{k}={v:.3f}" for k, v in self.metrics.items() if k in ("acc", "bwt") and v is not None)
        words = f"{self.method!r}, stream={self.stream.get('name')!r}, scenario={self.scenario!r}, seed={self.seed}"
        return f"Record({words}{', ' if found else ''}{found})"

    @property
    def final(self) -> np.ndarray:
        """(T, T): the last scoring after each task; R itself unless it was scored more often."""
        last = {row["after_task"]: i for i, row in enumerate(self.scorings)}
        return self.R[[last[t] for t in sorted(last)]]

    @property
    def acc(self) -> float | None:
        return self.metrics["acc"]

    @property
    def bwt(self) -> float | None:
        return self.metrics["bwt"]

    @property
    def fwt(self) -> float | None:
        return self.metrics["fwt"]

    @property
    def forgetting(self) -> float | None:
        return self.metrics["forgetting"]
