"""What `holdfast learn`, `predict` and `score` do: a model that stays, and new data."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from holdfast import api
from holdfast.commands.experiment import Asked as AskedRun
from holdfast.commands.experiment import collected, parts_of
from holdfast.commands.terminal import Stopped, print_json, tell
from holdfast.data import NewRows, Source, path_of
from holdfast.data.source import found as there
from holdfast.disk import unwritable
from holdfast.errors import BadInput, RunFailed
from holdfast.protocols import Progress
from holdfast.report import words
from holdfast.settings import Count, Whole, expected, fit, fits
from holdfast.sweeps import Model, locked, model_folder, own, write_text
from holdfast.sweeps.model_folder import ANOTHER, Own
from holdfast.types import Scenario

Given = Mapping[str, str | None]
METHOD, NET, PROTOCOL = "er", "mlp", "epochs"  # of a new model


@dataclass(frozen=True)
class Asked:
    """The words of `learn`, and of `predict` and `score`; None where the default is wanted."""

    data: str
    model: str
    started: Given  # what only a new model can be told
    settings: tuple[str, ...]
    source: Given  # how the data are read
    shares: Given = field(default_factory=dict)  # of each class, for test and validation
    name: str | None = None


def learn_asked(asked: Asked, json: bool, quiet: bool) -> int:
    """One more task; the model on disk is the old one or the new one."""
    folder, faults = Path(asked.model), _closed(asked.model)
    with nullcontext() if faults else _alone(folder):
        going_on = not faults and model_folder.is_model(folder)
        shares = {word: _share(word, text, faults) for word, text in asked.shares.items() if text is not None}
        model = _going_on(folder, asked, faults) if going_on else _begun(asked, faults)
        rows = None
        with collected(faults):
            rows = _rows(asked.data, asked.source, model or (None if going_on else api.model()), labelled=True)
        if faults or model is None or rows is None:
            raise BadInput(*dict.fromkeys(faults))
        with _told(quiet or json) as watch:
            test, val = shares.get("test") or None, shares.get("val", 0.0)
            model.learn(rows, test=test, val=val, name=asked.name, watch=watch)
        model_folder.save(model, folder)
    _say_learned(model, folder, rows, json, quiet)
    return 0


def predict_asked(asked: Asked, out: str | None, task: str | None, quiet: bool) -> int:
    """The class of each row, and how probable it is."""
    data, folder = asked.data, asked.model
    faults = [] if out is None else _no_place(out, data, Path(folder))
    model, rows, number = _asked_of(asked, task, faults, labelled=False)
    _tell(rows, quiet)
    logits = model.logits(rows.x, number)
    names, best = model.names(number), logits.argmax(1)
    sure = torch.from_numpy(logits).softmax(-1).amax(-1)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "class", "probability"])
    writer.writerows([i, names[c], f"{p:.6f}"] for i, (c, p) in enumerate(zip(best, sure.tolist(), strict=True), 1))
    if out is None:
        sys.stdout.write(text.getvalue())
    else:
        write_text(Path(out), text.getvalue())
        if not quiet:
            tell(f"{len(best)} rows: {Path(out).resolve()}")
    return 0


def score_asked(asked: Asked, task: str | None, json: bool, quiet: bool) -> int:
    """What is still known, class by class."""
    model, rows, number = _asked_of(asked, task, [], labelled=True)
    _tell(rows, quiet or json)
    known = model.score(rows.x, rows.classes, number)
    if json:
        print_json({"accuracy": known.accuracy, "classes": dict(known.classes), "rows": dict(known.rows),
                    "never_learned": list(known.never), "scenario": model.stream.scenario})  # fmt: skip
    elif not quiet:
        print(known)
    return 0


def _begun(asked: Asked, faults: list[str]) -> Model | None:
    """A model that has learned nothing yet."""
    said = asked.started
    method, net, protocol = said["method"] or METHOD, said["net"] or NET, said["protocol"] or PROTOCOL
    lr, batch, epochs = said["lr"], said["batch"], said["epochs"]
    run = AskedRun((method,), net=net, protocol=protocol, lr=lr, batch=batch, epochs=epochs, settings=asked.settings)
    learner, made, way = parts_of(run, faults)
    counts = {"classes": (said["classes"], Count), "seed": (said["seed"], Whole)}
    values: dict[str, Any] = {}
    for word, (text, kind) in counts.items():
        if text is not None and not fits(kind, text):
            faults.append(f"--{word} must be {expected(kind)}, not {text!r}")
        elif text is not None:
            values[word] = fit(kind, text)
    if said["scenario"] is not None and not fits(Scenario, said["scenario"]):
        faults.append(f"--scenario must be {expected(Scenario)}, not {said['scenario']!r}")
    elif said["scenario"] is not None:
        values["scenario"] = said["scenario"]
    if faults or learner is None or made is None or way is None:
        return None
    return api.model(learner, made, way, **values)


def _going_on(folder: Path, asked: Asked, faults: list[str]) -> Model | None:
    """The model that is there. Of what it was begun with only code of the user's own is given again."""
    mine = {role: asked.started[role] for role in ("method", "net", "protocol")}
    ours = {role: word if word is not None and own.is_own(word) else None for role, word in mine.items()}
    given = [word for word, text in asked.started.items() if text is not None and ours.get(word) is None]
    given += ["columns"] if asked.source.get("columns") is not None else []
    faults += [f"--{word} is for a new model, and {folder} holds one that has its own; leave it out" for word in given]
    if asked.settings and not any(ours.values()):
        faults.append(f"--set is for a new model, and {folder} holds one that has its own settings; leave it out")
    with collected(faults):
        return model_folder.load(folder, _own(ours, asked.settings, faults))
    return None


