"""Tasks from several data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, final

import torch

from holdfast.seeds import generator
from holdfast.streams._several import DataSets
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Assorted(DataSets):
    """Every task is a data set of its own, `data="digits,synth,mnist"`, all brought to images of one size.

    With more tasks than data sets these come again in their order, each time with rows drawn anew; without `tasks`
    each comes once. The outputs are those of all data sets, one after the other; `head=task` gives each task its own,
    and in the `domain` scenario all tasks have the same.

    >>> import holdfast as hf
    >>> stream = hf.stream("assorted", data="digits,synth-shapes", size=16, per_class=(20, 5, 10))
    >>> [(task.name, len(task.train), task.classes[0]) for task in stream.tasks], stream.info.shape
    ([('digits', 200, 0), ('synth-shapes', 200, 10)], (3, 16, 16))
    """

    labels: Literal["natural", "random"] = "natural"  # a task's classes in the data set's order, or in one of its own

    def scenario_of(self, data: Sequence[DataSet]) -> Scenario:
        return self.scenario or "task"

    def outputs(self, scenario: Scenario, each: Sequence[DataSet], seed: int) -> list[list[int]]:
        begun: dict[int, int] = {}
        found, free = [], 0
        for t, one in enumerate(each):
            whose = 0 if scenario == "domain" else id(one)  # who shares outputs
            if whose not in begun:
                begun[whose] = free
                free += len(one.classes)
            found.append([begun[whose] + c for c in self._order(one, seed, t)])
        return found

    def _order(self, data: DataSet, seed: int, t: int) -> list[int]:
        """The place of each class among those of its task."""
        n = len(data.classes)
        if self.labels == "natural":
            return list(range(n))
        return torch.randperm(n, generator=generator(seed, "assorted", "labels", task=t)).tolist()

    def faults_together(self, scenario: Scenario, data: Sequence[DataSet], each: Sequence[DataSet]) -> list[str]:
        found = super().faults_together(scenario, data, each)
        sizes = [len(one.classes) for one in data]
        if scenario == "domain" and len(set(sizes)) > 1:
            found.append(f"the domain scenario needs tasks of equal size, not {', '.join(map(str, sizes))} classes")
        if scenario != "domain" and self.head == "shared" and self.labels == "random" and len(set(each)) < len(each):
            found.append(
                "labels=random would give the images of a data set that comes twice two classes; "
                "use head=task, or the domain scenario"
            )
        return found
