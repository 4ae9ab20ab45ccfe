"""Records that differ only in their seed belong together; each such group gets a label of its own."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.metrics.scores import METRICS, summary
from holdfast.settings import FIXED
from holdfast.types import Record

SCENARIO = ("scenario", "stream.scenario")  # the condition, as it is called in the record and among the settings
NO_CONDITION = ("seed", "parameters")  # a network may grow differently with each seed


@dataclass(frozen=True, eq=False)
class Asked:
    """Runs that were asked for, which differ only in their seed, and what became of them."""

    title: str  # what they are called where no record gives them a label
    seeds: tuple[int, ...]
    failed: tuple[int, ...]  # of these seeds; one that neither failed nor has a record was not run yet
    records: tuple[Record, ...]


@dataclass(frozen=True)
class Group:
    """The runs of one method under one set of conditions, one record per seed, in order of seeds."""

    label: str  # unique in its list
    records: tuple[Record, ...]
    asked: tuple[int, ...]  # seeds that were asked for, finished or not
    failed: tuple[int, ...]  # those of them that went wrong

    @property
    def first(self) -> Record:
        return self.records[0]

    @property
    def seeds(self) -> list[int]:
        return [record.seed for record in self.records]

    @property
    def complete(self) -> bool:
        """Whether all its seeds finished. Those that did say little of a method that may diverge."""
        return len(self.records) == len(self.asked)

    @property
    def scenario(self) -> str:
        return self.first.scenario

    @property
    def task_label_given(self) -> bool:
        return self.first.scenario == "task"

    @property
    def mixed(self) -> bool:
        return self.first.mixed

    @property
    def net(self) -> str:
        return str(self.first.net.get("name", "net"))

    @property
    def arena(self) -> str:
        """Groups are ranked against each other only inside one arena: the same stream in the same scenario."""
        return canonical([_without_chosen(self.first, "stream"), self.scenario, len(self.first.tasks)])

    @property
    def beside_scenario(self) -> str:
        """All its conditions but the scenario: groups that share them differ in nothing else."""
        found = _conditions(self.first)
        return canonical({name: value for name, value in found.items() if name not in SCENARIO})

    @property
    def alone(self) -> int | None:
        """Which task of its stream it learned, if no other, counted from 0."""
        return self.first.stream.get("only")

    @property
    def tuned(self) -> frozenset[str]:
        """The settings that were chosen over the stream, which a task alone has not."""
        return frozenset(n for n, setting in self.first.settings.items() if setting["chosen_by"] == "val:stream")

    def beside_alone(self, tuned: frozenset[str] = frozenset()) -> str:
        """All its conditions but whether a task is learned alone, and these settings."""
        found, without = _conditions(self.first), {"tasks", "stream.only", *tuned}
        return canonical({name: value for name, value in found.items() if name not in without})

    def conditions(self, place: str) -> dict[str, Any]:
        """The net, stream or protocol all its runs had; of a value chosen during each run, who chose it."""
        return {
            name: value
            if name in _without_chosen(self.first, place)
            else f"by {self.first.settings[f'{place}.{name}']['chosen_by']}"
            for name, value in getattr(self.first, place).items()
            if _is_condition(self.first, place, name)
        }

    @cached_property
    def by_seed(self) -> dict[int, dict[str, float | None]]:
        return {record.seed: summary(record) for record in self.records}

    def values(self, metric: str) -> list[float | None]:
        return [scores.get(metric) for scores in self.by_seed.values()]

    def metrics(self) -> list[str]:
        """The metrics that any of its records has, in the order of METRICS."""
        present = {name for scores in self.by_seed.values() for name in scores}
        return [name for name in METRICS if name in present]


def group(records: Iterable[Record], names: Sequence[str] = (), asked: Iterable[Asked] = ()) -> list[Group]:
    """Group records by everything but the seed, in order of appearance, and label the groups.

    A label is the method's name when that is unambiguous, else method/scenario, else method/net/scenario; settings
    that tell otherwise equal groups apart are appended, e.g. gem[memories=256]. A seed that comes again under the
    same conditions is another run (gem[run=2]), so that no seed counts twice. Where `names` gives every record a
    label of its own and those tell the groups apart, they are taken instead. `asked` says which seeds there should
    be; where it says nothing of a record, those there are.
    """
    together: dict[str, list[Record]] = defaultdict(list)
    wanted: dict[str, dict[Asked, None]] = defaultdict(dict)
    conditions: dict[str, dict[str, Any]] = {}
    runs = _Runs()
    given: dict[str, str] = {}
    known = {record: each for each in asked for record in each.records}
    for i, record in enumerate(records):
        found = _conditions(record)
        mine = known.get(record) or Asked(record.method, (record.seed,), (), (record,))
        if (run := runs.number(canonical(found), mine, record.seed)) > 1:
            found["run"] = run
        key = canonical(found)
        together[key].append(record)
        wanted[key][mine] = None
        conditions[key] = found
        given.setdefault(key, names[i] if names else "")
    readable = without_fingerprints(list(conditions.values()))
    labels = _labels({key: (together[key][0], found) for key, found in zip(conditions, readable, strict=True)})
    if all(given.values()) and len(set(given.values())) == len(given):
        labels = given
    return [_group(labels[key], rows, wanted[key]) for key, rows in together.items()]


def _group(label: str, records: list[Record], asked: Iterable[Asked]) -> Group:
    finished = {record.seed for record in records}
    return Group(
        label,
        tuple(sorted(records, key=lambda record: record.seed)),
        tuple(sorted({seed for each in asked for seed in each.seeds})),
        tuple(sorted({seed for each in asked for seed in each.failed} - finished)),
    )


class _Runs:
    """Numbers the runs under the same conditions, from 1: seeds that were asked for together stay together."""

    def __init__(self) -> None:
        self.taken: dict[str, list[set[int]]] = defaultdict(list)  # by conditions, the seeds of each run
        self.times: Counter[tuple[Asked, int]] = Counter()
        self.found: dict[tuple[str, Asked, int], int] = {}

    def number(self, conditions: str, asked: Asked, seed: int) -> int:
        self.times[asked, seed] += 1
        key = (conditions, asked, self.times[asked, seed])
        if key not in self.found:
            taken, seeds = self.taken[conditions], set(asked.seeds)
            free = next((i for i, others in enumerate(taken) if not others & seeds), len(taken))
            if free == len(taken):
                taken.append(set())
            taken[free] |= seeds
            self.found[key] = free + 1
        return self.found[key]


def arenas(groups: Iterable[Group]) -> list[list[Group]]:
    """Groups that may be ranked against each other, together."""
    found: dict[str, list[Group]] = defaultdict(list)
    for each in groups:
        found[each.arena].append(each)
    return list(found.values())


def _conditions(record: Record) -> dict[str, Any]:
    """All that was fixed before the run, as flat names: method settings plain, others dotted."""
    found: dict[str, Any] = {"method": record.method, "scenario": record.scenario, "tasks": len(record.tasks)}
    if record.mixed:
        found["mixed"] = True
    for place in ("net", "stream", "protocol"):
        found |= {f"{place}.{name}": value for name, value in _without_chosen(record, place).items()}
    for name, setting in record.settings.items():
        chosen_by = setting["chosen_by"]
        found[name] = setting["value"] if chosen_by in FIXED else f"by {chosen_by}"
    found.pop("seed", None)
    return found


def _without_chosen(record: Record, place: str) -> dict[str, Any]:
    """The net, stream or protocol without values that were chosen during the run, or follow from the run's seed."""
    mapping: Mapping[str, Any] = getattr(record, place)
    return {
        name: value
        for name, value in mapping.items()
        if _is_condition(record, place, name) and not chosen(record, f"{place}.{name}")
    }


