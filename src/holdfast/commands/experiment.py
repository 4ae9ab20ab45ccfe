"""From the words of a command to cells that can run, with every fault of the command found on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

from holdfast.data import Source
from holdfast.errors import BadInput, guarded, unknown
from holdfast.methods import Learner, methods
from holdfast.nets import nets
from holdfast.protocols import Passing, Protocol, name_of, protocols
from holdfast.settings import Count, Shelf, Threads, Whole, faults_in, fit, hints, make, untyped
from holdfast.streams import BESIDES, StreamSpec, as_datasets, last_alone, streams
from holdfast.sweeps import Cell, NetLike, own
from holdfast.sweeps.cell import pick_device
from holdfast.types import Stream

T = TypeVar("T")
OWNERS = ("net", "stream", "protocol")  # a setting's owner is one of these or a method
SEED = {"seed": BESIDES["seed"]}  # can be set for a stream, though it is no setting of its recipe
Given = defaultdict[str, dict[str, str]]  # owner ('' where none was named) -> setting -> text


@dataclass(frozen=True)
class Asked:
    """The options of `run`, `compare` and `diagnose` as they were typed; None where the default is wanted."""

    methods: tuple[str, ...]
    stream: str = "split"
    data: str | None = None  # names or paths; the next say how it is read
    label: str | None = None
    test: str | None = None
    columns: str | None = None
    features: str | None = None
    tasks: str | None = None
    examples: str | None = None
    scenario: str | None = None  # may be several, separated by commas
    alone: bool = False  # the last task also by itself
    first: int | None = None  # only so many tasks of the stream
    net: str = "mlp"
    protocol: str = "online"
    lr: str | None = None
    batch: str | None = None
    epochs: str | None = None
    optimiser: str | None = None
    settings: tuple[str, ...] = ()  # 'name=value', 'owner.name=value'
    seeds: str = "0"
    device: str = "auto"
    jobs: str | None = None
    threads: str | None = None
    checkpoint_every: str | None = None
    keep_model: bool = False


@dataclass(frozen=True)
class Execution:
    """How the cells are run; of this, seeds and threads play a part in their results."""

    seeds: tuple[Whole, ...] = (0,)
    threads: Threads = 1  # of each process
    jobs: Count | None = None
    checkpoint_every: Count | None = None  # steps, besides every task
    keep_model: bool = False  # of each run, in its folder


@dataclass(frozen=True)
class Pieces:
    """What cells are made of; what is at fault is missing."""

    learners: Sequence[Learner]
    streams: Sequence[Stream]
    net: NetLike | None
    protocol: Protocol | None
    execution: Execution


def cells_of(asked: Asked, faults: list[str]) -> tuple[list[Cell], Execution]:
    """The cells of a command, stream by stream and method by method, and how to run them; adds to the faults."""
    found = pieces_of(asked, faults)
    execution = found.execution
    if faults or found.net is None or found.protocol is None:
        return [], execution
    return [
        Cell(learner, stream, found.net, found.protocol, seed, asked.device, threads=execution.threads)
        for stream in found.streams
        for learner in found.learners
        for seed in execution.seeds
    ], execution


def pieces_of(asked: Asked, faults: list[str], *, all_able: bool = True) -> Pieces:
    """What the cells of a command are made of; adds to the faults.

    `all_able`: that a method cannot run there is a fault.
    """
    given = _settings(asked, faults)
    learners = _methods(asked, given, faults)
    execution = _execution(asked, faults)
    cut = _streams(asked, given, execution.seeds[0], faults)
    net = _net(asked.net, given["net"], faults)
    protocol = _protocol(asked.protocol, given["protocol"], faults)
    _check(learners if all_able else [], cut, net, protocol, faults)
    with collected(faults):
        pick_device(asked.device)
    return Pieces(learners, cut, net, protocol, execution)


def parts_of(asked: Asked, faults: list[str]) -> tuple[Learner | None, NetLike | None, Protocol | None]:
    """Method, network and protocol of a command that cuts no stream; adds to the faults."""
    given = _settings(asked, faults)
    faults += [f"--set stream.{name}: nothing is cut from a stream here; leave it out" for name in given["stream"]]
    learners = _methods(asked, given, faults)
    net, protocol = _net(asked.net, given["net"], faults), _protocol(asked.protocol, given["protocol"], faults)
    return (learners[0] if learners else None), net, protocol


@contextmanager
def collected(faults: list[str]) -> Iterator[None]:
    """Bad input inside adds to the faults; what follows is still looked at."""
    try:
        yield
    except BadInput as error:
        faults += [fault for fault in error.faults if fault not in faults]


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _settings(asked: Asked, faults: list[str]) -> Given:
    """All that was set, by --set and by the options that are short for it."""
    given: Given = defaultdict(dict)
    short = {
        "stream": {"tasks": asked.tasks, "examples": asked.examples},
        "protocol": {"lr": asked.lr, "batch": asked.batch, "epochs": asked.epochs, "optimiser": asked.optimiser},
    }
    for owner, values in short.items():
        given[owner] = {name: value for name, value in values.items() if value is not None}
    for text in asked.settings:
        key, equals, value = text.partition("=")
        owner, _, name = key.strip().rpartition(".")
        if not equals or not name:
            faults.append(f"--set must be NAME=VALUE, e.g. memories=256 or net.hidden=400,400, not {text!r}")
        elif name in given[owner] or ((owner, name) == ("stream", "scenario") and asked.scenario is not None):
            faults.append(f"{key.strip()} is given twice; give it once")
        else:
            given[owner][name] = value.strip()
    return given


def _methods(asked: Asked, given: Given, faults: list[str]) -> list[Learner]:
    found: dict[str, type[Learner]] = {}
    missing: list[str] = []
    for word in asked.methods:
        try:
            name, cls = own.find(methods, word)
        except BadInput as error:
            faults += error.faults
            missing.append(word)
            continue
        if name in found:
            faults.append(f"method {name!r} is named twice; name it once")
        found[name] = cls
    _place_settings(found, missing, given, _elsewhere(asked), faults)
    learners = []
    for name, cls in found.items():
        values = {k: v for k, v in given[""].items() if k in hints(cls)} | given[name]
        with collected(faults):
            learners.append(own.made(cls, values, f"method {name!r}", "--set "))
    return learners


def _elsewhere(asked: Asked) -> dict[str, str]:
    """Settings that are no method's -> their owner; where a protocol or stream is unknown, those that all have."""
    owners: tuple[tuple[str, Shelf[Any], str, type | None], ...] = (
        ("net", nets, asked.net, None),
        ("stream", streams, asked.stream, StreamSpec),
        ("protocol", protocols, asked.protocol, Passing),
    )
    classes = ((owner, _class(shelf, word) or base) for owner, shelf, word, base in owners)
    found = {setting: owner for owner, cls in classes if cls is not None for setting in hints(cls)}
    return {**dict.fromkeys(SEED, "stream"), **found}


