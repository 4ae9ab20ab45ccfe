"""What `holdfast advise` does."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast import advice as advising
from holdfast.advice import Advice, advise
from holdfast.commands.experiment import Asked, collected, pieces_of
from holdfast.commands.run import Output
from holdfast.commands.terminal import Stopped, print_json, tell
from holdfast.disk import unwritable
from holdfast.errors import BadInput, unknown
from holdfast.methods import methods
from holdfast.settings import Count, expected, fits
from holdfast.streams import as_datasets
from holdfast.sweeps import own
from holdfast.types import DataSet

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
TIMES = {"s": 1, "m": 60, "h": 3600}
CUT = ("tasks", "order", "sizes")  # what --old and --new say of the stream


@dataclass(frozen=True)
class Wanted:
    """The words of the command; None where the default is wanted."""

    data: str | None
    label: str | None
    test: str | None
    columns: str | None
    features: str | None
    old: str | None
    new: str | None
    stream: str | None
    scenario: str | None
    memory: str | None
    keep_data: str
    time: str
    methods: str | None
    net: str | None
    settings: tuple[str, ...]
    seeds: str
    jobs: str | None

    @property
    def source(self) -> dict[str, str]:
        """How the data are read."""
        said = {"label": self.label, "test": self.test, "columns": self.columns, "features": self.features}
        return {word: text for word, text in said.items() if text is not None}


def advise_asked(wanted: Wanted, output: Output) -> int:
    """Everything from the typed words to the exit code."""
    found: list[str] = []
    memory = None if wanted.memory is None else amount("--memory", wanted.memory, SIZES, "5MB", found)
    seconds = amount("--time", wanted.time, TIMES, "20m", found)
    if wanted.keep_data not in ("yes", "no"):
        found.append(f"--keep-data must be yes or no, not {wanted.keep_data!r}")
    if not fits(Count, wanted.seeds):
        found.append(f"--seeds must be {expected(Count)}, not {wanted.seeds!r}")
    said: list[str] = []
    pieces = pieces_of(_asked(wanted, found, said), found, all_able=False)
    if output.out is not None:
        found += _closed(Path(output.out))
    if found:
        raise BadInput(*dict.fromkeys(found))
    (stream,), quiet = pieces.streams, output.quiet or output.json
    for line in () if output.quiet else (*stream.told, *said):
        tell(line)
    net_is_given = wanted.net is not None or any(text.strip().startswith("net.") for text in wanted.settings)
    try:
        advice = advise(
            stream,
            pieces.learners,
            memory=None if memory is None else max(int(memory), 1),
            keep_data=wanted.keep_data == "yes",
            seconds=seconds,
            net=pieces.net if net_is_given else None,
            protocol=pieces.protocol,
            seeds=int(wanted.seeds),
            jobs=pieces.execution.jobs,
            out=output.out,
            watch=(lambda line: None) if quiet else tell,
        )
    except KeyboardInterrupt as error:
        kept = f"; what is finished is kept in {output.out}, and the same command goes on from there"
        raise Stopped(f"stopped{kept if output.out is not None else ''}") from error
    _say(advice, output)
    return 0


def amount(option: str, text: str, units: dict[str, int], example: str, faults: list[str]) -> float | None:
    """
    >>> amount("--memory", "5MB", SIZES, "5MB", []), amount("--time", "1.5h", TIMES, "20m", [])
    (5000000.0, 5400.0)
    """
    known = {unit.lower(): size for unit, size in units.items()}
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    found = float(match[1]) * known[match[2]] if match is not None and match[2] in known else 0.0
    if not 0 < found < math.inf:
        faults.append(f"{option} must be a number above 0 with {', '.join(units)}, e.g. {example}, not {text!r}")
        return None
    return found


def _closed(out: Path) -> list[str]:
    """Why the advice cannot be kept there."""
    found = unwritable(out)
    if not found:
        with collected(found):
            advising.refuse(out)
    return found


def _asked(wanted: Wanted, faults: list[str], said: list[str]) -> Asked:
    """As if a run of all candidates had been asked for; adds to the faults, and to what is said of the classes."""
    settings = [] if any(text.strip().startswith("stream.val=") for text in wanted.settings) else ["stream.val=0.1"]
    if wanted.stream is None:
        settings += _of_classes(wanted, faults, said)
    elif wanted.old is not None or wanted.new is not None:
        faults.append("--stream says which classes are old and which are new; leave out --old and --new")
    names = methods.names()
    if wanted.methods is not None:
        names = [word.strip() for word in wanted.methods.split(",") if word.strip()]
        faults += [] if names else [f"--methods names no method: {wanted.methods!r}; see `holdfast list methods`"]
    scenario = wanted.scenario
    if scenario is not None and "," in scenario:
        faults.append(f"--scenario must be one of class, domain, task, not {scenario!r}")
        scenario = None
    return Asked(
        methods=tuple(names),
        stream=wanted.stream or "split",
        data=wanted.data,
        label=wanted.label,
        test=wanted.test,
        columns=wanted.columns,
        features=wanted.features,
        scenario=scenario,
        net=wanted.net or "mlp",
        protocol="realistic",
        settings=(*settings, *wanted.settings),
        jobs=wanted.jobs,
    )


def _of_classes(wanted: Wanted, faults: list[str], said: list[str]) -> list[str]:
    """The stream whose first task has the old classes and whose second has the new ones."""
    twice = [name for name in CUT if any(text.strip().startswith(f"stream.{name}=") for text in wanted.settings)]
    faults += [f"--set stream.{name}: --old and --new say that; leave it out, or give a --stream" for name in twice]
    if wanted.old is None and wanted.new is None:
        faults.append("say which classes are new, e.g. --new 3,4; or give a stream, e.g. --stream split")
    if wanted.data is None:
        faults.append(
            "say which data: a file, a folder or a data set's name, e.g. `holdfast advise flowers.csv --new b`"
        )
        return []
    data: list[DataSet] = []
    with collected(faults):
        data = as_datasets(own.source({"name": wanted.data, **wanted.source}), 0)
    if len(data) > 1:
        faults.append(f"--old and --new are of one data set, not of {len(data)}; give a --stream")
    if len(data) != 1 or len(data[0].classes) < 2:
        return ["stream.tasks=1"]  # nothing more is said of it
    names, before = list(data[0].classes), len(faults)
    old = None if wanted.old is None else _classes("--old", wanted.old, names, faults)
    new = None if wanted.new is None else _classes("--new", wanted.new, names, faults)
    if old is not None and new is not None:
        faults += [
            f"class {names[c]} is in --old and in --new; it is either known already or it comes"
            for c in old
            if c in new
        ]
    first = [c for c in range(len(names)) if c not in (new or ())] if old is None else old
    later = [c for c in range(len(names)) if c not in first] if new is None else new
    if len(faults) == before and not (old is None and new is None) and not (first and later):
        faults.append(f"{'--new' if not first else '--old'} names all classes; leave at least one for the other")
    if len(faults) > before or twice or (old is None and new is None):
        return [] if twice else ["stream.tasks=2"]
    if left := [name for c, name in enumerate(names) if c not in (*first, *later)]:
        said.append(f"classes not looked at, for neither --old nor --new names them: {', '.join(left)}")
    order = ",".join(map(str, [*first, *later]))
    return ["stream.tasks=2", f"stream.order={order}", f"stream.sizes={len(first)},{len(later)}"]


def _classes(option: str, text: str, names: Sequence[str], faults: list[str]) -> list[int]:
    found = [text] if text in names else next(csv.reader([text], skipinitialspace=True), [])
    words = list(dict.fromkeys(word.strip() for word in found if word.strip()))
    faults += [unknown("class", word, names, f" in {option}") for word in words if word not in names]
    if not words:
        faults.append(f"{option} names no class; choose from {', '.join(names)}")
    return [list(names).index(word) for word in words if word in names]


def _say(advice: Advice, output: Output) -> None:
    if output.json:
        print_json(advice.summary())
    elif not output.quiet:
        print(advice)
        if output.out is not None:
            tell(f"report: {(Path(output.out) / 'report.html').resolve()}")
