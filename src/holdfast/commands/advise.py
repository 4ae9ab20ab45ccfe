"""What `holdfast advise` does."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.advice import Advice, advise
from holdfast.commands import folder
from holdfast.commands.experiment import Asked, cells_of, collected
from holdfast.commands.run import Output
from holdfast.commands.terminal import print_json, tell
from holdfast.errors import BadInput, unknown
from holdfast.settings import Count, expected, fits
from holdfast.streams import as_datasets
from holdfast.types import DataSet

SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9}
TIMES = {"s": 1, "m": 60, "h": 3600}


@dataclass(frozen=True)
class Wanted:
    """The words of the command; None where the default is wanted."""

    data: str
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


def advise_asked(wanted: Wanted, output: Output) -> int:
    """Everything from the typed words to the exit code."""
    found: list[str] = []
    memory = None if wanted.memory is None else amount("--memory", wanted.memory, SIZES, "5MB", found)
    seconds = amount("--time", wanted.time, TIMES, "20m", found)
    if wanted.keep_data not in ("yes", "no"):
        found.append(f"--keep-data must be yes or no, not {wanted.keep_data!r}")
    if not fits(Count, wanted.seeds):
        found.append(f"--seeds must be {expected(Count)}, not {wanted.seeds!r}")
    cells, ways = cells_of(_asked(wanted, found), found)
    if output.out is not None:
        found += folder.faults(Path(output.out), fresh=False)
    if found:
        raise BadInput(*dict.fromkeys(found))
    advice = advise(
        cells[0].stream,
        None if wanted.methods is None else [cell.method for cell in cells],
        memory=memory,
        keep_data=wanted.keep_data == "yes",
        seconds=seconds,
        net=wanted.net,
        protocol=cells[0].protocol,
        seeds=int(wanted.seeds),
        jobs=ways.jobs,
        names=_names(wanted),
        out=output.out,
        watch=(lambda line: None) if output.quiet or output.json else tell,
    )
    _say(advice, output)
    return 0


def amount(option: str, text: str, units: dict[str, int], example: str, faults: list[str]) -> int | None:
    """
    >>> amount("--memory", "5MB", SIZES, "5MB", []), amount("--time", "1.5h", TIMES, "20m", [])
    (5000000, 5400)
    """
    known = {unit.lower(): size for unit, size in units.items()}
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text.strip().lower())
    if match is None or match[2] not in known or not float(match[1]):
        faults.append(f"{option} must be a number above 0 with {', '.join(units)}, e.g. {example}, not {text!r}")
        return None
    return int(float(match[1]) * known[match[2]])


def _asked(wanted: Wanted, faults: list[str]) -> Asked:
    """As if a run of one method had been asked for."""
    settings = [] if any(text.strip().startswith("stream.val=") for text in wanted.settings) else ["stream.val=0.1"]
    if wanted.stream is None:
        settings += _of_classes(wanted, faults)
    elif wanted.old is not None or wanted.new is not None:
        faults.append("--stream says which classes are old and which are new; leave out --old and --new")
    return Asked(
        methods=("finetune",) if wanted.methods is None else tuple(wanted.methods.split(",")),
        stream=wanted.stream or "split",
        data=wanted.data,
        scenario=wanted.scenario,
        net=wanted.net or "mlp",
        protocol="realistic",
        settings=(*settings, *wanted.settings),
        jobs=wanted.jobs,
    )


def _of_classes(wanted: Wanted, faults: list[str]) -> list[str]:
    """The stream whose first task has the old classes and whose second has the new ones."""
    data: list[DataSet] = []
    with collected(faults):
        data = as_datasets(wanted.data, 0)
    if wanted.new is None:
        faults.append("say which classes are new: --new 3,4; or give a stream: --stream split")
    if len(data) != 1 or wanted.new is None:
        return []
    names = list(data[0].classes)
    new = _classes("--new", wanted.new, names, faults)
    others = [c for c in range(len(names)) if c not in new]
    old = others if wanted.old is None else _classes("--old", wanted.old, names, faults)
    if both := [names[c] for c in old if c in new]:
        faults.append(f"class {both[0]} is in --old and in --new; it is either known already or it comes")
        return []
    if not old and wanted.old is None:
        faults.append("--new names all classes; leave at least one that is known already")
    order = ",".join(map(str, [*old, *new]))
    return ["stream.tasks=2", f"stream.order={order}", f"stream.sizes={len(old)},{len(new)}"]


def _names(wanted: Wanted) -> Sequence[str]:
    """Of the classes, as the outputs have them; where a stream may have renumbered them, none."""
    return as_datasets(wanted.data, 0)[0].classes if wanted.stream is None else ()


def _classes(option: str, text: str, names: Sequence[str], faults: list[str]) -> list[int]:
    found = []
    for word in dict.fromkeys(word.strip() for word in text.split(",") if word.strip()):
        if word in names:
            found.append(list(names).index(word))
        else:
            faults.append(unknown("class", word, names, f" in {option}"))
    if not found and not faults:
        faults.append(f"{option} names no class; choose from {', '.join(names)}")
    return found


def _say(advice: Advice, output: Output) -> None:
    if output.json:
        print_json(advice.summary())
    elif not output.quiet:
        print(advice)
        if output.out is not None:
            tell(f"report: {(Path(output.out) / 'report.html').resolve()}")