def _class(shelf: Shelf[T], word: str) -> type[T] | None:
    with collected([]):
        return own.find(shelf, word)[1]
    return None


def _place_settings(
    found: dict[str, type[Learner]], missing: list[str], given: Given, elsewhere: dict[str, str], faults: list[str]
) -> None:
    """Every setting must have an owner; while a method is unknown, it might be any."""
    fields = [name for cls in found.values() for name in hints(cls)]
    if missing or not found:
        fields += [name for word in methods.names() for name in hints(methods.find(word))]
    for name in given[""]:
        if name in fields:
            continue
        who = f"method {next(iter(found))!r}" if len(found) == 1 and not missing else "these methods"
        plain = [said for word, cls in found.items() if (said := untyped(cls, name, f"method {word!r}"))]
        if plain:
            faults.append(plain[0])
        elif name in elsewhere:
            faults.append(f"unknown setting {name!r} of {who}; did you mean '{elsewhere[name]}.{name}'?")
        elif fields:
            faults.append(unknown("method setting", name, set(fields)))
        else:
            faults.append(f"unknown setting {name!r}: {who} has no settings")
    for owner in given:
        if owner in ("", *OWNERS, *found, *missing) or not given[owner]:
            continue
        if owner in methods.names():
            faults.append(f"--set {owner}.{next(iter(given[owner]))}: method {owner!r} is not run here")
        else:
            faults.append(unknown("owner of a setting", owner, [*found, *OWNERS]))


def _execution(asked: Asked, faults: list[str]) -> Execution:
    given = {name: getattr(asked, name) for name in hints(Execution)}
    values = {name: value for name, value in given.items() if value is not None}
    wrong = faults_in(Execution, values, "this run")
    if wrong:
        faults += wrong
        return Execution()
    execution = make(Execution, values, "this run")
    twice = sorted({seed for seed in execution.seeds if execution.seeds.count(seed) > 1})
    faults += [f"seed {seed} is given twice; give it once" for seed in twice]
    return execution