def _own(ours: Given, settings: tuple[str, ...], faults: list[str]) -> Own | None:
    if not any(ours.values()):
        return None
    words_ = {role: word for role, word in ours.items() if word is not None}
    run = AskedRun(
        (words_.get("method", METHOD),),
        net=words_.get("net", NET),
        protocol=words_.get("protocol", PROTOCOL),
        settings=settings,
    )
    method, net, protocol = parts_of(run, faults)
    return Own(
        method if "method" in words_ else None,
        net if "net" in words_ else None,
        protocol if "protocol" in words_ else None,
    )


def _asked_of(asked: Asked, task: str | None, faults: list[str], labelled: bool) -> tuple[Model, NewRows, int | None]:
    """A model that is there, and rows for it; all faults at once."""
    model, rows = None, None
    if task is not None and not fits(Whole, task):
        faults.append(f"--task must be {expected(Whole)}, not {task!r}")
    with collected(faults):
        folder = Path(asked.model)
        model = _going_on(folder, asked, faults) if model_folder.is_model(folder) else model_folder.load(folder)
        if model is not None and not faults:
            faults += _task_faults(model, None if task is None else int(task))
    with collected(faults):
        rows = _rows(asked.data, asked.source, model, labelled)
    if faults or model is None or rows is None:
        raise BadInput(*dict.fromkeys(faults))
    return model, rows, None if task is None else int(task)


def _task_faults(model: Model, task: int | None) -> list[str]:
    given, last = model.stream.info.task_given, model.tasks - 1
    if given and (task is None or task > last):
        said = "" if task is None else f", not {task}"
        return [f"--task must say which task, from 0 to {last}{said}: the model learned in the task scenario"]
    if not given and task is not None:
        return [f"--task is for the task scenario, and the model learned in the {model.stream.scenario} scenario"]
    return []


def _rows(data: str, source: Given, model: Model | None, labelled: bool) -> NewRows | None:
    """Data as the model reads them; where it cannot be read itself, it is only seen whether they are there."""
    given = own.source({"name": data, **{word: text for word, text in source.items() if text is not None}})
    if model is None:
        if path := path_of(data):
            there(path)
        return None
    return model.read(given if isinstance(given, Source) else Source(given), labelled)


