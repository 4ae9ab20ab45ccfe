"""A cell as the command that runs it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.data import Source
from holdfast.methods import methods
from holdfast.nets import NetSpec, nets
from holdfast.protocols import protocols
from holdfast.settings import Shelf, defaults, provenance, settings_of
from holdfast.streams import streams
from holdfast.sweeps import own
from holdfast.sweeps.cell import Cell, NetLike, has_open_shape
from holdfast.sweeps.on_node import Recipe, recipe

USUAL = {"stream": "split", "net": "mlp", "protocol": "online"}  # of `holdfast run`, where nothing is said
SHAPE = ("layers", "sizes", "mix_sizes")  # of a protocol that chooses the shape of networks which leave it open


def command(cell: Cell) -> str | None:
    """`holdfast run er --tasks 2 …`, which leaves the cell's model; None where a part of it has no name outside Python.

    >>> import holdfast as hf
    >>> cell = Cell(hf.method("er", memories=50), hf.stream("split", tasks=2), hf.net("mlp"), hf.protocol("online"), 0)
    >>> command(cell)
    'holdfast run er --set er.memories=50 --tasks 2 --keep-model'
    """
    made = recipe(cell.stream)
    method = _word(methods, cell.method)
    if not isinstance(made, Recipe) or method is None:
        return None
    named = {"stream": _word(streams, made.spec), "net": _net(cell.net), "protocol": _word(protocols, cell.protocol)}
    data = _data(made.given)
    if data is None or None in named.values():
        return None
    words = ["holdfast", "run", method, *_set(method.rpartition(":")[2], _told(cell.method))]
    words += [word for name, said in data.items() for word in (f"--{name}", said)]
    words += [w for role, name in named.items() if name not in (None, USUAL[role]) for w in (f"--{role}", str(name))]
    cut = _told(made.spec) | ({"seed": made.seed} if made.fixed else {})
    words += [w for name in ("tasks", "scenario") if name in cut for w in (f"--{name}", _text(cut.pop(name)))]
    words += _set("stream", cut)
    words += _set("net", _told(cell.net) if isinstance(cell.net, NetSpec) else {})
    open_shape = has_open_shape(cell.net)
    way = _told(cell.protocol)
    words += _set("protocol", {name: value for name, value in way.items() if open_shape or name not in SHAPE})
    besides = {"seeds": (cell.seed, 0), "device": (cell.device, "auto"), "threads": (cell.threads, 1)}
    words += [w for name, (value, usual) in besides.items() if value != usual for w in (f"--{name}", str(value))]
    return shlex.join([*words, "--keep-model"])


def _word(shelf: Shelf[Any], thing: Any) -> str | None:
    """The name of one of ours, or `path/to/file.py:Name`."""
    name = type(thing).__module__.rpartition(".")[2]
    if name in shelf.names() and shelf.find(name) is type(thing):
        return name
    return own.word_of(type(thing))


def _net(net: NetLike) -> str | None:
    return _word(nets, net) if isinstance(net, NetSpec) else own.word_of(net)


def _data(given: Any) -> dict[str, str] | None:
    """What is said of the data: nothing where they are the stream's usual ones, None where they have no name."""
    source = given if isinstance(given, Source) else Source(given)
    if source.data is None:
        return {}
    name, test = _place(source.data), None if source.test is None else _place(source.test)
    features = None if source.features is None else own.word_of(source.features)
    if name is None or (source.test is not None and test is None) or (source.features is not None and features is None):
        return None
    columns = ",".join(f"{column}={kind}" for column, kind in source.kinds.items())
    said = {"data": name, "label": source.label, "test": test, "columns": columns, "features": features}
    return {word: text for word, text in said.items() if text}


def _place(given: Any) -> str | None:
    """A name or a path as it was written."""
    if isinstance(given, list | tuple) and all(isinstance(one, str) for one in given):
        return ",".join(given)
    return str(given) if isinstance(given, str | Path) else None


def _told(thing: Any) -> dict[str, Any]:
    """The settings that are not the usual ones, or that somebody gave."""
    usual, given = defaults(type(thing)), provenance(thing)
    unset = object()
    return {
        name: value
        for name, value in settings_of(thing).items()
        if value != usual.get(name, unset) or given[name]["chosen_by"] == "given"
    }


def _set(owner: str, settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings.items():
        yield from ("--set", f"{owner}.{name}={_text(value)}")


def _text(value: Any) -> str:
    """A value as `--set` takes it."""
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)
