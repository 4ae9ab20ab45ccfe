"""A user's own method or network, from a file of theirs: `path/to/file.py:Name`."""

from __future__ import annotations

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
from holdfast.methods import Learner
from holdfast.settings import defaults, hints, make
from holdfast.types import StreamInfo

T = TypeVar("T")


def is_own(word: str) -> bool:
    """Whether a word names something in a file rather than something of ours."""
    return word.endswith(".py") or ".py:" in word


def learner(word: str) -> tuple[str, type[Learner]]:
    """The name and class of a user's method."""
    file, name, module = _module(word)
    learners = _defined(module, lambda thing: isinstance(thing, type) and issubclass(thing, Learner))
    cls = _named(file, name, module, learners, "Learner")
    if not isinstance(cls, type) or not issubclass(cls, Learner):
        raise BadInput(f"{name} of {file} is not a Learner; write `class {name}(holdfast.Learner)`")
    if inspect.isabstract(cls):
        lacks = ", ".join(sorted(cls.__abstractmethods__))
        raise BadInput(f"{name} of {file} is not a whole Learner: it does not define {lacks}")
    return cls.__name__, cls


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


def made(cls: type[T], values: Mapping[str, Any], owner: str) -> T:
    """An instance with these settings; a field without a default must be among them."""
    lacking = [
        f"{owner} needs a value for {name}; give it with --set {name}=..." for name in needed(cls) if name not in values
    ]
    if lacking:
        raise BadInput(*lacking)
    with guarded(owner):
        return make(cls, values, owner)


def needed(cls: type) -> list[str]:
    """The settings that have no default."""
    return [name for name in hints(cls) if name not in defaults(cls)]


@contextmanager
def guarded(what: str) -> Iterator[None]:
    """Whatever a user's code raises becomes one line."""
    try:
        yield
    except BadInput:
        raise
    except (Exception, SystemExit) as error:  # user's code may raise anything
        raise BadInput(f"{what} cannot be made: {type(error).__name__}: {error}") from error


def _module(word: str) -> tuple[str, str, ModuleType]:
    """The file's name, the name in it, and the file as a module."""
    file, _, name = word.rpartition(":") if ".py:" in word else (word, "", "")
    path = Path(file).expanduser()
    if not path.is_file():
        raise BadInput(f"{file} is not a file; your own code is named as path/to/file.py:Name")
    spec = importlib.util.spec_from_file_location(f"own_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses and inspect look for it
    if str(path.parent.resolve()) not in sys.path:
        sys.path.append(str(path.parent.resolve()))  # its neighbours can be imported, as when Python runs it
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # user's code may raise anything
        raise BadInput(f"cannot load {file}: {type(error).__name__}: {error}") from error
    return file, name, module


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
