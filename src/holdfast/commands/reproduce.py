"""What `holdfast reproduce` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby, product
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from holdfast import papers
from holdfast.api import Comparison, claimed
from holdfast.commands import folder, results
from holdfast.commands.progress import shown
from holdfast.commands.run import Output, alone
from holdfast.commands.terminal import FAILED, complain, print_json, tell
from holdfast.data import at_hand
from holdfast.errors import BadInput, RunFailed
from holdfast.report.reproduction import ARCHIVE, COLUMNS, FILE, Reproduction, rows
from holdfast.settings import Count, make
from holdfast.sweeps import Cell, Choice, check_all, choose, execute, trial_cells, write_text
from holdfast.sweeps.board import posted
from holdfast.sweeps.store import TRIALS, dumps
from holdfast.types import Record

Key = tuple[str, str, bool]  # row, column, emulated


@dataclass(frozen=True)
class Size:
    """How much of a recipe is run."""

    scale: papers.Scale = "laptop"
    seeds: Count | None = None
    jobs: Count | None = None


def list_all(as_json: bool) -> int:
    """Every table and figure, what it needs and how long it takes: first what the data that are here suffice for."""
    items = papers.contents()
    if as_json:
        print_json([_row(item) for item in items])
        return 0
    console, listed = _console(), [(item, _row(item)) for item in items]
    able, unable = ([pair for pair in listed if bool(pair[1]["lacking"]) == lacks] for lacks in (False, True))
    _print_list(console, "Can be run here", able, "data")
    _print_list(console, "Lack data (`holdfast data fetch NAME`); --scale smoke runs without", unable, "lacking")
    return 0


def _print_list(
    console: Console, title: str, listed: Sequence[tuple[papers.Item, Mapping[str, Any]]], told: str
) -> None:
    if listed:
        console.print(Text(title, style="bold"))
    for paper, items in groupby(listed, lambda pair: pair[0].paper):
        table = Table(title=paper, title_justify="left", box=None, pad_edge=False)
        for column in ("id", "what it shows", told, "minutes (laptop)"):
            table.add_column(column, no_wrap=column == "id")
        for item, row in items:
            minutes = "–" if row["minutes"] is None else f"{row['minutes']:g}"
            table.add_row(item.id, item.title, ", ".join(row[told]) if item.recipe else "not built yet", minutes)
        console.print(table)
        console.print()


def reproduce_one(
    id: str,
    scale: str,
    seeds: str | None,
    jobs: str | None,
    output: Output,
    sources: Sequence[str] = (),
    words: str | None = None,
    keep: str | None = None,
) -> int:
    """Run a recipe and set what was measured beside what was published.

    `words`: which of its rows and columns; `keep`: a folder for the numbers as a small file.
    """
    found: list[str] = []
    recipe, size = None, Size()
    for step in (lambda: papers.find(id), lambda: make(Size, _given(scale, seeds, jobs), "this reproduction")):
        try:
            result: Any = step()
            recipe, size = (result, size) if isinstance(result, papers.Recipe) else (recipe, result)
        except BadInput as error:
            found += error.faults
    if output.out is not None:
        found += folder.faults(Path(output.out), output.fresh)
    for source in (source for source in sources if not (Path(source) / "experiment.json").is_file()):
        found.append(f"{source} is not an output folder of Holdfast: it has no experiment.json")
    found += results.faults(keep, recipe.id) if recipe else []
    if found or recipe is None:
        raise BadInput(*found)
    whole = recipe.entries(size.scale)
    asked = whole if words is None else _only(recipe, size.scale, whole, words)
    tuned = {entry: trial_cells(entry.cell(0), entry.grid) for entry in asked if entry.tunes}
    home = Path(output.out or _default(recipe, asked))
    with alone(home):
        if output.fresh:
            folder.clear(home)
        choices = _choices(tuned, size.jobs, home, output.quiet, [Path(source) / TRIALS for source in sources])
        chosen = [entry.chosen(choices) for entry in asked]
        entries = [entry for entry in chosen if entry is not None]
        numbers = range(size.seeds or recipe.seeds[size.scale])
        cells: dict[str, Cell] = {}
        for entry, seed in product(entries, numbers):
            cell = replace(entry.cell(seed), title=entry.label)
            cells.setdefault(cell.name, cell)  # one run may stand in several places; it is called after the first
        comparison = _ran(list(cells.values()), size.jobs, home, output.quiet, [Path(source) for source in sources])
        by_key = _by_key(entries, numbers, comparison)
        reproduction = Reproduction(
            id=recipe.id,
            title=recipe.title,
            scale=size.scale,
            cells=papers.judged(recipe, by_key, size.scale, asked, () if words is None else whole),
            notes=[note for note in (recipe.said.get(size.scale, ""), *recipe.notes) if note],
            choices=[_told(entry) for entry in entries if entry.choice and entry.tunes],
            figures=[asdict(figure) for figure in recipe.figures(by_key)] if recipe.figures else [],
            runs={name: cell.title or name for name, cell in cells.items()},
        )
        write_text(home / FILE, dumps(asdict(reproduction)))
        if comparison.records or not cells:
            named = replace(comparison, called=reproduction.runs)
            named.report(home / "report.html", f"{recipe.id}: {recipe.title}", reproduction)
    if keep is not None:
        kept_in = results.keep(Path(keep), reproduction, len(numbers), words)
        if not (output.json or output.quiet):
            tell(f"kept: {kept_in}")
    if output.json:
        print_json(asdict(reproduction))
    elif not output.quiet:
        _print(reproduction)
    complain(*(f"{failure.cell} failed: {failure.reason}" for failure in comparison.failures))
    if not output.quiet:
        tell(f"report: {(home / 'report.html').resolve()}")
    return FAILED if comparison.failures or None in chosen else 0


def _ran(cells: Sequence[Cell], jobs: int | None, home: Path, quiet: bool, sources: Sequence[Path] = ()) -> Comparison:
    """What became of these cells; those that are finished in `home` or in `sources` are not run."""
    check_all(cells)
    try:
        experiment = claimed(home, cells, sources)
    except BadInput as error:
        if not (home / "cells").is_dir():
            raise
        raise BadInput(*(f"{fault}; what it has in common is taken over by another --out with --from {home}"
                         for fault in error.faults)) from error  # fmt: skip
    with shown(cells, quiet) as board, posted(board, home):
        results = execute(cells, home, jobs, board)
    comparison = Comparison.of(cells, results, experiment)
    comparison.keep(home)
    return comparison


def _only(recipe: papers.Recipe, scale: papers.Scale, entries: list[papers.Entry], words: str) -> list[papers.Entry]:
    """Of its rows and columns those asked for."""
    if not entries:
        raise BadInput(f"{recipe.id} has no runs to choose from; leave --only out")
    known = {word for cell in recipe.published for place in (cell["row"], cell["column"]) for word in place.split(", ")}
    return papers.only(entries, [word.strip() for word in words.split(",")], known, papers.absent(recipe, scale))


def _default(recipe: papers.Recipe, entries: list[papers.Entry]) -> Path:
    """The folder of its runs, or one named after a table that has none."""
    if entries:
        return folder.default([entry.cell(0) for entry in entries])
    return Path("runs") / recipe.id.replace("/", "-")


def _given(scale: str, seeds: str | None, jobs: str | None) -> dict[str, str]:
    given = {"scale": scale, "seeds": seeds, "jobs": jobs}
    return {name: value for name, value in given.items() if value is not None}


def _choices(
    tuned: Mapping[papers.Entry, list[Cell]], jobs: int | None, home: Path, quiet: bool, sources: Sequence[Path]
) -> dict[Key, Choice]:
    """What the grids of these entries choose, from their trials, which are kept in a folder of their own."""
    if not tuned:
        return {}
    if (home / "experiment.json").exists() and not (home / TRIALS).exists():
        raise BadInput(f"{home} holds another experiment; choose another --out, or --fresh to start over")
    if not quiet:
        tell(f"choosing settings on validation data: {sum(map(len, tuned.values()))} trials")
    cells = {cell.name: cell for mine in tuned.values() for cell in mine}
    there = [source for source in sources if source.is_dir()]
    comparison = _ran(list(cells.values()), jobs, home / TRIALS, quiet, there)
    choices: dict[Key, Choice] = {}
    for entry, mine in tuned.items():
        try:
            choices[entry.row, entry.column, entry.emulated] = choose(entry.grid, comparison.outcomes(mine))
        except RunFailed as error:
            complain(f"{entry.label}: {error}")
    return choices


def _told(entry: papers.Entry) -> dict[str, Any]:
    """A choice as reproduction.json has it."""
    choice = entry.choice
    assert choice is not None
    tried = [{"settings": dict(trial.settings), "acc": trial.acc} for trial in choice.trials]
    return {"place": entry.label, "chosen": dict(choice.settings), **choice.cost, "trials": tried}


def _by_key(entries: list[papers.Entry], seeds: range, comparison: Comparison) -> dict[Key, list[Record]]:
    """Records by row, column and whether emulated; a place with a failed run has none."""
    found = {}
    for entry in entries:
        mine = [record for record in comparison.in_order([entry.cell(seed) for seed in seeds]) if record is not None]
        if len(mine) == len(seeds):
            found[entry.row, entry.column, entry.emulated] = mine
    return found


def _row(item: papers.Item) -> dict[str, Any]:
    recipe = item.recipe
    data = list(dict.fromkeys(recipe.needs["laptop"])) if recipe else []
    return {
        "id": item.id,
        "title": item.title,
        "paper": item.paper,
        "data": data,
        "lacking": [name for name in data if not at_hand(name)],
        "minutes": recipe.minutes["laptop"] if recipe else None,
    }


def _print(reproduction: Reproduction) -> None:
    title = f"{reproduction.id}: {reproduction.title} ({reproduction.scale})"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("row", "column", "metric", "scenario"):
        table.add_column(column)
    archived = any(cell.get("archive") is not None for cell in reproduction.cells)
    for column in (column for column in COLUMNS if archived or column != ARCHIVE):
        table.add_column(column, justify="right")
    for row in rows(reproduction):
        verdict = f"{row.verdict} ({row.judged})" if row.judged and row.verdict != "–" else row.verdict
        column = f"{row.column} [{row.setting}]" if row.setting else row.column
        published = (row.published, row.archive) if archived else (row.published,)
        numbers = (*published, f"{row.measured} {row.half}".rstrip(), row.theirs)
        table.add_row(*map(Text, (row.row, column, row.metric, row.scenario, *numbers, verdict)))
    console = _console()
    console.print(table)
    for note in reproduction.notes:
        console.print(Text(f"- {note}"))


def _console() -> Console:
    """Wide enough for our tables where the output is no terminal."""
    console = Console(soft_wrap=True)
    return console if console.is_terminal else Console(soft_wrap=True, width=140)
