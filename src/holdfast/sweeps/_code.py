"""What a user's class or function is made of, as far as it decides results: the code of files, and what it holds."""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from holdfast.identity import is_theirs

DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def own_code(*things: Any) -> dict[str, str]:
    """The digest of a user's classes or functions; ours are covered by the code version, libraries by their names."""
    theirs = _theirs(things)
    said = sorted({*(text for thing in theirs for text in _texts(thing)), *map(_held, theirs)})
    return {"source": hashlib.sha256("\n".join(said).encode()).hexdigest()[:16]} if theirs else {}


def own_files(*things: Any) -> list[str]:
    """The names of the files that these classes or functions of a user are made of, the one they stand in first."""
    return list(dict.fromkeys(file.name for thing in _theirs(things) for file in _files(thing)))


def _theirs(things: Iterable[Any]) -> list[Any]:
    return [thing for thing in things if is_theirs(thing.__module__)]


def _texts(thing: Any) -> Iterator[str]:
    files = list(_files(thing))
    return map(_code, map(_read, files) if files else [_source(thing)])


def _files(thing: Any) -> Iterator[Path]:
    """The whole file it is written in, for a constant or a helper beside it decides results, too, and the files of its
    folder that this one imports; none of what was typed.
    """
    home = sys.modules.get(thing.__module__)
    if home is None or getattr(home, "__file__", None) is None:
        return
    waiting, seen = [home], {home.__name__}
    folder = Path(str(home.__file__)).resolve().parent
    while waiting:
        module = waiting.pop()
        yield Path(str(module.__file__))
        for name in sorted({_module_of(value) for value in vars(module).values()} - seen):
            seen.add(name)
            other = sys.modules.get(name)
            file = getattr(other, "__file__", None)
            if other is not None and file and is_theirs(name) and folder in Path(file).resolve().parents:
                waiting.append(other)


@functools.cache
def _code(text: str) -> str:
    """What Python makes of a text: layout, comments and docstrings decide no result."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):  # a part of a line, or a file that was changed while it ran
        return text
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree)


def _module_of(value: Any) -> str:
    name = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", None)
    return name if isinstance(name, str) else ""


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeDecodeError):
        return file.name


def _source(thing: Any) -> str:
    try:
        return textwrap.dedent(inspect.getsource(thing))
    except (OSError, TypeError):
        return str(getattr(thing, "__qualname__", thing))


def _held(thing: Any) -> str:
    """Values in a class's body, and what its functions capture: two of one source may differ in them."""
    values = vars(thing) if isinstance(thing, type) else {thing.__name__: thing} if hasattr(thing, "__name__") else {}
    named = {name: value for name, value in values.items() if not name.startswith(("__", "_abc_"))}
    return repr([(name, _words(value)) for name, value in sorted(named.items())])


def _words(value: Any) -> str:
    """A value as text that is the same in every process."""
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property):
        return _all([value.fget, value.fset])
    if isinstance(value, types.FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType()]
        return f"{value.__qualname__} {_all([*cells, *(value.__defaults__ or ())])}"
    if isinstance(value, Tensor):
        return hashlib.sha256(value.detach().cpu().contiguous().numpy().tobytes()).hexdigest()
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def _all(values: Iterable[Any]) -> str:
    return repr([value.__qualname__ if isinstance(value, type) else _words(value) for value in values])
