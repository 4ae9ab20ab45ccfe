"""The figures: each a pure function of groups of records, drawn for a light page and a transparent background."""

from __future__ import annotations

import html
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import plotly.graph_objects as go

from holdfast.metrics import Group, Interval, front, interval
from holdfast.report import words

PALETTE = (
    "#3b6fb6",
    "#cf6a2c",
    "#3f8f5f",
    "#a64d8c",
    "#2b8fa3",
    "#8a7a1f",
    "#b8434e",
    "#6f5fb3",
    "#7a6a5c",
    "#5b6570",
)
SYMBOLS = (
    ("circle", "●"),
    ("square", "■"),
    ("diamond", "◆"),
    ("triangle-up", "▲"),
    ("triangle-down", "▼"),
    ("star", "★"),
    ("pentagon", "⬟"),
)
SCALE = ((0.0, "#f4f1ea"), (0.25, "#cfdcd6"), (0.5, "#8fb8b4"), (0.75, "#4a8791"), (1.0, "#1d4e63"))
WHITE_ABOVE = 0.74  # where white on SCALE is easier to read than ink
INK, FAINT = "#24272b", "rgba(110,108,100,0.22)"
COST_AXES = {"train_seconds": "training time", "flops": "training FLOPs", "bytes": "memory after the last task"}
NAME_LENGTH = 14  # of names beside points; longer ones hide other points
FLOOR = 0.05  # of a mean: where its band ends on a logarithmic axis
RADII = (-0.2, 1.1)  # of a radar: its worst is no point, and its best is clear of the names
NUMBERS_UP_TO = 10  # tasks; beyond, the cells of a heat map are too small for digits

LONGEST = 24  # characters of a name beside or below what it names
WORDS_IN_A_LINE = 70  # characters of the names below bars; beyond, they lean


@dataclass(frozen=True)
class Style:
    """Colour and shape of one label; both, so that neither carries the meaning alone."""

    colour: str
    symbol: str  # plotly's name
    glyph: str  # the same shape as a character

    def faint(self, alpha: float) -> str:
        red, green, blue = (int(self.colour[i : i + 2], 16) for i in (1, 3, 5))
        return f"rgba({red},{green},{blue},{alpha})"


OUTLINE = Style(INK, "square-open", "□")  # of what others are compared with


def styles(arenas: Sequence[Sequence[Group]]) -> dict[str, Style]:
    """A style per label; the same method looks the same in every arena."""
    found: dict[tuple[str, int], Style] = {}
    chosen: dict[str, Style] = {}
    for arena in arenas:
        seen: Counter[str] = Counter()
        for g in arena:
            member = (g.first.method, seen[g.first.method])
            seen[g.first.method] += 1
            i = len(found)
            found.setdefault(member, Style(PALETTE[i % len(PALETTE)], *SYMBOLS[i % len(SYMBOLS)]))
            chosen[g.label] = found[member]
    return chosen


def heat_map(group: Group) -> go.Figure:
    """R, mean over seeds: row 'after task i', column 'task j'; below the stairs, tasks that were already learned.

    What was not scored is left blank.
    """
    R = np.mean([record.final for record in group.records], axis=0)  # (rows, T)
    return matrix(R, whole=not group.mixed)


