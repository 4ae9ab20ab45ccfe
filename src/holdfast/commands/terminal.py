"""What the commands say: complaints on standard error, tables and JSON on standard output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130
WIDE = 200  # columns of a table that goes to a file or a pipe


class Stopped(Exception):
    """Ctrl-C, and what is kept of the work."""


def complain(*faults: str) -> None:
    """One line per fault."""
    for fault in faults:
        tell(f"holdfast: {' '.join(fault.split())}")


def tell(line: str) -> None:
    """A line on standard error, where it does not disturb what is piped on."""
    print(line, file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def print_table(headings: Sequence[str] | None, rows: Iterable[Sequence[str]]) -> None:
    """Columns that wrap at the width of the terminal."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=headings is not None)
    for heading in headings or ():
        table.add_column(heading, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    console = Console(width=None if sys.stdout.isatty() else WIDE, highlight=False)
    with console.capture() as drawn:
        console.print(table)
    print("\n".join(line.rstrip() for line in drawn.get().splitlines()))
