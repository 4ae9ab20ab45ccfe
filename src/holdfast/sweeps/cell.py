"""A cell: one method on one stream with one seed, ready to run anywhere, known by the hash of all that decides it."""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import json
import os
import platform
import re
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

from holdfast.audit import Lease
from holdfast.engine import Keeper, Net
from holdfast.errors import BadInput, guarded
from holdfast.methods import Learner
from holdfast.nets import NetSpec, Warm
from holdfast.protocols import Job, Protocol, Reshape, Session, Watch, fresh, name_of, record_of, slips_at_start
from holdfast.seeds import generator, seed_for, seeded
from holdfast.settings import FIXED, changed, provenance, settings_of
from holdfast.sweeps._code import own_code, own_files
from holdfast.types import Lesson, Record, Stream, StreamInfo

_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
LONGEST_NAME = 80  # characters of a name in a file's; file systems take 255
NetLike = NetSpec | nn.Module | Callable[[StreamInfo], nn.Module]
Leave = Callable[[Session, Record], None]
Parts = tuple[Learner, Stream, Net, int, Watch | None, Keeper | None, Reshape | None]


@dataclass(frozen=True, eq=False)
class Cell:
    """What one run needs. The seed sets the stream, the weights, the batches and the learner."""

    method: Learner
    stream: Stream
    net: NetLike
    protocol: Protocol
    seed: int
    device: str = "auto"
    reseed: bool = True  # cut the stream with this cell's seed; otherwise it is taken as it is
    choice_cost: Mapping[str, float] | None = None  # what choosing its settings cost: runs, seconds, flops
    threads: int = 1  # more than one orders sums differently, so that they count among the settings
    title: str | None = None  # what it is called while it runs, in place of what tells it from others; decides nothing

    @property
    def name(self) -> str:
        """The name of its folder: whatever a class is called, it stays inside the folder of all cells."""
        return f"{file_word(name_of(self.method))}-s{self.seed}-{self.hash[:8]}"

    @functools.cached_property
    def hash(self) -> str:
        """Settings, code version and data fingerprint decide it."""
        return hash_of(self.settings(), self.seed)

    def settings(self) -> dict[str, Any]:
        """All that decides the result but the seed, as JSON."""
        return {
            "method": {
                "name": name_of(self.method),
                **self._method_settings(),
                **own_code(*type(self.method).__mro__),
            },
            "stream": {
                "name": self.stream.name,
                **self.stream.settings,
                **({} if self.reseed else {"seed": self.stream.seed}),
                **own_code(*type(self.stream.spec).__mro__),
            },
            "net": describe(self.net),
            "protocol": {
                "name": name_of(self.protocol),
                **settings_of(self.protocol),
                **own_code(*type(self.protocol).__mro__),
            },
            "data": self.stream.fingerprint,
            "device": str(pick_device(self.device)),
            "code": code_version(),
            **({} if self.threads == 1 else {"threads": self.threads}),
            **self._provenance(),
        }

    def code(self) -> dict[str, str]:
        """Each digest of code among its settings, and what it is of: 'MAS in mas.py'."""
        settings, things = self.settings(), {
            "method": type(self.method).__mro__,
            "stream": type(self.stream.spec).__mro__,
            "net": _made_of(self.net),
            "protocol": type(self.protocol).__mro__,
        }  # fmt: skip
        theirs = {kind: " or ".join(own_files(*made)) for kind, made in things.items() if "source" in settings[kind]}
        said = {kind: f"{settings[kind]['name']}{f' in {files}' if files else ''}" for kind, files in theirs.items()}
        return {settings["code"]: "Holdfast", **{settings[kind]["source"]: what for kind, what in said.items()}}

    def _provenance(self) -> dict[str, Any]:
        """Who chose what, as far as it decides what is run or what the record says of its cost."""
        open_shape = self.protocol.chooses_shape and has_open_shape(self.net)
        chosen = {
            f"{place}.{name}": setting["chosen_by"]
            for place, thing in {"method": self.method, "net": self.net, "protocol": self.protocol}.items()
            for name, setting in provenance(thing).items()
            if setting["chosen_by"] not in FIXED
        }
        cost = self.choice_cost or {}
        spent = {name: number for name, number in cost.items() if name != "seconds"}  # which never repeat
        said = {"open_shape": open_shape, "chosen_by": chosen, "trials": spent}
        return {name: value for name, value in said.items() if value}

    def check(self) -> None:
        """Raise the faults that would stop this cell before its first step."""
        with guarded(f"protocol {name_of(self.protocol)!r}", "be used"):
            self.refuse()
            descent = self.protocol.descent()
        info = self.stream.info
        net = self._net(info, torch.device("cpu"))
        learner = fresh(self.method)
        try:
            learner.start(net, descent, info, generator(self.seed, "check"))
        except BadInput:
            raise
        except Exception as error:  # a user's method may raise anything
            name = name_of(self.method)
            raise BadInput(f"method {name!r} cannot start: {type(error).__name__}: {error}") from error
        if slips := slips_at_start(learner):
            raise BadInput(*slips)

    def refuse(self) -> None:
        """Raise the faults that need neither a network nor a learner at work to be found."""
        self.protocol.refuse(self.method, self.stream)
        if wrong := self.protocol.faults_of_shape(has_open_shape(self.net)):
            raise BadInput(*wrong)

    def run(self, watch: Watch | None = None, keep: Keeper | None = None, leave: Leave | None = None) -> Record:
        """Run it, from where `keep` has it if it was begun before. Its faults were looked for before.

        `leave` gets the finished session and its record, before the session is gone.
        """
        with in_threads(self.threads), seeded(seed_for(self.seed, "training")):
            session = self.protocol.run(*self._parts(watch, keep))
            chosen = {"net": provenance(self.net)} if isinstance(self.net, NetSpec) else {}
            given = {name: {"value": value, "chosen_by": "given"} for name, value in self._method_settings().items()}
            chosen[""] = {**given, **provenance(self.method)}
            if self.threads > 1:
                chosen["run"] = {"threads": {"value": self.threads, "chosen_by": "given"}}
            net_words = {**describe(self.net), "parameters": session.learner.net.size}
            record = record_of(session, self.protocol, net_words, chosen, self.choice_cost)
            if leave is not None:  # here, where the random numbers are the run's
                leave(session, record)
            return record

    def restored(self, keep: Keeper) -> Session:
        """The session of a run that is over, as `keep` has it; no step is taken."""
        with in_threads(self.threads), seeded(seed_for(self.seed, "training")):
            return self.protocol.show(Job(*self._parts(None, keep), self.protocol.score))

    def _parts(self, watch: Watch | None, keep: Keeper | None) -> Parts:
        """What a protocol is given."""
        device = touched(pick_device(self.device))
        stream = (self.stream.reseed(self.seed) if self.reseed else self.stream).to(device)
        net = self._net(stream.info, device)
        reshape = functools.partial(self._reshaped, stream.info, device) if has_open_shape(self.net) else None
        return fresh(self.method), stream, net, self.seed, watch, keep, reshape

    def numbers(self) -> list[int]:
        """What is kept after each task as paper 000 counts it (Mem.), of the real objects: no step is taken."""
        return [learner.numbers_kept(t + 1) for t, learner in enumerate(self._beginning())]

    def passed(self) -> tuple[int, int]:
        """Of its networks' numbers, batch statistics included, those of the modules that a row of the last task passes
        through to be answered, and those that only rows of other tasks do. No step is taken.
        """
        *_, learner = self._beginning()
        given, seen = self.stream.info.task_given, dict[nn.Module, None]()
        modules = [m for net in vars(learner).values() if isinstance(net, Net) for m in net.module.modules()]
        own = [m for m in modules if [*m.parameters(recurse=False), *m.buffers(recurse=False)]]
        watched = [m.register_forward_hook(lambda module, *_: seen.setdefault(module)) for m in own]
        counts = []
        with torch.inference_mode():
            for task in reversed(self.stream.tasks):
                learner.predict(task.test.x(slice(1)), task.t if given else None)
                counts.append(sum(map(_numbers_in, seen)))
        for handle in watched:
            handle.remove()
        return counts[0], counts[-1] - counts[0]

    def _beginning(self) -> Iterator[Learner]:
        """The learner at the beginning of each task."""
        info, learner = self.stream.info, fresh(self.method)
        net = self._net(info, torch.device("cpu"))
        learner.start(net, self.protocol.descent(), info, generator(self.seed, "check"))
        for task in self.stream.tasks:
            learner.begin(Lease(task.t, task.train, task.val), Lesson(0, 0, 1))
            yield learner

    def _method_settings(self) -> dict[str, Any]:
        """The method's fields, and whatever else its constructor put on it."""
        public = {name: value for name, value in vars(self.method).items() if not name.startswith("_")}
        return {name: plain(value) for name, value in {**public, **settings_of(self.method)}.items()}

    def _reshaped(self, info: StreamInfo, device: torch.device, hidden: tuple[int, ...]) -> Net:
        """A fresh network with other hidden layers."""
        other = changed(self.net, {"hidden": hidden}, "given", "the net")
        return replace(self, net=other)._net(info, device)

    def _net(self, info: StreamInfo, device: torch.device) -> Net:
        return make_net(self.net, info, device, self.seed)


