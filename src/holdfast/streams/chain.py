"""From one data set to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

from holdfast.streams._several import DataSets
from holdfast.types import DataSet, Scenario


@final
@dataclass(frozen=True)
class Chain(DataSets):
    """From one data set to the next, `data="mnist,svhn"`: the two-task transfer of paper 001 §3.2.3, or longer.

    All are brought to images of one size. Classes of the same name share an output: MNIST's 3 and SVHN's are one class.
    Where all data sets have the same names the scenario is `domain`, otherwise `class`. With more tasks than data sets
    these come again in their order, each time with rows drawn anew: `tasks=3` goes to SVHN and back.

    >>> import holdfast as hf
    >>> stream = hf.stream("chain", data="digits,synth-strokes", size=8, channels=1, tasks=3)
    >>> [(task.name, task.classes[0]) for task in stream.tasks], stream.scenario, stream.info.classes
    ([('digits', 0), ('synth-strokes', 10), ('digits 2', 0)], 'class', 20)
    """

    def scenario_of(self, data: Sequence[DataSet]) -> Scenario:
        return self.scenario or ("domain" if len(_kinds(data)) == 1 else "class")

    def outputs(self, scenario: Scenario, each: Sequence[DataSet], seed: int) -> list[list[int]]:
        names = dict.fromkeys(name for one in each for name in one.classes)
        place = {name: i for i, name in enumerate(names)}
        return [[place[name] for name in one.classes] for one in each]

    def faults_together(self, scenario: Scenario, data: Sequence[DataSet], each: Sequence[DataSet]) -> list[str]:
        found = super().faults_together(scenario, data, each)
        if scenario == "domain" and len(kinds := _kinds(data)) > 1:
            first, other = list(kinds.values())[:2]
            found.append(
                f"the domain scenario needs the same classes in all tasks, but data sets {first!r} and {other!r} have "
                "classes of other names; use scenario 'class', or stream 'assorted', which goes by their places"
            )
        return found


def _kinds(data: Sequence[DataSet]) -> dict[frozenset[str], str]:
    """The sets of class names there are, each with a data set that has it."""
    return {frozenset(one.classes): one.name for one in data}
