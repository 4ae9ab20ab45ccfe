"""One picture of a run: time and memory per workload, and the growth of a step with the number of past tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from summary import line, median, per_step, total
from workloads import WORKLOADS

COLOURS = {"bare": "#5b6570", "holdfast": "#3b6fb6", "avalanche": "#cf6a2c", "arithmetic": "#3f8f5f"}
NAMES = {"bare": "bare loop", "holdfast": "Holdfast", "avalanche": "Avalanche", "arithmetic": "matrix products alone"}
INK, FAINT = "#24272b", "rgba(110,108,100,0.22)"
PANELS = (
    "Training and one scoring, relative to the bare loop",
    "Peak memory, MB",
    "GEM: milliseconds per step",
    "EWC: milliseconds per step",
)


def plot(results: dict[str, Any]) -> str:
    """A self-contained HTML page."""
    figure = make_subplots(2, 2, subplot_titles=PANELS, horizontal_spacing=0.08, vertical_spacing=0.16)
    clock = results["conditions"]["clock"]
    _bars(figure, results.get("workloads", {}), clock)
    for column, method in enumerate(("gem", "ewc"), 1):
        _growth(figure, results.get("growth", {}).get(method, {}), clock, column)
    figure.add_hline(1.0, row=1, col=1, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_xaxes(showgrid=False, zeroline=False, linecolor=FAINT)
    figure.update_xaxes(title_text="past tasks", row=2)
    figure.update_yaxes(gridcolor=FAINT, zeroline=False, rangemode="tozero")
    figure.update_layout(
        title={"text": f"Speed of Holdfast<br><sup>{_conditions(results['conditions'])}</sup>", "x": 0.02, "y": 0.96},
        barmode="group",
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "size": 14, "color": INK},
        legend={"orientation": "h", "x": 0.5, "xanchor": "center", "y": -0.09, "yanchor": "top"},
        height=900,
        margin={"l": 60, "r": 30, "t": 130, "b": 90},
    )
    return figure.to_html(include_plotlyjs=True, full_html=True, config={"displayModeBar": False})


def _bars(figure: go.Figure, workloads: dict[str, Any], clock: str) -> None:
    for c in COLOURS:
        there = {w: found[c] for w, found in workloads.items() if c in found}
        if not there:
            continue
        ratios = [total(runs, clock) / total(workloads[w]["bare"], clock) for w, runs in there.items()]
        memory = [median(runs, "peak_mb") for runs in there.values()]
        seconds = [f"training {median(r, 'train'):.2f} s, scoring {median(r, 'score'):.2f} s" for r in there.values()]
        style = {"name": NAMES[c], "legendgroup": c, "marker_color": COLOURS[c], "textposition": "outside"}
        style |= {"x": [f"{w}<br>{WORKLOADS[w].method}" for w in there], "textfont_size": 11, "cliponaxis": False}
        figure.add_bar(y=ratios, text=[f"{r:.2f}" for r in ratios], hovertext=seconds, row=1, col=1, **style)
        figure.add_bar(y=memory, text=[f"{m:.0f}" for m in memory], showlegend=False, row=1, col=2, **style)


def _growth(figure: go.Figure, found: dict[str, Any], clock: str, column: int) -> None:
    """Measured points, and the line fitted through those with past tasks; its slope in words."""
    for i, (c, runs) in enumerate(found.items()):
        milliseconds = 1e3 * per_step(runs, clock)
        fit = line(milliseconds)
        past = np.arange(len(milliseconds))
        style = {"legendgroup": c, "name": NAMES[c], "row": 2, "col": column}
        figure.add_scatter(
            x=past, y=milliseconds, mode="markers", marker_color=COLOURS[c], showlegend=c == "arithmetic", **style
        )
        figure.add_scatter(
            x=past[1:],
            y=fit["start"] + fit["slope"] * past[1:],
            mode="lines",
            line={"color": COLOURS[c], "width": 1.5},
            hoverinfo="skip",
            showlegend=False,
            **style,
        )
        figure.add_annotation(
            text=f"{NAMES[c]}: {fit['slope']:+.3f} ms per past task",
            font={"color": COLOURS[c], "size": 13},
            xref="x domain",
            yref="y domain",
            x=0.02,
            y=0.98 - 0.075 * i,
            xanchor="left",
            yanchor="top",
            showarrow=False,
            row=2,
            col=column,
        )


def _conditions(c: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in c["versions"].items())
    clock = f"{c['clock']} time, medians of {c['repeats']}"
    load = f"load {c['load_before'][0]:.1f} before, {c['load_after'][0]:.1f} after"
    return f"{c['when'][:10]}, {c['machine']}, one thread; {clock}; {load}<br>{versions}"
