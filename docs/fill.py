"""Write the numbers of docs/results/ into pages and README: python docs/fill.py, or make pages; --check only looks.

A page says what it shows, and what is shown is written between two comments:

    <!-- numbers gem/table3 metrics=acc;bwt columns="1 epoch;5 epochs" -->
    <!-- end -->

`rows`, `columns` and `metrics`: which of the table's, in this order; all that were measured, unless named.
`across=metrics`: what lies across the page, if not the table's columns. `notes gem/table3` says what differs from the
paper; `index` counts what was run of every paper, `index gem` of every table of one. The files are those of
`holdfast reproduce ID --keep docs/results`.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from functools import cache
from pathlib import Path

from holdfast import papers
from holdfast.commands import results
from holdfast.errors import BadInput, unknown
from tables import AXES, Asked, index, notes, numbers

HERE = Path(__file__).parent
MARKED = re.compile(r"(<!-- (numbers|notes|index)\b([^\n]*?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
OPENED = re.compile(r"^<!-- (?:numbers|notes|index)\b", re.MULTILINE)


def main(words: list[str] | None = None) -> int:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("docs", nargs="?", type=Path, default=HERE, help="the folder of the pages and of results/")
    ask.add_argument("--check", action="store_true", help="write nothing; exit 1 where a page is out of date")
    given = ask.parse_args(words)
    try:
        stale = out_of_date(given.docs)
    except BadInput as error:
        print(*error.faults, sep="\n", file=sys.stderr)
        return 2
    for page, text in stale.items():
        print(f"{page} {'is out of date' if given.check else 'is written anew'}")
        if not given.check:
            page.write_text(text)
    return 1 if given.check and stale else 0


def out_of_date(docs: Path) -> dict[Path, str]:
    """The pages that say something else than the result files, and what they should say."""
    readme = [page for page in [docs.parent / "README.md"] if page.is_file()]
    pages = {page: page.read_text() for page in [*sorted(docs.rglob("*.md")), *readme]}
    filled = {page: filled_in(text, docs, page) for page, text in pages.items()}
    return {page: text for page, text in filled.items() if text != pages[page]}


def filled_in(text: str, docs: Path, page: Path) -> str:
    if len(OPENED.findall(text)) != len(MARKED.findall(text)):
        raise BadInput(f"{page} has a place for numbers without <!-- end -->")
    return MARKED.sub(lambda found: f"{found[1]}\n{_shown(found[2], found[3], docs, page)}\n{found[5]}", text)


def _shown(kind: str, words: str, docs: Path, page: Path) -> str:
    folder = docs / "results"
    id, *options = shlex.split(words) or [""]
    items = _items()
    if kind == "index":
        known = {item.id.partition("/")[0] for item in items}
        if id and id not in known:
            raise BadInput(unknown("paper", id, known, f" in {page}"))
        home = Path(os.path.relpath(docs / "papers", page.parent)).as_posix()
        return index([item for item in items if item.id.startswith(id)], folder, home)
    if id not in (known := {item.id for item in items}):
        raise BadInput(unknown("table or figure", id, known, f" in {page}"))
    kept = results.read(results.place(folder, id))
    return notes(kept) if kind == "notes" else numbers(kept, _asked(options, f" of {id} in {page}"))


@cache
def _items() -> list[papers.Item]:
    return papers.contents()


def _asked(options: list[str], where: str) -> Asked:
    given = dict(option.partition("=")[::2] for option in options)
    across = given.pop("across", "columns")
    wrong = [unknown("option", name, (*AXES, "across"), where) for name in given if name not in AXES]
    wrong += [unknown("value of across", across, AXES, where)] if across not in AXES else []
    if wrong:
        raise BadInput(*wrong)
    return Asked({axis: names.split(";") for axis, names in given.items()}, across)


if __name__ == "__main__":
    sys.exit(main())
