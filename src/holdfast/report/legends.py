"""What the lines, marks and backgrounds of a figure mean; a button of a legend hides what it names in all figures."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from holdfast.metrics import Group
from holdfast.report import courses, plots, words

MANY = 6  # names; of more, all can be hidden and shown at once


def of_groups(arena: Sequence[Group], style: Mapping[str, plots.Style]) -> str:
    """A button for each label."""
    return buttons({g.label: style[g.label] for g in arena}, {g.label: standing(g) for g in arena})


def buttons(style: Mapping[str, plots.Style], beside: Mapping[str, str] | None = None) -> str:
    """A button for each name; `beside`: what stands behind it."""
    if not style:
        return ""
    made = [
        f'<button type="button" data-of="{escape(each)}" aria-pressed="true">{name(each, look.colour, look.glyph)}'
        f"{(beside or {}).get(each, '')}</button>"
        for each, look in style.items()
    ]
    if len(made) > MANY:
        made += [f'<button type="button" class="all" data-all="{which}">{said}</button>'
                 for which, said in (("yes", "show all"), ("no", "hide all"))]  # fmt: skip
    return f'<p class="legend" role="group" aria-label="Show or hide in all figures">{" ".join(made)}</p>'


def label(g: Group, style: Mapping[str, plots.Style]) -> str:
    """A label with its glyph, as it stands in tables and above figures."""
    return name(g.label, style[g.label].colour, style[g.label].glyph)


def standing(g: Group) -> str:
    """Why a label is not ranked, if it is not."""
    if not g.complete:
        lacks = words.finished(len(g.seeds), len(g.asked))
        return f' <span class="mark bound" title="{lacks}">not ranked</span>'
    return (
        ' <span class="mark bound" title="no continual learner; not ranked">all tasks at once</span>' if g.mixed else ""
    )


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
    return f'<p class="legend still">{" ".join(said)}</p>'


def name(text: str, colour: str, glyph: str) -> str:
    """A name behind its glyph; a long one may break at its signs."""
    broken = re.sub("([,/_])", r"\1<wbr>", escape(text))
    sign = f'<span class="glyph" style="color:{colour}" aria-hidden="true">{glyph}</span>'
    return f'<span class="label">{sign} {broken}</span>'
