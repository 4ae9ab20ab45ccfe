"""What MNTDP's searches cost and find: python benchmarks/search.py DIR [DIR ...] [--json]

From the records of finished runs, e.g. of `holdfast reproduce ctrl/table13 --only Independent,MNTDP-D,"MNTDP-D (our
cheap search)"`. Per stream and seed: FLOPs of all training of `mntdp`, search included, over those of `independent`,
in the searched tasks, which are all but the first; what the cheap search (`search=halving`) finds beside the whole one.
They agree on a task where the cheap one takes the same path, or one at most 0.02 worse on the validation rows.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean

import holdfast as hf

WITHIN = 0.02  # of validation accuracy
ALL = "all"  # the whole search
SPACE = ("nearest_paths", "neighbours", "prior", "ties")  # what is searched, however it is


@dataclass
class Found:
    """What a search took for one task."""

    path: list[int]
    val: float
    test: float


@dataclass
class Beside:
    """A cheap search's task beside the whole one's."""

    task: int
    cheap: Found
    whole: Found
    same: bool
    agrees: bool


@dataclass
class Search:
    """A run of `mntdp`; `flops` are of the searched tasks, `independent` those of its mate, where there is one."""

    stream: str
    seed: int
    net: str
    search: str  # all, or halving, with other settings of its own
    flops: float
    independent: float | None
    tasks: list[Found]  # the searched ones
    beside: list[Beside]  # of a cheap search

    @property
    def ratio(self) -> float | None:
        return self.flops / self.independent if self.independent else None


def searches(records: Sequence[hf.Record]) -> list[Search]:
    """All runs of `mntdp` on more than one task, each beside those of the same stream, seed, network and training. What
    several folders have is taken once."""
    places: defaultdict[str, dict[str, hf.Record]] = defaultdict(dict)
    for record in records:
        if record.method in ("mntdp", "independent") and "trials" in record.study and len(record.tasks) > 1:
            places[_place(record)][_name(record)] = record
    made = [search for mates in places.values() for search in _at(mates)]
    return sorted(made, key=lambda s: (s.stream, s.net, s.seed, s.search))


def _at(mates: Mapping[str, hf.Record]) -> list[Search]:
    independent = mates.get("independent")
    searching = {name: record for name, record in mates.items() if record.method == "mntdp"}
    whole = {_space(r): found(r) for r in searching.values() if r.settings["search"]["value"] == ALL}
    made = []
    for name, record in searching.items():
        stream, net, mine = record.stream, record.net, found(record)
        theirs = [] if record.settings["search"]["value"] == ALL else whole.get(_space(record), [])
        search = Search(
            stream=str(stream.get("kind", stream["name"])),
            seed=record.seed,
            net=" ".join([str(net["name"]), *(f"{name}={net[name]}" for name in ("width", "modules") if name in net)]),
            search=name,
            flops=searched_flops(record),
            independent=None if independent is None else searched_flops(independent),
            tasks=mine,
            beside=[beside(t, *pair) for t, pair in enumerate(zip(mine, theirs, strict=True), 1)] if theirs else [],
        )
        made.append(search)
    return made


def beside(task: int, cheap: Found, whole: Found) -> Beside:
    same = cheap.path == whole.path
    return Beside(task, cheap, whole, same, same or cheap.val >= whole.val - WITHIN - 1e-9)


def searched_flops(record: hf.Record) -> float:
    """FLOPs of learning all tasks but the first: what was kept, trials that were not, and finding out what to try."""
    lost = sum(row["flops"] for row in record.study["trials"] if row["task"] and not row["chosen"])
    return float(sum(record.resources["flops"][1:]) + lost)


def found(record: hf.Record) -> list[Found]:
    """What was taken for each searched task, and its accuracies."""
    quality = {row["task"]: row["quality"] for row in record.study["trials"] if row["chosen"]}
    return [
        Found(row["path"], quality[row["task"]], float(record.final[row["task"], row["task"]]))
        for row in record.study["paths"][1:]
    ]


def _place(record: hf.Record) -> str:
    net = {name: value for name, value in record.net.items() if name != "parameters"}
    return json.dumps([record.stream, record.seed, net, record.protocol], sort_keys=True, default=list)


def _space(record: hf.Record) -> str:
    return ", ".join(f"{name}={record.settings[name]['value']}" for name in SPACE)


def _name(record: hf.Record) -> str:
    """Of the search: 'all', 'halving', 'halving, ties=new'; else the method's."""
    if record.method != "mntdp":
        return record.method
    told = {name: setting for name, setting in record.settings.items() if "." not in name and name != "search"}
    own = [f"{name}={setting['value']}" for name, setting in told.items() if setting["chosen_by"] == "given"]
    return ", ".join([str(record.settings["search"]["value"]), *own])