def _is_condition(record: Record, place: str, name: str) -> bool:
    """Whether runs that differ here are of different groups; a stream's seed tells them apart where it was given."""
    return name not in NO_CONDITION or f"{place}.{name}" in record.settings


def chosen(record: Record, name: str) -> bool:
    """Whether a setting was chosen during the run, or from trials before it."""
    return name in record.settings and record.settings[name]["chosen_by"] not in FIXED


def _labels(groups: Mapping[str, tuple[Record, dict[str, Any]]]) -> dict[str, str]:
    by_method: dict[str, list[str]] = defaultdict(list)
    for key, (record, _) in groups.items():
        by_method[record.method].append(key)
    labels: dict[str, str] = {}
    for keys in by_method.values():
        labels |= _labels_of_method({key: groups[key] for key in keys})
    return labels


def _labels_of_method(groups: Mapping[str, tuple[Record, dict[str, Any]]]) -> dict[str, str]:
    bases: list[Callable[[Record], str]] = [
        lambda r: r.method + _alone(r),
        lambda r: f"{r.method}/{r.scenario}{_alone(r)}",
        lambda r: f"{r.method}/{r.net.get('name', 'net')}/{r.scenario}{_alone(r)}",
    ]
    apart: list[Callable[[str], bool]] = [  # which conditions a label may name, from none to all
        lambda name: False,
        lambda name: "." not in name,
        lambda name: "." not in name or name.endswith(".name"),
        lambda name: True,
    ]
    texts = {key: {name: canonical(value) for name, value in found.items()} for key, (_, found) in groups.items()}
    for apart_by in apart:
        for base in bases:
            alike: dict[str, list[str]] = defaultdict(list)
            for key, (record, _) in groups.items():
                alike[base(record)].append(key)
            labels = {
                key: label + bracketed(groups[key][1], names)
                for label, keys in alike.items()
                for names in [telling([texts[key] for key in keys], apart_by)]
                for key in keys
            }
            if len(set(labels.values())) == len(labels):
                return labels
    raise AssertionError("groups differ in no condition")