def _numbers_in(module: nn.Module) -> int:
    """Its own weights and buffers, without those of modules in it."""
    return sum(t.numel() for t in (*module.parameters(recurse=False), *module.buffers(recurse=False)))


def check_all(cells: Sequence[Cell]) -> None:
    """Check all cells, those that differ in nothing but the seed once."""
    alike = {(id(cell.method), id(cell.stream), id(cell.net), id(cell.protocol)): cell for cell in reversed(cells)}
    for cell in reversed(alike.values()):
        cell.check()


def make_net(net: NetLike, info: StreamInfo, device: torch.device, seed: int) -> Net:
    """The network with the initial weights that a seed gives it."""
    build = _maker(net, info)
    with seeded(seed_for(seed, "weights")):
        module = build().to(device)
    made = Net(module, build)
    _check_outputs(made, info)
    return made


def _maker(net: NetLike, info: StreamInfo) -> Callable[[], nn.Module]:
    """What makes another module of this kind. A user's module, or what their function holds, is the run's and not the
    learner's, so that it does not count in the footprint: the learner has a weak reference to it.
    """
    if isinstance(net, NetSpec):
        return functools.partial(build_module, net, info)
    theirs = weakref.ref(net)

    def build() -> nn.Module:
        mine = theirs()
        assert mine is not None, "the run that a network was given to is over"
        return build_module(mine, info)

    return build


