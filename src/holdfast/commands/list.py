"""What `holdfast list` does."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from holdfast.commands.terminal import print_json, print_table
from holdfast.errors import BadInput, unknown

if TYPE_CHECKING:
    from holdfast.data import StatusRow
    from holdfast.settings import Shelf

KINDS = ("methods", "streams", "nets", "protocols", "data")


def list_things(kind: str | None, name: str | None, in_full: bool, as_json: bool) -> None:
    """The things of one kind or of all, by name with a line each, or with their settings."""
    if kind is not None and kind not in KINDS:
        raise BadInput(unknown("kind", kind, KINDS))
    kinds = KINDS if kind is None else (kind,)
    found = {each: _data(name) if each == "data" else _entries(each, name) for each in kinds}
    if as_json:
        print_json(found if kind is None else found[kind])
        return
    for i, (each, entries) in enumerate(found.items()):
        if i:
            print()
        if kind is None:
            print(f"{each}:")
        if in_full:
            _print_in_full(entries)
        else:
            print_table(None, [[entry["name"], entry["summary"]] for entry in entries])
    if kind is not None and kind != "data" and not in_full:
        print(f"\nsettings of one: holdfast list {kind} NAME")


def shelf_of(kind: str) -> Shelf[Any]:
    """Where the things of this kind stand."""
    from holdfast.methods import methods
    from holdfast.nets import nets
    from holdfast.protocols import protocols
    from holdfast.streams import streams

    shelves: dict[str, Shelf[Any]] = {"methods": methods, "streams": streams, "nets": nets, "protocols": protocols}
    return shelves[kind]


def _entries(kind: str, name: str | None) -> list[dict[str, Any]]:
    shelf = shelf_of(kind)
    return [described(shelf, each) for each in (shelf.names() if name is None else [name])]


def described(shelf: Shelf[Any], name: str) -> dict[str, Any]:
    """A thing by its docstring and its fields."""
    from holdfast.settings import comments, defaults, expected, hints
    from holdfast.sweeps import own

    if shelf.word == "net" and own.is_own(name):
        raise BadInput(f"{name} is a net of your own, which has no settings; it goes to --net as it is")
    cls = own.find(shelf, name)[1]
    usual, notes = defaults(cls), comments(cls)
    return {
        "name": name,
        "summary": (inspect.getdoc(cls) or "").split("\n")[0],
        "about": (inspect.getdoc(cls) or "").split("\n>>>")[0].strip(),
        "settings": [
            {"name": field, "default": usual.get(field, "needed"), "expected": expected(kind), "about": notes[field]}
            for field, kind in hints(cls).items()
        ],
    }


def _data(name: str | None) -> list[dict[str, Any]]:
    from holdfast import data

    found = []
    for row in data.status() if name is None else [data.status_of(name)]:
        entry = data.ON_DISK.get(row.name)
        there = "not here" if not row.present else "cannot be read" if row.train is None else f"here: {_rows(row)}"
        if row.embedded:
            summary, about = f"{there}, embedded", f"{there}, embedded: nothing to download"
        elif entry is None:
            summary = about = f"{there}; a folder of yours ({row.note})"
        else:
            published = f"{entry.rows[0]} and {entry.rows[1]} published" if entry.rows else "images"
            shape = "×".join(map(str, entry.shape))
            summary = f"{there}; {published}, {shape}, {entry.labels} classes"
            about = f"{summary}\n{entry.source}\nlicence: {entry.licence}"
            about += f"\nby hand: {entry.by_hand}" if entry.by_hand else ""
        found.append({"name": row.name, "summary": summary, "about": about, "settings": []})
    return found


def _rows(row: StatusRow) -> str:
    return f"{row.train} train and {row.test} test rows"


def _print_in_full(entries: list[dict[str, Any]]) -> None:
    for i, entry in enumerate(entries):
        if i:
            print()
        print(f"{entry['name']}: {entry['about']}")
        rows = [[s["name"], plain(s["default"]), s["expected"], s["about"]] for s in entry["settings"]]
        if rows:
            print()
            print_table(["setting", "default", "expected", ""], rows)


def plain(value: Any) -> str:
    """A default as it would be typed."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(map(plain, value)) if isinstance(value, tuple) else str(value)