def _streams(asked: Asked, given: Given, seed: int, faults: list[str]) -> list[Stream]:
    """One stream per scenario; where its seed is given, every run has the stream of that seed."""
    values, found = given["stream"], []
    scenarios = _words(asked.scenario) if asked.scenario is not None else []
    if asked.scenario is not None and not scenarios:
        faults.append(f"--scenario must be one or more of class, domain, task, not {asked.scenario!r}")
    faults += [f"scenario {word!r} is given twice; give it once" for word in _twice(scenarios)]
    specs = [
        _made(streams, StreamSpec, asked.stream, {**values, **scenario}, faults, SEED)
        for scenario in ([{"scenario": word} for word in scenarios] or [{}])
    ]
    data, before = None, len(faults)
    with collected(faults):
        data = _data(asked)
    if data is not None and not any(specs):  # whatever the stream, its data set may be at fault
        with collected(faults):
            as_datasets(data, seed)
    if len(faults) > before and data is None:
        return []
    for spec in specs:
        if spec is not None:
            name = name_of(spec)
            with collected(faults), guarded(f"stream {name!r}"):
                cut = spec.cut(name, data, seed)
                cut = cut.fixed(fit(Whole, values["seed"])) if "seed" in values else cut
                found.append(cut if asked.first is None else cut.first(asked.first))
                if asked.alone:
                    found.append(last_alone(cut))
    return found


def _data(asked: Asked) -> Source | str | None:
    """What the streams are cut from; none given: their usual data set."""
    given = {"label": asked.label, "test": asked.test, "columns": asked.columns, "features": asked.features}
    said = {name: value for name, value in given.items() if value is not None}
    if asked.data is None and said:
        raise BadInput(*(f"--{name} says how data are read; say which with --data" for name in said))
    return None if asked.data is None else own.source({"name": asked.data, **said})


def _protocol(name: str, values: dict[str, str], faults: list[str]) -> Protocol | None:
    """`online` is one pass; asked for more, it is `epochs`."""
    if name == "online" and "epochs" in values:
        wrong = faults_in(protocols.find("epochs"), {"epochs": values["epochs"]}, "protocol 'epochs'")
        if wrong or int(values["epochs"]) > 1:
            name = "epochs"
        else:
            values = {k: v for k, v in values.items() if k != "epochs"}
    return _made(protocols, Passing, name, values, faults)


def _net(word: str, values: dict[str, str], faults: list[str]) -> NetLike | None:
    if not own.is_own(word):
        return _made(nets, None, word, values, faults)
    faults += [f"--set net.{name}: a net of your own has no settings" for name in values]
    with collected(faults):
        return own.net(word)
    return None


def _made(
    shelf: Shelf[Any],
    base: type | None,
    word: str,
    values: dict[str, str],
    faults: list[str],
    besides: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """What has this name, or None; when there is no such thing, the settings that all have are still looked at.

    `besides`: what can be set that is not the thing's own.
    """
    with collected(faults):
        name, cls = own.find(shelf, word)
        owner = f"{shelf.word} {name!r}"
        with collected(faults):
            if wrong := faults_in(cls, values, owner, besides):
                raise BadInput(*wrong)
            used = {setting: value for setting, value in values.items() if setting not in besides}
            return own.made(cls, used, owner, f"--set {shelf.word}.")
        return None
    if base is not None:
        known = {k: v for k, v in values.items() if k in {**hints(base), **besides}}
        faults += [f for f in faults_in(base, known, f"{shelf.word} {word!r}", besides) if f not in faults]
    return None


def _check(
    learners: Sequence[Learner],
    cut: Sequence[Stream],
    net: NetLike | None,
    protocol: Protocol | None,
    faults: list[str],
) -> None:
    """Does the network fit the stream, and may the method run there? What is at fault already has a stand-in."""
    usual = protocol or protocols.make("online", {})
    for stream in cut:
        for learner in learners or [methods.make("finetune", {})]:
            cell = Cell(learner, stream, nets.make("mlp", {}) if net is None else net, usual, 0, "cpu")
            with collected(faults), guarded("the network"):
                cell.check()


def _twice(words: Sequence[str]) -> list[str]:
    return sorted({word for word in words if words.count(word) > 1})
