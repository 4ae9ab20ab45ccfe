"""State: tensors, numbers, strings and nested dicts, lists and tuples of them. Nothing is ever pickled."""

from __future__ import annotations

import json
import os
import shutil
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

State = Any  # Tensor | int | float | str | bool | None | dict | list | tuple, nested
_STATEFUL, _GENERATOR = "<stateful>", "<generator>"  # keys that no attribute of a learner has


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
    """Write state as `state.json` and `tensors.safetensors` in a new folder; whole or not at all.

    What was there stays readable until then, even if the process is killed between the two renames. One process
    writes to a folder.
    """
    tensors: dict[str, Tensor] = {}
    text = json.dumps(_encode(state, tensors))
    part, old = _beside(folder, "part"), _beside(folder, "old")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    save_file(tensors, part / "tensors.safetensors")
    (part / "state.json").write_text(text)
    for path in part.iterdir():
        with path.open("rb") as file:
            os.fsync(file.fileno())
    if folder.exists():
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
    part.rename(folder)
    shutil.rmtree(old, ignore_errors=True)


def read(folder: Path) -> State:
    """The state that `save` wrote last."""
    if not folder.exists() and _beside(folder, "old").exists():
        folder = _beside(folder, "old")
    return _decode(json.loads((folder / "state.json").read_text()), load_file(folder / "tensors.safetensors"))


def _beside(folder: Path, word: str) -> Path:
    return folder.with_name(f"{folder.name}.{word}")


def _encode(value: State, tensors: dict[str, Tensor]) -> Any:
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value.cpu().contiguous()
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
