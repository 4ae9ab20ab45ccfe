"""Figures with panels (papers 003 and 004): accuracy while parts are learned one after the other, and over α."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from holdfast.metrics import Interval
from holdfast.report import words
from holdfast.report.plots import FAINT, INK, PALETTE, SYMBOLS, Style, add_band, lay_out, plain

# As the papers draw them: D1 blue, D2 green, their union red; merged networks red and orange.
STYLES = {
    "D1": Style(PALETTE[0], "triangle-up", "▲"),
    "D2": Style(PALETTE[2], "square", "■"),
    "mean merge": Style(PALETTE[6], "circle", "●"),
    "mode merge": Style(PALETTE[1], "triangle-down", "▼"),
    "∪": Style(PALETTE[6], "circle", "●"),
}
LATER = (3, 4, 5, 7, 8, 9)  # of the palette, for D3 and on
SHADE = "rgba(90,88,80,0.13)"  # behind retraining
GREY = "#c9c7c1"  # the same, as a patch in the legend
SHOWN = 9  # markers of a line; all its points would hide it
HALF = 0.34  # of a ribbon's width, where neighbours are 1 apart
GAP, WIDTH = 0.06, 0.05  # of the time axis: before and behind the bar of all tasks at once, and its length
WHITE = "#ffffff"


def style_of(name: str) -> Style:
    """How a curve looks in every figure; by its name, so that no order matters."""
    for part, style in STYLES.items():
        if name == part or (part in name and part not in ("D1", "D2")):
            return style
    number = int(name[1:]) - 3 if name[1:].isdigit() else 0
    return Style(PALETTE[LATER[number % len(LATER)]], *SYMBOLS[number % len(SYMBOLS)])


def colour_of(mark: Mapping[str, Any]) -> str:
    """Of a mark's line and its text: its curve's."""
    return style_of(str(mark["curve"])).colour if mark["curve"] else INK


def marks(panel: Mapping[str, Any], over: str) -> list[Mapping[str, Any]]:
    """Those of one axis."""
    return [mark for mark in panel["marks"] if mark["over"] == over]


def course(panel: Mapping[str, Any], axis: str) -> go.Figure:
    """Accuracy over time: training white, retraining grey, all tasks at once dashed."""
    figure, curves = go.Figure(), [c for c in panel["curves"] if c["over"] == "time"]
    end = max((max(c["x"]) for c in curves), default=1.0)
    for begin in panel["begins"][1:]:
        figure.add_shape(
            type="rect",
            x0=begin,
            x1=end,
            y0=0,
            y1=1,
            yref="paper",
            fillcolor=SHADE,
            line={"width": 0},
            layer="below",
            name="retraining",
        )
    _add_at_once(figure, panel["at_once"], [0, end])
    for curve in curves:
        _add_curve(figure, curve, axis)
    for mark in marks(panel, "time"):
        _add_mark(figure, mark)
    _finish(figure, panel, axis, [0, end])
    return figure


def tuning(panel: Mapping[str, Any], axis: str) -> go.Figure:
    """Accuracy of merged networks over α, with marks at the α to look at."""
    figure = go.Figure()
    _add_at_once(figure, panel["at_once"], [0, 1])
    for curve in (c for c in panel["curves"] if c["over"] == "alpha"):
        _add_curve(figure, curve, axis)
    for mark in marks(panel, "alpha"):
        _add_mark(figure, mark)
    _finish(figure, panel, axis, [0, 1])
    return figure


def waterfall(panels: Sequence[Mapping[str, Any]], axis: str) -> go.Figure:
    """Experiments one behind the other: ribbons of accuracy over time, a white bar for all tasks at once, and behind
    it the accuracy over α where networks are merged."""
    figure = go.Figure()
    end = max((max(c["x"]) for p in panels for c in p["curves"] if c["over"] == "time"), default=1.0)
    bar = end * (1 + GAP)
    after = bar + end * (WIDTH + GAP)
    merged = any(c["over"] == "alpha" for p in panels for c in p["curves"])
    for i, panel in enumerate(panels):
        for curve in panel["curves"]:
            curve = _until(curve, panel["begins"][1]) if curve["name"] == "D1" and panel["begins"][1:] else curve
            x = curve["x"] if curve["over"] == "time" else [after + a * end / 2 for a in curve["x"]]
            _add_ribbon(figure, i, panel, curve, x, axis)
        if panel["at_once"] is not None:
            _add_bar(figure, i, bar, bar + end * WIDTH, panel)
    begins = panels[0]["begins"][1:] if panels else []
    ticks = {0.0: "0", **{at: f"{round(at, 2):g}" for at in (*begins, end)}}
    if merged:
        ticks |= {after: "α 0", after + end / 2: "α 1"}
    names = [str(p["title"]) for p in panels]
    lay_out(figure, height=440)
    common = {"gridcolor": "#cfcdc6", "zeroline": False, "showbackground": False, "tickfont": {"size": 12}}
    deep = min(1.8, 0.6 + 0.16 * len(names))
    figure.update_layout(
        margin={"l": 0, "r": 0, "t": 0, "b": 0},
        dragmode="turntable",
        scene={
            "xaxis": {
                **common,
                "tickvals": list(ticks),
                "ticktext": list(ticks.values()),
                "title": {"text": plain(axis)},
            },
            "yaxis": {
                **common,
                "tickvals": list(range(len(names))),
                "ticktext": [plain(name) for name in names],
                "title": {"text": ""},
                "range": [-0.6, len(names) - 0.4],
            },
            "zaxis": {**common, "range": [0, 1], "tickvals": [0, 1], "title": {"text": "accuracy"}},
            "aspectmode": "manual",
            "aspectratio": {"x": 2.8, "y": deep, "z": 0.8},
            "camera": {
                "eye": {"x": 0.45, "y": -1.25, "z": 0.6},
                "center": {"x": 0.0, "y": 0, "z": -0.05},
                "projection": {"type": "orthographic"},
            },
        },
    )
    return figure


def _add_curve(figure: go.Figure, curve: Mapping[str, Any], axis: str) -> None:
    style, x = style_of(str(curve["name"])), list(curve["x"])
    points = _points(curve)
    add_band(figure, x, points, style)
    figure.add_scatter(
        x=x,
        y=[p.mean for p in points],
        mode="lines+markers",
        line={"color": style.colour, "width": 2},
        marker={"symbol": style.symbol, "size": 7, "maxdisplayed": SHOWN},
        name=plain(str(curve["name"])),
        text=[words.spread(p, "acc") for p in points],
        hovertemplate=f"%{{fullData.name}}<br>{plain(axis)} %{{x:.4g}}: %{{text}}<extra></extra>",
    )


def _add_ribbon(
    figure: go.Figure, i: int, panel: Mapping[str, Any], curve: Mapping[str, Any], x: list[float], axis: str
) -> None:
    style, z = style_of(str(curve["name"])), list(curve["mean"])
    told = f"{plain(str(panel['title']))}<br>{plain(str(curve['name']))}"
    where = plain(axis) if curve["over"] == "time" else "α"
    figure.add_surface(
        x=[x, x],
        y=[[i - HALF] * len(x), [i + HALF] * len(x)],
        z=[z, z],
        surfacecolor=[[0] * len(x)] * 2,
        colorscale=[[0, style.colour], [1, style.colour]],
        showscale=False,
        opacity=0.82,
        lighting={"ambient": 0.85, "diffuse": 0.3, "specular": 0},
        hoverinfo="skip",
        name=plain(str(curve["name"])),
    )
    for side in (-HALF, HALF):
        figure.add_scatter3d(
            x=x,
            y=[i + side] * len(x),
            z=z,
            mode="lines",
            line={"color": style.colour, "width": 5},
            text=[f"{where} {at:.4g}: {words.number(value, 'acc')}" for at, value in zip(curve["x"], z, strict=True)],
            hovertemplate=f"{told}<br>%{{text}}<extra></extra>",
        )


def _until(curve: Mapping[str, Any], end: float) -> dict[str, Any]:
    """The curve while its own part is learned; what becomes of it later, the union shows."""
    n = sum(x <= end for x in curve["x"])
    return {**curve, **{key: curve[key][:n] for key in ("x", "mean", "low", "high")}}


def _add_bar(figure: go.Figure, i: int, x0: float, x1: float, panel: Mapping[str, Any]) -> None:
    """A white box from the floor to the accuracy of all tasks at once, with its edges."""
    top = float(panel["at_once"])
    corners = [(x, y, z) for x in (x0, x1) for y in (i - HALF, i + HALF) for z in (0.0, top)]
    faces = [(0, 1, 3, 2), (4, 5, 7, 6), (0, 1, 5, 4), (2, 3, 7, 6), (0, 2, 6, 4), (1, 3, 7, 5)]
    triangles = [t for a, b, c, d in faces for t in ((a, b, c), (a, c, d))]
    told = f"{plain(str(panel['title']))}<br>all tasks at once: {words.number(top, 'acc')}<extra></extra>"
    figure.add_mesh3d(
        **dict(zip("xyz", map(list, zip(*corners, strict=True)), strict=True)),
        **dict(zip("ijk", map(list, zip(*triangles, strict=True)), strict=True)),
        color=WHITE,
        flatshading=True,
        lighting={"ambient": 1.0},
        hovertemplate=told,
    )
    edges: list[tuple[float | None, ...]] = []
    for face in faces:
        edges += [*(corners[c] for c in (*face, face[0])), (None, None, None)]
    figure.add_scatter3d(
        **dict(zip("xyz", map(list, zip(*edges, strict=True)), strict=True)),
        mode="lines",
        line={"color": INK, "width": 2},
        hoverinfo="skip",
    )


def _add_at_once(figure: go.Figure, at_once: float | None, x: list[float]) -> None:
    if at_once is not None:
        figure.add_scatter(
            x=x,
            y=[at_once] * 2,
            mode="lines",
            line={"color": INK, "width": 1.5, "dash": "dash"},
            name="all tasks at once",
            hovertemplate=f"%{{fullData.name}}: {words.number(at_once, 'acc')}<extra></extra>",
        )


def _add_mark(figure: go.Figure, mark: Mapping[str, Any]) -> None:
    """A dotted line; its text stands below the figure, where it hides nothing."""
    line = {"color": colour_of(mark), "width": 1.5, "dash": "dot"}
    name = plain(str(mark["text"]))
    figure.add_shape(type="line", x0=mark["x"], x1=mark["x"], y0=0, y1=1, yref="paper", line=line, name=name)


def _points(curve: Mapping[str, Any]) -> list[Interval]:
    return [Interval(*point) for point in zip(curve["mean"], curve["low"], curve["high"], strict=True)]


def _finish(figure: go.Figure, panel: Mapping[str, Any], axis: str, x: list[float]) -> None:
    lay_out(figure, height=230)
    figure.update_layout(margin={"l": 44, "r": 10, "t": 8, "b": 42})
    room = (x[1] - x[0]) * 0.015
    figure.update_xaxes(title_text=plain(axis), range=[x[0] - room, x[1] + room], nticks=6, gridcolor=FAINT)
    figure.update_yaxes(title_text="accuracy", range=[0, 1.03], tickvals=[0, 0.25, 0.5, 0.75, 1])