def _closed(folder: str) -> list[str]:
    """Why no model can be kept in a folder, as far as can be known before."""
    if not folder:
        return ["--model must be a folder, which need not exist yet, not ''"]
    faults = unwritable(Path(folder), "--model")
    with collected(faults):
        if not faults:
            model_folder.refuse(Path(folder))
    return faults


def _no_place(out: str, data: str, folder: Path) -> list[str]:
    """Why predictions cannot be written there."""
    if not out:
        return ["--out must name a file, e.g. predictions.csv, not ''"]
    if Path(out).is_dir():
        return [f"{out} is a folder; --out must name a file, e.g. predictions.csv"]
    place, rows = Path(out).resolve(), path_of(data)
    around = (place, *place.parents)
    if rows is not None and rows.resolve() in around:
        what = "is DATA itself" if place == rows.resolve() else f"is inside of DATA, {data}"
        return [f"--out {out} {what}, which is only read; choose another file"]
    if folder.resolve() in around:
        return [f"--out {out} is inside of the model in {folder}; choose a file elsewhere"]
    return unwritable(Path(out).parent)


def _share(word: str, text: str, faults: list[str]) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share < 1:
        faults.append(f"--{word} must be a share of each class's rows from 0 to below 1, e.g. 0.2, not {text!r}")
    return share


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other process learns with the model meanwhile. A folder that was made for nothing goes."""
    new = not folder.exists()
    then = f"no model is left in {folder}" if new else f"the model in {folder} is as it was"
    try:
        with locked(folder, model_folder.refuse, ANOTHER):
            yield
    except KeyboardInterrupt as error:
        raise Stopped(f"stopped; {then}") from error
    except RunFailed as error:
        raise RunFailed(f"{error}; {then}") from error
    finally:
        if new and folder.is_dir() and not os.listdir(folder):
            folder.rmdir()


@contextmanager
def _told(silent: bool) -> Iterator[Callable[[Progress], None]]:
    """How far it is, on a terminal."""
    if silent or not sys.stderr.isatty():
        yield lambda progress: None
        return
    from rich.console import Console

    with Console(stderr=True).status("learning") as status:
        yield lambda p: status.update(f"learning: {p.doing or f'step {p.step} of {p.steps}'}")


def _tell(rows: NewRows, quiet: bool) -> None:
    """What was done with the rows."""
    for line in () if quiet else rows.told:
        tell(line)


def _say_learned(model: Model, folder: Path, rows: NewRows, json: bool, quiet: bool) -> None:
    record = model.record
    assert record is not None
    t, task = model.tasks - 1, model.stream.tasks[-1]
    reached = float(record.R[-1, t])
    accuracy = None if reached != reached else reached
    kept, generator = record.card["no_old_data"], record.card["no_generator"]
    if json:
        print_json(
            {
                "model": str(folder),
                "method": record.method,
                "task": t,
                "learned": list(task.names),
                "known": list(model.classes),
                "accuracy": accuracy,
                "scenario": record.scenario,
                "bytes": model.bytes,
                "old_rows": kept["value"],
                "told": list(rows.told),
                "card": dict(record.card),
            }
        )
    if json or quiet:
        return
    _tell(rows, quiet)
    seen = record.tasks[t]["n_train"]
    print(f"{record.method} has learned {task.name} from {seen} rows; it knows {len(model.classes)} classes now.")
    if accuracy is not None:
        label = "given" if record.scenario == "task" else "hidden"
        tested = record.tasks[t]["n_test"]
        told = f"{tested} rows kept apart, {record.scenario} scenario, task label {label}"
        print(f"accuracy on what is new: {words.number(accuracy, 'acc')} ({told})")
    makes = "" if generator["met"] else ", and a generator of rows"
    print(f"It keeps {words.in_bytes(model.bytes)}, {kept['value']} rows it has learned from among them{makes}.")
    tell(f"model: {folder.resolve()}")
