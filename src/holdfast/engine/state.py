"""State: tensors, numbers, strings and nested dicts, lists and tuples of them. Nothing is ever pickled."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import safetensors.torch as safetensors
import torch
from torch import Tensor

from holdfast.disk import fill, flush_folder, keeping

State = Any  # Tensor | int | float | str | bool | None | dict | list | tuple, nested
Files = dict[str, bytes]  # a state as files: name -> content
_STATE, _TENSORS, _SUMS = "state.json", "tensors.safetensors", "SHA256SUMS"
_SMALL = frozenset((int, float, bool, str, type(None)))  # what a log has most of
_PAGE_BYTES, _PAGE_ITEMS = 32768, 64  # a page of a log is full with either
_STATEFUL, _GENERATOR = "<stateful>", "<generator>"  # keys that no attribute of a learner has


class Log(list[Any]):
    """A list that grows at its end, as states go by; on disk, what was there is not written again.

    It is cut into pages, which are files named by the sum of their content. Each names the one before it, the state
    only the last; what does not fill a page is with the state.
    """


class Stateful(ABC):
    """A thing whose whole state can be taken and put back: a network, an optimiser, a memory, a learner."""

    @abstractmethod
    def state(self) -> dict[str, State]: ...

    @abstractmethod
    def load(self, state: dict[str, State]) -> None: ...


class Plain(Stateful):
    """A stateful thing whose state is all of its attributes."""

    not_state: tuple[str, ...] = ()  # attributes that are given anew at construction

    def state(self) -> dict[str, State]:
        return {k: pack(v, f"{type(self).__name__}.{k}") for k, v in vars(self).items() if k not in self.not_state}

    def load(self, state: dict[str, State]) -> None:
        for name in [k for k in vars(self) if k not in state and k not in self.not_state]:
            delattr(self, name)
        for name, saved in state.items():
            setattr(self, name, unpack(vars(self).get(name), saved, f"{type(self).__name__}.{name}"))


def pack(value: Any, where: str) -> State:
    """A copy of `value` that nothing later changes."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, Stateful):
        return {_STATEFUL: type(value).__name__, "state": value.state()}
    if isinstance(value, torch.Generator):
        return {_GENERATOR: value.get_state()}
    if type(value) is dict and all(isinstance(k, str | int | float | None) for k in value):
        return {k: pack(v, f"{where}[{k!r}]") for k, v in value.items()}
    if type(value) in (list, tuple, torch.Size):
        items = [pack(v, f"{where}[{i}]") for i, v in enumerate(value)]
        return items if isinstance(value, list) else tuple(items)
    kind = "dict with other keys than strings and numbers" if type(value) is dict else type(value).__name__
    raise TypeError(
        f"{where} is a {kind}, which cannot be saved: state is tensors, numbers, strings and nested "
        "dicts, lists and tuples of them, or a Stateful (Net, optimiser, memory)"
    )


def unpack(current: Any, saved: State, where: str) -> Any:
    """The value that `saved` stands for; a Stateful or a generator that exists takes its state back in place."""
    if isinstance(saved, dict) and _STATEFUL in saved:
        if not isinstance(current, Stateful):
            raise TypeError(f"{where} cannot take back a {saved[_STATEFUL]}: make it in `start`, so that it is there")
        current.load(saved["state"])
        return current
    if isinstance(saved, dict) and _GENERATOR in saved:
        rng = current if isinstance(current, torch.Generator) else torch.Generator()
        rng.set_state(saved[_GENERATOR])
        return rng
    if isinstance(saved, dict):
        known = current if isinstance(current, dict) else {}
        return {k: unpack(known.get(k), v, f"{where}[{k!r}]") for k, v in saved.items()}
    if type(saved) is tuple and _alike(current, saved):
        return current  # as it was made, perhaps with others: two optimisers share a default
    if isinstance(saved, list | tuple):
        old = list(current) if isinstance(current, list | tuple) else []
        old += [None] * (len(saved) - len(old))
        return type(saved)(unpack(old[i], v, f"{where}[{i}]") for i, v in enumerate(saved))
    if isinstance(saved, Tensor):
        like = current if isinstance(current, Tensor) else saved
        return saved.to(like.device, copy=True).requires_grad_(like.requires_grad)
    return saved


def _alike(current: Any, saved: tuple[Any, ...]) -> bool:
    """Whether both are the same numbers and words."""
    small = type(current) is tuple and all(type(v) in _SMALL for v in (*current, *saved))
    return small and current == saved and [*map(type, current)] == [*map(type, saved)]


def save(state: State, folder: Path) -> None:
    """Write state to a new folder, whole or not at all: `state.json`, `tensors.safetensors`, pages, `SHA256SUMS`."""
    write_files(to_files(state), folder)


def read(folder: Path) -> State:
    """The state that `save` wrote; a ValueError or an OSError where it is damaged."""
    return from_files(read_files(folder))


