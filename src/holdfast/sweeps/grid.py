"""Grids: a table of settings, some of which are lists of values to try, becomes the ingredients it describes."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput, guarded
from holdfast.methods import Learner, methods
from holdfast.nets import NetSpec, nets
from holdfast.protocols import Protocol, name_of, protocols
from holdfast.settings import Shelf, choose, defaults, expected, faults_in, fit, fits, hints, settings_of
from holdfast.streams import BESIDES, StreamSpec, streams
from holdfast.sweeps import own
from holdfast.types import Stream

SHELVES: dict[str, Shelf[Any]] = {"method": methods, "stream": streams, "net": nets, "protocol": protocols}
USUAL = {"method": "finetune", "stream": "split", "net": "mlp", "protocol": "online"}
OURS = (Learner, StreamSpec, NetSpec, Protocol)  # what is made from settings
LARGEST = 10_000  # cells of one sweep


@dataclass(frozen=True)
class Axis:
    """Values to try, whatever the type of the setting."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Ingredient:
    """One method, stream, net or protocol, by its name or as it is, with a single value for each setting given."""

    role: str
    name: str
    thing: Any  # a class that takes the settings, or what is ready to use
    values: Mapping[str, Any]
    key: str  # where it was asked for, e.g. method[1]
    folder: Path = Path()  # where a user's own files are

    @property
    def kinds(self) -> dict[str, Any]:
        return kinds_of(self.role, self.thing)

    @property
    def ready(self) -> bool:
        """Whether it is used as it is; a user's network class is, for it takes no settings."""
        return not (isinstance(self.thing, type) and issubclass(self.thing, OURS))

    @property
    def owner(self) -> str:
        return f"{self.role} {self.name!r}"

    def value(self, setting: str) -> Any:
        """What this setting will be, also where it is left to its default."""
        if setting in self.values:
            return fit(self.kinds[setting], self.values[setting])
        if self.role == "stream" and setting in BESIDES:
            return self.thing.usual_data if setting == "data" else None  # its seed is the run's unless it is given
        return settings_of(self.thing)[setting] if self.ready else defaults(self.thing).get(setting)

    def made(self) -> Any:
        """The learner, net or protocol; a stream's recipe."""
        besides = BESIDES if self.role == "stream" else {}
        values = {name: value for name, value in self.values.items() if name not in besides}
        if not self.ready:
            return own.made(self.thing, values, self.owner)
        if not values:
            return self.thing
        with guarded(self.owner):
            made = replace(self.thing, **{name: fit(self.kinds[name], value) for name, value in values.items()})
        choose(made, {**vars(self.thing).get("_chosen_by", {}), **dict.fromkeys(values, "given")})
        return made


def kinds_of(role: str, thing: Any) -> dict[str, Any]:
    """The settings of a class or of a thing, and their types; a stream's data set and seed are among them."""
    if isinstance(thing, Stream):
        return {"seed": BESIDES["seed"]}
    cls = thing if isinstance(thing, type) else type(thing)
    if not dataclasses.is_dataclass(cls) or not issubclass(cls, OURS):
        return {}
    return {**(BESIDES if role == "stream" else {}), **hints(cls)}


def ingredients(role: str, entry: Any, key: str, folder: Path, faults: list[str]) -> list[Ingredient]:
    """All ingredients of one entry: a name, a table with a name, or a thing; adds to the faults."""
    table = dict(entry) if isinstance(entry, Mapping) else {"name": entry}
    if role == "method" and "name" not in table:
        faults.append(f'{key}.name: a method must be named, e.g. name = "ewc"; see `holdfast list methods`')
        return []
    names = table.pop("name", USUAL[role])
    found = []
    for name in _values(names, lambda value: not isinstance(value, list)):
        named = _find(role, name, f"{key}.name" if isinstance(entry, Mapping) else key, folder, faults)
        if named is not None:
            found += list(_spread(Ingredient(role, *named, {}, key, folder), table, faults))
    if not found and not faults:
        faults.append(f"{key}.name: is an empty list; give at least one value")
    return found


