"""Tasks from several data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, final

import torch

from holdfast.errors import BadInput
from holdfast.seeds import generator
from holdfast.settings import Count, Whole, provenance
from holdfast.streams._base import Plan, Rows, StreamSpec
from holdfast.streams._images import Fitted
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Assorted(StreamSpec):
    """Every task is a data set of its own, `data="digits,synth,mnist"`, all brought to images of one size.

    With more tasks than data sets these come again in their order, each time with rows drawn anew; without `tasks`
    each comes once. The outputs are those of all data sets, one after the other; `head=task` gives each task its own,
    and in the `domain` scenario all tasks have the same.

    >>> import holdfast as hf
    >>> stream = hf.stream("assorted", data="digits,synth-shapes", size=16, per_class=(20, 5, 10))
    >>> [(task.name, len(task.train), task.classes[0]) for task in stream.tasks], stream.info.shape
    ([('digits', 200, 0), ('synth-shapes', 200, 10)], (3, 16, 16))
    """

    size: Count = 32  # side of the images, resized bilinearly
    channels: Literal[1, 3] = 3  # a grey image has its channel repeated; a coloured one becomes grey for 1
    per_class: tuple[Whole, ...] | None = None  # rows of each class for train, val and test; without the last all tests
    labels: Literal["natural", "random"] = "natural"  # a task's classes in the data set's order, or in one of its own

    def faults(self, data: DataSet) -> list[str]:
        found = self._faults_of_rows()
        if len(data.shape) != 3 or data.x.dtype != torch.uint8 or data.shape[0] not in (1, 3):
            kind = "bytes" if data.x.dtype == torch.uint8 else "floats"
            found.append(
                f"stream 'assorted' needs images of bytes with 1 or 3 channels, but data set {data.name!r} has {kind} "
                f"of shape {data.shape}"
            )
        return found

    def _faults_of_rows(self) -> list[str]:
        if self.per_class is None:
            return []
        rows = ",".join(map(str, self.per_class))
        found = [
            f"per_class says how many rows a task has; leave {name} out"
            for name in ("examples", "test_examples", "val")
            if getattr(self, name)
        ]
        if len(self.per_class) not in (2, 3):
            found.append(f"per_class must be rows for train, val and, where not all are wanted, test, not {rows}")
        elif 0 in (self.per_class[0], *self.per_class[2:]):
            found.append(f"per_class must leave rows to train and to test on, not {rows}")
        return found

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        """The task that one data set makes."""
        classes = tuple(range(len(data.classes)))
        wanted = (self.channels, self.size, self.size)
        transform = None if data.shape == wanted else Fitted(self.size, self.channels)
        rows = None if self.per_class is None else Rows(*self.per_class)
        return self.scenario or "task", len(classes), [Plan(data.name, classes, classes, transform, data, rows)]

    def plan_all(self, data: Sequence[DataSet], seed: int) -> tuple[Scenario, int, list[Plan]]:
        number = self.tasks if provenance(self)["tasks"]["chosen_by"] == "given" else len(data)
        each = [data[t % len(data)] for t in range(number)]
        scenario = self.scenario or "task"
        if faults := self._faults_together(scenario, data, each):
            raise BadInput(*faults)
        plans: list[Plan] = []
        outputs, begun = 0, {}
        for t, one in enumerate(each):
            whose = 0 if scenario == "domain" else id(one)  # who shares outputs
            if whose not in begun:
                begun[whose] = outputs
                outputs += len(one.classes)
            order = self._order(one, seed, t)
            _, _, (plan,) = self.plan(one, seed)
            name = plan.name if t < len(data) else f"{plan.name} {t // len(data) + 1}"
            plans.append(replace(plan, name=name, classes=tuple(begun[whose] + c for c in order)))
        return scenario, outputs, plans

    def _order(self, data: DataSet, seed: int, t: int) -> list[int]:
        """The place of each class among those of its task."""
        n = len(data.classes)
        if self.labels == "natural":
            return list(range(n))
        return torch.randperm(n, generator=generator(seed, "assorted", "labels", task=t)).tolist()

    def _faults_together(self, scenario: Scenario, data: Sequence[DataSet], each: Sequence[DataSet]) -> list[str]:
        """What is impossible about these data sets beside each other."""
        found = []
        sizes = [len(one.classes) for one in data]
        if len(each) < len(data):
            found.append(f"{len(data)} data sets make at least {len(data)} tasks, not {len(each)}; leave tasks out")
        if scenario == "domain" and len(set(sizes)) > 1:
            found.append(f"the domain scenario needs tasks of equal size, not {', '.join(map(str, sizes))} classes")
        if scenario != "domain" and self.head == "shared" and self.labels == "random" and len(set(each)) < len(each):
            found.append(
                "labels=random would give the images of a data set that comes twice two classes; "
                "use head=task, or the domain scenario"
            )
        return found
