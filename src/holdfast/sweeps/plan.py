"""A sweep as a document, from a TOML file or from Python, becomes cells; every fault is found on the way.

name = "ewc-strength"
seeds = 3                     # 0, 1, 2; or a list
method = ["finetune", {name = "ewc", strength = [1, 10, 100]}]
stream = {name = "rotated", tasks = 5}
[[cell]]                      # cells that match `where` get `set`, or are left out with `skip = true`
where.method = "ewc"
set.protocol.lr = 0.05
[[cell]]                      # without `where`: more cells; what it does not say is as above
method = "joint"
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from holdfast.errors import BadInput, unknown
from holdfast.settings import Threads, Whole, expected, fit, fits
from holdfast.sweeps import own
from holdfast.sweeps.cell import Cell, pick_device
from holdfast.sweeps.grid import LARGEST, SHELVES, USUAL, Axis, Point, points, values_of, wrong
from holdfast.types import Stream

PLACES = tuple(SHELVES)
TOP = ("name", "seeds", "device", "threads", *PLACES, "cell")
OVERRIDE, EXTRA = ("where", "set", "skip"), (*PLACES, "seeds")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True)
class Sweep:
    """A sweep that can run: its name, and its cells without repetition."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Choice:
    """One cell before it is made: a point per place, and a seed."""

    at: Mapping[str, Point]
    seed: int


def plan(document: Mapping[str, Any], name: str = "sweep", folder: Path = Path()) -> Sweep:
    """The cells of a document; `name` is used where it gives none, `folder` is where a user's own files are."""
    return _Planner(folder).plan(document, name)


