"""One picture of a run: time and memory per workload, and the growth of a step with the number of past tasks."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots
from summary import line, median, per_step, total

COLOURS = {"bare": "#5b6570", "holdfast": "#3b6fb6", "avalanche": "#cf6a2c", "arithmetic": "#3f8f5f"}
NAMES = {"bare": "bare loop", "holdfast": "Holdfast", "avalanche": "Avalanche", "arithmetic": "matrix products alone"}
INK, FAINT = "#24272b", "rgba(110,108,100,0.22)"
PANELS = ("Training and scoring ÷ bare loop", "Peak memory, MB", "GEM: a step, ms", "EWC: a step, ms")


def plot(results: dict[str, Any]) -> str:
    """A self-contained HTML page."""
    figure = make_subplots(2, 2, subplot_titles=PANELS, horizontal_spacing=0.09, vertical_spacing=0.17)
    clock = results["conditions"]["clock"]
    _bars(figure, results.get("workloads", {}), clock)
    for column, method in enumerate(("gem", "ewc"), 1):
        _lines(figure, results.get("growth", {}).get(method, {}), clock, column)
    figure.update_xaxes(title_text="past tasks", row=2)
    figure.update_xaxes(gridcolor=FAINT, zeroline=False, linecolor=FAINT)
    figure.update_yaxes(gridcolor=FAINT, zeroline=False, rangemode="tozero")
    figure.add_hline(1.0, row=1, col=1, line={"color": INK, "width": 1, "dash": "dot"})
    figure.update_layout(
        title={"text": f"Speed of Holdfast<br><sup>{_conditions(results['conditions'])}</sup>", "x": 0.02},
        barmode="group",
        template="plotly_white",
        font={"family": "system-ui, sans-serif", "size": 14, "color": INK},
        legend={"orientation": "h", "x": 1, "xanchor": "right", "y": 1.06, "yanchor": "bottom"},
        height=900,
        margin={"l": 60, "r": 30, "t": 150, "b": 60},
    )
    return figure.to_html(include_plotlyjs=True, full_html=True, config={"displaylogo": False})


def _bars(figure: go.Figure, workloads: dict[str, Any], clock: str) -> None:
    names = list(workloads)
    for c in [c for c in COLOURS if any(c in found for found in workloads.values())]:
        there = [w for w in names if c in workloads[w]]
        seconds = [total(workloads[w][c], clock) for w in there]
        ratios = [s / total(workloads[w]["bare"], clock) for w, s in zip(there, seconds, strict=True)]
        memory = [median(workloads[w][c], "peak_mb") for w in there]
        style = {"name": NAMES[c], "legendgroup": c, "marker_color": COLOURS[c], "textposition": "outside"}
        hover = [
            f"{w}: training {median(workloads[w][c], 'train'):.2f} s, scoring {median(workloads[w][c], 'score'):.2f} s"
            for w in there
        ]
        figure.add_bar(x=there, y=ratios, text=[f"{r:.2f}" for r in ratios], hovertext=hover, row=1, col=1, **style)
        figure.add_bar(x=there, y=memory, text=[f"{m:.0f}" for m in memory], showlegend=False, row=1, col=2, **style)


def _lines(figure: go.Figure, found: dict[str, Any], clock: str, column: int) -> None:
    """Measured points, and the line fitted through those with past tasks."""
    for c, runs in found.items():
        milliseconds = 1e3 * per_step(runs, clock)
        fit = line(milliseconds)
        ends = np.array([1, len(milliseconds) - 1])
        figure.add_scatter(
            x=list(range(len(milliseconds))),
            y=milliseconds,
            mode="markers",
            name=NAMES[c],
            legendgroup=c,
            showlegend=c == "arithmetic",
            marker={"color": COLOURS[c], "size": 7},
            row=2,
            col=column,
        )
        figure.add_scatter(
            x=ends,
            y=fit["start"] + fit["slope"] * ends,
            mode="lines+text",
            text=["", f"{fit['slope']:+.3f} ms per task"],
            textposition="top left",
            textfont={"color": COLOURS[c], "size": 12},
            legendgroup=c,
            showlegend=False,
            hoverinfo="skip",
            line={"color": COLOURS[c], "width": 1.5},
            row=2,
            col=column,
        )


def _conditions(c: dict[str, Any]) -> str:
    versions = ", ".join(f"{name} {number}" for name, number in c["versions"].items())
    clock = f"{c['clock']} time, medians of {c['repeats']}"
    load = f"load {c['load_before'][0]:.1f} before, {c['load_after'][0]:.1f} after"
    return f"{c['when'][:10]}, {c['machine']}, one thread; {versions}; {clock}; {load}"
