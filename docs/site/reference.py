"""The reference: the public names, their signatures and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from docstrings import markdown

import holdfast as hf
from holdfast import checks

VERBS = "stream method net protocol run compare sweep tune diagnose load run_cells at_hand".split()
READING = ("study", "panels", "fronts", "growth", "transfer", "uncertainty")  # modules of functions of a record


def page() -> str:
    names = [name for name in hf.__all__ if name not in (*VERBS, *READING)]
    functions = [name for name in names if inspect.isfunction(getattr(hf, name))]
    parts = [
        "# Reference",
        "`import holdfast as hf`. What is not here is a module away, and may change.",
        "## Functions",
        *(_entry(f"hf.{name}", getattr(hf, name)) for name in (*VERBS, *functions)),
        "## Types",
        *(_entry(f"hf.{name}", getattr(hf, name)) for name in names if name not in functions),
        *(_module(f"hf.{name}", getattr(hf, name)) for name in READING),
        "## Checks",
        *(_entry(f"holdfast.checks.{name}", thing) for name, thing in _public(checks) if inspect.isfunction(thing)),
    ]
    return "\n\n".join(parts) + "\n"


def _public(module: ModuleType) -> list[tuple[str, Any]]:
    return [(name, getattr(module, name)) for name in module.__all__]


def _module(name: str, module: ModuleType) -> str:
    mine = [
        (each, thing)
        for each, thing in vars(module).items()
        if each[0] != "_" and inspect.isroutine(thing) | inspect.isclass(thing) and thing.__module__ == module.__name__
    ]
    return "\n\n".join(
        [f"## {name}", markdown(inspect.getdoc(module) or ""), *(_entry(f"{name}.{n}", t) for n, t in mine)]
    )


def _entry(name: str, thing: Any) -> str:
    said = inspect.getdoc(thing) or ""
    return "\n\n".join([f"### {name}", f"```python\n{_signature(name, thing)}\n```", markdown(said), *_members(thing)])


def _members(thing: Any) -> Iterable[str]:
    """What a class of ours has besides its fields, each in a line."""
    if not inspect.isclass(thing) or issubclass(thing, BaseException):
        return
    for name, member in vars(thing).items():
        function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
        said = inspect.getdoc(function) if inspect.isfunction(function) and name[0] != "_" else None
        if said:
            called = name if isinstance(member, property) else f"{name}{_arguments(function)}"
            yield f"- `{called}`: {markdown(said.splitlines()[0])}"


def _signature(name: str, thing: Any) -> str:
    if inspect.isclass(thing) and issubclass(thing, BaseException):
        return f"class {name}({thing.__mro__[1].__name__})"
    return f"{'class ' if inspect.isclass(thing) else ''}{name}{_arguments(thing)}"


def _arguments(thing: Any) -> str:
    """Names and defaults; types are long, and the text says what is taken."""
    given = inspect.signature(thing)
    bare = [p.replace(annotation=p.empty) for p in given.parameters.values() if p.name not in ("self", "cls")]
    return str(given.replace(parameters=bare, return_annotation=given.empty))
