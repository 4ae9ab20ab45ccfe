"""Networks that are paths through a library of modules: what each task made, and who uses it (paper 000, E.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from holdfast.types import Record

Path = Sequence[int]  # per layer the task that made its module


@dataclass(frozen=True)
class Module:
    """One of the library. Layers and tasks count from 0."""

    layer: int
    maker: int
    users: tuple[int, ...]  # its maker first

    @property
    def reused(self) -> bool:
        return len(self.users) > 1


@dataclass(frozen=True)
class Stretch:
    """Neighbouring layers of a path whose modules have the same maker."""

    maker: int
    first: int
    last: int

    @property
    def layers(self) -> int:
        return self.last - self.first + 1


def paths_of(record: Record) -> list[Path]:
    """That of each task; nothing where the method has no library."""
    return [row["path"] for row in record.study.get("paths", ())]


def modules_of(paths: Sequence[Path]) -> list[Module]:
    """All of the library, layer by layer, in the order in which they were made.

    >>> [(module.layer, module.maker, module.users) for module in modules_of([[0, 0], [0, 1], [0, 1]])]
    [(0, 0, (0, 1, 2)), (1, 0, (0,)), (1, 1, (1, 2))]
    """
    return [
        Module(layer, maker, tuple(task for task, path in enumerate(paths) if path[layer] == maker))
        for layer in range(len(paths[0]))
        for maker in sorted({path[layer] for path in paths})
    ]


def stretches(path: Path) -> list[Stretch]:
    """
    >>> stretches([0, 0, 0, 2])
    [Stretch(maker=0, first=0, last=2), Stretch(maker=2, first=3, last=3)]
    """
    runs = [list(run) for _, run in groupby(range(len(path)), key=lambda layer: path[layer])]
    return [Stretch(path[run[0]], run[0], run[-1]) for run in runs]


def shares(record: Record) -> list[float]:
    """Of a network's weights, per layer; nothing in records that do not say."""
    sizes: Sequence[int] = next((row["sizes"] for row in record.study.get("paths", ()) if "sizes" in row), [])
    return [size / sum(sizes) for size in sizes]
