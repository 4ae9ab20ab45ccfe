"""Published | measured, laid out as the paper has it: a row per method, a column per place and metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape

from holdfast.report import parts, words

NARROW = 3  # columns; a table of so few is no wider than they are
TIGHT = 7  # columns; with more, cells stand closer together
WIDE = 9  # numbers in a row that can be taken in; with more, each column of the paper has a table of its own


@dataclass(frozen=True)
class Row:
    """One number of the table, in words."""

    row: str
    column: str
    setting: str  # under which it was measured, where that differs from the paper's
    metric: str
    scenario: str
    published: str
    archive: str
    measured: str
    half: str  # of the 95% interval
    theirs: str
    verdict: str  # 'yes', 'no' or '–'
    judged: str  # '± 0.02', or why it is not judged

    @property
    def glyph(self) -> str:
        """The verdict as a sign, coloured where the number is judged."""
        if self.verdict == words.UNDEFINED:
            return ""
        kind, glyph = ("yes", "✓") if self.verdict == "yes" else ("no", "✕")
        kind = kind if self.judged.startswith("±") else "none"
        return f'<span class="met {kind}"><span aria-hidden="true">{glyph}</span></span>'


Part = Callable[[Row], str]


def tables(rows: Sequence[Row]) -> str:
    """All numbers, in several tables where one would be too wide; a table of which nothing is published is left out."""
    splits: list[Part] = [lambda row: "", lambda row: row.column, lambda row: row.metric]
    layouts = [_split(rows, by) for by in splits]
    printed = [row for row in rows if row.published != words.UNDEFINED]
    layout = next((each for each in layouts if max(map(_width, each.values())) <= WIDE), layouts[1])
    usual = Counter(row.setting for row in rows).most_common(1)[0][0]
    key = '<p class="note small">Published | <b>measured</b>.' + _key(rows, usual) + "</p>"
    return key + "".join(
        (f"<h3>{escape(title)}</h3>" if title else "") + _table(title, mine, usual)
        for title, mine in layout.items()
        if not printed or any(row in printed for row in mine)
    )


def _split(rows: Sequence[Row], by: Part) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(by(row), []).append(row)
    return found


def _width(rows: Sequence[Row]) -> int:
    return len({(row.column, row.metric) for row in rows})


def _key(rows: Sequence[Row], usual: str) -> str:
    theirs = any(row.theirs != words.UNDEFINED for row in rows)
    archive = any(row.archive != words.UNDEFINED for row in rows)
    judged = any(row.glyph for row in rows)
    scenarios = _scenarios(rows)
    return (
        (f" Scenario: {escape(scenarios[0])}." if len(scenarios) == 1 else "")
        + (" Below: under the authors’ procedure." if theirs else "")
        + (" Archive: what the authors’ complete files read." if archive else "")
        + (" ✓ within tolerance, ✕ outside it, in colour where judged." if judged else "")
        + (f" Setting, where no other is told: {escape(usual)}." if usual else "")
    )


def _table(title: str, rows: Sequence[Row], usual: str) -> str:
    places = list(dict.fromkeys((row.column, row.metric) for row in rows))
    columns, metrics = (list(dict.fromkeys(names)) for names in zip(*places, strict=True))
    mixed = len(_scenarios(rows)) > 1

    def head(column: str, metric: str) -> str:
        said = ([metric] if len(metrics) > 1 or len(columns) < 2 else []) + ([column] if len(columns) > 1 else [])
        return "\n".join(said)

    by_row: dict[str, dict[tuple[str, str], Row]] = {}
    for row in rows:
        by_row.setdefault(row.row, {})[row.column, row.metric] = row
    body = "".join(
        f'<tr><th scope="row">{escape(name)}{half("; ".join(_scenarios(mine.values())) if mixed else "")}</th>'
        + "".join(_cell(mine[place], usual) if place in mine else "<td></td>" for place in places)
        + "</tr>"
        for name, mine in by_row.items()
    )
    heads = [("", ""), *((head(*place), "number") for place in places)]
    width = " narrow" if len(places) <= NARROW else " many" if len(places) > TIGHT else ""
    return parts.table(f"Published and measured {title}".strip(), heads, body, f"published{width}")


def _scenarios(rows: Iterable[Row]) -> list[str]:
    """In which their numbers were measured."""
    return list(dict.fromkeys(row.scenario for row in rows if row.scenario))


def _cell(row: Row, usual: str) -> str:
    below = half(row.half)
    below += half(f"authors {row.theirs}") if row.theirs != words.UNDEFINED else ""
    below += half(f"archive {row.archive}") if row.archive != words.UNDEFINED else ""
    below += half(row.setting) if row.setting != usual else ""
    glyph = f" {row.glyph}" if row.glyph else ""
    return (
        f'<td class="number"><span class="pair"><span class="quiet">{row.published}</span> | <b>{row.measured}</b>'
        f"{glyph}</span>{below}</td>"
    )


def half(text: str) -> str:
    return f'<span class="half">{escape(text)}</span>' if text else ""
