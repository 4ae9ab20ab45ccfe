"""How the figures of paper 000 are drawn: bars of each measure, and radars of all of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import holdfast as hf
from holdfast.papers.base import Figure, Found, Measure, Series
from holdfast.papers.ctrl import rows

PUBLISHED = "as published"  # in place of a scenario
ALEXNET = " *"  # how rows end whose network is the AlexNet
MEASURES: Mapping[str, tuple[str, str]] = {  # what they are called, and the quantity that an axis has
    "acc": ("⟨A⟩, mean accuracy after the stream", "accuracy"),
    "forgetting_ctrl": ("⟨F⟩, forgetting", "⟨F⟩"),
    rows.FIRST: ("first task, when it was learned", "accuracy"),
    rows.LAST: ("last task", "accuracy"),
    rows.CHANGE: ("last task less first task", "difference"),
    rows.TRANSFER: ("T(S), transfer to the last task", "T(S)"),
    "lca": ("LCA@5, accuracy in the first five batches of a task", "LCA@5"),
    rows.MEM: ("Mem.", "MB"),
    rows.FLOPS: ("FLOPs of training", "FLOPs (T)"),
}
NORMALISED = (
    "How the axes of a radar are normalised, which the paper does not say: on each the rim is the best and the inner "
    "ring the worst of all rows of the same network and source, measured or published, the others in proportion. ⟨A⟩, "
    "⟨F⟩ and T(S) are better the higher, Mem. and FLOPs the lower, by their logarithms. Point at a mark for its number."
)
SHORT = "Rim: the best of these rows; inner ring: the worst."

Cells = Sequence[Mapping[str, Any]]
Point = tuple[float | None, float | None, float | None]  # mean and 95% interval; None where they are not known
Read = Callable[[str, str, str], Point]  # row, column, metric


def measured(found: Found, measure: Measure) -> Read:
    return lambda row, column, metric: hf.interval(measure(found, row, column, metric, False) or ())


def printed(cells: Cells) -> Read:
    """What the paper prints; it has no intervals."""
    known = {(cell["row"], cell["column"], cell["metric"]): cell["published"] for cell in cells}
    return lambda row, column, metric: (known.get((row, column, metric)), None, None)


def bars(
    found: Found,
    cells: Cells,
    places: Sequence[tuple[str, str]],
    measure: Measure,
    words: Mapping[str, tuple[str, str]] = MEASURES,
) -> list[Figure]:
    """A figure for each place, column and metric, that was measured: all rows, measured and published."""
    made = []
    for column, metric in places if found else ():
        names = list(dict.fromkeys([*(cell["row"] for cell in cells), *(row for row, _, _ in found)]))
        ours, theirs = (
            [read(name, column, metric) for name in names] for read in (measured(found, measure), printed(cells))
        )
        if all(mean is None for mean, _, _ in ours):
            continue
        (word, quantity), nobody = words[metric], all(mean is None for mean, _, _ in theirs)
        series = [_series("measured", scenario(found), ours)]
        series += [] if nobody else [replace(_series("published", PUBLISHED, theirs), outline=True)]
        made.append(Figure("bars", f"{column}: {word}", names, "", series, quantity=quantity))
    return made


@dataclass(frozen=True)
class Axis:
    """One of a radar's."""

    name: str
    column: str
    metric: str

    @property
    def costs(self) -> bool:
        return self.metric in (rows.MEM, rows.FLOPS)


def radars(found: Found, cells: Cells, names: Sequence[str], axes: Sequence[Axis], measure: Measure) -> list[Figure]:
    """Of the ResNet and of the AlexNet, measured and published: all rows together, then each by itself."""
    together, apart = [], []
    for backbone, starred in (("ResNet", False), ("AlexNet", True)):
        mine = [name for name in names if name.endswith(ALEXNET) == starred]
        ours = polygons(measured(found, measure), mine, axes, scenario(found)) if found else []
        theirs = polygons(printed(cells), mine, axes, PUBLISHED)
        together += [_radar(f"{backbone}, {whose}", all_, axes, note=SHORT)
                     for whose, all_ in (("measured", ours), ("published", theirs)) if all_]  # fmt: skip
        beside = {one.name: replace(one, outline=True) for one in theirs}
        apart += [_radar(one.name, [beside[one.name], one] if one.name in beside else [one], axes, small=True)
                  for one in ours]  # fmt: skip
    return together + apart


def polygons(read: Read, names: Sequence[str], axes: Sequence[Axis], said: str) -> list[Series]:
    """Those of the rows that have all measures, normalised among them."""
    found = {name: [read(name, axis.column, axis.metric) for axis in axes] for name in names}
    known = {name: [p[0] for p in points if p[0] is not None] for name, points in found.items()}
    drawn = [name for name in names if len(known[name]) == len(axes)]
    shares = [normalised([known[name][i] for name in drawn], axis.costs) for i, axis in enumerate(axes) if drawn]
    nothing: list[float | None] = [None] * len(axes)
    return [
        Series(name, said, [share[i] for share in shares], nothing, nothing, told=list(map(_told, found[name])))
        for i, name in enumerate(drawn)
    ]


def _radar(title: str, series: list[Series], axes: Sequence[Axis], note: str = "", small: bool = False) -> Figure:
    return Figure("radar", title, [axis.name for axis in axes], "", series, note=note, small=small)


def normalised(values: Sequence[float], lower: bool) -> list[float]:
    """From 0, the worst, to 1, the best; where all are the same, all are best. `lower` is better: by the logarithm.

    >>> normalised([0.2, 0.4, 0.6], lower=False), normalised([1.0, 10.0, 100.0], lower=True)
    ([0.0, 0.5, 1.0], [1.0, 0.5, 0.0])
    """
    good = [-math.log(value) for value in values] if lower else list(values)
    worst, best = min(good), max(good)
    return [1.0 if best - worst < 1e-9 else round((value - worst) / (best - worst), 6) for value in good]


def scenario(found: Found) -> str:
    return hf.panels.scenario_of(next(iter(found.values()))[0])


def _series(name: str, said: str, points: Sequence[Point]) -> Series:
    mean, low, high = ([point[i] for point in points] for i in range(3))
    return Series(name, said, mean, low, high, told=list(map(_told, points)))


def _told(point: Point) -> str:
    """'0.43 ± 0.02'."""
    mean, low, high = point
    if mean is None:
        return ""
    return _digits(mean) if low is None or high is None else f"{_digits(mean)} ± {_digits((high - low) / 2)}"


def _digits(value: float) -> str:
    return f"{value:.2f}" if 0.005 <= abs(value) < 1000 or value == 0 else f"{value:.3g}"
