"""A picture of our own, an SVG of few shapes, drawn by matplotlib."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from holdfast.report import ink

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT = 12  # pixels of the picture's text
TALLEST = 8.5  # inches


def draw_strokes(picture: Mapping[str, Any]) -> Figure:
    """The shapes of report/strands.py, in their order, as wide as both columns."""
    from matplotlib.figure import Figure

    width, height = float(picture["width"]), float(picture["height"])
    inches = min(ink.PAGE, TALLEST * width / height)
    figure = Figure(figsize=(inches, inches * height / width))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.axis("off")
    for shape in picture["shapes"]:
        _stroke(axes, shape, 72 * inches / width)
    return figure


def _stroke(axes: Axes, shape: Mapping[str, Any], scale: float) -> None:
    """`scale`: points of the paper in a pixel of the picture."""
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Rectangle

    kind = shape["tag"]
    if kind == "text":
        inner = shape.get("class") == "many"
        where = "center" if inner else {"end": "right", "middle": "center"}.get(shape.get("text-anchor", ""), "left")
        colour, weight = ("white", "bold") if inner else (ink.INK, "normal")
        at = (float(shape["x"]), float(shape["y"]))
        axes.text(*at, ink.text(shape["text"]), color=colour, weight=weight, ha=where, size=FONT * scale, va="baseline")
        return
    if kind == "path":
        pen = {"edgecolor": ink.colour(shape["stroke"]), "linewidth": float(shape["stroke-width"]) * scale}
        axes.add_patch(PathPatch(_path(shape["d"]), facecolor="none", **pen))
        return
    fill = ink.colour(shape["fill"])
    if kind == "circle":
        axes.add_patch(Circle((float(shape["cx"]), float(shape["cy"])), float(shape["r"]), color=fill, linewidth=0))
        return
    x, y, width, height = (float(shape[name]) for name in ("x", "y", "width", "height"))
    round_ = float(shape.get("rx", 0))
    if round_:
        inner_box = (x + round_, y + round_), width - 2 * round_, max(height - 2 * round_, 0.01)
        axes.add_patch(FancyBboxPatch(*inner_box, f"round,pad={round_}", color=fill, linewidth=0))
    else:
        axes.add_patch(Rectangle((x, y), width, height, color=fill, linewidth=0))


def _path(d: str) -> Any:
    """A path that moves, bends and goes straight across: M, C and H, all absolute."""
    from matplotlib.path import Path

    points: list[tuple[float, float]] = []
    codes: list[int] = []
    for letter, rest in re.findall(r"([MCH])([^MCH]*)", d):
        numbers = [float(each) for each in rest.replace(",", " ").split()]
        if letter == "H":
            numbers.append(points[-1][1])
        points += zip(numbers[::2], numbers[1::2], strict=True)
        codes += [Path.MOVETO if letter == "M" else Path.LINETO] if letter in "MH" else [Path.CURVE4] * 3
    return Path(points, codes)
