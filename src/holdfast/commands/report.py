"""What `holdfast report` does."""

from __future__ import annotations

from pathlib import Path

from holdfast.api import Comparison
from holdfast.commands.folder import unwritable
from holdfast.commands.reproduce import kept
from holdfast.errors import BadInput


def write_report(folder: Path, target: Path) -> None:
    """The report of an output folder anew; that of a paper's table where the folder has one."""
    if target.is_dir():
        raise BadInput(f"{target} is a folder; --out needs the name of a file")
    comparison = Comparison.read(folder)
    if faults := unwritable(target.parent):
        raise BadInput(*faults)
    reproduction = kept(folder)
    title = f"{reproduction.id}: {reproduction.title}" if reproduction else None
    print(f"report: {comparison.report(target, title, reproduction).resolve()}")
