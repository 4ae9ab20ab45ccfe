"""A model on disk: numbered folders, of which the newest is the model. JSON and safetensors, and nothing pickled.

    DIR/3/model.json                      the schema, and all words: method, network, protocol, tasks, classes
    DIR/3/record.json, predictions.npz    the record with the audit card, as an output folder has it
    DIR/3/state.json, tensors.safetensors, pages    the state of the run
    DIR/3/SHA256SUMS

A save writes the next folder beside it and renames it into place, whole; then the one before goes. Whoever is killed on
the way leaves the old model or the new one.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from holdfast.engine import State
from holdfast.engine.checkpoint import DAMAGED, numbers_in
from holdfast.engine.state import Files, from_files, read_files, to_files, write_files
from holdfast.errors import BadInput
from holdfast.methods import Learner, methods
from holdfast.nets import NetSpec, nets
from holdfast.protocols import Protocol, protocols
from holdfast.settings import Shelf, choose, provenance
from holdfast.streams import CropFlip
from holdfast.sweeps.cell import Cell, NetLike, describe, plain, versions
from holdfast.sweeps.lock import locked
from holdfast.sweeps.model import Model, no_reseed, some
from holdfast.sweeps.store import LOCK, MODEL, UNREADABLE, record_files, record_of_files
from holdfast.types import Gone, Part, Scale, Stream, StreamInfo, Task

SCHEMA = 1
ANOTHER = "choose another folder for the model"
TRIES = 5  # to read a model that others save meanwhile
INSIDE = 2  # levels of folders that a model has
_UNFIT = (*DAMAGED, *UNREADABLE, AttributeError, IndexError)  # what a damaged model raises, or one of other code


@dataclass(frozen=True)
class Own:
    """What a model is made of that is the user's own code, which is on no disk of ours; none: it is ours."""

    method: Learner | None = None
    net: NetLike | None = None
    protocol: Protocol | None = None


