"""Who forgets: the grey-scale table of paper 003's Table 3, with a verdict in every cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from holdfast.report import words

DARKEST, BLACK, WHITE, INK = 70, "#111111", "#ffffff", "#000000"  # grey at the threshold; below it black
MANY = 8  # columns; more are set closer
WORDS = {"forgetting": "● forgetting", "none": "○ none", "undecided": "◐ undecided"}

Cell = Mapping[str, Any]


def shade(value: float, threshold: float) -> tuple[str, str]:
    """Background and text: black below the threshold, from there a gradient to white at 1.

    >>> shade(0.4, 0.5), shade(1.0, 0.5)
    (('#111111', '#ffffff'), ('#ffffff', '#000000'))
    """
    if value < threshold:
        return BLACK, WHITE
    share = min(1.0, (value - threshold) / (1 - threshold))
    grey = round(DARKEST + (255 - DARKEST) * share)
    return f"#{grey:02x}{grey:02x}{grey:02x}", WHITE if grey < 118 else INK  # a contrast of 4.5 or more on either side


def table(cells: Sequence[Cell]) -> str:
    """Rows and columns as the paper has them; nothing where no cell has a threshold."""
    if not any(cell.get("threshold") is not None for cell in cells):
        return ""
    rows = list(dict.fromkeys(str(cell["row"]) for cell in cells))
    columns = list(dict.fromkeys(str(cell["column"]) for cell in cells))
    places: dict[tuple[str, str], list[Cell]] = {}
    printed = {str(c["metric"]) for c in cells if c["published"] is not None or c.get("threshold") is not None}
    for cell in (cell for cell in cells if cell["metric"] in printed):  # what only we have stands in the full table
        places.setdefault((str(cell["row"]), str(cell["column"])), []).append(cell)
    by_column = all(len(_scenarios(cells, "column", name)) <= 1 for name in columns)
    head = "".join(f'<th scope="col">{escape(c)}{_beside(cells, "column", c, by_column)}</th>' for c in columns)
    body = "".join(
        f'<tr><th scope="row">{escape(row)}{_beside(cells, "row", row, not by_column)}</th>'
        + "".join(_place(places.get((row, column), [])) for column in columns)
        + "</tr>"
        for row in rows
    )
    framed = (
        '<div class="wide" tabindex="0" role="region" aria-label="Who forgets">'
        f'<table class="shades{" many" if len(columns) > MANY else ""}">'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
    return f"<h3>Who forgets</h3>{_said(cells)}{_key(cells)}{framed}"


def _place(cells: Sequence[Cell]) -> str:
    """The numbers of one place: measured, below them published and the authors' way, and the verdict."""
    deciding = next((cell for cell in cells if cell.get("threshold") is not None), None)
    if deciding is None:
        return "<td></td>"
    published = _numbers([cell["published"] for cell in cells])
    archived = _numbers([cell.get("archive") for cell in cells])
    told = f'<span class="half">paper {published}</span>' if published else ""
    told += f'<span class="half">archive {archived}</span>' if archived else ""
    if deciding["measured"] is None:
        why = str(deciding.get("setting") or "not run")
        return f'<td class="gone">{words.UNDEFINED}<span class="half">{escape(why)}</span>{told}</td>'
    theirs = _numbers([cell["emulated"] for cell in cells])
    told += f'<span class="half">authors {theirs}</span>' if theirs else ""
    back, ink = shade(float(deciding["measured"]), float(deciding["threshold"]))
    low, high = deciding["low"], deciding["high"]
    half = "" if low is None else f' <span class="about">± {_short((high - low) / 2)}</span>'
    return (
        f'<td style="background:{back};color:{ink}"><b>{_numbers([cell["measured"] for cell in cells])}</b>{half}'
        f'<span class="told">{WORDS[str(deciding["verdict"])]}</span>{told}</td>'
    )


def _said(cells: Sequence[Cell]) -> str:
    """How many places forget, and where the published number says otherwise."""
    deciding = [cell for cell in cells if cell.get("threshold") is not None]
    counts = Counter(str(cell["verdict"]) for cell in deciding if cell.get("verdict"))
    if not counts:
        theirs = any(cell["emulated"] is not None for cell in deciding)
        said = "Only the authors’ way was run, which has no verdict." if theirs else "Nothing was measured here."
        return f'<p class="finding">{said}</p>'
    known = [cell for cell in deciding if cell.get("verdict") and cell["published"] is not None]
    other = sum(
        cell["verdict"] != ("forgetting" if cell["published"] < cell["threshold"] else "none") for cell in known
    )
    said = ", ".join(f"<b>{counts[name]}</b> {name}" for name in WORDS if counts[name])
    return (
        f'<p class="finding">Of {sum(counts.values())} places that were run: {said}. In {other} of them the published '
        "number gives another verdict.</p>"
    )


def _key(cells: Sequence[Cell]) -> str:
    thresholds = sorted({float(cell["threshold"]) for cell in cells if cell.get("threshold") is not None})
    metric = next(str(cell["metric"]) for cell in cells if cell.get("threshold") is not None)
    swatch = f"linear-gradient(90deg, {BLACK} 0 24%, rgb({DARKEST},{DARKEST},{DARKEST}) 24%, {WHITE} 100%)"
    said = " or ".join(f"{threshold:g}" for threshold in thresholds)
    archived = any(cell.get("archive") is not None for cell in cells)
    archive = ", what the authors’ complete archive reads where runs lack behind it" if archived else ""
    several = len({str(cell["metric"]) for cell in cells if cell["published"] is not None}) > 1
    return (
        f'<p class="scale"><span class="grey bar" style="background:{swatch}"></span> black: below the threshold of '
        f"{said}, forgetting; from there to white at 1{f', by {escape(metric)!s}' if several else ''}. Undecided where "
        f"the 95% interval over seeds contains the threshold. Below: the paper’s number{archive}, and ours under the "
        "authors’ procedure.</p>"
    )


def _scenarios(cells: Sequence[Cell], key: str, name: str) -> list[str]:
    return list(dict.fromkeys(str(c["scenario"]) for c in cells if str(c[key]) == name and c.get("scenario")))


def _beside(cells: Sequence[Cell], key: str, name: str, wanted: bool) -> str:
    said = "; ".join(_scenarios(cells, key, name)) if wanted else ""
    return f'<span class="half">{escape(said)}</span>' if said else ""


def _numbers(values: Sequence[float | None]) -> str:
    """'.49/.10' as the papers print two numbers of one cell; empty where none is known."""
    known = [value for value in values if value is not None]
    return "/".join(words.UNDEFINED if value is None else _short(value) for value in values) if known else ""


def _short(value: float) -> str:
    text = f"{value:.2f}"
    return text[1:] if text.startswith("0") else text
