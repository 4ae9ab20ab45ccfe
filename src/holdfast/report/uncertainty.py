"""Does a model know what it has not seen? Mutual information, and the θ rule's ROC curve (001, figures 15 to 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from holdfast.metrics import Group, Rates, information, interval, mean_rates, shares, unseen_auc
from holdfast.report import legends, parts, plots, words

LEAD = (
    "The mutual information between predictions and weights: high where the samples of a prediction disagree. Each "
    "row is a model, its numbers are shares of its most uncertain task’s, mean over seeds; right of the stairs are "
    "tasks it has not seen. The rule: a task is unseen when its information is more than θ times the current task’s, "
    "θ from 1 to 10; every pair of a model and a task counts."
)
HOVER = "%{fullData.name}, %{text}<br>unseen found %{y:.2f}, seen called unseen %{x:.2f}<extra></extra>"


def section(arenas: Sequence[tuple[str, Sequence[Group]]], style: Mapping[str, plots.Style]) -> str:
    """Of arenas with their titles, those labels whose predictions are samples; nothing where there are none."""
    sampled = [(title, [g for g in arena if _told(g)]) for title, arena in arenas]
    return parts.section("Seen and unseen", LEAD, [_arena(title, arena, style) for title, arena in sampled if arena])


def _told(g: Group) -> bool:
    return all(unseen_auc(record) is not None for record in g.records)


def _arena(title: str, arena: Sequence[Group], style: Mapping[str, plots.Style]) -> str:
    drawn = [(g, f"{g.label}: mutual information", _heat_map(g)) for g in arena]
    figures = "".join(
        f'<figure data-of="{escape(g.label)}"><figcaption>{legends.label(g, style)} '
        f'<span class="aside">{escape(_numbers(g))}</span></figcaption>{parts.figure(made, said)}</figure>'
        for g, said, made in drawn
    )
    drawn_roc = roc([(g.label, style[g.label], mean_rates(g.records)) for g in arena])
    curve = "Unseen tasks against seen ones that are called unseen"
    figures += f"<figure><figcaption>{curve}</figcaption>{parts.figure(drawn_roc, curve)}</figure>"
    return f'{title}<div class="{"grid" if len(arena[0].first.tasks) <= 6 else "grid large"}">{figures}</div>'


def _numbers(g: Group) -> str:
    auc, error = (words.spread(interval(g.values(metric)), metric) for metric in ("unseen_auc", "ece"))
    return f"AUC {auc} · ECE {error} · {g.scenario}"


def _heat_map(g: Group) -> go.Figure:
    """M with the most uncertain task of each model as 1, as the paper shows it; in nats where one points."""
    each = np.array([information(record) for record in g.records], dtype=float)  # (seeds, T, T)
    nats = [[f"{value:.3g} nats" for value in row] for row in each.mean(0)]
    return plots.matrix(np.mean([shares(M) for M in each], axis=0), nats)


def roc(curves: Sequence[tuple[str, plots.Style, Sequence[Rates]]]) -> go.Figure:
    """One curve per name: the rates at every θ, in order of θ, and from there to the corners."""
    figure = go.Figure()
    figure.add_scatter(
        x=[0, 1], y=[0, 1], mode="lines", line={"color": plots.INK, "width": 1, "dash": "dot"}, hoverinfo="skip"
    )
    for name, look, found in curves:
        theta, x, y = map(list, zip(*found[::-1], strict=True))  # from θ = 10, where little is called unseen, to 1
        figure.add_scatter(
            x=[0.0, *x, 1.0],
            y=[0.0, *y, 1.0],
            mode="lines+markers",
            line={"color": look.colour, "width": 2},
            marker={"symbol": look.symbol, "size": [0, *[5] * len(x), 0]},
            name=plots.plain(name),
            legendgroup=name,
            text=["", *(f"θ {each:.1f}" for each in theta), ""],
            hovertemplate=HOVER,
        )
    plots.lay_out(figure, height=260)
    figure.update_xaxes(title_text="seen tasks called unseen", range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1])
    figure.update_yaxes(title_text="unseen tasks found", range=[-0.03, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1])
    return figure
