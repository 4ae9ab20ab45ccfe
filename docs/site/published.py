"""Published and measured numbers of a method, from the files that `holdfast reproduce --keep` wrote below docs/."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from docstrings import plain, table

from holdfast.commands.results import read
from holdfast.report.reproduction import Reproduction, Row, rows

ROWS = re.compile(r"^<!-- rows: (.*) -->\n", re.MULTILINE)


@dataclass(frozen=True)
class Kept:
    """One table's numbers."""

    id: str
    rows: list[Row]


def kept(docs: Path) -> list[Kept]:
    found = [read(path) for path in sorted(docs.rglob("*.json"))]
    return [
        Kept(
            each["id"],
            rows(Reproduction(each["id"], each["title"], "", [{"archive": None, **c} for c in each["cells"]])),
        )
        for each in found
    ]


def rows_named(written: str) -> tuple[list[str], str]:
    """What the papers' tables call a method, as `<!-- rows: ER; ER (reservoir) -->` says, and the page without it."""
    names = ROWS.search(written)
    return ([name.strip() for name in names[1].split(";")] if names else []), ROWS.sub("", written)


def section(names: list[str], kept: list[Kept]) -> str:
    """The rows, or columns, of these names in all tables; nothing where there are none."""
    found = [(each.id, row) for each in kept for row in each.rows if {row.row, row.column} & set(names)]
    if not found:
        return ""
    lines = [
        [f"`{id}`", plain(row.row), plain(", ".join(filter(None, (row.column, row.setting)))), row.metric, row.scenario,
         row.published, f"{row.measured} {row.half}".strip(), row.theirs, row.verdict]
        for id, row in found
    ]  # fmt: skip
    head = ["table", "row", "column", "metric", "scenario", "published", "measured", "authors’ way", "within"]
    return f"## Measured | published\n\n{table(head, lines)}"
