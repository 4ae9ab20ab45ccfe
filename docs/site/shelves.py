"""A page for each method, stream, protocol and network: its docstring and fields, and what is written by hand."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import published
from docstrings import markdown, plain, table

from holdfast.commands.list import described, shelf_of
from holdfast.commands.list import plain as typed
from holdfast.settings import Shelf

KINDS = {"methods": "Methods", "streams": "Streams", "protocols": "Protocols", "nets": "Networks"}


def pages(docs: Path) -> dict[str, str]:
    """All of them, and an index for each kind, by place in the site; `docs` is where the written parts are."""
    made = {}
    kept = published.kept(docs)
    for kind, title in KINDS.items():
        shelf = shelf_of(kind)
        index = docs / kind / "index.md"
        made[f"{kind}/index.md"] = _index(index.read_text() if index.is_file() else f"# {title}\n", shelf)
        for name in shelf.names():
            path = docs / kind / f"{name}.md"
            written = path.read_text() if path.is_file() else f"# {name}\n"
            made[f"{kind}/{name}.md"] = page(kind, shelf, name, written, kept)
    return made


def page(kind: str, shelf: Shelf[Any], name: str, written: str, kept: list[published.Kept]) -> str:
    """The docstring and the settings go below the title of what is written, measured numbers to its end."""
    title, _, rest = written.partition("\n")
    rows, rest = published.rows_named(rest)
    numbers = published.section(rows, kept)
    return "\n\n".join(part for part in (title, *_facts(kind, shelf, name), rest.strip(), numbers) if part) + "\n"


def _index(written: str, shelf: Shelf[Any]) -> str:
    title, _, rest = written.partition("\n")
    rows = [[f"[`{name}`]({name}.md)", plain(shelf.summary(name))] for name in shelf.names()]
    return f"{title}\n\n{table(['', ''], rows)}\n{rest}"


def _facts(kind: str, shelf: Shelf[Any], name: str) -> list[str]:
    entry = described(shelf, name)
    said = [each for each in entry["about"].split("\n\n") if not each.startswith("Departure")]  # they have a section
    _, _, example = (inspect.getdoc(shelf.find(name)) or "").partition("\n>>> ")
    rows = [
        [f"`{s['name']}`", f"`{typed(s['default'])}`", plain(s["expected"]), plain(s["about"])]
        for s in entry["settings"]
    ]
    parts = [markdown("\n\n".join(said))]
    parts += ["## Settings", table(["setting", "default", "expected", ""], rows)] if rows else []
    parts += ["## Example", f"```pycon\n>>> {example.strip()}\n```"] if example else []
    return parts
