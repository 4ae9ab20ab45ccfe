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

from holdfast.errors import BadInput, guarded, unknown
from holdfast.settings import Threads, Whole, expected, fit, fits
from holdfast.sweeps.cell import Cell, pick_device
from holdfast.sweeps.grid import LARGEST, SHELVES, USUAL, Axis, Ingredient, ingredients, source_of, values_of, wrong
from holdfast.types import Stream

ROLES = tuple(SHELVES)
TOP = ("name", "seeds", "device", "threads", *ROLES, "cell")
OVERRIDE, EXTRA = ("where", "set", "skip"), (*ROLES, "seeds")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}")


@dataclass(frozen=True)
class Sweep:
    """A sweep that can run: its name, and its cells without repetition."""

    name: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class Draft:
    """One cell before it is made: an ingredient per role, and a seed."""

    at: Mapping[str, Ingredient]
    seed: int


def sweep_of(document: Mapping[str, Any], name: str = "sweep", folder: Path = Path()) -> Sweep:
    """The cells of a document; `name` is used where it gives none, `folder` is where a user's own files are."""
    return _Reader(folder).read(document, name)


def gridded(given: Mapping[str, Sequence[Any]], grid: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """The entries of each role with the axes of a grid: 'strength', 'ewc.strength', 'net.hidden', 'protocol.lr'."""
    entries = {role: [{"name": thing} for thing in things] for role, things in given.items()}
    faults: list[str] = []
    for key, values in grid.items():
        owner, _, setting = key.rpartition(".")
        if isinstance(values, str) or not isinstance(values, Sequence):
            faults.append(f"grid {key!r} must be a list of values to try, not {values!r}")
            continue
        role = owner if owner in ROLES else "method"
        meant = [entry for entry in entries[role] if _is_meant(role, entry, owner, setting)]
        if not meant and owner not in ("", *ROLES):
            faults.append(unknown("owner of a grid", owner, [*ROLES, *map(str, given["method"])]))
        elif not meant:
            faults.append(unknown("method setting", setting, _settings(entries["method"])))
        for entry in meant:
            entry[setting] = Axis(tuple(values))
    if faults:
        raise BadInput(*faults)
    return {role: list(things) for role, things in entries.items()}


def _is_meant(role: str, entry: Mapping[str, Any], owner: str, setting: str) -> bool:
    if owner == role:
        return True
    bare = ingredients(role, {"name": entry["name"]}, role, Path(), [])
    return any(ingredient.name == owner if owner else setting in ingredient.kinds for ingredient in bare)


def _settings(entries: Sequence[Mapping[str, Any]]) -> set[str]:
    bare = (ingredients("method", {"name": entry["name"]}, "method", Path(), []) for entry in entries)
    return {setting for found in bare for ingredient in found for setting in ingredient.kinds}


class _Reader:
    """Collects faults while a document is read from top to bottom."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.faults: list[str] = []
        self.asked: list[Ingredient] = []
        self.made: dict[str, Any] = {}  # by what was asked for, so that equal ingredients share one thing

    def read(self, document: Mapping[str, Any], name: str) -> Sweep:
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
        drafts = self.drafts(document)
        self.check(drafts)
        if not drafts and not self.faults:
            self.faults.append("cell: leaves out every cell of the sweep")
        if self.faults:
            raise BadInput(*dict.fromkeys(self.faults))
        cells = {cell.name: cell for cell in (self.cell(draft, device, threads) for draft in drafts)}
        return Sweep(name, tuple(cells.values()))

    def drafts(self, document: Mapping[str, Any]) -> list[Draft]:
        """The product of the file's lists, then what its [[cell]] entries add, change and leave out, in order."""
        if "method" not in document:
            self.faults.append('method: a sweep needs at least one, e.g. method = ["finetune", "ewc"]')
        menus = {role: self.menu(document.get(role, USUAL[role]), role) for role in ROLES}
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
                own_menus = {role: self.menu(entry[role], f"{key}.{role}") for role in ROLES if role in entry}
                own_seeds = self.seeds(entry["seeds"], f"{key}.seeds") if "seeds" in entry else seeds
                found += self.product({**menus, **own_menus}, own_seeds, key)
        return found

    def menu(self, given: Any, key: str) -> list[Ingredient]:
        """All ingredients of one role: a name, a table, or a list of these."""
        role = key.rpartition(".")[2]
        entries = given if isinstance(given, list) else [given]
        if not entries:
            self.faults.append(f"{key}: is an empty list; give at least one {role}")
        keys = [f"{key}[{i}]" for i in range(len(entries))] if isinstance(given, list) else [key]
        found: list[Ingredient] = []
        for entry, where in zip(entries, keys, strict=True):
            found += ingredients(role, entry, where, self.folder, self.faults)
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

    def product(self, menus: Mapping[str, Sequence[Ingredient]], seeds: Sequence[int], key: str) -> list[Draft]:
        number = math.prod(len(menu) for menu in menus.values()) * len(seeds)
        if number > LARGEST:
            where = f"{key}: " if key else ""
            self.faults.append(f"{where}asks for {number} cells, at most {LARGEST} can be; make it several sweeps")
            return []
        return [
            Draft(dict(zip(menus, chosen, strict=True)), seed)
            for chosen in itertools.product(*menus.values())
            for seed in seeds
        ]

    def overridden(self, drafts: list[Draft], entry: Mapping[str, Any], key: str) -> list[Draft]:
        where, changes, skip = entry.get("where", {}), entry.get("set", {}), entry.get("skip", False)
        before = len(self.faults)
        if not isinstance(where, Mapping) or not where:
            self.faults.append(f'{key}.where: must say which cells are meant, e.g. where.method = "ewc"')
        if not isinstance(changes, Mapping) or bool(changes) == bool(skip) or not isinstance(skip, bool):
            self.faults.append(f"{key}: needs either `set`, e.g. set.method.strength = 10, or `skip = true`")
        if len(self.faults) > before:
            return drafts
        self.unknown_keys(where, (*ROLES, "seed"), f"{key}.where")
        self.unknown_keys(changes, ROLES, f"{key}.set")
        tests = [self.test(drafts, word, where[word], f"{key}.where.{word}") for word in where if word != "seed"]
        if "seed" in where:
            wanted = where["seed"] if isinstance(where["seed"], list) else [where["seed"]]
            tests.append(lambda draft: draft.seed in wanted)
        matched = [all(test(draft) for test in tests) for draft in drafts]
        if len(self.faults) > before:
            return drafts
        if drafts and not any(matched):
            self.faults.append(f"{key}.where: matches no cell of this sweep")
        if skip:
            return [draft for draft, hit in zip(drafts, matched, strict=True) if not hit]
        return [self.changed(c, changes, f"{key}.set") if hit else c for c, hit in zip(drafts, matched, strict=True)]

    def test(self, drafts: list[Draft], role: str, given: Any, key: str) -> Callable[[Draft], bool]:
        """Whether a draft has what `where` asks for in one role; a list means any of its values."""
        if role not in ROLES:
            return lambda draft: True
        table = dict(given) if isinstance(given, Mapping) else {"name": given}
        there = list({id(c.at[role]): c.at[role] for c in drafts}.values())
        names = table.pop("name", None)
        names = names if isinstance(names, list) or names is None else [names]
        known = {ingredient.name for ingredient in there}
        for name in names or ():
            if known and name not in list(known):
                self.faults.append(f"{key}: {unknown(f'{role} of this sweep', str(name), known)}")
        meant = [ingredient for ingredient in there if names is None or ingredient.name in names]
        hits = {id(ingredient) for ingredient in meant}
        for setting, value in table.items():
            having = [ingredient for ingredient in meant if setting in ingredient.kinds]
            if not having:
                valid = sorted({word for ingredient in meant for word in ingredient.kinds})
                self.faults += [f"{key}: {unknown('setting', setting, valid)}"] if valid else []
                continue
            bad = wrong_everywhere(having, setting, value, f"{key}.{setting}")
            self.faults += bad
            if not bad:
                hits &= {id(ingredient) for ingredient in having if _has(ingredient, setting, value)}
        return lambda draft: id(draft.at[role]) in hits

    def changed(self, draft: Draft, changes: Mapping[str, Any], key: str) -> Draft:
        at = dict(draft.at)
        for role, given in changes.items():
            if role in at:
                at[role] = self.changed_ingredient(at[role], given, f"{key}.{role}")
        return replace(draft, at=at)

    def changed_ingredient(self, ingredient: Ingredient, given: Any, key: str) -> Ingredient:
        """The ingredient with other settings, or, where a name is set, another ingredient."""
        if not isinstance(given, Mapping) or "name" in given:
            return self.remembered(
                f"{key} {_words(given)}",
                lambda: next(iter(ingredients(ingredient.role, given, key, self.folder, self.faults)), ingredient),
            )
        bad = [fault for name, value in given.items() for fault in wrong(ingredient, name, value, f"{key}.{name}")]
        self.faults += bad
        values = {**ingredient.values, **given}
        changed = replace(ingredient, values=ingredient.values if bad else values, key=key)
        return self.remembered(_identity(changed), lambda: changed)

    def check(self, drafts: Sequence[Draft]) -> None:
        """Can everything be made, and does it fit together? What is at fault already has a stand-in."""
        stand_ins = {role: ingredients(role, USUAL[role], role, self.folder, []) for role in ROLES}
        used = {id(ingredient): ingredient for draft in drafts for ingredient in draft.at.values()}
        there = {role: [p for p in used.values() or self.asked if p.role == role] for role in ROLES}
        ready = {role: [p for p in there[role] or stand_ins[role] if self.can_be_made(p)] for role in ROLES}
        if not all(ready.values()):
            return
        fine = {id(ingredient) for menu in ready.values() for ingredient in menu}
        seen = set()
        for draft in drafts or [Draft({role: ready[role][0] for role in ROLES}, 0)]:
            if not all(id(ingredient) in fine for ingredient in draft.at.values()):
                continue
            these = tuple(id(self.thing(draft.at[role])) for role in ROLES)
            if these in seen:
                continue
            seen.add(these)
            with self.collected(draft.at["method"].key), guarded("the network"):
                self.cell(draft, "cpu").check()

    def can_be_made(self, ingredient: Ingredient) -> bool:
        before = len(self.faults)
        with self.collected(ingredient.key), guarded(ingredient.owner):
            self.thing(ingredient)
        return len(self.faults) == before

    def cell(self, draft: Draft, device: str, threads: int = 1) -> Cell:
        method, stream, net, protocol = (self.thing(draft.at[role]) for role in ROLES)
        return Cell(method, stream, net, protocol, draft.seed, device, threads=threads)

    def thing(self, ingredient: Ingredient) -> Any:
        """What an ingredient stands for, made once."""
        return self.remembered(f"made {_identity(ingredient)}", lambda: _made(ingredient))

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


def wrong_everywhere(having: Sequence[Ingredient], setting: str, given: Any, key: str) -> list[str]:
    """The faults of a value that none of these ingredients could have."""
    faults = [[f for v in values_of(p, setting, given) for f in wrong(p, setting, v, key)] for p in having]
    return [] if any(not found for found in faults) else faults[0]


def _has(ingredient: Ingredient, setting: str, given: Any) -> bool:
    kind = ingredient.kinds[setting]
    wanted = [fit(kind, value) for value in values_of(ingredient, setting, given) if fits(kind, value)]
    return ingredient.value(setting) in wanted


def _made(ingredient: Ingredient) -> Any:
    made = ingredient.made()
    if ingredient.role != "stream":
        return made
    if not isinstance(made, Stream):
        made = made.cut(ingredient.name, source_of(ingredient.values.get("data"), ingredient.folder), seed=0)
    return made.fixed(ingredient.value("seed")) if "seed" in ingredient.values else made


def _identity(ingredient: Ingredient) -> str:
    ready = id(ingredient.thing) if ingredient.ready else ""
    return f"{ingredient.role} {ingredient.name} {ready} {_words(ingredient.values)}"


def _words(value: Any) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
