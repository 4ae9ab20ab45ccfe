"""Options that several commands have, each with one meaning."""

from __future__ import annotations

from typing import Annotated

from typer import Option

Label = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Where a table has its labels.  [default: label, target, y, class or the last]"),
]
Columns = Annotated[
    str | None,
    Option(
        metavar="COLUMN=KIND,...",
        help="What columns of a table are, where it is to be said: number, category, skip.",
    ),
]
Features = Annotated[
    str | None,
    Option(metavar="FILE.py:NAME", help="A frozen network of yours, from raw rows to vectors; computed once."),
]
Test = Annotated[
    str | None, Option(metavar="PATH", help="Test rows of the same kind.  [default: a fifth of each class]")
]
Fresh = Annotated[bool, Option("--fresh", help="Throw away what DIR holds and start over.")]
Quiet = Annotated[bool, Option("--quiet", help="Print nothing but errors.")]
