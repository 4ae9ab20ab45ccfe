"""What the tasks of the transfer streams ask for (paper 000, Tables 4 to 6), and how rows are dealt out to them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from holdfast.seeds import generator
from holdfast.streams._base import Rows


@dataclass(frozen=True)
class Wanted:
    """A task as the paper has it."""

    data: str  # the name of the data set in the paper
    rows: Rows  # of each class
    classes: tuple[str, ...] | None = None  # none: ten drawn by the stream's seed, the same for all tasks of a data set
    drawn: int = 10  # how many, where they are drawn
    tiny: bool = False  # has too few rows to validate on them alone

    def scaled(self, factor: float) -> Wanted:
        """With so much of its rows, but at least one for each purpose."""
        rows = Rows(*(max(1, round(n * factor)) for n in (self.rows.train, self.rows.val)))
        return replace(self, rows=rows)


LARGE, SMALL, TINY = Rows(400, 200), Rows(40, 20), Rows(5, 3)
LONG, LONG_CIFAR_100 = Rows(1000, 500), Rows(450, 50)  # a large task of the long stream
OTHERS = ("mnist", "dtd", "fashion-mnist", "svhn")


def _listed(*tasks: tuple[str, Rows]) -> tuple[Wanted, ...]:
    return tuple(Wanted(data, rows, tiny=rows == TINY) for data, rows in tasks)


_BETWEEN = tuple((data, SMALL) for data in OTHERS)
TABLE_4 = {
    "minus": _listed(("cifar-10", LARGE), *_BETWEEN, ("cifar-10", SMALL)),
    "plus": _listed(("cifar-10", SMALL), *_BETWEEN, ("cifar-10", LARGE)),
    "in": _listed(("mnist", LARGE), ("cifar-10", SMALL), *_BETWEEN[1:], ("mnist", TINY)),
    "out": _listed(("cifar-10", LARGE), *_BETWEEN, ("cifar-10", SMALL)),
    "pl": _listed(*_BETWEEN, ("cifar-10", LARGE)),
}
LONG_DATA = ("cifar-10", "cifar-100", "fashion-mnist", "mnist", "svhn")
LONG_CLASSES = 5


@cache
def published() -> tuple[Wanted, ...]:
    """The long stream of Tables 5 and 6."""
    rows = json.loads(Path(__file__).with_name("ctrl_long.json").read_text(encoding="utf-8"))
    found = []
    for row in rows:
        each = Rows(row["train"] // LONG_CLASSES, row["val"] // LONG_CLASSES)
        found.append(Wanted(row["data"], each, tuple(row["classes"]), LONG_CLASSES, each == TINY))
    return tuple(found)


def drawn_long(tasks: int, seed: int) -> tuple[Wanted, ...]:
    """A long stream like the published one: the first so many tasks of the instance of this seed."""
    return tuple(_drawn(t, seed) for t in range(tasks))


def _drawn(t: int, seed: int) -> Wanted:
    rng = generator(seed, "ctrl", "long", task=t)
    data = LONG_DATA[int(torch.randint(len(LONG_DATA), (), generator=rng))]
    large = bool(torch.rand((), generator=rng) < (0.5 if t < 33 else 0.25 if t < 66 else 0.0))
    rows = TINY if not large else LONG_CIFAR_100 if data == "cifar-100" else LONG
    return Wanted(data, rows, drawn=LONG_CLASSES, tiny=not large)


Dealt = tuple[Tensor, Tensor]  # rows to train and to validate on


def dealt(
    y: Tensor, tasks: Mapping[int, tuple[Sequence[int], Rows]], disjoint: bool, rng: torch.Generator
) -> dict[int, Dealt]:
    """The rows of one data set for its tasks, given as classes and rows per class; class after class, in random order.

    Disjoint: no row is in two tasks; where there are too few, all get the same number but for those that ask for less.
    Otherwise each task draws for itself, and yet none trains on rows that another validates on. Too few rows are
    shared between training and validation as those asked for would be.
    """
    order = torch.randperm(len(y), generator=rng)
    found: dict[int, list[Dealt]] = {t: [] for t in tasks}
    for c in sorted({c for classes, _ in tasks.values() for c in classes}):
        there = order[y[order] == c]
        asking = {t: rows for t, (classes, rows) in tasks.items() if c in classes}
        shares = _apart(there, asking) if disjoint else _each_for_itself(there, asking, rng)
        for t, share in shares.items():
            found[t].append(share)
    return {t: (torch.cat([a for a, _ in parts]), torch.cat([b for _, b in parts])) for t, parts in found.items()}


def _apart(there: Tensor, asking: Mapping[int, Rows]) -> dict[int, Dealt]:
    sizes = allotted([rows.train + rows.val for rows in asking.values()], len(there))
    found = {}
    for (t, rows), mine in zip(asking.items(), there[: sum(sizes)].split(sizes), strict=True):
        val = _for_validation(rows, len(mine))
        found[t] = mine[val:], mine[:val]
    return found


def _each_for_itself(there: Tensor, asking: Mapping[int, Rows], rng: torch.Generator) -> dict[int, Dealt]:
    most = Rows(max(rows.train for rows in asking.values()), max(rows.val for rows in asking.values()))
    split = _for_validation(most, min(len(there), most.train + most.val))
    pools = there[split:], there[:split]
    return {
        t: (_some(pools[0], rows.train, rng), _some(pools[1], rows.val, rng))  # what is too much is what there is
        for t, rows in asking.items()
    }


def _some(pool: Tensor, size: int, rng: torch.Generator) -> Tensor:
    return pool[torch.randperm(len(pool), generator=rng)[:size]]


def _for_validation(rows: Rows, there: int) -> int:
    """How many of the rows that there are; one of two at least is left to train on."""
    asked = rows.train + rows.val
    if there >= asked or not rows.val:
        return rows.val
    return min(max(1, round(there * rows.val / asked)), there - 1) if there > 1 else 0


def allotted(asked: Sequence[int], there: int) -> list[int]:
    """How many each gets: what it asks for, or, where there are too few, the same number for all that ask for more.

    >>> allotted([600, 60, 8], 1000), allotted([600, 300, 8], 500)
    ([600, 60, 8], [246, 246, 8])
    """
    found = [0] * len(asked)
    for left, i in zip(range(len(asked), 0, -1), sorted(range(len(asked)), key=lambda i: asked[i]), strict=True):
        found[i] = min(asked[i], there // left)
        there -= found[i]
    return found
