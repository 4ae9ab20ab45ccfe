"""Kept numbers as Markdown: a table with its caption and its commands, notes, and what was run of each paper."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product
from pathlib import Path
from typing import Any

from holdfast.commands import results
from holdfast.errors import BadInput, unknown
from holdfast.metrics import METRICS
from holdfast.papers import Item
from holdfast.report.reproduction import Reproduction, Row, rows

AXES = {"rows": "row", "columns": "column", "metrics": "metric"}
COUNTED = ("cells run", "judged", "within tolerance")
NOT_RUN = "*Not measured yet.*\n"

Kept = Mapping[str, Any]  # a file of `holdfast reproduce --keep`
Cell = Mapping[str, Any]
Place = tuple[str, ...]  # row, column and metric


@dataclass(frozen=True)
class Asked:
    """What a page shows of a table: of each axis these names, in this order; all where none is named."""

    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    across: str = "columns"  # the axis that lies across the page


def numbers(kept: Kept, asked: Asked) -> str:
    """The table, what its numbers are above it, what they were measured by below it."""
    everything: Sequence[Cell] = kept["cells"]
    if not everything:
        return NOT_RUN
    there = {axis: list(dict.fromkeys(cell[key] for cell in everything)) for axis, key in AXES.items()}
    names = {axis: asked.names.get(axis) or there[axis] for axis in AXES}
    faults = [
        unknown(key, name, there[axis], f" in the numbers of {kept['id']}")
        for axis, key in AXES.items()
        for name in names[axis]
        if name not in there[axis]
    ]
    if faults:
        raise BadInput(*faults)
    cells = [cell for cell in everything if all(cell[key] in names[axis] for axis, key in AXES.items())]
    told = rows(Reproduction(kept["id"], kept["title"], "", cells))
    texts = {_place(cell): _number(cell, row) for cell, row in zip(cells, told, strict=True)}
    runs = [_run(kept["runs"][run]) for run in sorted({cell["run"] for cell in cells})]
    parts = (_caption(kept["title"], cells, names), _table(texts, names, asked.across), "<br>\n".join(runs))
    return "\n\n".join(parts) + "\n"


def notes(kept: Kept) -> str:
    """What differs from the paper, as the recipe says it, folded."""
    if not kept["cells"]:
        return ""
    summary = f"What differs from the paper in {kept['id']}"
    listed = "\n".join(f"- {_plain(note)}" for note in kept["notes"])
    return f'<details markdown="1"><summary>{summary}</summary>\n\n{listed}\n\n</details>\n'


def index(items: Sequence[Item], folder: Path, home: str) -> str:
    """How much was run, judged and within tolerance: of every paper, or of every table where all are of one.

    `home`: where the papers' pages are, from the page that shows it.
    """
    cells = {item.id: results.read(results.place(folder, item.id))["cells"] for item in items}
    papers = [(name, list(mine)) for name, mine in groupby(items, lambda item: item.paper)]
    if len(papers) == 1:
        measured = [[f"{_called(i)}: {_plain(i.title)}", *_counts(cells[i.id])] for i in items if cells[i.id]]
        rest = ", ".join(_called(item) for item in items if not cells[item.id])
        return _lines(["table or figure", *COUNTED], measured) + (f"\n\nNot measured: {rest}.\n" if rest else "\n")
    body = []
    for name, mine in papers:
        run = sum(bool(cells[item.id]) for item in mine)
        number = name.partition(":")[0]
        page = f"[{_plain(name)}]({posixpath.normpath(f'{home}/{number}.md')})"
        body.append([page, f"{run} of {len(mine)}", *_counts([cell for item in mine for cell in cells[item.id]])])
    return _lines(["paper", "tables and figures", *COUNTED], body) + "\n"


def _called(item: Item) -> str:
    """'Table 3', 'Figure 10', 'Appendix B'."""
    word = item.id.partition("/")[2].replace("_", " ")
    kind = word.rstrip("0123456789")
    return f"{kind} {word.removeprefix(kind)}".strip().title()


def _counts(cells: Sequence[Cell]) -> list[str]:
    within = [cell["within"] for cell in cells if _judged(cell)]
    return [str(len(cells)), str(len(within)), str(sum(within)) if within else "–"]


def _table(texts: Mapping[Place, str], names: Mapping[str, Sequence[str]], across: str) -> str:
    """A line for every pair of names of the other two axes; an axis with a single name is none."""
    down = [axis for axis in AXES if axis != across]
    heading = [axis for axis in down if len(names[axis]) > 1] or down[:1]
    body = []
    for pair in product(*(names[axis] for axis in down)):
        at = dict(zip(down, pair, strict=True))
        mine = [texts.get(tuple({**at, across: name}[axis] for axis in AXES), "") for name in names[across]]
        if any(mine):
            body.append([*(_plain(at[axis]) for axis in heading), *mine])
    return _lines(["" for _ in heading] + [_plain(name) for name in names[across]], body)


def _number(cell: Cell, said: Row) -> str:
    """'0.86 → 0.849 ± 0.069 (0.837)', bold where it is judged and within its tolerance."""
    printed = "" if cell["published"] is None else f"{said.published} →"
    archive = "" if cell.get("archive") is None else f"[{said.archive}] →"
    ours = "" if cell["measured"] is None else _marked(f"{said.measured} {said.half}".rstrip(), cell, "measured")
    theirs = "" if cell["emulated"] is None else f"({_marked(said.theirs, cell, 'emulated')})"
    setting = f"· {_plain(said.setting)}" if said.setting else ""
    printed = printed.removesuffix(" →") if archive else printed
    return " ".join(text for text in (printed, archive, ours, theirs, setting) if text)


def _marked(text: str, cell: Cell, which: str) -> str:
    if not _judged(cell) or (cell.get("judge") or "measured") != which:
        return text
    return f"**{text}**" if cell["within"] else f"{text} ✕"


def _caption(title: str, cells: Sequence[Cell], names: Mapping[str, Sequence[str]]) -> str:
    """What the numbers are: of these sentences and signs those that apply."""
    alone = ", ".join(_plain(mine[0]) for mine in names.values() if len(mine) == 1)
    tolerances = [cell["tolerance"] for cell in cells if _judged(cell)]
    near = " to ".join(f"{t:g}" for t in sorted({min(tolerances), max(tolerances)})) if tolerances else ""
    signs = {
        "published → measured": any(cell["published"] is not None for cell in cells),
        "± half of the 95% interval over seeds": any(cell["low"] is not None for cell in cells),
        "in brackets the authors' way": any(cell["emulated"] is not None for cell in cells),
        "in square brackets what the authors' complete archive reads": any(c.get("archive") is not None for c in cells),
        f"**bold**: judged and within its tolerance of {near}": bool(tolerances),
        "✕: judged and outside it": any(_judged(cell) and not cell["within"] for cell in cells),
    }
    read = "; ".join(sign for sign, applies in signs.items() if applies)
    sentences = (_plain(title) + (f" ({alone})" if alone else ""), _scenarios(cells), read)
    return " ".join(f"{said[:1].upper()}{said[1:]}." for said in sentences if said)


def _scenarios(cells: Sequence[Cell]) -> str:
    """No number stands without its scenario: that of all, or of each row or column, whichever tells them apart."""
    told = [cell for cell in cells if cell.get("scenario")]
    for keys in ((), ("row",), ("column",), ("row", "column")):
        at = {tuple(_plain(cell[key]) for key in keys): cell["scenario"] for cell in told}
        if all(at[tuple(_plain(cell[key]) for key in keys)] == cell["scenario"] for cell in told):
            break
    places: dict[str, list[str]] = {}
    for place, scenario in at.items():
        places.setdefault(scenario, []).append(", ".join(place))
    said = [f"{scenario} ({'; '.join(mine)})" if any(mine) else scenario for scenario, mine in places.items()]
    return f"Scenario: {'; '.join(said)}" if said else ""


def _run(run: Mapping[str, Any]) -> str:
    """A small line: the command, and what is known of when and where it was run."""
    seeds = run["seeds"] and f"{run['seeds']} seed{'s' if run['seeds'] > 1 else ''}"
    commit = run["commit"] and f"commit {run['commit']}"
    told = [_plain(str(part)) for part in (seeds, commit, run["machine"], run["date"], run.get("source")) if part]
    return f"<sub>`{run['command']}`: {', '.join(told)}</sub>"


def _judged(cell: Cell) -> bool:
    return bool(cell["judged"]) and cell["within"] is not None


def _place(cell: Cell) -> Place:
    return tuple(cell[key] for key in AXES.values())


def _lines(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(line)} |" for line in (head, ["---"] * len(head), *body))


def _plain(name: str) -> str:
    """A name as people read it, and no Markdown."""
    label = METRICS[name].label if name in METRICS else name
    return label.replace("|", "\\|").replace("*", "\\*")
