"""What every part of the page is made of: sections, tables that scroll, figures with their data beside them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import Any

import plotly.graph_objects as go


def section(title: str, lead: str, parts: Sequence[str], before: str = "") -> str:
    parts = [part for part in parts if part]
    if not parts:
        return ""
    lead = f'<p class="lead">{escape(lead)}</p>' if lead else ""
    return (
        f'<section id="{place(title)}">\n<h2>{escape(title)}</h2>\n{lead}{before}\n' + "\n".join(parts) + "\n</section>"
    )


def place(title: str) -> str:
    """The name by which a section is linked to.

    >>> place("Cost against accuracy")
    'cost-against-accuracy'
    """
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def table(name: str, head: Sequence[tuple[str, str]], body: str, kind: str = "") -> str:
    """A table that scrolls inside its own frame; `head` is each column's title and class."""
    cells = "".join(
        f'<th scope="col" class="{css}">{escape(title).replace(chr(10), "<br>")}</th>' for title, css in head
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(name)}"><table class="{kind}">'
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def sortable(value: float | None) -> str:
    """The attribute by which a cell is sorted, where its text is more than a number."""
    return f' data-sort="{"" if value is None else f"{value:.9g}"}"'


def figures(titled: Sequence[tuple[str, go.Figure]], layout: str) -> str:
    drawn = (f"<figure><figcaption>{escape(t)}</figcaption>{figure(f, t)}</figure>" for t, f in titled)
    return f'<div class="{layout}">{"".join(drawn)}</div>'


def figure(made: go.Figure, title: str) -> str:
    """A figure's place, with its data beside it for the page's script to draw."""
    drawn = made.to_plotly_json()
    data = _json({"data": drawn["data"], "layout": drawn["layout"]})
    return (
        f'<div class="plot" style="height:{made.layout.height}px" role="img" aria-label="{escape(title)}">'
        f'<script type="application/json">{data}</script></div>'
    )


def _json(value: Any) -> str:
    """JSON that cannot end the script it stands in: no '<' is left, so neither '</script' nor '<!--'."""
    return json.dumps(_short(value), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")


def _short(value: Any) -> Any:
    """Six digits are more than a figure can show."""
    if isinstance(value, float):
        return float(f"{value:.6g}")
    if isinstance(value, dict):
        return {name: _short(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_short(each) for each in value]
    return value