def values_of(ingredient: Ingredient, setting: str, given: Any) -> list[Any]:
    """The values to try. A list is one value where the setting takes it as it stands, as net.hidden does."""
    return _values(given, lambda value: fits(ingredient.kinds.get(setting, Any), value))


def wrong(ingredient: Ingredient, setting: str, value: Any, key: str) -> list[str]:
    """Why a setting cannot have this value."""
    if ingredient.role == "stream" and setting in BESIDES and setting in ingredient.kinds:
        kind = "a data set's name, a path or a table of them" if setting == "data" else expected(BESIDES[setting])
        if not fits(BESIDES[setting], value):
            return [f"{key}: {setting} of {ingredient.owner} must be {kind}, not {value!r}"]
        try:
            if setting == "data":
                source_of(value, ingredient.folder)
        except BadInput as error:
            return [f"{key}: {fault}" for fault in error.faults]
        return []
    if not ingredient.kinds or isinstance(ingredient.thing, Stream):
        but = " but its seed" if ingredient.kinds else ""
        return [f"{key}: unknown setting {setting!r}: {ingredient.owner} has no settings here{but}"]
    cls = ingredient.thing if isinstance(ingredient.thing, type) else type(ingredient.thing)
    besides = BESIDES if ingredient.role == "stream" else {}
    return [f"{key}: {fault}" for fault in faults_in(cls, {setting: value}, ingredient.owner, besides)]


def source_of(value: Any, folder: Path) -> Any:
    """What a stream is cut from, as a sweep says it; None where it does not."""
    return None if value is None else own.source({"name": value} if isinstance(value, str) else value, folder)


def _values(given: Any, is_one: Callable[[Any], bool]) -> list[Any]:
    if isinstance(given, Axis):
        return list(given.values)
    return given if isinstance(given, list) and not is_one(given) else [given]


def _spread(ingredient: Ingredient, table: Mapping[str, Any], faults: list[str]) -> Iterator[Ingredient]:
    axes: dict[str, list[Any]] = {}
    before = len(faults)
    for setting, given in table.items():
        key = f"{ingredient.key}.{setting}"
        axes[setting] = values_of(ingredient, setting, given)
        if not axes[setting]:
            faults.append(f"{key}: is an empty list; give at least one value")
        faults += [fault for value in axes[setting] for fault in wrong(ingredient, setting, value, key)]
    needed = [] if ingredient.ready else own.needed(ingredient.thing)
    faults += [
        f"{ingredient.key}.{name}: {ingredient.owner} needs a value for it" for name in needed if name not in table
    ]
    if len(faults) > before:
        return
    if math.prod(map(len, axes.values())) > LARGEST:
        faults.append(
            f"{ingredient.key}: its grid has {math.prod(map(len, axes.values()))} points, at most {LARGEST} can be"
        )
        return
    for values in itertools.product(*axes.values()):
        yield replace(ingredient, values=dict(zip(axes, values, strict=True)))


def _find(role: str, name: Any, key: str, folder: Path, faults: list[str]) -> tuple[str, Any] | None:
    """The name of a thing, and the thing or its class."""
    if isinstance(name, str):
        try:
            word = str(folder / Path(name).expanduser()) if own.is_own(name) else name
            return (name, own.net(word)) if role == "net" and own.is_own(name) else own.find(SHELVES[role], word)
        except BadInput as error:
            faults += [f"{key}: {fault}" for fault in error.faults]
            return None
    if role == "net" and (isinstance(name, NetSpec) or callable(name)):
        return str(getattr(name, "name", None) or getattr(name, "__name__", type(name).__name__.lower())), name
    if role == "stream" and isinstance(name, Stream):
        return name.name, name
    try:
        if isinstance(name, type):
            return name.__name__, own.whole(SHELVES[role], name, name.__name__)
        if isinstance(name, SHELVES[role].base):
            return name_of(name), own.fitting(name, f"{role} {name_of(name)!r}")
    except BadInput as error:
        faults += [f"{key}: {fault}" for fault in error.faults]
        return None
    faults.append(f"{key}: must be the name of a {role}, not {name!r}; see `holdfast list {role}s`")
    return None
