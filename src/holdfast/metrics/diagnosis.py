"""Does a stream pose the problem at all? What the first batches of its second task do to a learner (paper 001 §6.1).

Protocol `early` measures it before each of them (`record.study["early"]`), and the same of permuted pixels, which
resemble nothing that was learned: the paper's case of a stream that makes it too easy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from holdfast.errors import BadInput
from holdfast.metrics.statistics import verdict
from holdfast.types import Record

TASK, PERMUTED = "task B", "permuted pixels"
Measure = Literal["entropy", "likelihood", "prior", "ratio"]
MEASURES: tuple[Measure, ...] = ("entropy", "likelihood", "prior", "ratio")
NOTHING = 1e-6  # of the likelihood's gradient: a prior's that is smaller is rounding
Poses = Literal["yes", "in part", "no", "undecided"]


class Point(NamedTuple):
    """A mean over repeats and their standard deviation; None where undefined."""

    mean: float | None
    deviation: float | None

    def __str__(self) -> str:
        if self.mean is None:
            return "undefined"
        mean = _said(self.mean)
        return mean if self.deviation is None else f"{mean} ± {self.deviation:,.{len(mean.partition('.')[2])}f}"


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What a learner that knows task A makes of the first batches of task B; prints as sentences and a number."""

    about: Mapping[str, Any]  # stream, scenario, method, net, tasks
    rows: tuple[Mapping[str, Any], ...]  # seed, of, batch, entropy, most, likelihood, prior

    @classmethod
    def of(cls, records: Sequence[Record]) -> Diagnosis:
        """What runs under protocol `early` found; they differ in their seed alone."""
        if not records or any("early" not in record.study for record in records):
            raise BadInput("a diagnosis needs runs under protocol 'early'; hf.diagnose makes them")
        first = records[0]
        names = {place: str(getattr(first, place).get("name", "")) for place in ("stream", "net")}
        about = {**names, "method": first.method, "scenario": first.scenario, "tasks": [t["name"] for t in first.tasks]}
        return cls(about, tuple({"seed": record.seed, **row} for record in records for row in record.study["early"]))

    @property
    def repeats(self) -> int:
        return len({row["seed"] for row in self.rows})

    @property
    def most(self) -> float:
        """The entropy of a guess."""
        return float(self.rows[0]["most"])

    @property
    def batches(self) -> list[int]:
        return sorted({row["batch"] for row in self.rows})

    def values(self, measure: Measure, of: str, batch: int) -> list[float | None]:
        """One value for each repeat.

        `ratio` is the likelihood's gradient over the prior's, from the second batch on: at the first the weights are
        where the prior has its mean, and its gradient is 0 but for outputs that no task has used.
        """
        rows = [row for row in self.rows if row["of"] == of and row["batch"] == batch]
        if measure != "ratio":
            return [row[measure] for row in rows]
        return [row["likelihood"] / row["prior"] if batch > 1 and row["prior"] else None for row in rows]

    def course(self, measure: Measure, of: str = TASK) -> list[Point]:
        """A point for each batch; one that a repeat lacks is undefined."""
        return [_point(self.values(measure, of, batch)) for batch in self.batches]

    def at(self, measure: Measure, of: str = TASK, batch: int = 1) -> Point:
        return _point(self.values(measure, of, batch))

    @property
    def number(self) -> float | None:
        """How many times as hard the first batch pulls at the output layer as permuted pixels do."""
        mine, other = (self.at("likelihood", of).mean for of in (TASK, PERMUTED))
        return mine / other if mine is not None and other else None

    @property
    def resembles(self) -> Literal["a", "b", "tie"]:
        """Which has the lower entropy before it is learned: a, task B, or b, permuted pixels; paired over repeats."""
        return verdict(self.values("entropy", TASK, 1), self.values("entropy", PERMUTED, 1), larger_is_better=False)

    @property
    def pulls(self) -> Literal["a", "b", "tie"]:
        """Which pulls harder at first: a, task B, or b, permuted pixels; paired over repeats."""
        return verdict(self.values("likelihood", TASK, 1), self.values("likelihood", PERMUTED, 1))

    @property
    def poses(self) -> Poses:
        """Whether the stream poses the problem: its second task looks like the first, and pulls harder for it."""
        if self.repeats < 2:
            return "undecided"
        both = (self.resembles == "a") + (self.pulls == "a")
        return "yes" if both == 2 else "in part" if both else "no"

    def sentences(self) -> list[str]:
        """What was found, the verdict with its number last."""
        return [self._resemblance(), self._pull(), *self._prior(), self._verdict()]

    def summary(self) -> dict[str, Any]:
        """As JSON."""
        found: dict[str, Any] = {
            measure: {of: [point._asdict() for point in self.course(measure, of)] for of in (TASK, PERMUTED)}
            for measure in MEASURES
        }
        said = {"poses": self.poses, "number": self.number, "sentences": self.sentences()}
        head = {"schema": 1, **self.about, "most": self.most, "repeats": self.repeats}
        return {**head, **said, **found, "rows": [dict(row) for row in self.rows]}

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def _resemblance(self) -> str:
        how = {"a": "looks like task A to the learner", "b": "looks less like task A than permuted pixels do",
               "tie": "looks no more like task A than permuted pixels do"}[self.resembles]  # fmt: skip
        if self.repeats < 2:
            how = "as the learner sees it"
        mine, other = self.at("entropy"), self.at("entropy", PERMUTED)
        known = f"entropy {mine} of at most {self.most:.2f} nats before learning it (permuted pixels: {other})"
        return f"Task B {how}: {known}."

    def _pull(self) -> str:
        mine, other = self.at("likelihood"), self.at("likelihood", PERMUTED)
        times = "" if self.number is None else f" {_said(self.number)} times"
        return f"Its first batch pulls at the output layer{times} as hard as permuted pixels do ({mine} and {other})."

    def _prior(self) -> list[str]:
        first, pull = self.at("prior").mean, self.at("likelihood").mean
        batches = [b for b in (2, self.batches[-1]) if self.at("ratio", TASK, b).mean is not None]
        if first is None or pull is None or not batches:
            return ["The loss has no prior whose pull could be set beside it."] if first is None else []
        told = [
            f"{self.at('ratio', TASK, b)} at batch {b} (permuted pixels: {self.at('ratio', PERMUTED, b)})"
            for b in dict.fromkeys(batches)
        ]
        zero = "; at batch 1 the prior's gradient is 0, for the weights are where it has its mean"
        return [f"Times the pull of the prior: {', '.join(told)}{zero if first <= NOTHING * pull else ''}."]

    def _verdict(self) -> str:
        found = {
            "yes": "This stream poses the problem",
            "in part": "This stream poses the problem in part",
            "no": "This stream poses no more of a problem than permuted pixels do",
            "undecided": "One repeat decides nothing",
        }[self.poses]
        number = "" if self.number is None else f": {_said(self.number)} (permuted pixels: 1)"
        spread = f" ± is one standard deviation over {self.repeats} repeats." if self.repeats > 1 else ""
        return f"{found}{number}.{spread}"


def _point(values: Sequence[float | None]) -> Point:
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return Point(None, None)
    return Point(float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else None)


def _said(number: float) -> str:
    """Three digits, but two below 1.

    >>> [_said(x) for x in (14712.0, 129.4, 12.9, 2.713, 0.263, 0.0205, 0.0)]
    ['14,700', '129', '12.9', '2.71', '0.26', '0.021', '0']
    """
    if abs(number) >= 1000:
        return f"{float(f'{number:.3g}'):,.0f}"
    return f"{number:.3g}" if abs(number) >= 1 else f"{number:.2g}"