def to_files(state: State, beside: Files | None = None) -> Files:
    """State as the content of files, and others beside it; the sums of those that are not named by theirs are in the
    last."""
    pages: Files = {}
    own = _Written(pages)
    files = {_STATE: json.dumps(own.encode(state)).encode(), _TENSORS: safetensors.save(own.tensors), **(beside or {})}
    sums = "".join(f"{_sum(content)}  {name}\n" for name, content in files.items())
    return {**files, **pages, _SUMS: sums.encode()}


def from_files(files: Files) -> State:
    """The state in these files; a ValueError where they are damaged."""
    if _SUMS not in files:
        raise ValueError(f"{_SUMS} is missing")
    sums = dict(line.partition("  ")[::-2] for line in files[_SUMS].decode().splitlines())
    if not {_STATE, _TENSORS} <= sums.keys():
        raise ValueError(f"{_SUMS} is damaged")
    for name, known in sums.items():
        if name not in files:
            raise ValueError(f"{name} is missing")
        if _sum(files[name]) != known:
            raise ValueError(f"{name} is damaged")
    return _decode(json.loads(files[_STATE]), safetensors.load(files[_TENSORS]), files)


def write_files(files: Files, folder: Path, last: Path | None = None) -> None:
    """Write the files of a state to a new folder, whole or not at all. Pages that `last` has are the same files."""
    part = folder.with_name(f"{folder.name}.part")
    with keeping(folder):
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for name, content in files.items():
                if last is None or not _is_page(name) or not _linked(last / name, part / name, content):
                    fill(part / name, content)
            flush_folder(part)
            part.rename(folder)
            flush_folder(folder.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def read_files(folder: Path) -> Files:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_page(name: str) -> bool:
    return len(name) == 64


def _linked(old: Path, new: Path, content: bytes) -> bool:
    """Make a file that has this content known by another name, too, if it can be done."""
    try:
        if old.read_bytes() != content:  # damaged since
            return False
        os.link(old, new)
    except OSError:  # it is not there, or this file system has one name per file
        return False
    return True


class _Written:
    """What goes into one file: tensors, by the names that the text has for them; logs become pages of their own."""

    def __init__(self, pages: Files) -> None:
        self.pages = pages
        self.tensors: dict[str, Tensor] = {}
        self.names: dict[int, str] = {}  # by identity: states may share tensors

    def encode(self, value: State) -> Any:
        if type(value) in _SMALL:
            return value
        if isinstance(value, Tensor):
            if id(value) not in self.names:
                self.names[id(value)] = name = str(len(self.tensors))
                self.tensors[name] = value.cpu().contiguous()
            return {"tensor": self.names[id(value)]}
        if isinstance(value, Log):
            before, rest = self._paged(value)
            return {"log": [before, [self.encode(v) for v in rest]]}
        if isinstance(value, dict):
            return {"dict": [[k, v if type(v) in _SMALL else self.encode(v)] for k, v in value.items()]}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [v if type(v) in _SMALL else self.encode(v) for v in value]}
        return value

    def _paged(self, log: Log) -> tuple[str | None, list[State]]:
        """The name of the last full page, and the items behind it."""
        before, items, size = None, [], 0
        for item in log:
            items.append(item)
            size += _bytes(item)
            if size >= _PAGE_BYTES or len(items) == _PAGE_ITEMS:
                page = _Written(self.pages)
                text = json.dumps([before, [page.encode(v) for v in items]]).encode()
                content = text + b"\n" + safetensors.save(page.tensors)
                before, items, size = _sum(content), [], 0
                self.pages[before] = content
        return before, items


def _bytes(value: State) -> int:
    """About how many a state takes on disk."""
    if type(value) in _SMALL:
        return len(value) if isinstance(value, str) else 8
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    if isinstance(value, dict):
        return sum(_bytes(k) + _bytes(v) for k, v in value.items())
    return sum(map(_bytes, value)) if isinstance(value, list | tuple) else len(value) if isinstance(value, str) else 8


def _decode(value: Any, tensors: dict[str, Tensor], files: Files) -> State:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {k: _decode(v, tensors, files) for k, v in content}
    if kind == "log":
        name, rest = content
        return [*_turned(name, files), *(_decode(v, tensors, files) for v in rest)]
    items = [_decode(v, tensors, files) for v in content]
    return tuple(items) if kind == "tuple" else items


def _turned(name: str | None, files: Files) -> list[State]:
    """The items of a page and of all before it."""
    pages: list[list[State]] = []
    while name is not None:
        if name not in files:
            raise ValueError(f"page {name[:8]} is missing")
        if _sum(files[name]) != name:
            raise ValueError(f"page {name[:8]} is damaged")
        text, _, rest = files[name].partition(b"\n")
        tensors = safetensors.load(rest)
        name, items = json.loads(text)
        pages.append([_decode(v, tensors, files) for v in items])
    return [item for page in reversed(pages) for item in page]
