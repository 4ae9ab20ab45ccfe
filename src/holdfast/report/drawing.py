"""A figure of the page drawn by matplotlib: what plotly is told is all that is read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.report import ink
from holdfast.report.deep import draw_deep
from holdfast.report.strokes import draw_strokes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LETTERS, SMALL = 15, 19  # in an inch of an axis, and of a legend
LINE = 0.145  # inches of a legend's line
LEAN = 35  # degrees of names that do not fit side by side

Spec = Mapping[str, Any]  # data and layout, as plotly has them


def draw(spec: Spec) -> Figure:
    """Lines with bands, points, bars, heat maps and radars; waterfalls in space and paths have files of their own."""
    if "shapes" in spec:
        return draw_strokes(spec)
    kinds = {trace["type"] for trace in spec["data"]}
    if kinds & {"surface", "scatter3d", "mesh3d"}:
        return draw_deep(spec)
    return _polar(spec) if "scatterpolar" in kinds else _flat(spec)


def new_figure(width: float, height: float) -> Figure:
    """Nothing is cut off: room is made for all names."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _flat(spec: Spec) -> Figure:
    layout, names = spec["layout"], _categories(spec["data"])
    bars = [trace for trace in spec["data"] if trace["type"] == "bar"]
    width = ink.PAGE if len(bars) * len(names) > 24 or sum(map(len, names)) > 4 * LETTERS else ink.COLUMN
    figure = new_figure(width, layout["height"] / ink.PIXELS)
    axes = figure.add_subplot()
    for shape in layout.get("shapes") or ():
        _shape(axes, shape)
    for trace in spec["data"]:
        if trace["type"] == "bar":
            _bars(axes, trace, names, bars.index(trace), len(bars), layout)
        else:
            {"scatter": _scatter, "heatmap": _heat_map}[trace["type"]](axes, trace, names)
    whole = all(each == int(each) for trace in spec["data"] for each in _places(trace["x"], names))
    _finish(axes, layout, names, width, whole)
    for each in layout.get("annotations") or ():
        _name_beside(axes, each)
    _legend(figure, axes, width)
    return figure


def _scatter(axes: Axes, trace: Spec, names: Sequence[str]) -> None:
    x, y = _places(trace["x"], names), [ink.number(value) for value in trace["y"]]
    line, mode = trace.get("line") or {}, str(trace["mode"])
    if trace.get("fill") == "toself":
        axes.fill(x, y, color=ink.colour(str(trace["fillcolor"])), linewidth=0, zorder=1)
        return
    if mode == "text":
        _texts(axes, x, y, trace)
        return
    marks = trace.get("marker") or {}
    colour = ink.colour(str(line.get("color") or marks["color"]))
    error = trace.get("error_y") or {}
    if error:
        half = [ink.number(value) for value in error["array"]]
        axes.errorbar(x, y, yerr=half, fmt="none", ecolor=colour, elinewidth=0.7, capsize=1.5, zorder=2)
    axes.plot(
        x,
        y,
        color=colour,
        alpha=trace.get("opacity") or marks.get("opacity"),
        linewidth=ink.points(line.get("width", 2)) if "lines" in mode else 0,
        linestyle=ink.DASHES[line.get("dash", "solid")] if "lines" in mode else "none",
        drawstyle="steps-post" if line.get("shape") == "hv" else "default",
        label=_label(trace),
        markevery=_shown(marks, len(x)),
        zorder=3,
        **(ink.marker(marks) if "markers" in mode else {}),
    )


def _shown(marks: Spec, n: int) -> int | list[int]:
    """Which points of a line have a marker."""
    size, most = marks.get("size"), marks.get("maxdisplayed")
    if isinstance(size, list):
        return [i for i, each in enumerate(size) if each]
    return math.ceil(n / most) if most else 1


def _texts(axes: Axes, x: Sequence[float], y: Sequence[float], trace: Spec) -> None:
    colours = trace["textfont"]["color"]
    size = 6.5 if trace["textfont"]["size"] > 10 else 5.5
    for at, to, said, colour in zip(x, y, trace["text"], colours, strict=True):
        axes.text(at, to, ink.text(said), color=ink.colour(colour), size=size, ha="center", va="center", zorder=4)