def hash_of(settings: Mapping[str, Any], seed: int) -> str:
    """Of a cell with these settings; JSON leaves it as it is, so that a folder's cells can be found from its runs."""
    return hashlib.sha256(json.dumps({**settings, "seed": seed}, sort_keys=True).encode()).hexdigest()


def has_open_shape(net: NetLike) -> bool:
    """Whether a list of hidden layers is among its settings, and nobody has given it."""
    hidden = provenance(net).get("hidden") if isinstance(net, NetSpec) else None
    return hidden is not None and isinstance(hidden["value"], tuple) and hidden["chosen_by"] != "given"


def build_module(net: NetLike, info: StreamInfo) -> nn.Module:
    if isinstance(net, NetSpec):
        return net.build(info)
    if isinstance(net, nn.Module):
        return copy.deepcopy(net).train()
    module = net(info)
    if not isinstance(module, nn.Module):
        raise BadInput(f"net must make an nn.Module, but {describe(net)['name']} made a {type(module).__name__}")
    return module


def describe(net: NetLike) -> dict[str, Any]:
    """The network in words: its name and settings."""
    code = own_code(*_made_of(net))
    if isinstance(net, NetSpec):
        return {"name": type(net).__module__.rpartition(".")[2], **settings_of(net), **code}
    if isinstance(net, nn.Module):
        weights = hashlib.sha256()
        for tensor in net.state_dict().values():
            weights.update(tensor.detach().cpu().contiguous().numpy().tobytes())
        return {"name": type(net).__name__, "module": repr(net), "weights": weights.hexdigest(), **code}
    if isinstance(net, Warm):
        return {**describe(net.module), "warm": True}
    if isinstance(net, functools.partial):
        return {**describe(net.func), "arguments": repr((net.args, net.keywords))}
    if not inspect.isfunction(net):
        return {"name": getattr(net, "__name__", type(net).__name__), **code}
    captured = inspect.getclosurevars(net).nonlocals
    return {"name": net.__name__, **code, **({"captured": repr(captured)} if captured else {})}