def matrix(values: np.ndarray, told: Sequence[Sequence[str]] | None = None, whole: bool = True) -> go.Figure:
    """Numbers from 0 to 1, (rows, T), of every task after each; `told`: what is said where one points, if it is not
    the number.

    `whole`: the rows are the tasks learned, one after the other.
    """
    rows, tasks = values.shape
    parts = not whole and rows > 1  # of what mixes tasks, rows are equal parts of its training
    whole = whole and rows == tasks
    when = "task {}" if whole else f"{{}}/{rows} of all" if parts else "all"
    names = [f"after {when.format(i + 1)}" for i in range(rows)]
    said = "%{z:.3f}" if told is None else "%{text}"
    figure = go.Figure(
        go.Heatmap(
            z=[[known(value) for value in row] for row in values],
            x=list(range(1, tasks + 1)),
            y=list(range(1, rows + 1)),
            text=told,
            zmin=0,
            zmax=1,
            colorscale=[list(stop) for stop in SCALE],
            showscale=False,
            xgap=1,
            ygap=1,
            hovertemplate=f"after {when.format('%{y}')}<br>task %{{x}}: {said}<extra></extra>",
            hoverongaps=False,
        )
    )
    if tasks <= NUMBERS_UP_TO:
        figure.add_scatter(
            x=list(range(1, tasks + 1)) * rows,
            y=[i + 1 for i in range(rows) for _ in range(tasks)],
            text=[_short(value) for value in values.flat],
            textfont={
                "size": 12 if tasks <= 6 else 10,
                "color": ["#ffffff" if value > WHITE_ABOVE else INK for value in values.flat],
            },
            mode="text",
            hoverinfo="skip",
        )
    if whole and tasks > 1:
        path = "M1.5,0.5" + "".join(f"V{i + 0.5}H{i + 1.5}" for i in range(1, tasks))
        figure.add_shape(type="path", path=path, line={"color": INK, "width": 1.5})
    lay_out(figure, height=60 + (26 * rows if rows <= NUMBERS_UP_TO else 13 * rows))
    figure.update_xaxes(
        tickvals=task_ticks(tasks),
        title_text="task",
        range=[0.5, tasks + 0.5],
        showgrid=False,
        showline=False,
        side="bottom",
    )
    ticks = task_ticks(rows)
    figure.update_yaxes(tickvals=ticks, ticktext=[names[t - 1] for t in ticks], range=[rows + 0.5, 0.5], showgrid=False)
    figure.update_layout(margin={"l": 88, "r": 6, "t": 6, "b": 44})
    return figure


def seen_tasks(arena: Sequence[Group], styles: dict[str, Style]) -> go.Figure:
    """After each task, the mean accuracy over the tasks learned so far."""
    return _over_tasks(arena, styles, lambda R, i: R[i, : i + 1].mean(), lambda last: last.mean())


def first_task(arena: Sequence[Group], styles: dict[str, Style]) -> go.Figure:
    """After each task, the accuracy on the first one (paper 002, figure 1 right)."""
    return _over_tasks(arena, styles, lambda R, i: R[i, 0], lambda last: last[0])


@dataclass(frozen=True)
class Spent:
    """A result against its cost."""

    label: str
    style: Style
    cost: float
    accuracy: Interval
    optimal: bool
    of: str = ""  # what its legend button is called, if not as the label


def cost(arena: Sequence[Group], metric: str, styles: dict[str, Style]) -> go.Figure:
    """ACC against a cost (paper 001, figures 13 and 14)."""
    best = [g.label for g in front(arena, metric)]
    found = []
    for g in arena:
        spent, accuracy = interval(g.values(metric)).mean, interval(g.values("acc"))
        if spent and accuracy.mean is not None:
            found.append(Spent(g.label, styles[g.label], spent, accuracy, g.label in best))
    return against(found, metric)


def against(found: Sequence[Spent], metric: str) -> go.Figure:
    """ACC against a cost on a logarithmic axis; up and to the left is better.

    Results that are Pareto-optimal are ringed, named and joined by stairs: below them lies all that is beaten.
    """
    figure = go.Figure()
    for each in found:
        optimal = ", Pareto-optimal" if each.optimal else ""
        half = each.accuracy.half
        figure.add_scatter(
            x=[each.cost],
            y=[each.accuracy.mean],
            error_y=None if half is None else {"array": [half], "width": 3, "thickness": 1.2},
            mode="markers",
            marker=_marker(each.style, ringed=each.optimal),
            name=plain(each.label),
            legendgroup=each.of or each.label,
            text=[f"{words.spread(each.accuracy, 'acc')}, {words.number(each.cost, metric)}{optimal}"],
            hovertemplate="%{fullData.name}<br>%{text}<extra></extra>",
        )
    lay_out(figure, height=300)
    figure.update_xaxes(title_text=COST_AXES[metric], type="log")
    figure.update_yaxes(title_text="ACC", range=[0, 1.08])
    if found:
        costs = [each.cost for each in found]
        low, high, ticks = _log_ticks(min(costs), max(costs))
        figure.update_xaxes(
            range=[math.log10(low), math.log10(high)],
            tickvals=ticks,
            ticktext=[words.number(tick, metric) for tick in ticks],
            tickangle=0,
            tickfont={"size": 11},
        )
        _add_front(figure, cheapest_first([each for each in found if each.optimal]), low, high)
    return figure


