"""The summary as a LaTeX tabular."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.metrics import Asked
from holdfast.report import table, words
from holdfast.types import Record

COLUMNS = ("acc", "bwt", "forgetting", "bytes", "train_seconds")
HEADINGS = ("Label", "Scenario", "Task label", "Seeds", "ACC", "BWT", "Forgetting", "Memory", "Training")

SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    words.MINUS: "$-$",
    words.UNDEFINED: "--",
    "±": r"$\pm$",
    "\n": " ",
}


def latex(records: Sequence[Record], asked: Sequence[Asked] = ()) -> str:
    """A booktabs tabular; winners are bold, ties carry a superscript, arenas are set apart by rules.

    `asked` says which seeds there should be.
    """
    found = table.arenas_of(records, asked=asked)
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lll{'r' * (len(COLUMNS) + 1)}}}",
        r"\toprule",
        " & ".join(HEADINGS) + r" \\",
    ]
    for arena in found:
        stream = escape(words.described(arena[0].conditions("stream")))
        lines += [r"\midrule", _across(rf"\emph{{{stream}}}")]
        for row in table.rows(arena, COLUMNS):
            left = map(escape, (row.group.label, row.group.scenario, words.label_given(row.group), row.seeds))
            lines.append(" & ".join([*left, *map(_cell, row.cells.values())]) + r" \\")
    notes = table.lacking([g for arena in found for g in arena], asked)
    lines += [r"\midrule", *(_across(escape(note)) for note in notes)] if notes else []
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def escape(text: str) -> str:
    """
    >>> escape("gem[memories=256] 50% a_b")
    'gem[memories=256] 50\\\\% a\\\\_b'
    """
    return "".join(SPECIAL.get(c, c) for c in text)


def _across(text: str) -> str:
    return rf"\multicolumn{{{len(HEADINGS)}}}{{l}}{{{text}}} \\"


def _cell(cell: table.Cell) -> str:
    text = escape(cell.text)
    if cell.mark == "best":
        return rf"\textbf{{{text}}}"
    return text + (r"\textsuperscript{tie}" if cell.mark else "")