def _made_of(net: NetLike) -> tuple[Any, ...]:
    """The classes or the function behind a network."""
    if isinstance(net, NetSpec):
        return (type(net),)
    if isinstance(net, nn.Module):
        return tuple(dict.fromkeys(type(module) for module in net.modules()))
    return _made_of(net.func) if isinstance(net, functools.partial) else (net,)


def pick_device(name: str) -> torch.device:
    """`auto` is cuda, then mps, then cpu.

    It is looked up and not touched: once CUDA has begun in a process, those forked from it cannot use it.
    """
    with _without_beginning_cuda():
        gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    there = {"cuda": gpus, "mps": int(torch.backends.mps.is_available()), "cpu": 1}
    try:
        device = torch.device(next(kind for kind in there if there[kind]) if name == "auto" else name)
    except RuntimeError:  # not the name of any
        device = None
    if device is None or (device.index or 0) >= there.get(device.type, 0):
        raise BadInput(f"device {name!r} is not available here; choose from auto, cpu, cuda, mps")
    return device


def touched(device: torch.device) -> torch.device:
    """The device, in the process that uses it; one that only pretends fails here."""
    try:
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).split("\n")[0]
        raise BadInput(f"device {str(device)!r} cannot be used: {reason}") from error
    return device


@contextmanager
def _without_beginning_cuda() -> Iterator[None]:
    """torch asks the driver's own library then, as far as it can, and a fork stays possible."""
    before = os.environ.get(_NVML)
    os.environ[_NVML] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[_NVML]
        else:
            os.environ[_NVML] = before


def one_thread() -> AbstractContextManager[None]:
    """Small nets gain nothing from a second thread and collapse beside another job; parallel work is processes."""
    return in_threads(1)


@contextmanager
def in_threads(number: int) -> Iterator[None]:
    """So many threads, and as many as before afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def versions() -> dict[str, str]:
    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "holdfast": code_version(),
    }


@functools.cache
def code_version() -> str:
    """A digest of Holdfast's own source, so that results of different code are never mixed."""
    root = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        if path.relative_to(root).parts[0] not in ("cli", "commands", "report", "papers"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def file_word(name: str) -> str:
    """A name as part of a file's: letters, digits and _ + - stay.

    >>> file_word("gem"), file_word("../../evil")
    ('gem', '______evil')
    """
    return re.sub(r"[^\w+-]", "_", name)[:LONGEST_NAME]


def plain(value: Any) -> Any:
    """A value as JSON has it; what JSON lacks, in words."""
    try:
        return json.loads(json.dumps(value, allow_nan=False))
    except (TypeError, ValueError):
        return repr(value)


def _check_outputs(net: Net, info: StreamInfo) -> None:
    """Two examples through the network: its output must fit the stream."""
    if net.size == 0:
        raise BadInput(f"the network {type(net.module).__name__} has no parameters to train")
    with net.evaluating():
        try:
            outputs = tuple(net(torch.zeros(2, *info.shape, device=net.device)).shape)
        except (RuntimeError, ValueError) as error:
            reason = str(error).split("\n")[0]
            raise BadInput(f"the network does not take examples of shape {info.shape}: {reason}") from error
    if outputs != (2, info.classes):
        raise BadInput(f"the network gives outputs of shape {outputs[1:]}, the stream needs ({info.classes},)")
