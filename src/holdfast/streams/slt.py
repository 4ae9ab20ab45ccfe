"""The sequential learning tasks of papers 003 and 004, and partitions of any kind."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import final

import torch

from holdfast.errors import unknown
from holdfast.seeds import generator
from holdfast.settings import provenance
from holdfast.streams._base import Plan, StreamSpec
from holdfast.streams.permuted import permutation
from holdfast.types import DataSet, Scenario

# Paper 004, Tab. 2 = paper 003, Tab. 2: the classes of D1 and D2 among ten.
PAPERS = {
    "D5-5a": ("01234", "56789"),
    "D5-5b": ("02468", "13579"),
    "D5-5c": ("34689", "01257"),
    "D5-5d": ("02567", "13489"),
    "D5-5e": ("01345", "26789"),
    "D5-5f": ("03489", "12567"),
    "D5-5g": ("05678", "12349"),
    "D5-5h": ("02368", "14579"),
    "D9-1a": ("012345678", "9"),
    "D9-1b": ("123456789", "0"),
    "D9-1c": ("023456789", "1"),
}
PERMUTED = "DP10-10"


@final
@dataclass(frozen=True)
class SLT(StreamSpec):
    """Sequential learning tasks: a data set in two or more parts, learned one after the other (papers 003, 004).

    `parts` names one of the papers' twelve (D5-5a … D5-5h, D9-1a … D9-1c, DP10-10) or says how many classes each part
    has: `d5-5`, `d2-2-2-2-2`. Those classes are dealt out at random by the stream's seed. With a P, `dp10-10-10`, each
    part has its own permutation of the pixels, and parts may share classes. A data set with more classes than the parts
    need takes part with its best-represented ones, random ones where all are equally frequent.

    >>> import holdfast as hf
    >>> [task.classes for task in hf.stream("slt", parts="D9-1b").tasks]
    [(1, 2, 3, 4, 5, 6, 7, 8, 9), (0,)]
    """

    parts: str = "D5-5a"  # a task of the papers, or the number of classes of each part: d2-2-2-2-2
    permute: bool = True  # the pixels of dp parts; no: as in 003's code, parts differ in the order of rows alone

    def faults(self, data: DataSet) -> list[str]:
        sizes = _sizes(self.parts)
        if sizes is not None and provenance(self)["tasks"]["chosen_by"] == "given" and self.tasks != len(sizes):
            return [f"parts {self.parts!r} make {len(sizes)} tasks, not {self.tasks}; leave tasks out"]
        if sizes is None:
            return [unknown("parts", self.parts, [*PAPERS, PERMUTED, "d5-5", "d2-2-2-2-2", "dp10-10"])]
        needed = self._needed(sizes)
        if needed > len(data.classes):
            return [f"parts {self.parts!r} need {needed} classes, but data set {data.name!r} has {len(data.classes)}"]
        if self._scenario() == "domain" and len(set(sizes)) > 1:
            return [f"the domain scenario needs parts of equal size, not {', '.join(map(str, sizes))} classes"]
        if self.augment and self._permutes() and self.permute:
            return [f"augment would move and mirror the permuted pixels of parts {self.parts!r}; leave it out"]
        return []

    def plan(self, data: DataSet, seed: int) -> tuple[Scenario, int, list[Plan]]:
        sizes = _sizes(self.parts) or []
        chosen = _chosen(data, self._needed(sizes), seed)
        place = {c: i for i, c in enumerate(chosen)}
        scenario = self._scenario()
        plans = []
        for t, classes in enumerate(self._parts(sizes, seed)):
            source = tuple(chosen[c] for c in classes)
            transform = permutation(data, seed, t) if self._permutes() and self.permute else None
            name = f"D{t + 1}: classes " + " ".join(data.classes[c] for c in source)
            own = tuple(range(len(source))) if scenario == "domain" else tuple(place[c] for c in source)
            plans.append(Plan(name, source, own, transform))
        return scenario, max(sizes) if scenario == "domain" else len(chosen), plans

    def _scenario(self) -> Scenario:
        return self.scenario or ("domain" if self._permutes() else "class")

    def _permutes(self) -> bool:
        return self.parts.lower().startswith("dp")

    def _needed(self, sizes: list[int]) -> int:
        return max(sizes) if self._permutes() else sum(sizes)

    def _parts(self, sizes: list[int], seed: int) -> list[list[int]]:
        """The classes of each part, as places among the chosen ones."""
        if _paper(self.parts):
            return [[int(c) for c in part] for part in PAPERS[_paper(self.parts)]]
        if self._permutes():
            return [list(range(size)) for size in sizes]
        order = torch.randperm(sum(sizes), generator=generator(seed, "slt", "parts")).tolist()
        return [sorted(order[sum(sizes[:t]) : sum(sizes[: t + 1])]) for t in range(len(sizes))]


def _paper(parts: str) -> str:
    """The name as the papers write it; empty where it is none of theirs."""
    return {name.lower(): name for name in PAPERS}.get(parts.lower(), "")


def _sizes(parts: str) -> list[int] | None:
    """How many classes each part has; None where it is no such name."""
    if _paper(parts):
        return [len(part) for part in PAPERS[_paper(parts)]]
    if not re.fullmatch(r"[dD][pP]?[1-9]\d*(-[1-9]\d*)+", parts):
        return None
    return [int(n) for n in parts.lstrip("dDpP").split("-")]


def _chosen(data: DataSet, n: int, seed: int) -> list[int]:
    """n classes in their natural order: the best-represented ones, random ones where all are equally frequent."""
    counts = torch.bincount(data.y, minlength=len(data.classes))
    if n == len(counts):
        return list(range(n))
    if bool((counts == counts[0]).all()):
        return sorted(torch.randperm(len(counts), generator=generator(seed, "slt", "classes"))[:n].tolist())
    return sorted(counts.argsort(descending=True, stable=True)[:n].tolist())
