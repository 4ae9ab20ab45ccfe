"""State: tensors, numbers, strings and nested dicts, lists and tuples of them. Nothing is ever pickled."""

from __future__ import annotations

import hashlib
import json
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
_STATEFUL, _GENERATOR = "<stateful>", "<generator>"  # keys that no attribute of a learner has


class Log(list[Any]):
    """A list that grows at its end, as states go by; on disk, what was there is not written again."""


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
    if isinstance(saved, list | tuple):
        old = list(current) if isinstance(current, list | tuple) else []
        old += [None] * (len(saved) - len(old))
        return type(saved)(unpack(old[i], v, f"{where}[{i}]") for i, v in enumerate(saved))
    if isinstance(saved, Tensor):
        like = current if isinstance(current, Tensor) else saved
        return saved.to(like.device, copy=True).requires_grad_(like.requires_grad)
    return saved


def save(state: State, folder: Path) -> None:
    """Write state to a new folder, whole or not at all: `state.json`, `tensors.safetensors`, `SHA256SUMS`."""
    write_files(to_files(state), folder)


def read(folder: Path) -> State:
    """The state that `save` wrote; a ValueError or an OSError where it is damaged."""
    return from_files(read_files(folder))


def to_files(state: State) -> Files:
    """State as the content of files; the sums of the others are in the last."""
    tensors: dict[str, Tensor] = {}
    files = {_STATE: json.dumps(_encode(state, tensors)).encode(), _TENSORS: safetensors.save(tensors)}
    sums = "".join(f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in files.items())
    return {**files, _SUMS: sums.encode()}


def from_files(files: Files) -> State:
    """The state in these files; a ValueError where they are damaged."""
    sums = dict(line.partition("  ")[::-2] for line in files[_SUMS].decode().splitlines())
    for name in (_STATE, _TENSORS):
        if name not in sums:
            raise ValueError(f"{_SUMS} is damaged")
        if hashlib.sha256(files[name]).hexdigest() != sums[name]:
            raise ValueError(f"{name} is damaged")
    return _decode(json.loads(files[_STATE]), safetensors.load(files[_TENSORS]))


def write_files(files: Files, folder: Path) -> None:
    """Write the files of a state to a new folder, whole or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    with keeping(folder):
        try:
            shutil.rmtree(part, ignore_errors=True)
            part.mkdir(parents=True)
            for name, content in files.items():
                fill(part / name, content)
            flush_folder(part)
            part.rename(folder)
            flush_folder(folder.parent)
        except BaseException:
            shutil.rmtree(part, ignore_errors=True)
            raise


def read_files(folder: Path) -> Files:
    return {name: (folder / name).read_bytes() for name in (_STATE, _TENSORS, _SUMS)}


def _encode(value: State, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        same = (name for name, known in tensors.items() if known is value)  # what stands twice is written once
        name = next(same, str(len(tensors)))
        tensors[name] = value if value.is_cpu and value.is_contiguous() else value.cpu().contiguous()
        return {"tensor": name}
    if isinstance(value, dict):
        return {"dict": [[k, _encode(v, tensors)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_encode(v, tensors) for v in value]}
    return value


def _decode(value: Any, tensors: dict[str, Tensor]) -> State:
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return tensors[content]
    if kind == "dict":
        return {k: _decode(v, tensors) for k, v in content}
    items = [_decode(v, tensors) for v in content]
    return tuple(items) if kind == "tuple" else items