def _bars(axes: Axes, trace: Spec, names: Sequence[str], i: int, of: int, layout: Spec) -> None:
    """One of several series side by side; hollow where it is what others are compared with."""
    room = (1 - layout.get("bargap", 0.2)) / of
    x = [at + (i - (of - 1) / 2) * room for at in _places(trace["x"], names)]
    y = [ink.number(value) for value in trace["y"]]
    marks = trace["marker"]
    rim = marks.get("line") or {}
    inner = marks["color"] if isinstance(marks["color"], list) else [marks["color"]] * len(x)
    outer = rim.get("color") or inner
    outer = outer if isinstance(outer, list) else [outer] * len(x)
    drawn = axes.bar(
        x,
        y,
        room * (1 - layout.get("bargroupgap", 0)),
        color=[ink.colour(str(each)) for each in inner],
        edgecolor=[ink.colour(str(each)) if rim else (1, 1, 1, 0.75) for each in outer],
        linewidth=0.8 if rim else 0,
        label=_label(trace),
        zorder=2,
    )
    for bar, each in zip(drawn, inner, strict=True):
        bar.set_hatch("" if rim else ink.hatch(str(each)))
    error = trace.get("error_y") or {}
    if error.get("visible"):
        half = [ink.number(value) or math.nan for value in error["array"]]
        axes.errorbar(x, y, yerr=half, fmt="none", ecolor=ink.INK, elinewidth=0.6, capsize=1.2, zorder=3)


def _heat_map(axes: Axes, trace: Spec, names: Sequence[str]) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    scale = LinearSegmentedColormap.from_list("page", [(at, each) for at, each in trace["colorscale"]])
    rows = [[ink.number(value) for value in row] for row in trace["z"]]
    x, y = ([places[0] - 0.5, *(each + 0.5 for each in places)] for places in (trace["x"], trace["y"]))
    axes.pcolormesh(x, y, rows, cmap=scale, vmin=trace["zmin"], vmax=trace["zmax"], edgecolors="white", linewidth=0.6)
    axes.set_aspect("auto")


def _shape(axes: Axes, shape: Spec) -> None:
    """A rectangle behind, a line, or the stairs of a heat map; one with a name stands in the legend."""
    named = {"label": ink.text(shape["name"])} if shape.get("name") else {}
    line = shape.get("line") or {}
    if shape["type"] == "rect":
        red, green, blue, alpha = ink.colour(str(shape["fillcolor"]))
        axes.axvspan(shape["x0"], shape["x1"], color=(red, green, blue), alpha=alpha, linewidth=0, zorder=0, **named)
        return
    pen = {"color": ink.colour(str(line["color"])), "linewidth": ink.points(line["width"])}
    pen["linestyle"] = ink.DASHES[line.get("dash", "solid")]
    if shape["type"] == "path":
        axes.plot(*zip(*_stairs(str(shape["path"])), strict=True), **pen, zorder=5)
    elif shape.get("yref") == "paper":
        axes.axvline(shape["x0"], **pen, **named, zorder=2)
    else:
        axes.axhline(shape["y0"], **pen, **named, zorder=2)


def _stairs(path: str) -> Iterator[tuple[float, float]]:
    """The points of a path that goes to a point, then up, down and across.

    >>> list(_stairs("M1.5,0.5V1.5H2.5"))
    [(1.5, 0.5), (1.5, 1.5), (2.5, 1.5)]
    """
    start, *turns = path[1:].replace("V", " V").replace("H", " H").split()
    x, y = map(float, start.split(","))
    yield x, y
    for turn in turns:
        x, y = (float(turn[1:]), y) if turn[0] == "H" else (x, float(turn[1:]))
        yield x, y


def _name_beside(axes: Axes, each: Spec) -> None:
    """A name beside a point; a number stands for a sentence of the page, and the legend has the names here."""
    if ink.text(each["text"]).isdigit():
        return
    x = 10 ** each["x"] if axes.get_xscale() == "log" else each["x"]
    shift = (0.6 * each.get("xshift", 0), 0.6 * each.get("yshift", 0))
    axes.annotate(
        ink.text(each["text"]),
        (x, each["y"]),
        shift,
        textcoords="offset points",
        ha=each["xanchor"],
        va=each["yanchor"],
        size=6.5,
        zorder=6,
    )


