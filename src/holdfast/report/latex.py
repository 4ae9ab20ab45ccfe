"""The summary as a LaTeX tabular."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.metrics import Asked
from holdfast.report import table, words
from holdfast.report.reproduction import Reproduction, rows
from holdfast.types import Record

COLUMNS = ("acc", "bwt", "forgetting", "bytes", "train_seconds")
HEADINGS = ("Label", "Scenario", "Task label", "Seeds", "ACC", "BWT", "Forgetting", "Memory", "Training")

SYMBOLS = {  # of names and captions that LaTeX has in formulas alone
    **{c: rf"\{name}" for c, name in zip("αεθλχΣΩ", "alpha epsilon theta lambda chi Sigma Omega".split(), strict=True)},
    **{c: f"_{i}" for i, c in enumerate("₀₁₂₃₄₅₆₇₈₉")},
    **{c: f"^{i}" for i, c in enumerate("⁰¹²³⁴⁵⁶⁷⁸⁹")},
    **{"⁻": "^-", "⁺": "^+", "∪": r"\cup", "⟨": r"\langle", "⟩": r"\rangle", "→": r"\to", "↑": r"\uparrow"},
    **{"↓": r"\downarrow", "×": r"\times", "·": r"\cdot", "≈": r"\approx", "µ": r"\mu"},
}
SPECIAL = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{c: f"\\{c}" for c in "&%$#_{}"},
    **{c: f"${word}$" for c, word in SYMBOLS.items()},
    words.MINUS: "$-$",
    words.UNDEFINED: "--",
    "±": r"$\pm$",
    "\n": " ",
}


def latex(records: Sequence[Record], asked: Sequence[Asked] = (), names: Sequence[str] = ()) -> str:
    """A booktabs tabular; winners are bold, ties carry a superscript, arenas are set apart by rules.

    `asked` says which seeds there should be, `names` are labels of the records' own.
    """
    found = table.arenas_of(records, names, asked)
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{lll{'r' * (len(COLUMNS) + 1)}}}",
        r"\toprule",
        " & ".join(HEADINGS) + r" \\",
    ]
    for arena in found:
        stream = escape(words.described(words.told(arena[0], "stream")))
        lines += [r"\midrule", _across(rf"\emph{{{stream}}}")]
        for row in table.rows(arena, COLUMNS):
            left = map(escape, (row.group.label, row.group.scenario, words.label_given(row.group), row.seeds))
            lines.append(" & ".join([*left, *map(_cell, row.cells.values())]) + r" \\")
    notes = table.lacking([g for arena in found for g in arena], asked)
    lines += [r"\midrule", *(_across(escape(note)) for note in notes)] if notes else []
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def reproduced(reproduction: Reproduction) -> str:
    """A booktabs tabular of a paper's numbers beside ours; what none has is left out, as on the page."""
    found = rows(reproduction)
    columns = {
        "Published": [row.published for row in found],
        "Archive": [row.archive for row in found],
        "Measured": [f"{row.measured} {row.half}".rstrip() for row in found],
        "Authors' way": [row.theirs for row in found],
        "Within": [f"{row.verdict} ({row.judged})" if row.verdict != words.UNDEFINED else "" for row in found],
    }
    shown = {name: cells for name, cells in columns.items() if {*cells} - {"", words.UNDEFINED} or name == "Measured"}
    lines = [
        r"% \usepackage{booktabs}",
        rf"\begin{{tabular}}{{llll{'r' * len(shown)}}}",
        r"\toprule",
        " & ".join(["Row", "Column", "Metric", "Scenario", *shown]) + r" \\",
    ]
    above = None
    for i, row in enumerate(found):
        lines += [r"\midrule"] if row.row != above else []
        where = f"{row.column} [{row.setting}]" if row.setting else row.column
        cells = ["" if row.row == above else row.row, where, row.metric, row.scenario, *(c[i] for c in shown.values())]
        lines.append(" & ".join(map(escape, cells)) + r" \\")
        above = row.row
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