def gridded(places: Mapping[str, Sequence[Any]], grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The entries of each place with the axes of a grid: 'strength', 'ewc.strength', 'net.hidden', 'protocol.lr'."""
    entries = {place: [{"name": given} for given in things] for place, things in places.items()}
    faults: list[str] = []
    for key, values in grid.items():
        owner, _, setting = key.rpartition(".")
        if isinstance(values, str) or not isinstance(values, Sequence):
            faults.append(f"grid {key!r} must be a list of values to try, not {values!r}")
            continue
        place = owner if owner in PLACES else "method"
        meant = [entry for entry in entries[place] if _is_meant(place, entry, owner, setting)]
        if not meant and owner not in ("", *PLACES):
            faults.append(unknown("owner of a grid", owner, [*PLACES, *map(str, places["method"])]))
        elif not meant:
            faults.append(unknown("method setting", setting, _settings(entries["method"])))
        for entry in meant:
            entry[setting] = Axis(tuple(values))
    if faults:
        raise BadInput(*faults)
    return {place: list(things) for place, things in entries.items()}


def _is_meant(place: str, entry: Mapping[str, Any], owner: str, setting: str) -> bool:
    if owner == place:
        return True
    bare = points(place, {"name": entry["name"]}, place, Path(), [])
    return any(point.name == owner if owner else setting in point.kinds for point in bare)


def _settings(entries: Sequence[Mapping[str, Any]]) -> set[str]:
    return {s for e in entries for p in points("method", {"name": e["name"]}, "method", Path(), []) for s in p.kinds}


class _Planner:
    """Collects faults while a document is read from top to bottom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[str] = []
        self.asked: list[Point] = []
        self.made: dict[str, Any] = {}  # by what was asked for, so that equal points share one thing

    def plan(self, document: Mapping[str, Any], name: str) -> Sweep:
        self.unknown_keys(document, TOP, "")
        name, device = document.get("name", name), document.get("device", "auto")
        if not isinstance(name, str) or not NAME.fullmatch(name):
            self.faults.append(
                f"name: must be up to 64 letters, digits and . _ + -, since it names a folder, not {name!r}"
            )
        with self.collected("device"):
            pick_device(device if isinstance(device, str) else repr(device))
        threads = document.get("threads", 1)
        if not fits(Threads, threads) or isinstance(threads, str):
            self.faults.append(f"threads: must be {expected(Threads)}, not {threads!r}")
        choices = self.choices(document)
        self.check(choices)
        if not choices and not self.faults:
            self.faults.append("cell: leaves out every cell of the sweep")
        if self.faults:
            raise BadInput(*dict.fromkeys(self.faults))
        cells = {cell.name: cell for cell in (self.cell(choice, device, threads) for choice in choices)}
        return Sweep(name, tuple(cells.values()))

    def choices(self, document: Mapping[str, Any]) -> list[Choice]:
        """The product of the file's lists, then what its [[cell]] entries add, change and leave out, in order."""
        if "method" not in document:
            self.faults.append('method: a sweep needs at least one, e.g. method = ["finetune", "ewc"]')
        menus = {place: self.menu(document.get(place, USUAL[place]), place) for place in PLACES}
        seeds = self.seeds(document.get("seeds", 1), "seeds")
        found = self.product(menus, seeds, "")
        cells = document.get("cell", [])
        if not isinstance(cells, list) or not all(isinstance(entry, Mapping) for entry in cells):
            self.faults.append("cell: must be tables, each under [[cell]]")
            return found
        for i, entry in enumerate(cells):
            key = f"cell[{i}]"
            if any(word in entry for word in OVERRIDE):
                self.unknown_keys(entry, OVERRIDE, key)
                found = self.overridden(found, entry, key)
            else:
                self.unknown_keys(entry, EXTRA, key)
                own_menus = {place: self.menu(entry[place], f"{key}.{place}") for place in PLACES if place in entry}
                own_seeds = self.seeds(entry["seeds"], f"{key}.seeds") if "seeds" in entry else seeds
                found += self.product({**menus, **own_menus}, own_seeds, key)
        return found

    def menu(self, given: Any, key: str) -> list[Point]:
        """All points of one place: a name, a table, or a list of these."""
        place = key.rpartition(".")[2]
        entries = given if isinstance(given, list) else [given]
        if not entries:
            self.faults.append(f"{key}: is an empty list; give at least one {place}")
        keys = [f"{key}[{i}]" for i in range(len(entries))] if isinstance(given, list) else [key]
        found: list[Point] = []
        for entry, where in zip(entries, keys, strict=True):
            found += points(place, entry, where, self.folder, self.faults)
        self.asked += found
        return found

    def seeds(self, given: Any, key: str) -> list[int]:
        if fits(Whole, given) and not isinstance(given, str):
            given = list(range(fit(Whole, given))) if given <= LARGEST else None
        seeds = given if isinstance(given, list) else []
        if not seeds or not all(fits(Whole, seed) and not isinstance(seed, str) for seed in seeds):
            self.faults.append(
                f"{key}: must be a number of seeds >= 1, at most {LARGEST}, or a list of whole numbers >= 0"
            )
            return [0]
        return list(dict.fromkeys(fit(Whole, seed) for seed in seeds))

    def product(self, menus: Mapping[str, Sequence[Point]], seeds: Sequence[int], key: str) -> list[Choice]:
        number = math.prod(len(menu) for menu in menus.values()) * len(seeds)
        if number > LARGEST:
            where = f"{key}: " if key else ""
            self.faults.append(f"{where}asks for {number} cells, at most {LARGEST} can be; make it several sweeps")
            return []
        return [
            Choice(dict(zip(menus, chosen, strict=True)), seed)
            for chosen in itertools.product(*menus.values())
            for seed in seeds
        ]

    def overridden(self, choices: list[Choice], entry: Mapping[str, Any], key: str) -> list[Choice]:
        where, changes, skip = entry.get("where", {}), entry.get("set", {}), entry.get("skip", False)
        before = len(self.faults)
        if not isinstance(where, Mapping) or not where:
            self.faults.append(f'{key}.where: must say which cells are meant, e.g. where.method = "ewc"')
        if not isinstance(changes, Mapping) or bool(changes) == bool(skip) or not isinstance(skip, bool):
            self.faults.append(f"{key}: needs either `set`, e.g. set.method.strength = 10, or `skip = true`")
        if len(self.faults) > before:
            return choices
        self.unknown_keys(where, (*PLACES, "seed"), f"{key}.where")
        self.unknown_keys(changes, PLACES, f"{key}.set")
        tests = [self.test(choices, word, where[word], f"{key}.where.{word}") for word in where if word != "seed"]
        if "seed" in where:
            wanted = where["seed"] if isinstance(where["seed"], list) else [where["seed"]]
            tests.append(lambda choice: choice.seed in wanted)
        matched = [all(test(choice) for test in tests) for choice in choices]
        if len(self.faults) > before:
            return choices
        if choices and not any(matched):
            self.faults.append(f"{key}.where: matches no cell of this sweep")
        if skip:
            return [choice for choice, hit in zip(choices, matched, strict=True) if not hit]
        return [self.changed(c, changes, f"{key}.set") if hit else c for c, hit in zip(choices, matched, strict=True)]

    def test(self, choices: list[Choice], place: str, given: Any, key: str) -> Callable[[Choice], bool]:
        """Whether a choice has what `where` asks for at one place; a list means any of its values."""
        if place not in PLACES:
            return lambda choice: True
        table = dict(given) if isinstance(given, Mapping) else {"name": given}
        there = list({id(c.at[place]): c.at[place] for c in choices}.values())
        names = table.pop("name", None)
        names = names if isinstance(names, list) or names is None else [names]
        known = {point.name for point in there}
        for name in names or ():
            if known and name not in list(known):
                self.faults.append(f"{key}: {unknown(f'{place} of this sweep', str(name), known)}")
        meant = [point for point in there if names is None or point.name in names]
        hits = {id(point) for point in meant}
        for setting, value in table.items():
            having = [point for point in meant if setting in point.kinds]
            if not having:
                valid = sorted({word for point in meant for word in point.kinds})
                self.faults += [f"{key}: {unknown('setting', setting, valid)}"] if valid else []
                continue
            bad = wrong_everywhere(having, setting, value, f"{key}.{setting}")
            self.faults += bad
            if not bad:
                hits &= {id(point) for point in having if _has(point, setting, value)}
        return lambda choice: id(choice.at[place]) in hits

    def changed(self, choice: Choice, changes: Mapping[str, Any], key: str) -> Choice:
        at = dict(choice.at)
        for place, given in changes.items():
            if place in at:
                at[place] = self.changed_point(at[place], given, f"{key}.{place}")
        return replace(choice, at=at)

    def changed_point(self, point: Point, given: Any, key: str) -> Point:
        """The point with other settings, or, where a name is set, another point."""
        if not isinstance(given, Mapping) or "name" in given:
            return self.remembered(
                f"{key} {_words(given)}",
                lambda: next(iter(points(point.place, given, key, self.folder, self.faults)), point),
            )
        bad = [fault for name, value in given.items() for fault in wrong(point, name, value, f"{key}.{name}")]
        self.faults += bad
        values = {**point.values, **given}
        changed = replace(point, values=point.values if bad else values, key=key)
        return self.remembered(_identity(changed), lambda: changed)

    def check(self, choices: Sequence[Choice]) -> None:
        """Can everything be made, and does it fit together? What is at fault already has a stand-in."""
        stand_ins = {place: points(place, USUAL[place], place, self.folder, []) for place in PLACES}
        used = {id(point): point for choice in choices for point in choice.at.values()}
        there = {place: [p for p in used.values() or self.asked if p.place == place] for place in PLACES}
        ready = {place: [p for p in there[place] or stand_ins[place] if self.can_be_made(p)] for place in PLACES}
        if not all(ready.values()):
            return
        fine = {id(point) for menu in ready.values() for point in menu}
        seen = set()
        for choice in choices or [Choice({place: ready[place][0] for place in PLACES}, 0)]:
            if not all(id(point) in fine for point in choice.at.values()):
                continue
            these = tuple(id(self.thing(choice.at[place])) for place in PLACES)
            if these in seen:
                continue
            seen.add(these)
            with self.collected(choice.at["method"].key), own.guarded("the network"):
                self.cell(choice, "cpu").check()

    def can_be_made(self, point: Point) -> bool:
        before = len(self.faults)
        with self.collected(point.key), own.guarded(point.owner):
            self.thing(point)
        return len(self.faults) == before

    def cell(self, choice: Choice, device: str, threads: int = 1) -> Cell:
        method, stream, net, protocol = (self.thing(choice.at[place]) for place in PLACES)
        return Cell(method, stream, net, protocol, choice.seed, device, threads=threads)

    def thing(self, point: Point) -> Any:
        """What a point stands for, made once."""
        return self.remembered(f"made {_identity(point)}", lambda: _made(point))

    def remembered(self, key: str, make: Callable[[], Any]) -> Any:
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def unknown_keys(self, table: Mapping[str, Any], valid: Sequence[str], where: str) -> None:
        at = f"{where}: " if where else ""
        self.faults += [f"{at}{unknown('key', str(key), valid)}" for key in table if key not in valid]

    @contextmanager
    def collected(self, key: str) -> Iterator[None]:
        try:
            yield
        except BadInput as error:
            self.faults += [f"{key}: {fault}" for fault in error.faults]


def wrong_everywhere(having: Sequence[Point], setting: str, given: Any, key: str) -> list[str]:
    """The faults of a value that none of these points could have."""
    faults = [[f for v in values_of(p, setting, given) for f in wrong(p, setting, v, key)] for p in having]
    return [] if any(not found for found in faults) else faults[0]


def _has(point: Point, setting: str, given: Any) -> bool:
    kind = point.kinds[setting]
    wanted = [fit(kind, value) for value in values_of(point, setting, given) if fits(kind, value)]
    return point.value(setting) in wanted


def _made(point: Point) -> Any:
    made = point.made()
    if point.place != "stream":
        return made
    cut = made if isinstance(made, Stream) else made.cut(point.name, point.values.get("data", "digits"), seed=0)
    return cut.fixed(point.value("seed")) if "seed" in point.values else cut


def _identity(point: Point) -> str:
    ready = id(point.thing) if point.ready else ""
    return f"{point.place} {point.name} {ready} {_words(point.values)}"


def _words(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
