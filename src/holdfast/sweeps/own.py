"""A user's own method, network, stream or protocol: a class, or one from a file of theirs, `path/to/file.py:Name`."""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from torch import nn

from holdfast.errors import BadInput, unknown
from holdfast.settings import Shelf, defaults, faults_in, hints, make, settings_of
from holdfast.streams import BESIDES
from holdfast.types import StreamInfo

T = TypeVar("T")


def is_own(word: str) -> bool:
    """Whether a word names something in a file rather than something of ours."""
    return word.endswith(".py") or ".py:" in word


def find(shelf: Shelf[T], word: str) -> tuple[str, type[T]]:
    """The name and class of what is on a shelf of ours, or in a file of a user's."""
    if not is_own(word):
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


@contextmanager
def guarded(what: str, cannot: str = "be made") -> Iterator[None]:
    """Whatever a user's code raises becomes one line."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # user's code may raise anything
        raise BadInput(f"{what} cannot {cannot}: {type(error).__name__}: {error}") from error


def _module(word: str) -> tuple[str, str, ModuleType]:
    """The file's name, the name in it, and the file as a module."""
    file, _, name = word.rpartition(":") if ".py:" in word else (word, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise BadInput(f"{file} is not a file; your own code is named as path/to/file.py:Name")
    try:
        return file, name, _loaded(path.resolve(), path.read_bytes())
    except (Exception, SystemExit) as error:  # user's code may raise anything
        raise BadInput(f"cannot load {file}: {type(error).__name__}: {error}") from error


@functools.cache
def _loaded(path: Path, content: bytes) -> ModuleType:
    """A file as a module, loaded once while its content stays: a method and a protocol in it share its classes."""
    name = f"own_{path.stem}_{hashlib.sha256(str(path).encode()).hexdigest()[:8]}"  # other folders have such files, too
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