def _finish(axes: Axes, layout: Spec, names: Sequence[str], width: float, whole: bool) -> None:
    """`whole`: x has no fractions."""
    from matplotlib.ticker import MaxNLocator, NullLocator

    for which, axis in (("x", layout["xaxis"]), ("y", layout["yaxis"])):
        title = (axis.get("title") or {}).get("text")
        getattr(axes, f"set_{which}label")(ink.text(title or ""))
        logarithmic = axis.get("type") == "log"
        if logarithmic:
            getattr(axes, f"set_{which}scale")("log")
            getattr(axes, f"{which}axis").set_major_formatter(lambda value, _: f"{value:g}")
            getattr(axes, f"{which}axis").set_minor_locator(NullLocator())
        if axis.get("range"):
            ends = [10**end if logarithmic else end for end in axis["range"]]
            getattr(axes, f"set_{which}lim")(*ends)
        elif axis.get("rangemode") == "tozero":
            getattr(axes, f"set_{which}lim")(**{"bottom" if which == "y" else "left": 0})
        if axis.get("tickvals") is not None:
            told = axis.get("ticktext") or [_short(each) for each in axis["tickvals"]]
            getattr(axes, f"set_{which}ticks")(_places(axis["tickvals"], names), [ink.text(each) for each in told])
        elif axis.get("nticks"):
            getattr(axes, f"{which}axis").set_major_locator(MaxNLocator(min(6, axis["nticks"]), integer=whole))
        if axis.get("showgrid", True):
            axes.grid(axis=which, color=ink.colour(str(axis["gridcolor"])), linewidth=0.4)
    if layout["yaxis"].get("zeroline"):
        axes.axhline(0, color=ink.INK, linewidth=0.5, zorder=3)
    if names and not layout["xaxis"].get("tickvals"):
        axes.set_xticks(range(len(names)), [ink.text(name) for name in names])
    said = [label.get_text() for label in axes.get_xticklabels()]
    if sum(map(len, said)) > LETTERS * width or max(map(len, said), default=0) * len(said) > 1.3 * LETTERS * width:
        axes.tick_params("x", rotation=LEAN)
        for label in axes.get_xticklabels():
            label.set(ha="right", rotation_mode="anchor")
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _polar(spec: Spec) -> Figure:
    """A radar: polygons from the centre's ring, the worst, to the rim."""
    layout = spec["layout"]
    small = layout["height"] < 300
    width = ink.COLUMN * (0.75 if small else 1)
    figure = new_figure(width, width * 0.85)
    axes: Any = figure.add_subplot(projection="polar")
    corners = list(dict.fromkeys(name for trace in spec["data"] for name in trace["theta"]))
    turns = {name: 2 * math.pi * i / len(corners) for i, name in enumerate(corners)}
    for trace in spec["data"]:
        angles, r = [turns[name] for name in trace["theta"]], [ink.number(value) for value in trace["r"]]
        line = trace["line"]
        pen = {"linewidth": ink.points(line["width"]), "linestyle": ink.DASHES[line["dash"]]}
        marks = ink.marker(trace["marker"])
        axes.plot(angles, r, color=ink.colour(line["color"]), label=_label(trace), clip_on=False, **pen, **marks)
        if trace["fill"] == "toself":
            axes.fill(angles, r, color=ink.colour(trace["fillcolor"]), linewidth=0)
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    radial = layout["polar"]["radialaxis"]
    axes.set_ylim(*radial["range"])
    axes.set_yticks(radial["tickvals"], [""] * len(radial["tickvals"]))
    axes.set_xticks(list(turns.values()), [ink.text(name) for name in corners])
    axes.tick_params("x", pad=1)
    axes.grid(color=ink.colour(radial["gridcolor"]), linewidth=0.5)
    axes.spines["polar"].set_visible(False)
    _legend(figure, axes, width)
    return figure


def _legend(figure: Figure, axes: Axes, width: float) -> None:
    """Below the axes, each name once, where there are several."""
    handles, labels = axes.get_legend_handles_labels()
    once = dict(zip(labels, handles, strict=True))
    if len(once) < 2:
        return
    columns = max(1, min(len(once), int(width * SMALL / (max(map(len, once)) + 5))))
    figure.set_figheight(figure.get_figheight() + LINE * math.ceil(len(once) / columns))
    below = {"loc": "outside lower center", "fontsize": 6.5, "columnspacing": 1}
    figure.legend(list(once.values()), list(once), ncols=columns, **below)


def _label(trace: Spec) -> str:
    """What the legend calls it; the stairs of a front are told by their shape."""
    name = ink.text(trace.get("name") or "")
    return name if name and name != "front" else "_"


def _short(tick: Any) -> str:
    return f"{tick:g}" if isinstance(tick, int | float) else str(tick)


def _categories(traces: Sequence[Spec]) -> list[str]:
    """The names on the x axis, in order; none where there are numbers."""
    given = [each for trace in traces for each in trace["x"]]
    return list(dict.fromkeys(map(str, given))) if any(isinstance(each, str) for each in given) else []


def _places(x: Sequence[Any], names: Sequence[str]) -> list[float]:
    return [float(names.index(str(each))) for each in x] if names else [ink.number(each) for each in x]
