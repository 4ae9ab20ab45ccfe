"""Docstrings as Markdown: indented lines are code as they stand, examples are fenced, and nothing else is markup."""

from __future__ import annotations

import re
from collections.abc import Iterable


def markdown(text: str) -> str:
    """`text` as `inspect.getdoc` gives it.

    >>> print(markdown("θ*_k and `w_i`:\\n\\n    a*b*c\\n\\n>>> 1 + 1\\n2"))
    θ\\*\\_k and `w_i`:
    <BLANKLINE>
        a*b*c
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    """
    return "\n\n".join(_paragraph(each) for each in text.split("\n\n"))


def _paragraph(text: str) -> str:
    if text.startswith(">>>"):
        return f"```pycon\n{text}\n```"
    return "\n".join(line if line.startswith("    ") else plain(line) for line in text.splitlines())


def plain(text: str) -> str:
    """Words that are no markup, but for what stands between backticks."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*_<\[|])", r"\\\1", part) for part in parts)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
