"""A table or figure of a paper as it was measured: published numbers beside measured ones, choices, figures, notes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from holdfast.errors import BadInput
from holdfast.metrics import METRICS, Interval, Rates
from holdfast.report import courses, legends, parts, plots, published, shades, uncertainty, words
from holdfast.report.published import Row, half

FILE = "reproduction.json"
FOREIGN = f"{FILE} is not one of Holdfast's; run `holdfast reproduce` again"
ARCHIVE = "complete archive"  # what the authors' files read, where the paper's number lacks some of their runs
COLUMNS = ("published", ARCHIVE, "measured", "authors' way", "within tolerance?")


OUTLINED = '<p class="legend small">Each by itself: filled as measured, dotted as published.</p>'


@dataclass(frozen=True)
class Reproduction:
    """The content of reproduction.json."""

    id: str  # paper/table
    title: str
    scale: str
    cells: Sequence[Mapping[str, Any]]  # a published number each, or one that only we have
    notes: Sequence[str] = ()  # what differs from the paper
    choices: Sequence[Mapping[str, Any]] = ()  # settings chosen on validation data: place, seconds, flops, trials
    figures: Sequence[Mapping[str, Any]] = ()  # title, kind, axis; x and series, or panels
    runs: Mapping[str, str] = field(default_factory=dict)  # folder of a cell -> what the report calls it

    @classmethod
    def of(cls, folder: Path) -> Reproduction | None:
        """What an output folder has reproduced; None where it belongs to another command."""
        values = _content(folder)
        return None if values is None else cls.read(values)

    @classmethod
    def read(cls, values: Mapping[str, Any]) -> Reproduction:
        """From JSON; a file of another kind is bad input."""
        try:
            made = cls(**{f.name: values[f.name] for f in fields(cls)})
            section(made)
            return made
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput(FOREIGN) from error


def names_in(folder: Path) -> dict[str, str]:
    """What an output folder calls its runs, by the folders of their cells; nothing where no paper's table has names."""
    runs = (_content(folder) or {"runs": {}}).get("runs")
    if not isinstance(runs, dict) or not all(isinstance(name, str) for name in runs.values()):
        raise BadInput(FOREIGN)
    return runs


def _content(folder: Path) -> dict[str, Any] | None:
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        values = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}") from error
    return values if isinstance(values, dict) else {"runs": None}


def rows(reproduction: Reproduction) -> list[Row]:
    """Every cell in words, for the page and the terminal alike."""
    return [_row(cell) for cell in reproduction.cells]


def section(reproduction: Reproduction, data: Sequence[str] = ()) -> str:
    """The part of the report that answers: was it reproduced? `data`: the names of those that were run."""
    on = f"smoke run on {' and '.join(data)}" if reproduction.scale == "smoke" and data else ""
    paneled = [figure for figure in reproduction.figures if figure.get("panels")]
    plain = [figure for figure in reproduction.figures if not figure.get("panels")]
    shaded = shades.table(reproduction.cells)
    found = rows(reproduction)
    pieces = [_finding(reproduction), shaded or (published.tables(found) if found else "")]
    pieces += [_folded(found), _notes(reproduction.notes)]
    if plain:
        style = plots.series_styles([figure for figure in plain if figure["kind"] != "matrix"])
        pieces.append(legends.buttons(style))
        for layout, mine in groupby(plain, lambda figure: "grid" if figure.get("small") else "pair"):
            drawn = "".join(_figure(figure, style, on) for figure in mine)
            pieces.append(f'{OUTLINED if layout == "grid" else ""}<div class="{layout} spaced">{drawn}</div>')
    if paneled:
        pieces += [legends.of_panels(paneled), *(_panels(figure, on) for figure in paneled)]
    if reproduction.choices:
        pieces += ["<h3>Chosen on validation data</h3>", _choices(reproduction.choices)]
    return parts.section("Published and measured", "", [piece for piece in pieces if piece])


def banner(reproduction: Reproduction, data: Sequence[str]) -> str:
    """How large the run was; a smoke run says that it proves nothing."""
    if reproduction.scale != "smoke":
        return f'<p class="lead">At scale {escape(reproduction.scale)}.</p>'
    ran = f" on <b>{escape(' and '.join(data))}</b>" if data else ""
    return (
        f'<p class="banner"><b>Smoke run</b>{ran}: everything at its smallest, to see that it works. The measured '
        "numbers say nothing about the paper’s.</p>"
    )


