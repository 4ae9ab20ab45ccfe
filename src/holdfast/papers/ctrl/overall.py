"""Table 1 and Figures 1 and 6: all five transfer streams together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from holdfast.papers.base import Entry, Figure, Found, Place, Recipe, Scale, published
from holdfast.papers.ctrl import figures, rows, transfer
from holdfast.papers.ctrl.figures import ALEXNET, Axis
from holdfast.papers.ctrl.rows import FLOPS, MEM, ROWS, TRANSFER

ALL = "all streams"
STREAMS: Mapping[str, str] = dict(transfer.TABLES.values())  # column -> kind
SIGN, RANK = "sign of T(S)", "rank by ⟨A⟩"
SMOKE = ("Independent", "New-head freeze", "New-leg freeze")  # the other rows are run at smoke by tables 13 to 17
AXES = (
    Axis("⟨A⟩", ALL, "acc"),
    Axis("⟨F⟩", ALL, "forgetting_ctrl"),
    *(Axis(f"T({stream})", stream, TRANSFER) for stream in STREAMS),
    Axis("Mem.", ALL, MEM),
    Axis("FLOPs", ALL, FLOPS),
)
NOTES = (
    "The runs are those of ctrl/table13 to table17: with --from and their output folders none is run again, nor is λ "
    "chosen again.",
    "⟨A⟩, ⟨F⟩, Mem. and FLOPs are means over the five streams, seed by seed; T(S) is that of each stream.",
    *rows.NOTES[:3],
)

Cells = tuple[Mapping[str, Any], ...]


def recipes() -> list[Recipe]:
    table = recipe("table1", published("ctrl", "table1")[1])
    title, _ = published("ctrl", "figure1")
    pictured = replace(
        table,
        id="ctrl/figure1",
        title=title,
        notes=(figures.NORMALISED, *table.notes),
        figures=lambda found: radars(found, table.published),
    )
    everything = recipe("figure6", averaged())
    return [
        replace(
            table,
            published=(*table.published, *ordered(table.published)),
            notes=(
                f"{SIGN}: of T(S) to one decimal, as the table prints it, −1, 0 or 1. {RANK}: among the rows that have "
                "a method, of the ResNet, 1 the highest.",
                *table.notes,
            ),
            figures=lambda found: bars(found, table.published),
        ),
        pictured,
        replace(
            everything,
            notes=(
                figures.NORMALISED,
                "What is published are means of the numbers of Tables 13 to 17.",
                *everything.notes,
            ),
            figures=lambda found: radars(found, everything.published),
        ),
    ]


def recipe(item: str, cells: Cells) -> Recipe:
    names = list(dict.fromkeys(cell["row"] for cell in cells))
    return Recipe(
        f"ctrl/{item}",
        published("ctrl", item)[0],
        {"smoke": (), "laptop": transfer.DATA, "full": transfer.DATA},
        {"smoke": 0.2, "laptop": 80 * len([name for name in names if name in ROWS]), "full": 60_000},
        lambda scale: _entries(names, scale),
        measured,
        cells,
        seeds={"smoke": 1, "laptop": 1, "full": 3},
        said=transfer.SAID,
        notes=NOTES,
        behind=_behind,
        missing=lambda scale: _missing(cells, scale),
    )


def _entries(names: Sequence[str], scale: Scale) -> list[Entry]:
    """The very cells of tables 13 to 17."""
    run = [row for row in ROWS if row in names and (scale != "smoke" or row in SMOKE)]
    return [
        entry
        for column, kind in STREAMS.items()
        for row in run
        for entry in transfer.and_alone(transfer.entry(row, column, kind, scale))
    ]


def _behind(row: str, column: str) -> list[Place]:
    return [(row, stream) for stream in (STREAMS if column == ALL else (column,))]


def _missing(cells: Cells, scale: Scale) -> dict[Place, str]:
    places = [(cell["row"], cell["column"]) for cell in cells]
    idle = {place: "not at smoke" for place in places if scale == "smoke" and place[0] not in SMOKE}
    return {**idle, **rows.missing(cells)}


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    if emulated:
        return None
    if metric == RANK:
        return _ranks(found, row)
    if metric == SIGN:
        values = measured(found, row, column, TRANSFER, False)
        return [_sign(fmean(values))] if values else None
    streams = [rows.measured(found, row, stream, metric, False) for _, stream in _behind(row, column)]
    known = [values for values in streams if values]
    return [fmean(each) for each in zip(*known, strict=True)] if len(known) == len(streams) else None


def ordered(cells: Cells) -> Cells:
    """The signs of T(S) and the ranks of ⟨A⟩ as published, for the rows that have a method."""
    mine = [cell for cell in cells if cell["row"] in ROWS]
    whole = {cell["row"]: cell["published"] for cell in mine if cell["metric"] == "acc"}
    whole = {row: whole[row] for row in _compared(whole)}
    signs = [
        {**cell, "metric": SIGN, "published": int(_sign(cell["published"]))}
        for cell in mine
        if cell["metric"] == TRANSFER
    ]
    ranks = [{"row": row, "column": ALL, "metric": RANK, "published": int(_rank(whole, row))} for row in whole]
    return (*ranks, *signs)


def averaged() -> Cells:
    """What Figure 6 shows: of every row of Tables 13 to 17 the means, and T(S) of each."""
    tables = [cell for table in transfer.TABLES for cell in published("ctrl", table)[1]]
    known = {(cell["row"], cell["column"], cell["metric"]): cell["published"] for cell in tables}

    def mean(row: str, axis: Axis) -> float:
        return round(fmean(known[*place, axis.metric] for place in _behind(row, axis.column)), 3)

    return tuple(
        {"row": row, "column": axis.column, "metric": axis.metric, "published": mean(row, axis)}
        for row in dict.fromkeys(cell["row"] for cell in tables)
        for axis in AXES
    )


def bars(found: Found, cells: Cells) -> list[Figure]:
    """Signs and ranks at a glance."""
    places = [(ALL, "acc"), *((stream, TRANSFER) for stream in STREAMS)]
    return figures.bars(found, cells, places, measured)


def radars(found: Found, cells: Cells) -> list[Figure]:
    return figures.radars(found, cells, list(dict.fromkeys(cell["row"] for cell in cells)), AXES, measured)


def _compared(names: Sequence[str] | Mapping[str, Any]) -> list[str]:
    return [row for row in ROWS if row in names and not row.endswith(ALEXNET)]


def _ranks(found: Found, row: str) -> list[float] | None:
    """Per seed, where all rows that are compared were run."""
    names = _compared([cell["row"] for cell in published("ctrl", "table1")[1]])
    each = {name: measured(found, name, ALL, "acc", False) for name in names}
    if row not in each or not all(each.values()):
        return None
    seeds = range(len(each[row] or ()))
    return [_rank({name: (values or [])[i] for name, values in each.items()}, row) for i in seeds]


def _rank(values: Mapping[str, float], row: str) -> float:
    return 1.0 + sum(value > values[row] for value in values.values())


def _sign(value: float) -> float:
    """Of the number to one decimal.

    >>> _sign(0.04), _sign(-0.31)
    (0.0, -1.0)
    """
    rounded = round(value, 1)
    return float((rounded > 0) - (rounded < 0))
