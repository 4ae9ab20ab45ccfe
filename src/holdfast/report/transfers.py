"""What transfers to whom: the last task of a stream beside the same task alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from holdfast.metrics import Group, Interval, Transfer, interval, transfers
from holdfast.report import legends, parts, words
from holdfast.report.plots import INK, Style, lay_out, plain

LEAD = (
    "The same method learned the last task after all others and, in a run of its own, with nothing before it. "
    "T(S), the difference, is what the past was worth to it: above 0 it helped, below 0 it was in the way."
)
COLUMNS = (("Label", ""), ("After the stream", "number"), ("Alone", "number"), ("T(S)", "number"), ("Seeds", "number"))


def section(groups: Sequence[Group], style: Mapping[str, Style]) -> str:
    """One figure and one table of all labels that have a run on the last task alone; nothing where none has."""
    found = [each for each in transfers(groups) if each.seeds]
    if not found:
        return ""
    said = "".join(f"<li>{escape(sentence(each))}</li>" for each in found)
    legend = " ".join(
        [legends.name("after the stream, in the method’s colour", INK, "■"), legends.name("alone", INK, "□")]
    )
    drawn = parts.figures([("Accuracy on the last task, after the stream and alone", _bars(found, style))], "single")
    head = f'<p class="legend">{legend}</p>'
    return parts.section("What transfers to the last task", LEAD, [head, drawn, _table(found), f"<ul>{said}</ul>"])


def sentence(found: Transfer) -> str:
    """'new_head: the last task ends at 0.430, alone at 0.300: T(S) = 0.130 (95% interval 0.110 to 0.150, 3 seeds).'"""
    if not found.seeds:
        return f"{found.label}: no seed finished both the stream and its last task alone."
    last, alone = (words.number(interval(values).mean, "acc") for values in (found.last, found.isolated))
    sure = _sure(found.gain, len(found.seeds))
    gain = words.number(found.gain.mean, "acc")
    return f"{found.label}: the last task ends at {last}, alone at {alone}: T(S) = {gain} ({sure})."


def _sure(gain: Interval, seeds: int) -> str:
    if gain.low is None or gain.high is None:
        return "one seed has no interval" if seeds == 1 else f"{seeds} seeds, which all agree"
    tie = ", which includes 0" if gain.low <= 0 <= gain.high else ""
    return f"95% interval {words.number(gain.low, 'acc')} to {words.number(gain.high, 'acc')}{tie}, {seeds} seeds"


def _table(found: Sequence[Transfer]) -> str:
    body = "".join(
        f'<tr><th scope="row">{escape(each.label)}</th>'
        + "".join(
            f'<td class="number">{escape(words.spread(interval(values), "acc"))}</td>'
            for values in (each.last, each.isolated, each.values)
        )
        + f'<td class="number">{len(each.seeds)}</td></tr>'
        for each in found
    )
    return parts.table("Transfer to the last task", COLUMNS, body, "summary")


def _bars(found: Sequence[Transfer], style: Mapping[str, Style]) -> go.Figure:
    """For each label two bars side by side: filled after the stream, an outline alone."""
    figure, x = go.Figure(), [plain(each.label) for each in found]
    colours = [style[each.label].colour for each in found]
    for name, filled, runs in (
        ("after the stream", True, [each.last for each in found]),
        ("alone", False, [each.isolated for each in found]),
    ):
        points = [interval(values) for values in runs]
        figure.add_bar(
            x=x,
            y=[p.mean for p in points],
            error_y={"array": [p.half or 0.0 for p in points], "visible": any(p.half for p in points), "width": 3},
            marker={"color": colours if filled else "rgba(0,0,0,0)", "line": {"color": colours, "width": 2}},
            name=name,
            text=[words.spread(p, "acc") for p in points],
            textposition="none",
            hovertemplate="%{x}, %{fullData.name}: %{text}<extra></extra>",
        )
    lay_out(figure, height=320)
    figure.update_layout(barmode="group", bargap=0.35, bargroupgap=0.12)
    figure.update_yaxes(title_text="accuracy on the last task", range=[0, 1.03])
    return figure
