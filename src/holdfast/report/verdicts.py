"""The audit as tables: the verdicts of all labels side by side, and each label's card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from holdfast.metrics import Group, desiderata
from holdfast.report import card, legends, parts, plots, words

NEITHER = "not applicable, or not judged"  # one sign for both


def five(g: Group) -> str:
    """The verdicts on paper 001's conditions as a cell of the summary, a sign each."""
    lines = [card.line_of(card.lines(g), key) for key in desiderata.MINIMAL]
    met = sum(line.met == "met" for line in lines)
    return f'<td class="card"{parts.sortable(met)}>{"".join(_sign(line.met, line.label) for line in lines)}</td>'


def section(groups: Sequence[Group], style: Mapping[str, plots.Style]) -> list[str]:
    cards = [(g, card.lines(g)) for g in groups]
    cards = [(g, lines) for g, lines in cards if lines]
    if not cards:
        return []
    some = any(line.met.startswith("met by") for _, lines in cards for line in lines)
    key = " ".join(map(_met, ["met", "not met", NEITHER, *([card.SOME] if some else [])]))
    drawn = [_overview(title, keys, cards, style) for title, keys in card.blocks(groups) if keys]
    drawn.append(f'<p class="key">{key}</p>')
    columns = [("Condition", ""), ("Measured", ""), ("Verdict", ""), ("Note", "")]
    opened = " open" if len(cards) == 1 else ""
    for g, lines in cards:
        body = "".join(
            f'<tr><th scope="row">{escape(line.label)}</th><td>{escape(line.value)}</td><td>{_met(line.met)}</td>'
            f'<td class="quiet">{escape(line.note)}</td></tr>'
            for line in lines
        )
        drawn.append(
            f'<details{opened}><summary>{legends.label(g, style)} <span class="aside">{escape(g.scenario)} · '
            f"{escape(card.tally(lines))}</span></summary>{parts.table('Audit card', columns, body, 'lines')}</details>"
        )
    return drawn


def _overview(
    title: str,
    keys: Mapping[str, str],
    cards: Sequence[tuple[Group, list[card.Line]]],
    style: Mapping[str, plots.Style],
) -> str:
    """Verdicts of all labels on some lines."""
    labels = {line.key: line.label for _, lines in cards for line in lines}
    heads = [(labels.get(key, named or key.replace("_", " ")), "tight") for key, named in keys.items()]
    body = "".join(
        f'<tr><th scope="row">{legends.label(g, style)}</th><td>{escape(g.scenario)}</td>'
        + "".join(_met_cell(lines, key) for key in keys)
        + "</tr>"
        for g, lines in cards
    )
    return f"<h3>{escape(title)}</h3>" + parts.table(title, [("Label", ""), ("Scenario", ""), *heads], body, "audit")


def _met_cell(lines: Sequence[card.Line], key: str) -> str:
    return f'<td class="tight">{_sign(card.line_of(lines, key).met)}</td>'


def _met(met: str) -> str:
    kind, glyph = _look(met)
    return f'<span class="met {kind}"><span aria-hidden="true">{glyph}</span> {escape(met)}</span>'


def _sign(met: str, of: str = "") -> str:
    """The verdict as a sign that says itself where one points; `of`: the condition, where no heading has it."""
    kind, glyph = _look(met)
    said = escape(f"{of}: {met}" if of else met)
    return f'<span class="met {kind}" role="img" aria-label="{said}" title="{said}">{glyph}</span>'


def _look(met: str) -> tuple[str, str]:
    kinds = {"met": ("yes", "✓"), "not met": ("no", "✕"), "not applicable": ("none", words.UNDEFINED)}
    kinds |= dict.fromkeys((card.UNJUDGED, card.UNMEASURED, NEITHER), kinds["not applicable"])
    return kinds.get(met, ("some", "◐"))
