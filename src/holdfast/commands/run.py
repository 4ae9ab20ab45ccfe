"""Runs the cells of a command, shows how far they are, and says what came out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import Comparison, run_cells
from holdfast.commands import folder
from holdfast.commands.experiment import Asked, Execution, cells_of
from holdfast.commands.progress import shown
from holdfast.commands.terminal import FAILED, INTERRUPTED, complain, print_json, tell
from holdfast.errors import BadInput, NotKept, RunFailed
from holdfast.sweeps import Cell, locked


@dataclass(frozen=True)
class Output:
    """Where results go, and what is said about them."""

    out: str | None = None
    fresh: bool = False
    json: bool = False
    quiet: bool = False
    announce: Callable[[str], None] = tell  # how it says where the report is


def perform(asked: Asked, output: Output, faults: Sequence[str] = ()) -> int:
    """Everything from the typed words to the exit code; nothing is written unless all of it can be done."""
    found = list(faults)
    cells, execution = cells_of(asked, found)
    if output.out is not None:
        found += folder.faults(Path(output.out), output.fresh)
    if found:
        raise BadInput(*dict.fromkeys(found))
    home = folder.default(cells) if output.out is None else Path(output.out)
    return said(run_kept(cells, execution, home, output), home, output)


def said(comparison: Comparison | None, home: Path, output: Output) -> int:
    """Say what came out, and where its report is; the exit code."""
    if comparison is None:
        return INTERRUPTED
    if output.json:
        print_json(comparison.summary())
    elif comparison.records and not output.quiet:
        print(comparison.text())
    complain(*(f"{failure.cell} failed: {failure.reason}" for failure in comparison.failures))
    if comparison.records and not output.quiet:
        output.announce(f"report: {(home / 'report.html').resolve()}")
    return FAILED if comparison.failures else 0


def run_kept(
    cells: Sequence[Cell], execution: Execution, home: Path, output: Output, sources: Sequence[Path] = ()
) -> Comparison | None:
    """Run the cells that are finished neither in `home` nor in `sources`, showing how far they are; None when
    interrupted."""

    def work() -> Comparison:
        if output.fresh:
            folder.clear(home)
        kept = {i for i, cell in enumerate(cells) if (home / "cells" / cell.name / "record.json").exists()}
        with shown(cells, kept, output.quiet) as watch:
            return run_cells(cells, home, execution.jobs, watch, execution.checkpoint_every, sources)

    return alone(work, home)


def alone(work: Callable[[], Comparison], home: Path) -> Comparison | None:
    """Do the work while no other process is at `home`; None when interrupted."""
    try:
        with locked(home):
            return work()
    except KeyboardInterrupt:
        complain(f"stopped; finished runs are kept in {home}, and the same command goes on from there")
        return None
    except NotKept as error:
        raise RunFailed(
            f"{error.filename} cannot be written ({error.strerror}); what is finished is kept in {home}, and the same "
            "command goes on from there"
        ) from error
