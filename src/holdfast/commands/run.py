"""What `holdfast run`, `compare` and `demo` do, and what all commands that run cells share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import Comparison, claimed
from holdfast.commands import folder
from holdfast.commands.experiment import Asked, Execution, cells_of
from holdfast.commands.progress import shown
from holdfast.commands.terminal import FAILED, Stopped, complain, print_json, tell
from holdfast.errors import BadInput, NotKept, RunFailed
from holdfast.sweeps import Cell, execute, locked, tracked, tracking
from holdfast.sweeps.board import posted
from holdfast.sweeps.executor import MODEL


@dataclass(frozen=True)
class Output:
    """Where results go, and what is said about them."""

    out: str | None = None
    fresh: bool = False
    json: bool = False
    quiet: bool = False
    announce: Callable[[str], None] = tell  # how it says where the report is
    track: tuple[str, ...] = ()  # other programs that hear what is measured, and where


def run_asked(asked: Asked, output: Output, faults: Sequence[str] = ()) -> int:
    """Everything from the typed words to the exit code; nothing is written unless all of it can be done."""
    found = list(faults)
    cells, ways = cells_of(asked, found)
    if output.out is not None:
        found += folder.faults(Path(output.out), output.fresh)
    found += tracking.faults(output.track)
    if found:
        raise BadInput(*dict.fromkeys(found))
    tell_data(cells, output.quiet)
    home = folder.default(cells) if output.out is None else Path(output.out)
    with alone(home):
        comparison = performed(cells, ways, home, output)
    return said(comparison, home, output, ways.keep_model)


def tell_data(cells: Sequence[Cell], quiet: bool) -> None:
    """What was done with the data when they were read, as the first seed has it."""
    for line in dict.fromkeys(line for cell in cells for line in cell.stream.told):
        if not quiet:
            tell(line)


def performed(cells: Sequence[Cell], ways: Execution, home: Path, output: Output) -> Comparison:
    """Run these cells in their folder, for all to see, and keep what comes of them there."""
    if output.fresh:
        folder.clear(home)
    experiment = claimed(home, cells)
    with shown(cells, output.quiet) as board, tracked(cells, output.track, board.watch) as told, posted(board, home):
        board.watch = told
        results = execute(cells, home, ways.jobs, board, ways.checkpoint_every, ways.keep_model)
    comparison = Comparison.of(cells, results, experiment)
    comparison.keep(home)
    return comparison


def said(comparison: Comparison, home: Path, output: Output, models: bool = False) -> int:
    """Say what came out, and where its report is, and the models that were kept; the exit code."""
    if output.json:
        print_json(comparison.summary())
    elif comparison.records and not output.quiet:
        print(comparison.text())
    complain(*(f"{failure.cell} failed: {failure.reason}" for failure in comparison.failures))
    if models and not output.quiet:
        for name in comparison.names[: len(comparison.records)]:
            tell(f"model: {(home / 'cells' / name / MODEL).resolve()}")
    if comparison.records and not output.quiet:
        output.announce(f"report: {(home / 'report.html').resolve()}")
    return FAILED if comparison.failures else 0


@contextmanager
def alone(home: Path) -> Iterator[None]:
    """No other process is at `home` meanwhile; when the work ends early, what is kept there is told."""
    try:
        with locked(home):
            yield
    except KeyboardInterrupt as error:
        raise Stopped(f"stopped; finished runs are kept in {home}, and the same command goes on from there") from error
    except NotKept as error:
        raise RunFailed(
            f"{error.filename} cannot be written ({error.strerror}); what is finished is kept in {home}, and the same "
            "command goes on from there"
        ) from error