def cheapest_first(found: Sequence[Spent]) -> list[Spent]:
    return sorted(found, key=lambda each: (each.cost, each.accuracy.mean or 0.0))


def _marker(style: Style, ringed: bool) -> dict[str, Any]:
    ring = {"color": INK, "width": 1.6 if ringed else 0}
    return {"color": style.colour, "symbol": style.symbol, "size": 11, "opacity": 1 if ringed else 0.6, "line": ring}


def _add_front(figure: go.Figure, best: Sequence[Spent], low: float, high: float) -> None:
    """Stairs from the cheapest to the most accurate and on to the right, with names; with numbers, in the same order,
    where names are long or would lie on each other."""
    if not best:
        return
    x, y = [each.cost for each in best], [each.accuracy.mean or 0.0 for each in best]
    figure.add_scatter(
        x=[*x, high],
        y=[*y, y[-1]],
        mode="lines",
        line={"color": INK, "width": 1.2, "dash": "dot", "shape": "hv"},
        opacity=0.6,
        hoverinfo="skip",
        name="front",
    )
    wide = math.log(high / low)
    near = any(math.log(x[i + 1] / x[i]) < wide / 3 and y[i + 1] - y[i] < 0.08 for i in range(len(x) - 1))
    named = max(len(each.label) for each in best) <= NAME_LENGTH and not near
    for number, each in enumerate(best, 1):
        right = math.log(each.cost / low) > wide / 2
        close = number > 1 and math.log(each.cost / best[number - 2].cost) < wide / 15
        figure.add_annotation(
            x=math.log10(each.cost),
            y=each.accuracy.mean,
            text=plain(each.label) if named else str(number),
            name=each.of or each.label,
            showarrow=False,
            xanchor="right" if right else "left",
            yanchor="top" if close else "bottom",
            xshift=-5 if right else 5,
            yshift=-5 if close else 3,
            font={"size": 11, "color": INK},
        )


def _over_tasks(
    arena: Sequence[Group],
    styles: dict[str, Style],
    at: Callable[[np.ndarray, int], float],
    bound: Callable[[np.ndarray], float],
) -> go.Figure:
    """One line per label with its 95% band; what saw all tasks at once is a dashed level.

    Lines have a gap where something that they need was not scored.
    """
    figure, lines = go.Figure(), []
    for g in arena:
        tasks = len(g.first.tasks)
        x = list(range(1, tasks + 1))
        if g.mixed:
            points = [interval([known(bound(r.final[-1])) for r in g.records])] * tasks
        elif len(g.first.final) == tasks:
            points = [interval([known(at(r.final, i)) for r in g.records]) for i in range(tasks)]
        else:
            continue
        style = styles[g.label]
        if not g.mixed:
            add_band(figure, x, points, style, g.label)
        lines.append(
            go.Scatter(
                legendgroup=g.label,
                x=x,
                y=[p.mean for p in points],
                mode="lines" if g.mixed else "lines+markers",
                line={"color": style.colour, "width": 2, "dash": "dash" if g.mixed else "solid"},
                marker={"symbol": style.symbol, "size": 7},
                name=plain(g.label),
                text=[words.spread(p, "acc") for p in points],
                hovertemplate="%{fullData.name}<br>after task %{x}: %{text}<extra></extra>",
            )
        )
    figure.add_traces(lines)
    lay_out(figure, height=320)
    tasks = max(len(g.first.tasks) for g in arena)
    figure.update_xaxes(title_text="after task", tickvals=task_ticks(tasks), range=[0.8, tasks + 0.2])
    figure.update_yaxes(title_text="accuracy", range=[0, 1.03])
    return figure


def series_styles(figures: Sequence[Mapping[str, Any]]) -> dict[str, Style]:
    """A style per series of a reproduction's figures; the same name looks the same in all of them.

    What is an outline wherever it is drawn has no colour.
    """
    every = [series for figure in figures for series in figure["series"]]
    names = dict.fromkeys(str(series["name"]) for series in every)
    filled = {str(series["name"]) for series in every if not series.get("outline")}
    chosen = {name: Style(PALETTE[i % len(PALETTE)], *SYMBOLS[i % len(SYMBOLS)]) for i, name in enumerate(names)}
    return {name: style if name in filled else OUTLINE for name, style in chosen.items()}


