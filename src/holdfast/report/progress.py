"""How accuracy goes: over tasks and over updates, what each task lost, and where each seed ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

import numpy as np
import plotly.graph_objects as go

from holdfast.metrics import Group, Interval, interval, learning_curve
from holdfast.metrics.matrix import square
from holdfast.report import words
from holdfast.report.plots import INK, LONGEST, Style, add_band, known, lay_out, plain, task_ticks
from holdfast.types import Record

SHOWN = 150  # points of a line over updates
FEW = 30  # of them have markers
LETTER = 7  # of a name's width, about
Course = Mapping[tuple[int, int], float | None]  # (task, updates of it) -> accuracy

OVER_UPDATES = "%{fullData.name}<br>%{x:d} updates: %{text}<extra></extra>"


def lost(arena: Sequence[Group], style: Mapping[str, Style]) -> go.Figure | None:
    """Of each task but the last, the best it was before the last one was learned, less what is left at the end."""
    courses = {g.label: (g, points) for g in arena if (points := _lost(g))}
    if not courses:
        return None
    figure, lines = go.Figure(), []
    for g, points in courses.values():
        x = list(range(1, len(points) + 1))
        add_band(figure, x, points, style[g.label], g.label)
        lines.append(_line(g, x, points, style, "%{fullData.name}<br>task %{x}: %{text}<extra></extra>"))
    figure.add_traces(lines)
    lay_out(figure, height=320)
    tasks = max(len(points) for _, points in courses.values())
    least = min(p.mean or 0.0 for _, points in courses.values() for p in points)
    figure.update_xaxes(title_text="task", tickvals=task_ticks(tasks), range=[0.8, tasks + 0.2])
    figure.update_yaxes(title_text="forgetting", range=[min(-0.03, least - 0.03), 1.03], zeroline=True)
    figure.update_yaxes(zerolinecolor=INK, zerolinewidth=1)
    return figure


def _lost(g: Group) -> list[Interval]:
    each = [_forgotten(record) for record in g.records]
    found = [mine for mine in each if mine is not None]
    return [interval(values) for values in zip(*found, strict=True)] if len(found) == len(each) else []


def _forgotten(record: Record) -> list[float] | None:
    """Per task; None where R does not tell, as for the metric."""
    R = square(record)
    if R is None or np.isnan(R[np.tril_indices_from(R)]).any():
        return None
    return list(np.nanmax(R[:-1, :-1], 0) - R[-1, :-1])


def seeds(arena: Sequence[Group], style: Mapping[str, Style]) -> go.Figure | None:
    """A strip per label, the best first: the ACC of every seed, below them their interval; nothing with one seed."""
    means = {g.label: interval(g.values("acc")).mean for g in arena}
    drawn = sorted((g for g in arena if means[g.label] is not None), key=lambda g: -(means[g.label] or 0.0))
    if max((len(g.seeds) for g in drawn), default=0) < 2:
        return None
    figure = go.Figure()
    for y, g in enumerate(drawn):
        look, found = style[g.label], interval(g.values("acc"))
        figure.add_scatter(
            x=[found.low, found.high] if found.half is not None else [found.mean],
            y=[y + 0.2] * (2 if found.half is not None else 1),
            mode="lines",
            line={"color": look.colour, "width": 2},
            opacity=0.55,
            hoverinfo="skip",
            legendgroup=g.label,
        )
        figure.add_scatter(
            x=g.values("acc"),
            y=[y - 0.1] * len(g.seeds),
            mode="markers",
            marker={"symbol": look.symbol, "size": 8, "color": look.colour, "opacity": 0.75},
            name=plain(g.label),
            legendgroup=g.label,
            text=[
                f"seed {seed}: {words.number(acc, 'acc')}" for seed, acc in zip(g.seeds, g.values("acc"), strict=True)
            ],
            hovertemplate=f"%{{fullData.name}}<br>%{{text}}<br>mean {words.spread(found, 'acc')}<extra></extra>",
        )
    names = [_cut(g.label) for g in drawn]
    lay_out(figure, height=max(320, 66 + 22 * len(drawn)))
    figure.update_layout(margin={"l": 16 + round(LETTER * max(map(len, names)))})
    figure.update_xaxes(title_text="ACC", **_around([acc for g in drawn for acc in g.values("acc") if acc is not None]))
    figure.update_yaxes(
        tickvals=list(range(len(drawn))),
        ticktext=list(map(plain, names)),
        range=[len(drawn) - 0.5, -0.5],
        showgrid=False,
    )
    return figure


def _around(values: Sequence[float]) -> dict[str, list[float]]:
    """All of 0 to 1, or what is in use where that is little of it."""
    low, high = min(values), max(values)
    if high - low > 0.4:
        return {"range": [-0.03, 1.03]}
    room = max(0.25 * (high - low), 0.02)
    return {"range": [low - room, high + room]}


def _cut(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def begun_tasks(arena: Sequence[Group], style: Mapping[str, Style]) -> go.Figure | None:
    """The mean accuracy over the tasks begun so far, where runs were scored more often than after each task."""
    if not any(len(g.first.scorings) > len(g.first.tasks) for g in arena):
        return None
    return _over_updates(arena, style, _begun)


def task_at_hand(arena: Sequence[Group], style: Mapping[str, Style]) -> go.Figure | None:
    """The accuracy on the task that is being learned, where runs were scored meanwhile."""
    if not any(len(learning_curve(g.first, t)) > 2 for g in arena for t in range(len(g.first.tasks))):
        return None
    return _over_updates([g for g in arena if not g.mixed], style, _at_hand, parted=True)


def _begun(record: Record) -> Course:
    rows = zip(record.scorings, record.R, strict=True)
    return {(row["after_task"], row["step"]): known(R[: row["after_task"] + 1].mean()) for row, R in rows}


def _at_hand(record: Record) -> Course:
    tasks = range(len(record.tasks))
    return {(task, step): accuracy for task in tasks for step, accuracy in learning_curve(record, task)}


def _over_updates(
    arena: Sequence[Group], style: Mapping[str, Style], course: Callable[[Record], Course], parted: bool = False
) -> go.Figure:
    """A line per label over the updates at which all its seeds were scored; `parted`: from task to task."""
    figure, lines = go.Figure(), []
    for g in arena:
        each, before = [course(record) for record in g.records], _before(g.first)
        at = _thinned([at for at in sorted(each[0]) if all(at in other for other in each)])
        x, points = [], []
        for i, (task, step) in enumerate(at):
            if parted and i and at[i - 1][0] != task:
                x.append(before[task])
                points.append(Interval(None, None, None))
            x.append(before[task] + step)
            points.append(interval([mine[task, step] for mine in each]))
        add_band(figure, x, points, style[g.label], g.label)
        lines.append(_line(g, x, points, style, OVER_UPDATES, marked=len(x) < FEW))
    figure.add_traces(lines)
    lay_out(figure, height=320)
    figure.update_xaxes(title_text="updates", rangemode="tozero", nticks=7)
    figure.update_yaxes(title_text="accuracy", range=[0, 1.03])
    return figure


def _before(record: Record) -> list[float]:
    """Updates before each task."""
    updates, tasks = record.resources.get("updates", ()), len(record.tasks)
    return [0.0] * tasks if record.mixed or len(updates) < tasks else [0.0, *accumulate(map(float, updates[:-1]))]


def _thinned(at: list[tuple[int, int]]) -> list[tuple[int, int]]:
    step = max(1, -(-len(at) // SHOWN))
    return [*at[:-1:step], *at[-1:]]


def _line(
    g: Group, x: Sequence[float], points: Sequence[Interval], style: Mapping[str, Style], told: str, marked: bool = True
) -> go.Scatter:
    look = style[g.label]
    return go.Scatter(
        x=list(x),
        y=[p.mean for p in points],
        mode="lines+markers" if marked else "lines",
        line={"color": look.colour, "width": 2, "dash": "dash" if g.mixed else "solid"},
        marker={"symbol": look.symbol, "size": 7},
        name=plain(g.label),
        legendgroup=g.label,
        text=[words.spread(p, "acc") for p in points],
        hovertemplate=told,
    )
