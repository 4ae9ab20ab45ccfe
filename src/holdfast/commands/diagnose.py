"""What `holdfast diagnose` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from holdfast.api import Comparison, diagnosing, experiment_of
from holdfast.commands import folder
from holdfast.commands.experiment import Asked, Execution, cells_of
from holdfast.commands.progress import shown
from holdfast.commands.run import Output, alone, performed, tell_data
from holdfast.commands.terminal import FAILED, Stopped, complain, print_json, tell
from holdfast.errors import BadInput
from holdfast.metrics import Diagnosis
from holdfast.settings import Count, expected, fits
from holdfast.sweeps import Cell, execute, write_text
from holdfast.sweeps.store import dumps

FILE = "diagnosis.json"


def diagnose_asked(asked: Asked, repeats: str, output: Output) -> int:
    """Everything from the typed words to the exit code."""
    found: list[str] = []
    known = fits(Count, repeats)
    if not known:
        found.append(f"--repeats must be {expected(Count)}, not {repeats!r}")
    if asked.scenario is not None and "," in asked.scenario:
        found.append(f"diagnose takes one scenario, not {asked.scenario!r}")
    if asked.methods == ("vcl",) and not any("test_samples" in each for each in asked.settings):
        draws = vars(diagnosing())["test_samples"]
        asked = replace(asked, settings=(*asked.settings, f"vcl.test_samples={draws}"))
    seeds = ",".join(map(str, range(int(repeats) if known else 1)))
    cells, ways = cells_of(replace(asked, seeds=seeds), found)
    if output.out is not None:
        found += folder.faults(Path(output.out), output.fresh)
    elif output.fresh:
        found.append("--fresh clears a folder; say which: --out DIR")
    if found:
        raise BadInput(*dict.fromkeys(found))
    tell_data(cells, output.quiet)
    comparison = _performed(cells, ways, output)
    diagnosis = Diagnosis.of(comparison.records) if comparison.records else None
    if diagnosis is not None:
        _say(diagnosis, output)
    complain(*(f"{failure.cell} failed: {failure.reason}" for failure in comparison.failures))
    return FAILED if comparison.failures else 0


def _performed(cells: Sequence[Cell], ways: Execution, output: Output) -> Comparison:
    """The runs, in a folder if one is given."""
    if output.out is not None:
        home = Path(output.out)
        with alone(home):
            return performed(cells, ways, home, output)
    try:
        with shown(cells, output.quiet) as board:
            results = execute(cells, None, ways.jobs, board)
    except KeyboardInterrupt as error:
        raise Stopped("stopped; nothing is kept without --out") from error
    return Comparison.of(cells, results, experiment_of(cells))


def _say(diagnosis: Diagnosis, output: Output) -> None:
    if output.out is not None:
        write_text(Path(output.out) / FILE, dumps(diagnosis.summary()))
    if output.json:
        print_json(diagnosis.summary())
    elif not output.quiet:
        print(diagnosis)
    if output.out is not None and not output.quiet:
        tell(f"report: {(Path(output.out) / 'report.html').resolve()}")
