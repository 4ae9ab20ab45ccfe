"""Does an advice pick what a whole comparison picks? Fashion-MNIST in two parts, as an npz.

    HOLDFAST_DATA=... python benchmarks/advice.py DIR                    hours: the whole comparison
    HOLDFAST_DATA=... python benchmarks/advice.py DIR --rows 500         a trial run
    HOLDFAST_DATA=... python benchmarks/advice.py DIR --only advice      the advices alone, each with its --time

Under each set of limits: the advice on seeds 0, 1, 2 within its time; and every method that these limits allow on the
same seeds, with its usual memory, with as many rows as the advice took and with a half and twice of that, without a
limit of time. Told is how much less the choice reaches, by the whole comparison's numbers, than the best of those that
keep to the limits. What is finished in DIR is not done again: the same command goes on after a kill.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

import holdfast as hf
from holdfast.advice import NETS, rehearsal
from holdfast.methods import methods
from holdfast.streams import as_datasets

NEW = (7, 8, 9)  # Sneaker, Bag and Ankle boot come; the other seven are known
WITHIN = 0.03  # of accuracy
TIME = 600.0  # seconds
SEEDS = 3
REPLAY = ("er", "agem", "gem", "icarl")


@dataclass(frozen=True)
class Limits:
    """A set of limits, and its name."""

    name: str
    memory: int | None = None
    keep_data: bool = True


LIMITS = (
    Limits("none"),
    Limits("no old data", keep_data=False),
    Limits("2.5 MB", memory=2_500_000),
    Limits("4 MB, no old data", memory=4_000_000, keep_data=False),
)


def written(path: Path, rows: int | None) -> Path:
    """The npz; `rows`: so many for training and as many for testing, the first ones."""
    if not path.exists():
        (data,) = as_datasets("fashion-mnist", 0)
        x, y, x_test, y_test = (part.numpy()[:rows] for part in (data.x, data.y, data.x_test, data.y_test))
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(".part.npz")
        np.savez(part, x=x, y=y, x_test=x_test, y_test=y_test)
        part.rename(path)
    return path


def stream_of(path: Path) -> hf.Stream:
    order = (*(c for c in range(10) if c not in NEW), *NEW)
    return hf.stream("split", data=path, tasks=2, order=order, sizes=(10 - len(NEW), len(NEW)), val=0.1)


def advised(
    stream: hf.Stream, limits: Limits, home: Path, way: hf.Protocol, seconds: float, jobs: int | None
) -> dict[str, object]:
    """The advice, from the disk if it was given before."""
    kept = home / "advice.json"
    if not kept.exists():
        began = time.monotonic()
        hf.advise(
            stream,
            memory=limits.memory,
            keep_data=limits.keep_data,
            seconds=seconds,
            protocol=way,
            seeds=SEEDS,
            jobs=jobs,
            out=home,
        )
        print(f"{limits.name}: advised in {time.monotonic() - began:.0f} s, with its report", flush=True)
    return json.loads(kept.read_text())


def whole(stream: hf.Stream, home: Path, way: hf.Protocol, sizes: Sequence[int], jobs: int | None) -> list[hf.Record]:
    """Every method that can run, and replay of all these sizes, on all seeds."""
    records: list[hf.Record] = []
    for name in methods.names():
        for size in (None, *sizes) if name in REPLAY else (None,):
            method = hf.method(name) if size is None else hf.method(name, memories=size)
            found = compared(method, stream, home / f"{name}-{size or 'usual'}", way, jobs)
            for failure in () if found is None else found.failures:
                print(f"{failure.cell}: {failure.reason}", flush=True)
            records += () if found is None else found.records
    return records


def compared(
    method: hf.Learner, stream: hf.Stream, home: Path, way: hf.Protocol, jobs: int | None
) -> hf.Comparison | None:
    """With the first network that it can learn; None where it cannot run here."""
    for net in NETS:
        try:
            hf.Cell(method, stream, hf.net(net), rehearsal(way), 0).check()
        except hf.BadInput:
            continue
        return hf.compare(method, stream, SEEDS, net, rehearsal(way), jobs=jobs, out=home)
    return None


def allowed(records: Sequence[hf.Record], limits: Limits) -> dict[str, float]:
    """The mean accuracy on all classes of each method whose every run keeps to the limits."""
    found: dict[str, list[hf.Record]] = {}
    for record in records:
        found.setdefault(called(record), []).append(record)
    return {
        name: fmean(map(hf.study.pooled, mine))
        for name, mine in found.items()
        if all(limits.memory is None or max(r.resources["bytes"]) <= limits.memory for r in mine)
        and all(limits.keep_data or r.card["no_old_data"]["met"] for r in mine)
    }


def called(record: hf.Record) -> str:
    """'er (memories=500)', as an advice calls it."""
    said = record.settings.get("memories", {"chosen_by": "default"})
    return f"{record.method} (memories={said['value']})" if said["chosen_by"] == "given" else record.method


def main() -> int:
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("folder", type=Path, metavar="DIR")
    words.add_argument("--rows", type=int, help="of training and of test")
    words.add_argument("--steps", type=int, help="of each task")
    words.add_argument("--time", type=float, default=TIME, help="seconds of each advice")
    words.add_argument("--jobs", type=int, help="processes at once")
    words.add_argument("--only", choices=["advice"], help="leave out the whole comparison")
    asked = words.parse_args()
    stream = stream_of(written(asked.folder / f"fashion-{asked.rows or 'all'}.npz", asked.rows))
    way = hf.protocol("realistic", **({} if asked.steps is None else {"steps": asked.steps}))
    name = f"{asked.rows or 'all'}-{asked.steps or 'usual'}"
    home = asked.folder / name
    found = {
        each: advised(stream, each, home / each.name.replace(" ", "-"), way, asked.time, asked.jobs) for each in LIMITS
    }
    taken = {tried["settings"]["memories"] for said in found.values() for tried in said["tried"] if tried["settings"]}
    sizes = sorted({max(round(size * share), 10) for size in taken for share in (0.5, 1, 2)})
    records = [] if asked.only else whole(stream, home / "whole", way, sizes, asked.jobs)
    wrong = 0
    for limits, said in found.items():
        best = said["tried"][0]
        kept = limits.memory is None or all(tried["bytes"] <= limits.memory for tried in said["tried"])
        kept = kept and (limits.keep_data or not any(tried["rows"] for tried in said["tried"]))
        in_time = said["seconds"] <= asked.time + 10
        mean = best["accuracy"]["mean"]
        print(
            f"\n{limits.name}: {said['recommended']} {mean:.3f}, {len(best['values'])} seeds, {said['seconds']:.0f} s"
        )
        print(f"  left out: {said['left_out'] or 'nothing'}")
        print(f"  limits kept: {'yes' if kept else 'NO'}; time kept: {'yes' if in_time else 'NO'}")
        wrong += not (kept and in_time)
        means = allowed(records, limits)
        if means:
            top = max(means, key=lambda name: means[name])
            mine = means.get(said["recommended"], mean)
            wrong += means[top] - mine > WITHIN
            print(f"  whole comparison: {top} {means[top]:.3f}; the choice {mine:.3f}, {means[top] - mine:+.3f} behind")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
