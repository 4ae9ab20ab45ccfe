"""What the lines, marks and backgrounds of a figure mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from holdfast.report import courses, plots


def of_marks(panel: Mapping[str, Any], over: str) -> str:
    """What the dotted lines of a panel mean."""
    said = " ".join(
        f'<span><span class="glyph" style="color:{courses.colour_of(mark)}" aria-hidden="true">┊</span> '
        f"{escape(str(mark['text']))}</span>"
        for mark in courses.marks(panel, over)
    )
    return f'<p class="legend small">{said}</p>' if said else ""


def of_panels(figures: Sequence[Mapping[str, Any]]) -> str:
    drawn = {"course": ("time",), "tuning": ("alpha",), "waterfall": ("time", "alpha")}
    panels = [panel for figure in figures for panel in figure["panels"]]
    names = dict.fromkeys(
        str(curve["name"])
        for figure in figures
        for panel in figure["panels"]
        for curve in panel["curves"]
        if curve["over"] in drawn[str(figure["kind"])]
    )
    said = [name(each, courses.style_of(each).colour, courses.style_of(each).glyph) for each in names]
    if any(panel["at_once"] is not None for panel in panels):
        said.append(name("all at once: one network trained on all parts together", plots.INK, "┅"))
    if any(figure["kind"] == "course" for figure in figures):
        said.append(name("grey background: retraining", courses.GREY, "■"))
    return f'<p class="legend">{" ".join(said)}</p>'


def name(text: str, colour: str, glyph: str) -> str:
    return (
        f'<span><span class="glyph" style="color:{colour}" aria-hidden="true">{glyph}</span> '
        f'<span class="label">{escape(text)}</span></span>'
    )
