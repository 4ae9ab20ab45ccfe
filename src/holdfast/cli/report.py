"""`holdfast report DIR`: write the report of an output folder anew."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def report(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    out: Annotated[str | None, Option(metavar="FILE", help="Where to write it.  [default: DIR/report.html]")] = None,
) -> None:
    """Write the HTML report of the output folder DIR anew, from its records."""
    from holdfast.commands.report import write_report

    write_report(Path(folder), Path(folder) / "report.html" if out is None else Path(out))