def reproduced(spec: Mapping[str, Any], styles: Mapping[str, Style]) -> go.Figure:
    """A figure of a paper: `bars` of several numbers side by side, or `lines`; each series with its 95% interval."""
    figure, x = go.Figure(), list(spec["x"])
    for series in spec["series"]:
        style, name = styles[str(series["name"])], str(series["name"])
        points = [Interval(*point) for point in zip(*(series[k] for k in ("mean", "low", "high")), strict=True)]
        told = {
            "name": plain(name),
            "legendgroup": name,
            "text": [f"{said}<br>{plain(str(series['scenario']))}" for said in _told(series, points)],
            "hovertemplate": "%{fullData.name}<br>%{x}: %{text}<extra></extra>",
        }
        y = [p.mean for p in points]
        points = list(map(above_zero, points)) if spec.get("logarithmic") else points
        if spec["kind"] == "bars":
            error = {"array": [p.half or 0.0 for p in points], "visible": any(p.half for p in points), "width": 2}
            marker = _hollow() if series.get("outline") else {"color": style.colour}
            figure.add_bar(x=x, y=y, marker=marker, error_y=error, textposition="none", **told)
        else:
            add_band(figure, x, points, style, name)
            marker = {"symbol": style.symbol, "size": 7}
            figure.add_scatter(
                x=x, y=y, mode="lines+markers", line={"color": style.colour, "width": 2}, marker=marker, **told
            )
    lay_out(figure, height=320)
    if spec["kind"] == "bars":
        figure.update_layout(barmode="group", bargap=0.18, bargroupgap=0.08)
        figure.update_yaxes(zeroline=True, zerolinecolor=INK, zerolinewidth=1)
        if sum(len(str(name)) for name in x) > WORDS_IN_A_LINE:
            names = [plain(name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…") for name in map(str, x)]
            room = 30 + 4 * max(map(len, names))
            figure.update_xaxes(tickangle=-45, tickfont={"size": 11}, showgrid=False, tickvals=x, ticktext=names)
            figure.update_layout(height=266 + room, margin={"b": room})
    else:
        counted = x == list(range(1, len(x) + 1))
        figure.update_xaxes(tickvals=task_ticks(len(x)) if counted else x)
    quantity = str(spec.get("quantity", "accuracy"))
    if spec.get("logarithmic"):
        figure.update_yaxes(type="log", dtick=1)
    elif spec["kind"] == "lines":
        figure.update_yaxes(**({"range": [0, 1.03]} if quantity == "accuracy" else {"rangemode": "tozero"}))
    figure.update_xaxes(title_text=plain(str(spec["axis"])))
    figure.update_yaxes(title_text=plain(quantity))
    return figure


def _hollow() -> dict[str, Any]:
    return {"color": "rgba(0,0,0,0)", "line": {"color": INK, "width": 1.2}}


def _told(series: Mapping[str, Any], points: Sequence[Interval]) -> list[str]:
    """What a series says of its numbers, or what is said of accuracies."""
    return [plain(str(said)) for said in series.get("told") or ()] or [words.spread(p, "acc") for p in points]


def radar(spec: Mapping[str, Any], styles: Mapping[str, Style]) -> go.Figure:
    """A polygon per series over the axes, from 0, a ring around the centre, to 1, the rim.

    One of many is small, and filled where it is not an outline to compare with.
    """
    figure, axes, small = go.Figure(), [plain(str(axis)) for axis in spec["x"]], bool(spec.get("small"))
    for series in spec["series"]:
        style, dashed = styles[str(series["name"])], bool(series.get("outline"))
        told = [f"{axis}: {plain(str(said))}" for axis, said in zip(axes, series["told"], strict=True)]
        r, theta, text = ([*values, values[0]] for values in (series["mean"], axes, told))
        colour = INK if dashed else style.colour
        figure.add_scatterpolar(
            r=r,
            theta=theta,
            text=text,
            mode="lines+markers",
            line={"color": colour, "width": 1.2 if dashed else 2, "dash": "dot" if dashed else "solid"},
            marker={"symbol": style.symbol, "size": 4 if dashed else 7, "color": colour},
            fill="toself" if small and not dashed else "none",
            fillcolor=style.faint(0.16),
            hoveron="points",
            cliponaxis=False,
            name=plain(str(series["name"])),
            legendgroup=str(series["name"]),
            hovertemplate=f"%{{fullData.name}}<br>%{{text}}<br>{plain(str(series['scenario']))}<extra></extra>",
        )
    lay_out(figure, height=270 if small else 430)
    ring = {"gridcolor": FAINT, "ticks": "", "showline": False}
    side = 44 if small else 60
    figure.update_layout(
        margin={"l": side, "r": side, "t": 30, "b": 30},
        polar={
            "bgcolor": "rgba(0,0,0,0)",
            "radialaxis": {**ring, "range": RADII, "tickvals": [0, 0.5, 1], "showticklabels": False},
            "angularaxis": {
                **ring,
                "rotation": 90,
                "direction": "clockwise",
                "tickfont": {"size": 10 if small else 12},
            },
        },
    )
    return figure


def task_ticks(tasks: int) -> list[int]:
    """Round numbers that fit, and always the first and the last task."""
    if tasks <= NUMBERS_UP_TO:
        return list(range(1, tasks + 1))
    step = next(size * 10**power for power in range(9) for size in (2, 5, 10) if tasks <= 6 * size * 10**power)
    between = [t for t in range(step, tasks, step) if 2 * min(t - 1, tasks - t) >= step]
    return [1, *between, tasks]


def add_band(figure: go.Figure, x: Sequence[float], points: list[Interval], style: Style, of: str = "") -> None:
    """The intervals of all points; it has no width where the seeds agree, and there is none where they all do.

    `of`: whose it is, and hidden with.

    A band ends where points are missing, and another begins behind them.
    """
    if all(p.low is None for p in points):
        return
    pairs = zip(x, points, strict=True)
    for there, some in groupby(pairs, key=lambda pair: pair[1].mean is not None):
        if not there:
            continue
        at, mine = map(list, zip(*some, strict=True))
        low = [p.mean if p.low is None else p.low for p in mine]
        high = [p.mean if p.high is None else p.high for p in mine]
        figure.add_scatter(
            x=at + at[::-1],
            y=high + low[::-1],
            legendgroup=of,
            fill="toself",
            fillcolor=style.faint(0.13),
            line={"width": 0},
            mode="lines",
            hoverinfo="skip",
        )


def above_zero(point: Interval) -> Interval:
    """The point as a logarithmic axis can show it: its band ends where there is no place left."""
    low = None if point.low is None or point.mean is None else max(point.low, FLOOR * point.mean)
    return Interval(point.mean, low, point.high)


def lay_out(figure: go.Figure, height: int) -> None:
    axis = {
        "gridcolor": FAINT,
        "zeroline": False,
        "fixedrange": True,
        "ticks": "",
        "title": {"standoff": 6, "font": {"size": 12}},
        "ticklabelstandoff": 3,
        "automargin": False,
    }
    figure.update_layout(
        template=None,
        height=height,
        margin={"l": 52, "r": 12, "t": 10, "b": 48},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"family": "system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif", "size": 12, "color": INK},
        showlegend=False,
        dragmode=False,
        hovermode="closest",
        hoverlabel={"bgcolor": "#ffffff", "bordercolor": "#b9b6af", "font": {"color": INK}},
        xaxis=axis,
        yaxis=axis,
    )


def _log_ticks(least: float, most: float) -> tuple[float, float, list[float]]:
    """A range a little wider than the values, and round ticks inside it: 1, 2, 5 times a power of ten."""
    room = max((most / least) ** 0.15, 2.3 / (most / least) ** 0.5, 1.3)  # at least two ticks fit
    low, high = least / room, most * room
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for steps in ((1, 2, 5), (1, 3), (1,)):
        ticks = [step * 10.0**power for power in powers for step in steps if low <= step * 10.0**power <= high]
        if len(ticks) <= 5:
            break
    return low, high, ticks[:: math.ceil(len(ticks) / 5)] if ticks else [least]


def _short(accuracy: float) -> str:
    """'.83' as in the papers' tables."""
    if not math.isfinite(accuracy):
        return ""
    text = f"{accuracy:.2f}"
    return text[1:] if text.startswith("0") else text


def known(accuracy: float) -> float | None:
    """The accuracy, None where it is NaN: it was not scored."""
    return None if math.isnan(accuracy) else float(accuracy)


def plain(text: str) -> str:
    """plotly reads tags in its texts; a label has none."""
    return html.escape(text)
