"""Settings are dataclass fields: their names, types, ranges and comments serve Python, the command line and the docs.

A method, net, stream or protocol is a dataclass in a file of its own name; `Shelf` finds it there. Ranges are
written as types, e.g. `strength: NonNegative = 10.0  # λ`.
"""

from __future__ import annotations

import copy
import dataclasses
import importlib
import inspect
import math
import pkgutil
import re
import types as pytypes
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Generic, Literal, TypeVar, Union, get_args, get_origin, get_type_hints
from weakref import WeakKeyDictionary

from holdfast.errors import BadInput, unknown

T = TypeVar("T")

FIXED = ("given", "default")  # who chooses before anything is run; what others choose may differ between seeds


@dataclass(frozen=True)
class Range:
    """An interval a number must lie in; `strict` leaves out the lower end, `below` the upper."""

    low: float
    high: float = math.inf
    strict: bool = False
    below: bool = False

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.strict else value >= self.low
        under = value < self.high if self.below else value <= self.high
        return above and under and math.isfinite(value)

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"{'>' if self.strict else '>='} {self.low:g}"
        return f"{'above' if self.strict else 'from'} {self.low:g} to {'below ' if self.below else ''}{self.high:g}"


Count = Annotated[int, Range(1)]
Whole = Annotated[int, Range(0)]
Threads = Annotated[int, Range(1, 256)]  # of a process; many more end in a crash of the library that starts them
Positive = Annotated[float, Range(0, strict=True)]
NonNegative = Annotated[float, Range(0)]
Fraction = Annotated[float, Range(0, 1)]
BelowOne = Annotated[float, Range(0, 1, below=True)]  # of something that must not vanish


class _Unfit(Exception):
    """A value does not fit its type; carries only what was expected."""


def expected(kind: Any) -> str:
    """The words for a type: 'a whole number >= 1', 'one of a, b'."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return f"{expected(args[0])} {args[1]}"
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin in (Union, pytypes.UnionType):
        return " or ".join("none" if a is type(None) else expected(a) for a in args)
    if origin is tuple:
        return f"{expected(args[0])}, or several separated by commas"
    return {int: "a whole number", float: "a number", bool: "true or false", str: "a word", dict: "a table"}.get(
        kind, str(kind)
    )


def fit(kind: Any, value: Any) -> Any:
    """`value`, from Python or as text from a command line, as a value of type `kind`."""
    origin, args = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin is Annotated:
        number = fit(args[0], value)
        if number not in args[1]:
            raise _Unfit
        return number
    if origin is Literal:
        for choice in args:
            if value == choice or value == str(choice):
                return choice
        raise _Unfit
    if origin in (Union, pytypes.UnionType):
        if type(None) in args and (value is None or (isinstance(value, str) and value.lower() == "none")):
            return None
        for arm in args:
            try:
                return fit(arm, value)
            except _Unfit:
                continue
        raise _Unfit
    if origin is tuple:
        items = value.split(",") if isinstance(value, str) else value
        items = items if isinstance(items, list | tuple | range) else [items]
        return tuple(fit(args[0], item.strip() if isinstance(item, str) else item) for item in items)
    if kind is bool:
        if isinstance(value, str) and value.lower() in ("true", "false", "yes", "no", "1", "0"):
            return value.lower() in ("true", "yes", "1")
        if isinstance(value, bool):
            return value
        raise _Unfit
    if kind in (int, float):
        if isinstance(value, bool):
            raise _Unfit
        try:
            number = kind(value) if isinstance(value, str) else value
            if kind(number) != number or not math.isfinite(number) or (kind is int and abs(number) >= 2**63):
                raise _Unfit
            return kind(number)
        except (ValueError, TypeError, OverflowError) as error:
            raise _Unfit from error
    if kind in (str, dict) and isinstance(value, kind):
        return value
    raise _Unfit


def fits(kind: Any, value: Any) -> bool:
    """Whether `fit` takes the value."""
    try:
        fit(kind, value)
    except _Unfit:
        return False
    return True


def _is_setting(kind: Any) -> bool:
    """Whether values of this type can be given as text, compared and written down."""
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _is_setting(args[0])
    if origin in (Union, pytypes.UnionType):
        return all(_is_setting(arm) for arm in args)
    if origin is tuple:
        return len(args) == 2 and args[1] is Ellipsis and _is_setting(args[0])
    return origin is Literal or kind in (int, float, bool, str, type(None), Any)


def _type_word(kind: Any) -> str:
    return kind.__name__ if isinstance(kind, type) and not get_args(kind) else str(kind).replace("typing.", "")


_HINTS: WeakKeyDictionary[type, Mapping[str, Any]] = WeakKeyDictionary()  # evaluating annotations takes milliseconds


def hints(cls: type) -> Mapping[str, Any]:
    """The settings of a dataclass: its constructor's fields and their types."""
    if not dataclasses.is_dataclass(cls):
        return {}
    if cls not in _HINTS:
        kinds = get_type_hints(cls, include_extras=True)
        _HINTS[cls] = MappingProxyType({f.name: kinds[f.name] for f in dataclasses.fields(cls) if f.init})
    return _HINTS[cls]


def undecorated(cls: type, base: type) -> list[str]:
    """Fields with a value, of a class below `base` that is no dataclass: they look like settings, and are none."""
    found = []
    for each in cls.__mro__[: cls.__mro__.index(base)]:
        if "__dataclass_fields__" not in vars(each):
            said = inspect.get_annotations(each)
            found += [name for name in said if name in vars(each) and "ClassVar" not in str(said[name])]
    return found


