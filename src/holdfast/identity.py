"""What a thing is made of: a digest over all that can change what it gives, the same in every process."""

from __future__ import annotations

import dis
import functools
import hashlib
import re
import sys
import types
from collections.abc import Mapping, Set
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

_SAID = (  # what its text says whole
    bool, int, float, complex, bytes, np.generic, np.dtype, torch.dtype, torch.device, torch.Size, re.Pattern, Path,
    Decimal, date, timedelta, Enum, range, slice, type(None), type(...),
)  # fmt: skip
_NATIVE = (types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType, np.ufunc)
_WRAPPED = (staticmethod, classmethod)
_NO_STATE = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__annotations__", "_abc_impl", "training"))


class _Plain:
    """Has a dictionary, and nothing that is hidden from Python."""


_PLAIN = _Plain.__basicsize__


class Unknown(Exception):
    """The content of something cannot be told; the text says of what."""


@functools.cache
def is_theirs(module: str | None) -> bool:
    """Whether a module is a user's: neither Python's own, nor installed, nor ours."""
    top = (module or "").partition(".")[0]
    if (top in sys.stdlib_module_names and top != "__main__") or top == "holdfast":
        return False
    file = getattr(sys.modules.get(top), "__file__", None) or getattr(sys.modules.get(module or ""), "__file__", None)
    return file is None or ("site-packages" not in file and "dist-packages" not in file)


def digest(thing: Any) -> str:
    """Of data, functions, modules and objects, by their code, weights and all else that is reachable from them.

    Installed packages count by name and version. What is read from elsewhere while a function runs is not seen.

    >>> digest(torch.ones(2)) == digest(torch.ones(2)), digest(len) == digest(max)
    (True, False)
    """
    walk = _Walk()
    walk.add(thing)
    return walk.digest.hexdigest()


class _Walk:
    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self.seen: dict[int, tuple[int, Any]] = {}  # kept, so that no other thing gets its number

    def say(self, *words: str) -> None:
        for word in words:
            text = word.encode("utf-8", "surrogatepass")
            self.digest.update(b"%d " % len(text) + text)

    def add(self, thing: Any) -> None:
        if isinstance(thing, str):
            return self.say("str", thing)
        if isinstance(thing, _SAID):
            return self.say(type(thing).__qualname__, repr(thing))
        if id(thing) in self.seen:
            return self.say("again", str(self.seen[id(thing)][0]))
        self.seen[id(thing)] = len(self.seen), thing
        self.say(type(thing).__qualname__)
        if isinstance(thing, Tensor):
            self._add_tensor(thing)
        elif isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            self.say(thing.dtype.str, str(thing.shape))
            self.digest.update(np.ascontiguousarray(thing).data)
        elif isinstance(thing, np.ndarray):
            self.add(thing.tolist())
        elif isinstance(thing, Mapping):
            self.say(str(len(thing)))
            for key, value in thing.items():
                self.add(key)
                self.add(value)
        elif isinstance(thing, Set):
            self.say(*sorted(map(digest, thing)))
        elif isinstance(thing, list | tuple):
            self.say(str(len(thing)))
            for item in thing:
                self.add(item)
        elif isinstance(thing, types.ModuleType):
            self._add_package(thing.__name__, thing.__name__)
        elif isinstance(thing, type):
            self._add_class(thing)
        else:
            self._add_working(thing)

    def _add_working(self, thing: Any) -> None:
        """What does something: functions, and objects with their state."""
        if isinstance(thing, types.FunctionType):
            self._add_function(thing)
        elif isinstance(thing, types.MethodType):
            self.add([thing.__func__, thing.__self__])
        elif isinstance(thing, functools.partial):
            self.add([thing.func, thing.args, thing.keywords])
        elif isinstance(thing, _WRAPPED):
            self.add(thing.__func__)
        elif isinstance(thing, property):
            self.add([thing.fget, thing.fset])
        elif isinstance(thing, _NATIVE):
            self.say(str(getattr(thing, "__module__", "")), getattr(thing, "__qualname__", thing.__name__))
        elif type(thing).__basicsize__ <= _PLAIN and isinstance(getattr(thing, "__dict__", None), dict):
            self.add(type(thing))
            self._add_state(vars(thing))
        else:
            raise Unknown(f"a {type(thing).__module__}.{type(thing).__qualname__}")

    def _add_tensor(self, tensor: Tensor) -> None:
        if tensor.layout != torch.strided or tensor.is_quantized:
            raise Unknown("a tensor that is not dense")
        self.say(str(tensor.dtype), str(tuple(tensor.shape)))
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        self.digest.update(flat.view(torch.uint8).numpy().data if flat.numel() else b"")

    def _add_package(self, module: str, name: str) -> None:
        """Something of an installed package."""
        if is_theirs(module):
            raise Unknown(f"the module {module}")
        top = sys.modules.get(module.partition(".")[0])
        self.say(module, name, str(getattr(top, "__version__", "")))

    def _add_class(self, cls: type) -> None:
        if not is_theirs(cls.__module__):
            return self._add_package(cls.__module__, cls.__qualname__)
        self.say(cls.__qualname__)
        self.add(cls.__bases__)
        self._add_state({name: value for name, value in vars(cls).items() if not isinstance(value, _SLOTS)})

    def _add_state(self, state: Mapping[str, Any]) -> None:
        self.add({name: value for name, value in state.items() if name not in _NO_STATE})

    def _add_function(self, function: types.FunctionType) -> None:
        if not is_theirs(function.__module__):
            return self._add_package(function.__module__, function.__qualname__)
        names: list[str] = []
        self._add_code(function.__code__, names)
        cells = [cell.cell_contents for cell in function.__closure__ or () if cell != types.CellType()]
        self.add([function.__defaults__, function.__kwdefaults__, cells])
        for name in names:
            if name in function.__globals__:
                self.say(name)
                self.add(function.__globals__[name])

    def _add_code(self, code: types.CodeType, names: list[str]) -> None:
        """Its instructions, and the global names that they use."""
        self.say(code.co_code.hex(), *code.co_varnames, *code.co_names)
        found = (each for each in dis.get_instructions(code) if each.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        names += [str(each.argval) for each in found]
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._add_code(constant, names)
            else:
                self.add(constant)


_SLOTS = (types.GetSetDescriptorType, types.MemberDescriptorType)
