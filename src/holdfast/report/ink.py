"""How a page's colours, shapes and sizes look in print: at column width, and to whoever sees few colours."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

from holdfast.report.plots import INK, PALETTE

COLUMN, PAGE = 3.35, 6.9  # inches: of one column of a paper, and of both
PIXELS = 130.0  # of the page, in an inch of the paper: both have about as many lines of text in a figure
# Okabe and Ito's first six, and four that stay apart from them and each other in every kind of colour blindness:
# at least 16 in CIE Lab, where the page's nearest pair has 2.5 (simulated as Machado et al., 2009).
PRINTED = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#56b4e9",
    "#e69f00",
    "#661100",
    "#aa3377",
    "#ddcc77",
    "#444444",
)
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++", "oooo", "||||", "**")  # of bars, beside the colour
MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "star": "*",
    "pentagon": "p",
}
DASHES = {"solid": "-", "dash": "--", "dot": ":"}
SETTINGS = {
    "font.size": 7,
    "font.family": "DejaVu Sans",  # comes with matplotlib, and has the papers' symbols
    "axes.labelsize": 7.5,
    "axes.linewidth": 0.5,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "text.parse_math": False,  # a name may have a dollar in it
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.5,
    "ytick.major.width": 0.5,
    "xtick.major.size": 2,
    "ytick.major.size": 2,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "hatch.linewidth": 0.5,
    "legend.frameon": False,
    "legend.handlelength": 1.8,
    "pdf.fonttype": 42,  # letters stay letters, embedded
    "svg.fonttype": "path",
    "svg.hashsalt": "holdfast",  # the same figure is the same file
}
Colour = tuple[float, float, float, float]

_IN_PRINT = dict(zip(PALETTE, PRINTED, strict=True))
_PLACES = {colour: i for i, colour in enumerate(PRINTED)}


def colour(text: str) -> Colour:
    """
    >>> colour("#3b6fb6") == colour("rgba(0,114,178,1)")  # the page's blue is another one in print
    True
    >>> colour("rgba(255,255,255,0.5)")
    (1.0, 1.0, 1.0, 0.5)
    """
    if text.startswith("rgba"):
        *rgb, alpha = text[5:-1].split(",")
        parts = _IN_PRINT.get("#" + "".join(f"{int(each):02x}" for each in rgb))
        red, green, blue = _parts(parts) if parts else (int(each) / 255 for each in rgb)
        return red, green, blue, float(alpha)
    return *_parts(_IN_PRINT.get(text, text)), 1.0


def hatch(text: str) -> str:
    """Of bars in this colour of the page's palette."""
    return HATCHES[_PLACES.get(_IN_PRINT.get(text, text), 0)]


def marker(given: Mapping[str, Any]) -> dict[str, Any]:
    """Shape, size and colours of a page's marker, as matplotlib's lines have them; `size` may be one for each point."""
    symbol = str(given.get("symbol", "circle"))
    rim = given.get("line") or {}
    found: dict[str, Any] = {
        "marker": MARKERS[symbol.removesuffix("-open")],
        "markersize": points(given.get("size", 6)),
        "markeredgewidth": points(rim.get("width", 0)),
    }
    if rim.get("width"):
        found["markeredgecolor"] = colour(str(rim["color"]))
    if symbol.endswith("-open"):
        found |= {"markerfacecolor": "none", "markeredgewidth": 1}
    return found


def points(pixels: float | list[float]) -> float:
    """Of a line's width or a marker's size; of many, the largest."""
    return 0.55 * (max(pixels) if isinstance(pixels, list) else pixels)


def text(given: Any) -> str:
    """A page's texts are escaped, for plotly reads tags in them."""
    return html.unescape(str(given))


def number(given: float | None) -> float:
    return math.nan if given is None else float(given)


def _parts(code: str) -> tuple[float, float, float]:
    red, green, blue = (int(code[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue
