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
    from holdfast.api import Comparison
    from holdfast.commands.folder import unwritable
    from holdfast.commands.reproduce import kept
    from holdfast.errors import BadInput

    target = Path(folder) / "report.html" if out is None else Path(out)
    if target.is_dir():
        raise BadInput(f"{target} is a folder; --out needs the name of a file")
    comparison = Comparison.read(folder)
    if faults := unwritable(target.parent):
        raise BadInput(*faults)
    reproduction = kept(Path(folder))
    title = f"{reproduction.id}: {reproduction.title}" if reproduction else None
    print(f"report: {comparison.report(target, title, reproduction).resolve()}")
