"""What `holdfast report` does."""

from __future__ import annotations

from pathlib import Path

from holdfast.api import Comparison
from holdfast.commands.experiment import collected
from holdfast.disk import unwritable
from holdfast.errors import BadInput
from holdfast.report import Reproduction, figures


def write_report(folder: Path, target: Path, form: str | None = None) -> None:
    """The report of an output folder anew; that of a paper's table where the folder has one.

    `form`: its figures are written beside it, too, as files of this form.
    """
    faults: list[str] = []
    beside = target.parent / "figures"
    comparison = Comparison(())
    with collected(faults):
        comparison = Comparison.read(folder)
    faults += [f"{target} is a folder; --out needs the name of a file"] if target.is_dir() else []
    faults += unwritable(target.parent)
    faults += figures.faults(beside, form) if form is not None else []
    if faults:
        raise BadInput(*faults)
    reproduction = Reproduction.of(folder)
    title = f"{reproduction.id}: {reproduction.title}" if reproduction else None
    if form is not None:
        comparison.figures(beside, form, title, reproduction)
    print(f"report: {comparison.report(target, title, reproduction).resolve()}")
    if form is not None:
        print(f"figures: {beside.resolve()}")