def untyped(cls: type, name: str, owner: str) -> str | None:
    """The sentence for what looks like a field and has no type; None for all else."""
    value = vars(cls).get(name)
    if name.startswith("_") or not isinstance(value, bool | int | float | str):
        return None
    kind = type(value).__name__
    return f"{name} of {owner} has no type, so it is no setting; write `{name}: {kind} = {value!r}`"


def defaults(cls: type) -> dict[str, Any]:
    """The default of every setting that has one."""
    found = {}
    for f in dataclasses.fields(cls) if dataclasses.is_dataclass(cls) else ():
        if f.init and f.default is not dataclasses.MISSING:
            found[f.name] = f.default
        elif f.init and f.default_factory is not dataclasses.MISSING:
            found[f.name] = f.default_factory()
    return found


def comments(cls: type) -> dict[str, str]:
    """The comment behind each field, its help text: `strength: float = 10.0  # λ`."""
    found: dict[str, str] = {}
    for base in reversed(cls.__mro__[:-1]):
        try:
            source = inspect.getsource(base)
        except (OSError, TypeError):
            continue
        found |= dict(re.findall(r"^    (\w+): [^#\n]*#\s*(.+)$", source, re.MULTILINE))
    return {name: found.get(name, "") for name in hints(cls)}


def faults_in(
    cls: type, values: Mapping[str, Any], owner: str, besides: Mapping[str, Any] = MappingProxyType({})
) -> list[str]:
    """Every fault of these settings, as sentences; `besides`: what can be set that is no field, and its type."""
    fields = hints(cls)
    found = [
        f"{name} of {owner} is declared as {_type_word(kind)}, which no setting can be; write a number, bool, str, "
        "Literal[...] or tuple[..., ...]"
        for name, kind in fields.items()
        if not _is_setting(kind)
    ]
    kinds = {**besides, **{name: kind for name, kind in fields.items() if _is_setting(kind)}}
    for name, value in values.items():
        if name in fields and name not in kinds:
            continue
        if name not in kinds:
            plain = untyped(cls, name, owner)
            nearest = unknown("setting", name, kinds, f" of {owner}") if kinds else ""
            found.append(plain or nearest or f"unknown setting {name!r}: {owner} has no settings")
            continue
        if not fits(kinds[name], value):
            found.append(f"{name} of {owner} must be {expected(kinds[name])}, not {value!r}")
    return found


def make(cls: type[T], values: Mapping[str, Any], owner: str) -> T:
    """Build a dataclass from settings; what was given is remembered as given."""
    faults = faults_in(cls, values, owner)
    if faults:
        raise BadInput(*faults)
    kinds = hints(cls)
    made = cls(**{name: fit(kinds[name], value) for name, value in values.items()})
    choose(made, dict.fromkeys(values, "given"))
    return made


def choose(spec: Any, chosen_by: Mapping[str, str]) -> None:
    """Note who chose these settings of `spec`, and from what."""
    object.__setattr__(spec, "_chosen_by", {**vars(spec).get("_chosen_by", {}), **chosen_by})


def changed(spec: T, values: Mapping[str, Any], chosen_by: str, owner: str) -> T:
    """A copy of `spec` with other settings, and a note who chose them."""
    faults = faults_in(type(spec), values, owner)
    if faults:
        raise BadInput(*faults)
    made, kinds = copy.copy(spec), hints(type(spec))
    for name, value in values.items():
        object.__setattr__(made, name, fit(kinds[name], value))
    choose(made, dict.fromkeys(values, chosen_by))
    return made


def settings_of(spec: Any) -> dict[str, Any]:
    """The settings of an instance as plain values."""
    found = dataclasses.fields(spec) if dataclasses.is_dataclass(spec) else ()
    return {f.name: getattr(spec, f.name) for f in found if f.init}


def provenance(spec: Any) -> dict[str, dict[str, Any]]:
    """Each setting with its value and who chose it: given, default, val:task, ..."""
    noted, usual = vars(spec).get("_chosen_by", {}), defaults(type(spec))
    unset = object()
    return {
        name: {"value": value, "chosen_by": noted.get(name, "default" if value == usual.get(name, unset) else "given")}
        for name, value in settings_of(spec).items()
    }


class Shelf(Generic[T]):
    """The things of one room, each a `base` subclass in a file of its own name; other files begin with _."""

    def __init__(self, package: str, base: type[T], word: str) -> None:
        self.package, self.base, self.word = package, base, word
        self._found: dict[str, type[T]] = {}

    def names(self) -> list[str]:
        path = importlib.import_module(self.package).__path__
        return sorted(m.name for m in pkgutil.iter_modules(path) if m.name[0] != "_")

    def find(self, name: str) -> type[T]:
        if name in self._found:
            return self._found[name]
        if name not in (names := self.names()):
            raise BadInput(unknown(self.word, name, names))
        module = importlib.import_module(f"{self.package}.{name}")
        (cls,) = (
            c
            for c in vars(module).values()
            if isinstance(c, type)
            and issubclass(c, self.base)
            and c.__module__ == module.__name__
            and not inspect.isabstract(c)
            and getattr(c, "__final__", False)
        )
        self._found[name] = cls
        return cls

    def make(self, name: str, values: Mapping[str, Any]) -> T:
        return make(self.find(name), values, f"{self.word} {name!r}")

    def summary(self, name: str) -> str:
        """The first line of its docstring."""
        return (inspect.getdoc(self.find(name)) or "").split("\n")[0]
