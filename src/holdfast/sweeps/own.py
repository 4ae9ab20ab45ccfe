"""A user's own method, network, stream or protocol: a class, or one from a file of theirs, `path/to/file.py:Name`."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from torch import nn

from holdfast.data import Features, Source, kinds_of, path_of, words_of
from holdfast.errors import BadInput, guarded, said_of, unknown
from holdfast.settings import Shelf, defaults, faults_in, hints, make, settings_of, undecorated
from holdfast.streams import BESIDES
from holdfast.types import StreamInfo

T = TypeVar("T")
_OWN = "own_"  # begins the names of modules that are a user's files

NOT_FROZEN = "cannot inherit non-frozen dataclass from a frozen one"  # in the words of dataclasses


def is_own(word: str) -> bool:
    """Whether a word names something in a file rather than something of ours."""
    return word.endswith(".py") or ".py:" in word


def find(shelf: Shelf[T], word: str) -> tuple[str, type[T]]:
    """The name and class of what is on a shelf of ours, or in a file of a user's."""
    if not is_own(word):
        if ":" in word:
            raise BadInput(f"{shelf.word} {word!r} names no file; your own code is named as path/to/file.py:Name")
        return word, shelf.find(word)
    file, name, module = _module(word)
    known = _defined(module, lambda thing: isinstance(thing, type) and issubclass(thing, shelf.base))
    cls = whole(shelf, _named(file, name, module, known, shelf.base.__name__), f"{name} of {file}")
    return cls.__name__, cls


def whole(shelf: Shelf[T], thing: Any, what: str) -> type[T]:
    """A user's class, which can do all that those on the shelf can."""
    base = shelf.base.__name__
    if not isinstance(thing, type) or not issubclass(thing, shelf.base):
        raise BadInput(f"{what} is not a {base}; write `class {what.partition(' ')[0]}(holdfast.{base})`")
    if inspect.isabstract(thing):
        lacks = ", ".join(sorted(vars(thing)["__abstractmethods__"]))
        raise BadInput(f"{what} is not a whole {base}: it does not define {lacks}")
    if forgotten := undecorated(thing, shelf.base):
        how = "@dataclass" if shelf.word == "method" else "@dataclass(frozen=True)"
        raise BadInput(f"{what} has fields ({', '.join(forgotten)}) and is no dataclass; write {how} above the class")
    taken = sorted(hints(thing).keys() & BESIDES) if shelf.word == "stream" else []
    if taken:
        raise BadInput(f"{what} cannot have a setting called {taken[0]}: every stream has one; call it otherwise")
    return thing


def net(word: str) -> Callable[[StreamInfo], nn.Module]:
    """A user's function of `info`, or their nn.Module class that takes it."""
    file, name, module = _module(word)
    makers = _defined(module, lambda thing: inspect.isfunction(thing) or _is_module_class(thing))
    make_net = _named(file, name, module, makers, "function or nn.Module class")
    if not inspect.isfunction(make_net) and not _is_module_class(make_net):
        raise BadInput(f"{name} of {file} is neither a function of info nor an nn.Module class that takes info")
    try:
        inspect.signature(make_net).bind(None)
    except TypeError as error:
        raise BadInput(f"{name} of {file} must take one argument, the stream's info: {error}") from error
    return make_net  # type: ignore[no-any-return]


def source(said: Mapping[str, Any], folder: Path = Path()) -> Source | str:
    """Data as words say them: a `name` or path, and perhaps label, test, columns and features (path/to/file.py:name).

    Paths begin in `folder`.
    """
    words = [field.name for field in dataclasses.fields(Source) if field.name != "data"]
    faults = [unknown("setting", str(key), ["name", *words], " of data") for key in said if key not in ("name", *words)]
    faults += [
        f"{key} of data must be a word, not {value!r}"
        for key, value in said.items()
        if not isinstance(value, str) and not (key == "columns" and isinstance(value, Mapping))
    ]
    if "name" not in said:
        faults.append('data must have a name or a path, e.g. {name = "flowers.csv", label = "species"}')
    if faults:
        raise BadInput(*faults)
    given = {key: value for key, value in said.items() if key != "name"}
    if "test" in given:
        given["test"] = _placed(given["test"], folder)
    if "features" in given:
        file, _, name = given["features"].rpartition(":")
        given["features"] = features(f"{_placed(file, folder)}:{name}" if file else given["features"])
    kinds_of(given.get("columns"))
    place = _placed(said["name"], folder)
    return Source(place, **given) if given else place