def save(model: Model, folder: Path) -> None:
    """Keep a model; one that is there is replaced, at once."""
    if model.record is None:
        raise BadInput("the model has learned nothing yet, so there is nothing to save; call model.learn(x, y)")
    try:
        json.dumps(model.notes, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise BadInput(f"model.notes must be JSON, to be kept with the model: {error}") from error
    files = _files(model)
    with locked(folder, refuse, ANOTHER):
        *older, last = [0, *numbers_in(folder)]
        write_files(files, folder / str(last + 1), folder / str(last) if last else None)
        for number in (*older, last):
            shutil.rmtree(folder / str(number), ignore_errors=True)


def load(folder: Path, own: Own | None = None, device: str | None = None) -> Model:
    """The model in a folder. A BadInput where it is damaged, cut off, or of another version."""
    files = _newest(folder)
    try:
        if MODEL not in files:
            raise ValueError(f"{MODEL} is missing")
        words = json.loads(files[MODEL])
        if words["schema"] != SCHEMA:
            raise BadInput(f"the model in {folder} has schema {words['schema']}, this version reads {SCHEMA}")
        state = from_files(files)
        record = record_of_files(files)
        cell = _cell(words, state, folder, own or Own(), device)
        tests = tuple(task["test"] for task in words["tasks"])
        model = Model(cell, state["run"], record, tests, words["closed"], words["known"], words["notes"])
        model.learner.net.device  # noqa: B018  # it can be made
    except BadInput:
        raise
    except (*_UNFIT, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BadInput(f"{folder} does not hold a readable model: {reason}; it is left as it is") from error
    return model


def refuse(folder: Path) -> None:
    """A folder that holds something else is left alone."""
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"{folder} is a file; {ANOTHER}")
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    foreign = [name for name in names if not (name.removesuffix(".part").isdecimal() or name.startswith("."))]
    if foreign := sorted(name for name in foreign if name != LOCK):
        if is_model(folder):
            raise BadInput(f"{folder} holds a model and also {some(foreign)}, which is none of it; move that elsewhere")
        raise BadInput(f"{folder} exists and is not a model of Holdfast; {ANOTHER}")
    for place in folder.absolute().parents[:INSIDE]:
        if any((place / str(number) / MODEL).is_file() for number in numbers_in(place)):
            raise BadInput(f"{folder} is inside of the model in {place}; {ANOTHER}")


def refuse_another(folder: Path, cell: Cell) -> None:
    """A run replaces the model that it left before, and no other."""
    refuse(folder)
    if not is_model(folder):
        return
    try:
        words = json.loads((folder / str(numbers_in(folder)[-1]) / MODEL).read_text())
        found = {role: words[role] for role in ("method", "net", "protocol", "seed")}
        found["data"] = words["stream"]["fingerprint"]
        what = f"another model: {found['method']['name']} after {len(words['tasks'])} tasks"
    except (*_UNFIT, OSError):
        found, what = {}, "a model that cannot be read"
    mine = {
        "method": _described(cell.method, methods),
        "net": _described(cell.net, nets),
        "protocol": _described(cell.protocol, protocols),
        "seed": cell.seed,
        "data": cell.stream.fingerprint,
    }
    if found != json.loads(json.dumps(mine)):
        raise BadInput(f"{folder} holds {what}; {ANOTHER}")


def is_model(folder: Path) -> bool:
    """Whether a whole model was ever saved there."""
    return bool(numbers_in(folder))


def _newest(folder: Path) -> Files:
    """The files of the newest model; read again when a newer one has taken its place meanwhile."""
    for _ in range(TRIES):
        numbers = numbers_in(folder)
        if not numbers:
            raise BadInput(f"{folder} holds no model; `holdfast learn`, `--keep-model` and hf.save make one")
        try:
            return read_files(folder / str(numbers[-1]))
        except OSError as error:
            if numbers_in(folder)[-1:] == numbers[-1:]:
                raise BadInput(f"{folder} cannot be read ({error.strerror})") from error
    raise BadInput(f"{folder} is being written to; try again")


def _files(model: Model) -> Files:
    record = model.record
    assert record is not None
    tasks = model.stream.tasks
    scales = [None if task.train.scale is None else vars(task.train.scale) for task in tasks]
    state = {"run": model.state, "tests": [task.test.y for task in tasks], "scales": scales}
    beside = {MODEL: json.dumps(_words(model), indent=2, allow_nan=False).encode(), **record_files(record)}
    return to_files(state, beside)


def _words(model: Model) -> dict[str, Any]:
    cell, stream = model.cell, model.stream
    info = stream.info
    return {
        "schema": SCHEMA,
        "versions": versions(),
        "method": _described(cell.method, methods),
        "net": _described(cell.net, nets),
        "protocol": _described(cell.protocol, protocols),
        "seed": cell.seed,
        "device": cell.device,
        "threads": cell.threads,
        "choice_cost": cell.choice_cost,
        "stream": {
            "name": info.name,
            "scenario": info.scenario,
            "shape": list(info.shape),
            "dtype": str(stream.tasks[0].train.dtype).partition(".")[2],
            "outputs": info.classes,
            "hidden": info.hidden,
            "seed": stream.seed,
            "settings": plain(dict(stream.settings)),
            "chosen_by": dict(stream.chosen_by),
            "fingerprint": stream.fingerprint,
            "reserved": dict(stream.reserved),
        },
        "classes": list(model.classes),
        "tasks": [_task_words(task, test) for task, test in zip(stream.tasks, model.tests, strict=True)],
        "closed": model.closed,
        "known": model.known,
        "notes": model.notes,
    }


def _task_words(task: Task, test: str) -> dict[str, Any]:
    augment = task.train.augment
    if augment is not None and not isinstance(augment, CropFlip):
        raise BadInput(f"the augmentation {type(augment).__name__} of task {task.t} cannot be saved with a model")
    return {
        "name": task.name,
        "classes": list(task.classes),
        "names": list(task.names),
        "about": task.about,
        "note": task.note,
        "train": _counts(task.train),
        "val": _counts(task.val),
        "test": test,
        "margin": None if augment is None else augment.margin,
    }


def _counts(part: Part) -> list[list[int]]:
    """[class, rows]"""
    classes, counts = part.y.unique(return_counts=True)
    return torch.stack([classes, counts], 1).tolist()


def _described(thing: Any, shelf: Shelf[Any]) -> dict[str, Any]:
    """A method, network or protocol in words from which it can be made again, unless it is the user's own code."""
    ours = isinstance(thing, shelf.base) and type(thing).__module__.startswith(f"{shelf.package}.")
    if isinstance(thing, NetSpec | Learner | Protocol):
        name = type(thing).__module__.rpartition(".")[2] if ours else type(thing).__name__
        return {"name": name, "own": not ours, "settings": plain(provenance(thing))}
    return {"name": describe(thing)["name"], "own": True, "settings": {}}


def _cell(words: Mapping[str, Any], state: State, folder: Path, own: Own, device: str | None) -> Cell:
    def made(role: str, shelf: Shelf[Any], given: Any) -> Any:
        return _made(role, shelf, words[role], given, folder)

    return Cell(
        made("method", methods, own.method),
        _stream(words, state),
        made("net", nets, own.net),
        made("protocol", protocols, own.protocol),
        words["seed"],
        device or words["device"],
        reseed=False,
        choice_cost=words["choice_cost"],
        threads=words["threads"],
    )


def _made(role: str, shelf: Shelf[Any], words: Mapping[str, Any], given: Any, folder: Path) -> Any:
    """What the words describe; of the user's own code what is given, if it is that."""
    name, settings = words["name"], words["settings"]
    if given is not None:
        now = _described(given, shelf)
        if (now["name"], _values(now["settings"])) != (name, _values(settings)):
            raise BadInput(
                f"the {role} of the model in {folder} is {name!r} with {_said(settings)}, not {now['name']!r} with "
                f"{_said(now['settings'])}"
            )
        return given
    if words["own"]:
        ways = f"hf.load_model({str(folder)!r}, {role}=...); --{role} FILE.py:{name} of learn, predict and score"
        raise BadInput(f"the {role} {name!r} of the model in {folder} is code of your own; give it: {ways}")
    made = shelf.make(name, _values(settings))
    choose(made, {k: setting["chosen_by"] for k, setting in settings.items()})
    return made


def _values(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: setting["value"] for name, setting in settings.items()}


def _said(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in _values(settings).items()) or "no settings"


def _stream(words: Mapping[str, Any], state: State) -> Stream:
    """The tasks that were learned, without their rows."""
    said, tasks = words["stream"], words["tasks"]
    blank = torch.zeros(1, *said["shape"], dtype={"uint8": torch.uint8, "float32": torch.float32}[said["dtype"]])

    def part(y: Tensor, scale: State, margin: int | None) -> Part:
        augment = None if margin is None else CropFlip(margin)
        return Gone(blank, torch.zeros_like(y), y, augment=augment, scale=None if scale is None else Scale(**scale))

    def of_counts(counts: list[list[int]]) -> Tensor:
        classes, numbers = torch.tensor(counts, dtype=torch.long).reshape(-1, 2).unbind(1)
        return classes.repeat_interleave(numbers)

    made = []
    for t, (task, y, scale) in enumerate(zip(tasks, state["tests"], state["scales"], strict=True)):
        parts = part(of_counts(task["train"]), scale, task["margin"]), part(of_counts(task["val"]), scale, None)
        shown = Task(t, task["name"], tuple(task["classes"]), *parts, part(y, scale, None), task["about"], task["note"])
        made.append(replace(shown, names=tuple(task["names"])))
    classes = tuple(task.classes for task in made)
    info = StreamInfo(said["name"], said["scenario"], tuple(said["shape"]), said["outputs"], classes, said["hidden"])
    given = info, tuple(made), said["seed"], said["settings"], said["fingerprint"], no_reseed, said["chosen_by"]
    return Stream(*given, reserved=said["reserved"])