def _alone(record: Record) -> str:
    return f", task {record.stream['only'] + 1} alone" if "only" in record.stream else ""


def without_fingerprints(conditions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Conditions as people read them: data sets that share a name are numbered in the order they come.

    >>> prints = {"a1": "arrays", "b2": "arrays", "c3": "digits"}
    >>> without_fingerprints([{"stream.data": data, "stream.fingerprint": p} for p, data in prints.items()])
    [{'stream.data': 'arrays 1'}, {'stream.data': 'arrays 2'}, {'stream.data': 'digits'}]
    """
    numbers: dict[str, dict[Any, int]] = defaultdict(dict)  # of a name's fingerprints
    for found in conditions:
        alike = numbers[str(found.get("stream.data"))]
        alike.setdefault(found.get("stream.fingerprint"), len(alike) + 1)

    def readable(found: Mapping[str, Any]) -> dict[str, Any]:
        if "stream.data" not in found:
            return dict(found)
        name = str(found["stream.data"])
        number = numbers[name][found.get("stream.fingerprint")]
        rest = {name: value for name, value in found.items() if name != "stream.fingerprint"}
        return rest | {"stream.data": f"{name} {number}" if len(numbers[name]) > 1 else name}

    return [readable(found) for found in conditions]


def telling(alike: list[dict[str, str]], apart_by: Callable[[str], bool]) -> list[str]:
    """The conditions that are not the same in all of these, less what a stream's, net's or protocol's name implies."""
    every = dict.fromkeys(name for conditions in alike for name in conditions)
    names = [
        name
        for name in every
        if apart_by(name)
        and name not in ("method", *SCENARIO, "net.name")
        and len({conditions.get(name) for conditions in alike}) > 1
    ]
    told = _told_apart(alike, names)
    named = {name.partition(".")[0] for name in names if name.endswith(".name")}
    for name in [name for name in reversed(names) if name.partition(".")[0] in named and not name.endswith(".name")]:
        fewer = [other for other in names if other != name]
        if _told_apart(alike, fewer) == told:  # e.g. stream.angles beside stream.name
            names = fewer
    return names


def _told_apart(alike: list[dict[str, str]], names: list[str]) -> int:
    return len({tuple(conditions.get(name) for name in names) for conditions in alike})


def bracketed(mine: Mapping[str, Any], names: list[str]) -> str:
    """'[memories=256]': of these settings, those I have."""
    said = [f"{name}={_word(mine[name])}" for name in names if name in mine]
    return f"[{','.join(said)}]" if said else ""


def _word(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "x".join(map(_word, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=str)