def _placed(word: str, folder: Path) -> str:
    """A path, or several separated by commas, from where the folder is; a name stays."""
    if folder == Path():
        return word
    paths = [(each, path_of(each) or (Path(each) if is_own(each) else None)) for each in words_of(word)]
    return ",".join(each if path is None else os.path.join(folder, path) for each, path in paths)


def features(word: str) -> Features:
    """A user's function of raw rows, or a module that is one."""
    if not is_own(word):
        raise BadInput(f"features must be named as path/to/file.py:name, not {word!r}")
    file, name, module = _module(word)
    makers = _defined(module, inspect.isfunction)
    found = _named(file, name, module, makers, "function")
    if isinstance(found, type) or not callable(found):
        raise BadInput(f"{name} of {file} must be a function of rows that gives a vector for each")
    return found  # type: ignore[no-any-return]


def made(cls: type[T], values: Mapping[str, Any], owner: str, option: str = "") -> T:
    """An instance with these settings; a field without a default must be among them. `option`: how they are given."""
    lacking = [
        f"{owner} needs a value for {name}" + (f"; give it with {option}{name}=..." if option else "")
        for name in needed(cls)
        if name not in values
    ]
    if lacking:
        raise BadInput(*lacking)
    with guarded(owner):
        return make(cls, values, owner)


def fitting(thing: T, owner: str) -> T:
    """A thing that a user made without us, if its settings are what their types say."""
    if faults := faults_in(type(thing), settings_of(thing), owner):
        raise BadInput(*faults)
    return thing


def needed(cls: type) -> list[str]:
    """The settings that have no default."""
    usual = defaults(cls)
    return [name for name in hints(cls) if name not in usual]


def word_of(thing: Any) -> str | None:
    """`path/to/file.py:Name`, from the current folder, of what was found in a file; None of anything else."""
    for module in [each for name, each in sys.modules.items() if name.startswith(_OWN)]:
        name = next((name for name, value in vars(module).items() if value is thing), None)
        if name is not None:
            return f"{os.path.relpath(str(module.__file__))}:{name}"
    return None


def _module(word: str) -> tuple[str, str, ModuleType]:
    """The file's name, the name in it, and the file as a module."""
    file, _, name = word.rpartition(":") if ".py:" in word else (word, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise BadInput(f"{file} is not a file; your own code is named as path/to/file.py:Name")
    try:
        return file, name, _loaded(path.resolve(), path.read_bytes())
    except (Exception, SystemExit) as error:  # user's code may raise anything
        how = "; streams and protocols are @dataclass(frozen=True)" if NOT_FROZEN in str(error) else ""
        raise BadInput(f"cannot load {file}: {said_of(error)}{how}") from error


@functools.cache
def _loaded(path: Path, content: bytes) -> ModuleType:
    """A file as a module, loaded once while its content stays: a method and a protocol in it share its classes."""
    name = (
        f"{_OWN}{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # other folders have such files, too
    )
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and inspect look for it
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))  # its neighbours can be imported, as when Python runs it
    spec.loader.exec_module(module)
    return module


def _defined(module: ModuleType, wanted: Callable[[Any], bool]) -> list[str]:
    """What a file itself defines, not what it imports."""
    return [n for n, thing in vars(module).items() if wanted(thing) and thing.__module__ == module.__name__]


def _named(file: str, name: str, module: ModuleType, candidates: list[str], kind: str) -> Any:
    if not name:
        raise BadInput(f"say which {kind} of {file} is meant: {file}:{' or '.join(candidates) or 'Name'}")
    if name not in vars(module):
        if candidates:
            raise BadInput(unknown(f"{kind} of {file}", name, candidates))
        raise BadInput(f"{file} has no {kind} named {name!r}, nor any other")
    return vars(module)[name]


def _is_module_class(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, nn.Module)
