"""A table or figure of a paper as it was measured: published numbers beside measured ones, choices, figures, notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from html import escape
from itertools import groupby
from typing import Any

import numpy as np
import plotly.graph_objects as go

from holdfast.errors import BadInput
from holdfast.metrics import METRICS, Interval, Rates
from holdfast.report import courses, legends, parts, plots, shades, uncertainty, words

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
    def read(cls, values: Mapping[str, Any]) -> Reproduction:
        """From JSON; a file of another kind is bad input."""
        try:
            made = cls(**{f.name: values[f.name] for f in fields(cls)})
            section(made)
            return made
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise BadInput("reproduction.json is not one of Holdfast's; run `holdfast reproduce` again") from error


@dataclass(frozen=True)
class Row:
    """One number of the table, in words."""

    row: str
    column: str
    setting: str  # under which it was measured, where that differs from the paper's
    metric: str
    scenario: str
    published: str
    archive: str
    measured: str
    half: str  # of the 95% interval
    theirs: str
    verdict: str  # 'yes', 'no' or '–'
    judged: str  # '± 0.02', or why it is not judged


def rows(reproduction: Reproduction) -> list[Row]:
    """Every cell in words, for the page and the terminal alike."""
    return [_row(cell) for cell in reproduction.cells]


def section(reproduction: Reproduction) -> str:
    """The part of the report that answers: was it reproduced?"""
    lead = f"{reproduction.id} at scale {reproduction.scale}: {reproduction.title}."
    pieces = [_finding(reproduction)]
    paneled = [figure for figure in reproduction.figures if figure.get("panels")]
    plain = [figure for figure in reproduction.figures if not figure.get("panels")]
    if plain:
        style = plots.series_styles([figure for figure in plain if figure["kind"] != "matrix"])
        pieces.append(_legend(style))
        for layout, mine in groupby(plain, lambda figure: "grid" if figure.get("small") else "pair"):
            drawn = "".join(_figure(figure, style) for figure in mine)
            pieces.append(f'{OUTLINED if layout == "grid" else ""}<div class="{layout} spaced">{drawn}</div>')
    if paneled:
        pieces += [legends.of_panels(paneled), *map(_panels, paneled)]
    shaded = shades.table(reproduction.cells)
    pieces += [shaded, _folded(reproduction) if shaded else _cells(reproduction), _notes(reproduction.notes)]
    if reproduction.choices:
        pieces += ["<h3>Chosen on validation data</h3>", _choices(reproduction.choices)]
    return parts.section("Published and measured", lead, [piece for piece in pieces if piece])


def _finding(reproduction: Reproduction) -> str:
    judged = [cell for cell in reproduction.cells if cell["judged"]]
    decided = [cell for cell in judged if cell["within"] is not None]
    within, open_ = sum(cell["within"] for cell in decided), len(judged) - len(decided)
    which = f"{open_}{' more' if decided else ''} {'is' if open_ == 1 else 'are'}"
    waits = f" {which} judged when all their runs are there." if open_ else ""
    if not decided:
        return f'<p class="finding">No number here is judged.{waits}</p>'
    return (
        f'<p class="finding"><b>{within} of {len(decided)}</b> judged numbers are within their tolerance; the others '
        f"of the table are shown, not judged.{waits}</p>"
    )


def _folded(reproduction: Reproduction) -> str:
    """Every number with its verdict, below a table that already shows them."""
    found = f"All {len(reproduction.cells)} numbers, with their tolerances"
    return f"<details><summary>{found}</summary>{_cells(reproduction)}</details>"


def _cells(reproduction: Reproduction) -> str:
    found = rows(reproduction)
    if not found:
        return ""
    numbers = [_numbers(row) for row in found]
    shown = [c for c in COLUMNS if c == "measured" or any(row[c] != words.UNDEFINED for row in numbers)]
    head = [("Row", ""), ("Column", ""), ("Metric", ""), ("Scenario", ""), *((c.capitalize(), "number") for c in shown)]
    body = "".join(
        f'<tr><th scope="row">{escape(row.row)}</th><td>{escape(row.column)}{_half(row.setting)}</td>'
        f"<td>{escape(row.metric)}</td><td>{_scenario(row.scenario)}</td>"
        + "".join(f'<td class="number">{mine[c]}</td>' for c in shown)
        + "</tr>"
        for row, mine in zip(found, numbers, strict=True)
    )
    return parts.table("Published and measured", head, body, "dense")


def _numbers(row: Row) -> dict[str, str]:
    measured = f"<b>{row.measured}</b>{_half(row.half)}"
    return dict(zip(COLUMNS, (row.published, row.archive, measured, row.theirs, _verdict(row)), strict=True))


def _verdict(row: Row) -> str:
    if row.verdict == words.UNDEFINED:
        return words.UNDEFINED
    kind, glyph = ("yes", "✓") if row.verdict == "yes" else ("no", "✕")
    kind = kind if row.judged.startswith("±") else "none"
    return f'<span class="met {kind}"><span aria-hidden="true">{glyph}</span> {row.verdict}</span>{_half(row.judged)}'


def _scenario(scenario: str) -> str:
    name, _, label = scenario.partition(", ")
    return escape(name) + _half(label)


def _half(text: str) -> str:
    return f'<span class="half">{escape(text)}</span>' if text else ""


def _notes(notes: Sequence[str]) -> str:
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<ul class="notes">{items}</ul>' if notes else ""


def _figure(spec: Mapping[str, Any], style: Mapping[str, plots.Style]) -> str:
    """A figure; its caption says in which scenario each series was run."""
    scenarios: dict[str, list[str]] = {}
    for series in (series for series in spec["series"] if not series.get("outline")):
        scenarios.setdefault(str(series["scenario"]), []).append(str(series["name"]))
    kind, title = str(spec["kind"]), str(spec["title"])
    said = "; ".join(f"{scenario}: {', '.join(names)}" for scenario, names in scenarios.items())
    if len(scenarios) == 1 or kind == "matrix":  # all series have it; those of a matrix are its rows
        said = "; ".join(scenarios)
    caption = f"<figcaption>{escape(title)}{_half(said)}</figcaption>"
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
        plots.Spent(f"{series['name']}, {told}", style[str(series["name"])], cost, Interval(mean, low, high), optimal)
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


def _panels(spec: Mapping[str, Any]) -> str:
    """A figure with panels: small multiples, or one waterfall of all of them."""
    title, axis, panels = str(spec["title"]), str(spec["axis"]), spec["panels"]
    if spec["kind"] == "waterfall":
        said = "; ".join(dict.fromkeys(str(panel["scenario"]) for panel in panels))
        caption = f"<figcaption>{escape(title)}{_half(f'{said}. Drag to turn.')}</figcaption>"
        return f'<figure class="deep spaced">{caption}{parts.figure(courses.waterfall(panels, axis), title)}</figure>'
    draw, over = (courses.tuning, "alpha") if spec["kind"] == "tuning" else (courses.course, "time")
    drawn = "".join(
        f"<figure><figcaption>{escape(str(panel['title']))}{_half(str(panel['scenario']))}</figcaption>"
        + parts.figure(draw(panel, axis), f"{title}, {panel['title']}")
        + f"{legends.of_marks(panel, over)}</figure>"
        for panel in panels
    )
    return f'<h3>{escape(title)}</h3><div class="grid spaced">{drawn}</div>'


def _legend(style: Mapping[str, plots.Style]) -> str:
    if not style:
        return ""
    return (
        f'<p class="legend">{" ".join(legends.name(name, look.colour, look.glyph) for name, look in style.items())}</p>'
    )


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
    measured, low, high, tolerance = (cell[name] for name in ("measured", "low", "high", "tolerance"))
    return Row(
        row=str(cell["row"]),
        column=str(cell["column"]),
        setting=str(cell.get("setting") or ""),
        metric=METRICS[metric].label if metric in METRICS else metric,
        scenario=str(cell.get("scenario") or ""),
        published=_printed(cell["published"], metric),
        archive=_printed(cell.get("archive"), metric),
        measured=_number(measured, metric),
        half="" if low is None else f"± {_number((high - low) / 2, metric)}",
        theirs=_number(cell["emulated"], metric),
        verdict=words.UNDEFINED if cell["within"] is None else "yes" if cell["within"] else "no",
        judged="" if tolerance is None else f"± {tolerance:g}" if cell["judged"] else "not judged",
    )


def _printed(published: float | None, metric: str) -> str:
    """As papers print it: counts as they are, else at least two decimals, no more than it has; seconds like ours."""
    if published is None:
        return words.UNDEFINED
    if metric in METRICS and METRICS[metric].unit == "s":
        return words.number(published, metric)
    if isinstance(published, int):
        return str(published).replace("-", words.MINUS)
    text = f"{published:.2f}" if abs(published) >= 1 or round(published, 2) == published else f"{published:.3f}"
    return ("0.00" if text == "-0.00" else text).replace("-", words.MINUS)


def _number(value: float | None, metric: str) -> str:
    if metric in METRICS:
        return words.number(value, metric)
    if value is None:
        return words.UNDEFINED
    if value == round(value) or abs(value) >= 1000:
        return f"{value:.0f}".replace("-", words.MINUS)
    return words.number(value, "acc") if abs(value) < 1 else f"{value:.3g}".replace("-", words.MINUS)
