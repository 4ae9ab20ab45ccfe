"""Does the stream pose the problem? The first batches of a second task, drawn (protocol early; paper 001 §6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from holdfast.metrics import Diagnosis, Group, Interval
from holdfast.metrics.diagnosis import PERMUTED, TASK, Measure, Point
from holdfast.report import legends, parts
from holdfast.report.plots import PALETTE, SYMBOLS, Style, above_zero, add_band, lay_out, plain

LEAD = (
    "A learner that knows the first task meets the second. Lines are means over repeats, bands one standard deviation; "
    "permuted pixels are those of the first task in a random order, which resemble nothing."
)
STYLES = {TASK: Style(PALETTE[6], *SYMBOLS[0]), PERMUTED: Style(PALETTE[0], *SYMBOLS[1])}
PANELS: dict[Measure, tuple[str, str]] = {
    "entropy": ("How sure the learner is", "entropy of predictions, nats"),
    "likelihood": ("How hard a batch pulls", "mean |gradient|, output layer"),
    "ratio": ("How hard it pulls against the prior", "likelihood’s gradient / prior’s"),
}


def section(groups: Sequence[Group]) -> str:
    """What was found for each label that was looked at early; nothing where there is none."""
    looked = [g for g in groups if g.first.study.get("early")]
    if not looked:
        return ""
    legend = " ".join(legends.name(of, style.colour, style.glyph) for of, style in STYLES.items())
    pieces = [f'<p class="legend">{legend}</p>', *(_found(g, several=len(looked) > 1) for g in looked)]
    return parts.section("Does the stream pose the problem?", LEAD, pieces)


def _found(g: Group, several: bool) -> str:
    found = Diagnosis.of(g.records)
    *before, last = found.sentences()
    said = f'<p class="finding">{escape(" ".join(before))} <b>{escape(last)}</b></p>'
    drawn = [(title, _panel(found, m)) for m, (title, _) in PANELS.items() if any(p.mean for p in found.course(m))]
    name = f"<h3>{escape(g.label)}</h3>" if several else ""
    return name + said + parts.figures(drawn, "grid")


def _panel(found: Diagnosis, measure: Measure) -> go.Figure:
    """One measure over the batches, of the task and of permuted pixels."""
    figure, logarithmic = go.Figure(), measure == "ratio"
    for of, style in STYLES.items():
        points = found.course(measure, of)
        add_band(figure, found.batches, [_interval(p, logarithmic) for p in points], style)
        figure.add_scatter(
            x=found.batches,
            y=[p.mean for p in points],
            mode="lines+markers",
            line={"color": style.colour, "width": 2},
            marker={"symbol": style.symbol, "size": 6},
            name=plain(of),
            text=list(map(str, points)),
            hovertemplate="%{fullData.name}<br>before batch %{x}: %{text}<extra></extra>",
        )
    lay_out(figure, height=270)
    figure.update_xaxes(title_text="before batch", range=[0.5, found.batches[-1] + 0.5], nticks=8)
    figure.update_yaxes(title_text=PANELS[measure][1])
    if logarithmic:
        figure.update_yaxes(type="log", dtick=1)
    elif measure == "entropy":
        most = {"color": STYLES[PERMUTED].faint(0.5), "width": 1, "dash": "dot"}
        figure.add_shape(type="line", x0=0, x1=1, xref="paper", y0=found.most, y1=found.most, line=most)
        figure.update_yaxes(range=[0, 1.05 * found.most])
    else:
        figure.update_yaxes(rangemode="tozero")
    return figure


def _interval(point: Point, logarithmic: bool) -> Interval:
    if point.mean is None or point.deviation is None:
        return Interval(point.mean, None, None)
    band = Interval(point.mean, point.mean - point.deviation, point.mean + point.deviation)
    return above_zero(band) if logarithmic else band
