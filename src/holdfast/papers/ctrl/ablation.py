"""The ablation of MNTDP-D (§5): another prior, and networks cut into fewer or more modules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Found, Recipe, Scale, published
from holdfast.papers.ctrl import figures, rows, transfer

PLAIN = "MNTDP-D"
STREAMS = {"S-": "minus", "S_out": "out"}
UNPRINTED = (rows.FIRST, rows.LAST, rows.CHANGE, rows.TRANSFER, "acc", rows.MEM)


@dataclass(frozen=True)
class Variant:
    """What differs from MNTDP-D as it is."""

    method: Mapping[str, Any] = field(default_factory=dict)
    net: Mapping[str, Any] = field(default_factory=dict)


VARIANTS: Mapping[str, Variant] = {
    PLAIN: Variant(),
    "random path": Variant({"prior": "random"}),
    "k=all": Variant({"nearest_paths": None}),
    "3 modules": Variant(net={"modules": 3}),
    "10 modules": Variant(net={"modules": 10}),
}
NOTES = (
    "The paper has no table of these, only a paragraph. What it calls T(S) there, which goes from 0 to −0.2, is taken "
    f"for '{rows.CHANGE}': of MNTDP-D as it is, Tables 13 and 16 print 0.0 and 0.01 for that, 0.36 and 0.33 for T(S).",
    f"The rows of {PLAIN} are the very cells of ctrl/table13 and table16: with --from and their output folders none is "
    "run again.",
    "T(S) of all rows is held against the last task learned alone by MNTDP-D as it is: alone, they are all one network "
    "that learns from its first weights on, however it is cut and whatever the prior.",
    "That k=all does similarly is said without a number, and in the tables shown for MNTDP-S. With 3 modules the paper "
    "also reports 9% less on the last task.",
)


def recipes() -> list[Recipe]:
    title, printed = published("ctrl", "ablation")
    known = {(cell["row"], cell["column"], cell["metric"]) for cell in printed}
    places = [(row, column, metric) for row in VARIANTS for column in STREAMS for metric in UNPRINTED]
    places += [(PLAIN, f"{column}, {rows.ALONE}", rows.LAST) for column in STREAMS]
    ours = [
        {"row": row, "column": column, "metric": metric, "published": None}
        for row, column, metric in places
        if (row, column, metric) not in known
    ]
    return [
        Recipe(
            "ctrl/ablation",
            title,
            {"smoke": (), "laptop": transfer.DATA, "full": transfer.DATA},
            {"smoke": 0.2, "laptop": 130, "full": 10_000},
            entries,
            measured,
            (*printed, *ours),
            seeds={"smoke": 1, "laptop": 1, "full": 3},
            said=transfer.SAID,
            notes=NOTES,
            figures=lambda found: figures.bars(found, printed, [(column, rows.CHANGE) for column in STREAMS], measured),
        )
    ]


def entries(scale: Scale) -> list[Entry]:
    made = []
    for column, kind in STREAMS.items():
        plain = transfer.entry(PLAIN, column, kind, scale)
        made += [varied(plain, name, scale) for name in VARIANTS] + [rows.alone(plain)]
    return made


def varied(plain: Entry, name: str, scale: Scale) -> Entry:
    own = VARIANTS[name]
    method = hf.method(rows.ROWS[PLAIN].method, **own.method)
    return replace(plain, row=name, method=method, net=rows.convolutional(PLAIN, scale, **own.net))


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    if metric != rows.TRANSFER:
        return rows.measured(found, row, column, metric, emulated)
    alone = (PLAIN, f"{column}, {rows.ALONE}", False)
    if emulated or (row, column, False) not in found or alone not in found:
        return None
    return rows.transfers(found[row, column, False], found[alone])