def overall(made: Sequence[Search]) -> list[dict[str, float | str | None]]:
    """Each kind of search over all streams and seeds. FLOPs are of those that have an `independent` beside them."""
    rows = []
    for name in dict.fromkeys(search.search for search in made):
        mine = [search for search in made if search.search == name]
        rated = [(search.flops, search.independent) for search in mine if search.independent]
        pairs = [pair for search in mine for pair in search.beside]
        rows.append({
            "search": name,
            "runs": len(mine),
            "tasks": sum(len(search.tasks) for search in mine),
            "ratio": sum(a for a, _ in rated) / sum(b for _, b in rated) if rated else None,
            "worst ratio": max((a / b for a, b in rated), default=None),
            **agreement(pairs),
        })  # fmt: skip
    return rows


def agreement(pairs: Sequence[Beside]) -> dict[str, float | None]:
    return {
        "compared": len(pairs),
        "same path": sum(pair.same for pair in pairs),
        "agree": sum(pair.agrees for pair in pairs),
        "loss": fmean(pair.whole.test - pair.cheap.test for pair in pairs) if pairs else None,
    }


def table(made: Sequence[Search]) -> str:
    """As Markdown: all together, run by run, task by task."""
    head = ["tasks compared", "same path", f"same or within {WITHIN}", "mean loss of test accuracy"]
    total = [
        [row["search"], row["runs"], row["tasks"], _told(row["ratio"]), _told(row["worst ratio"]), *_said(row)]
        for row in overall(made)
    ]
    each = [[s.stream, s.seed, s.net, s.search, _told(s.ratio), *_said(agreement(s.beside))] for s in made]
    tasks = [
        [s.stream, s.seed, s.net, s.search, pair.task, *_taken(pair.cheap), *_taken(pair.whole),
         "yes" if pair.agrees else "no"]
        for s in made for pair in s.beside
    ]  # fmt: skip
    columns = ["stream", "seed", "net", "search"]
    parts = [
        _markdown(["search", "runs", "searched tasks", "FLOPs ÷ independent's", "at most", *head], total),
        _markdown([*columns, "FLOPs ÷ independent's", *head], each),
    ]
    of = [f"{what} {which}" for which in ("cheap", "whole") for what in ("path,", "validation,", "test,")]
    return "\n\n".join([*parts, *([_markdown([*columns, "task", *of, "agree"], tasks)] if tasks else [])])


def _said(row: dict[str, float | None]) -> list[object]:
    if not row["compared"]:
        return [""] * 4
    return [row["compared"], row["same path"], row["agree"], _told(row["loss"], "+.4f")]


def _taken(one: Found) -> list[str]:
    return [" ".join(map(str, one.path)), f"{one.val:.3f}", f"{one.test:.3f}"]


def _told(value: float | None, digits: str = ".2f") -> str:
    return "" if value is None else format(value, digits)


def _markdown(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="DIR")
    parser.add_argument("--json", action="store_true", help="print the same as JSON")
    given = parser.parse_args()
    made = searches([record for folder in given.folders for record in hf.Comparison.read(folder).records])
    if not made:
        parser.error("no finished run of mntdp on more than one task is in these folders")
    if given.json:
        runs = [{**asdict(search), "ratio": search.ratio} for search in made]
        print(json.dumps({"overall": overall(made), "runs": runs}, indent=1))
    else:
        print(table(made))


if __name__ == "__main__":
    main()