def _finding(reproduction: Reproduction) -> str:
    judged = [cell for cell in reproduction.cells if cell["judged"]]
    decided = [cell for cell in judged if cell["within"] is not None]
    within, open_ = sum(cell["within"] for cell in decided), len(judged) - len(decided)
    which = f"{open_}{' more' if decided else ''} {'is' if open_ == 1 else 'are'}"
    waits = f" {which} judged when all their runs are there." if open_ else ""
    if not decided and reproduction.scale == "smoke":
        return ""
    if not decided:
        return f'<p class="finding">No number here is judged.{waits}</p>'
    return (
        f'<p class="finding"><b>{within} of {len(decided)}</b> judged numbers are within their tolerance; the others '
        f"of the table are shown, not judged.{waits}</p>"
    )


def _folded(found: Sequence[Row]) -> str:
    """Every number with its verdict, below a table that already shows them."""
    if not found:
        return ""
    said = f"All {len(found)} numbers, with their tolerances"
    return f"<details><summary>{said}</summary>{_cells(found)}</details>"


def _cells(found: Sequence[Row]) -> str:
    numbers = [_numbers(row) for row in found]
    shown = [c for c in COLUMNS if c == "measured" or any(row[c] != words.UNDEFINED for row in numbers)]
    head = [("Row", ""), ("Column", ""), ("Metric", ""), ("Scenario", ""), *((c.capitalize(), "number") for c in shown)]
    body = "".join(
        f'<tr><th scope="row">{escape(row.row)}</th><td>{escape(row.column)}{half(row.setting)}</td>'
        f"<td>{escape(row.metric)}</td><td>{_scenario(row.scenario)}</td>"
        + "".join(f'<td class="number">{mine[c]}</td>' for c in shown)
        + "</tr>"
        for row, mine in zip(found, numbers, strict=True)
    )
    return parts.table("Published and measured", head, body, "dense")


def _numbers(row: Row) -> dict[str, str]:
    measured = f"<b>{row.measured}</b>{half(row.half)}"
    return dict(zip(COLUMNS, (row.published, row.archive, measured, row.theirs, _verdict(row)), strict=True))


def _verdict(row: Row) -> str:
    return f"{row.glyph} {row.verdict}{half(row.judged)}" if row.glyph else words.UNDEFINED


def _scenario(scenario: str) -> str:
    name, _, label = scenario.partition(", ")
    return escape(name) + half(label)


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if notes else ""


def _figure(spec: Mapping[str, Any], style: Mapping[str, plots.Style], on: str) -> str:
    """A figure; its caption says in which scenario each series was run, and `on` which data, where not the paper's."""
    scenarios: dict[str, list[str]] = {}
    for series in (series for series in spec["series"] if not series.get("outline")):
        scenarios.setdefault(str(series["scenario"]), []).append(str(series["name"]))
    kind, title = str(spec["kind"]), str(spec["title"])
    said = "; ".join(f"{scenario}: {', '.join(names)}" for scenario, names in scenarios.items())
    if len(scenarios) == 1 or kind == "matrix":  # all series have it; those of a matrix are its rows
        said = "; ".join(scenarios)
    caption = f"<figcaption>{escape(title)}{half(said)}{half(on)}</figcaption>"
    draw = DRAWN.get(kind, plots.reproduced)
    square = ' class="square"' if kind in ("matrix", "roc", "radar") else ""
    below = _note(spec) + _front(spec, style)
    return f"<figure{square}>{caption}{parts.figure(draw(spec, style), title)}{below}</figure>"


def _note(spec: Mapping[str, Any]) -> str:
    note = str(spec.get("note") or "")
    return f'<p class="legend small">{escape(note)}</p>' if note else ""


