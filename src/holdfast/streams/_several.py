"""Tasks from several data sets, all brought to images of one size."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch

from holdfast.errors import BadInput
from holdfast.settings import Count, Whole, provenance
from holdfast.streams._base import Plan, Rows, StreamSpec
from holdfast.streams._images import Fitted
from holdfast.types import DataSet, Scenario


@dataclass(frozen=True)
class DataSets(StreamSpec):
    """Every task is a data set of its own, all brought to images of one size.

    With more tasks than data sets these come again in their order, each time with rows drawn anew; without `tasks`
    each comes once.
    """

    size: Count = 32  # side of the images, resized bilinearly
    channels: Literal[1, 3] = 3  # a grey image has its channel repeated; a coloured one becomes grey for 1
    per_class: tuple[Whole, ...] | None = None  # rows of each class for train, val and test; without the last all tests

    def faults(self, data: DataSet) -> list[str]:
        found = self._faults_of_rows()
        if len(data.shape) != 3 or data.x.dtype != torch.uint8 or data.shape[0] not in (1, 3):
            kind = "bytes" if data.x.dtype == torch.uint8 else "floats"
            found.append(
                f"stream {type(self).__name__.lower()!r} needs images of bytes with 1 or 3 channels, but data set "
                f"{data.name!r} has {kind} of shape {data.shape}"
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

    @abstractmethod
    def scenario_of(self, data: Sequence[DataSet]) -> Scenario:
        """The one that was given, or the stream's own default for these data sets."""

    @abstractmethod
    def outputs(self, scenario: Scenario, each: Sequence[DataSet], seed: int) -> list[list[int]]:
        """For the data set of each task the output of each of its classes, counted from 0 without gaps."""

    def faults_together(self, scenario: Scenario, data: Sequence[DataSet], each: Sequence[DataSet]) -> list[str]:
        """What is impossible about these data sets beside each other; `each`: that of each task."""
        if len(each) < len(data):
            return [f"{len(data)} data sets make at least {len(data)} tasks, not {len(each)}; leave tasks out"]
        return []

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        """The task that one data set makes."""
        classes = tuple(range(len(data.classes)))
        wanted = (self.channels, self.size, self.size)
        transform = None if data.shape == wanted else Fitted(self.size, self.channels)
        rows = None if self.per_class is None else Rows(*self.per_class)
        return self.scenario_of([data]), len(classes), [Plan(data.name, classes, classes, transform, data, rows)]

    def plan_all(self, data: Sequence[DataSet], seed: int) -> tuple[Scenario, int, list[Plan]]:
        number = self.tasks if provenance(self)["tasks"]["chosen_by"] == "given" else len(data)
        each = [data[t % len(data)] for t in range(number)]
        scenario = self.scenario_of(data)
        if faults := self.faults_together(scenario, data, each):
            raise BadInput(*faults)
        outputs = self.outputs(scenario, each, seed)
        plans: list[Plan] = []
        for t, (one, classes) in enumerate(zip(each, outputs, strict=True)):
            _, _, (plan,) = self.plan(one, seed)
            name = plan.name if t < len(data) else f"{plan.name} {t // len(data) + 1}"
            plans.append(replace(plan, name=name, classes=tuple(classes)))
        return scenario, 1 + max(c for classes in outputs for c in classes), plans
