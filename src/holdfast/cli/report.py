"""`holdfast report DIR [--figures pdf]`: write the report of an output folder anew, and its figures as files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option


def report(
    folder: Annotated[str, Argument(metavar="DIR", hidden=True)],
    out: Annotated[str | None, Option(metavar="FILE", help="Where to write it.  [default: DIR/report.html]")] = None,
    figures: Annotated[
        str | None,
        Option(metavar="FORM", help="Also write every figure as a file for a paper: pdf, svg or png."),
    ] = None,
) -> None:
    """Write the HTML report of the output folder DIR anew, from its records.

    With --figures, a folder `figures` beside the report gets a file per figure at column width, figures.tex, which
    includes them with captions, and tables.tex (booktabs).
    """
    from holdfast.commands.report import write_report

    write_report(Path(folder), Path(folder) / "report.html" if out is None else Path(out), figures)