def _front(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> str:
    """Which points of a scatter are on its front, by the numbers beside them."""
    best = plots.cheapest_first([each for each in _spent(spec, style) if each.optimal])
    said = words.optimal("Training time", [each.label for each in best])
    return f'<p class="legend small">{escape(said)}</p>' if said else ""


def _spent(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> list[plots.Spent]:
    """The points of all series."""
    if spec["kind"] != "scatter":
        return []
    return [
        plots.Spent(
            f"{series['name']}, {told}",
            style[str(series["name"])],
            cost,
            Interval(mean, low, high),
            optimal,
            of=str(series["name"]),
        )
        for series in spec["series"]
        for cost, mean, low, high, told, optimal in zip(
            *(series[name] for name in ("x", "mean", "low", "high", "told", "optimal")), strict=True
        )
        if cost and mean is not None
    ]


def _scatter(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> go.Figure:
    return plots.against(_spent(spec, style), "train_seconds")


def _matrix(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> go.Figure:
    values = np.array([series["mean"] for series in spec["series"]], dtype=float)
    return plots.matrix(values, [series["told"] for series in spec["series"]])


def _roc(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> go.Figure:
    return uncertainty.roc(
        [
            (
                str(series["name"]),
                style[str(series["name"])],
                [Rates(*each) for each in zip(spec["x"], series["x"], series["mean"], strict=True)],
            )
            for series in spec["series"]
        ]
    )


DRAWN = {"scatter": _scatter, "matrix": _matrix, "roc": _roc, "radar": plots.radar}  # others are bars or lines


def _panels(spec: Mapping[str, Any], on: str) -> str:
    """A figure with panels: small multiples, or one waterfall of all of them."""
    title, axis, panels = str(spec["title"]), str(spec["axis"]), spec["panels"]
    if spec["kind"] == "waterfall":
        said = "; ".join(dict.fromkeys(str(panel["scenario"]) for panel in panels))
        caption = f"<figcaption>{escape(title)}{half(f'{said}. Drag to turn.')}{half(on)}</figcaption>"
        return f'<figure class="deep spaced">{caption}{parts.figure(courses.waterfall(panels, axis), title)}</figure>'
    draw, over = (courses.tuning, "alpha") if spec["kind"] == "tuning" else (courses.course, "time")
    drawn = "".join(
        f"<figure><figcaption>{escape(str(panel['title']))}{half(str(panel['scenario']))}</figcaption>"
        + parts.figure(draw(panel, axis), f"{title}, {panel['title']}")
        + f"{legends.of_marks(panel, over)}</figure>"
        for panel in panels
    )
    return f'<h3>{escape(title)}{half(on)}</h3><div class="grid spaced">{drawn}</div>'


def _choices(choices: Sequence[Mapping[str, Any]]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(str(choice["place"]))}</th><td>{escape(words.value(choice["chosen"]))}</td>'
        f"<td>{'; '.join(map(_trial, choice['trials']))}</td>"
        f'<td class="number">{len(choice["trials"])}</td><td class="number">{words.in_seconds(choice["seconds"])}</td>'
        f'<td class="number">{words.in_flops(choice["flops"])}</td></tr>'
        for choice in choices
    )
    numbers = [(name, "number") for name in ("Trials", "Training time", "FLOPs")]
    return parts.table(
        "Choices", [("For", ""), ("Chosen", ""), ("ACC on validation data", ""), *numbers], body, "lines"
    )


def _trial(trial: Mapping[str, Any]) -> str:
    result = "failed" if trial["acc"] is None else words.number(trial["acc"], "acc")
    return escape(f"{words.value(trial['settings'])} → {result}")


def _row(cell: Mapping[str, Any]) -> Row:
    metric = str(cell["metric"])
    whole = isinstance(cell["published"], int)
    measured, low, high, tolerance = (cell[name] for name in ("measured", "low", "high", "tolerance"))
    return Row(
        row=str(cell["row"]),
        column=str(cell["column"]),
        setting=str(cell.get("setting") or ""),
        metric=METRICS[metric].label if metric in METRICS else metric,
        scenario=str(cell.get("scenario") or ""),
        published=_printed(cell["published"], metric),
        archive=_printed(cell.get("archive"), metric),
        measured=_number(measured, metric, whole),
        half="" if low is None else f"± {_number((high - low) / 2, metric, whole)}",
        theirs=_number(cell["emulated"], metric, whole),
        verdict=words.UNDEFINED if cell["within"] is None else "yes" if cell["within"] else "no",
        judged="" if tolerance is None else f"± {tolerance:g}" if cell["judged"] else "not judged",
    )


def _printed(published: float | None, metric: str) -> str:
    """As papers print it: counts as they are, else at least two decimals below 100, no more than it has; seconds like
    ours."""
    if published is None:
        return words.UNDEFINED
    if metric in METRICS and METRICS[metric].unit == "s":
        return words.number(published, metric)
    if isinstance(published, int):
        return str(published).replace("-", words.MINUS)
    if abs(published) >= 100:
        return f"{round(published, 2):.10g}".replace("-", words.MINUS)
    text = f"{published:.2f}" if abs(published) >= 1 or round(published, 2) == published else f"{published:.3f}"
    return ("0.00" if text == "-0.00" else text).replace("-", words.MINUS)


def _number(value: float | None, metric: str, whole: bool) -> str:
    """`whole`: what the paper prints is no fraction."""
    if metric in METRICS:
        return words.number(value, metric)
    if value is None:
        return words.UNDEFINED
    if (whole and value == round(value)) or abs(value) >= 1000:
        return f"{value:.0f}".replace("-", words.MINUS)
    return words.number(value, "acc") if abs(value) < 1 else f"{value:.3g}".replace("-", words.MINUS)
