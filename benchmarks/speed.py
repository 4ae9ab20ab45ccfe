"""Seconds and memory of Holdfast against a bare hand-written PyTorch loop and against Avalanche, on the same work.

    make bench                                          everything, medians of 5 interleaved repeats
    make bench ARGS="--repeats 3 W1 W2"                 some workloads
    make bench ARGS="--repeats 3 growth"                seconds per step against the number of past tasks
    make bench-avalanche                                the environment for Avalanche, .venv-avalanche

Every measurement is a process of its own with one thread; contestants take turns, and who begins changes from repeat
to repeat, so that noise meets all of them. Repeat r uses the learner's seed r, so accuracies have a spread. What is
compared are ratios of medians in one run. README.md says what is timed. Needs HOLDFAST_DATA with MNIST;
AVALANCHE_PYTHON names an interpreter that has Avalanche.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from plot import plot
from summary import judge, table
from workloads import GROWTH, WORKLOADS

HERE = Path(__file__).parent
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
JOBS = (1, 2)
GROWTH_REPEATS = 3  # at most: twenty points of a line need fewer, and take longest
SECTIONS = [*WORKLOADS, "scoring", "growth", "compare"]

Runs = dict[str, list[dict[str, Any]]]  # per contestant, one measurement per repeat


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all unless named")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: where others use the machine")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of speed.json and speed.html")
    asked = parser.parse_args()
    unknown = sorted(set(asked.sections) - set(SECTIONS))
    if unknown:
        parser.error(f"sections are {', '.join(SECTIONS)}, not {', '.join(unknown)}")
    if asked.repeats < 1:
        parser.error(f"--repeats is at least 1, not {asked.repeats}")
    asked.out.mkdir(parents=True, exist_ok=True)
    for results in measure(asked.sections or SECTIONS, asked.repeats, asked.clock):
        results["targets"] = judge(results)
        (asked.out / "speed.json").write_text(json.dumps(results, indent=1))
        (asked.out / "speed.html").write_text(plot(results))
    print(table(results))
    print(f"\n{asked.out / 'speed.json'}, {asked.out / 'speed.html'}")


def measure(sections: list[str], repeats: int, clock: str) -> Iterator[dict[str, Any]]:
    """All results so far, after every section: a run that is broken off leaves what it has."""
    programs = contestants()
    results: dict[str, Any] = {"conditions": conditions(programs, repeats) | {"clock": clock}}
    with tempfile.TemporaryDirectory() as folder:
        data = str(Path(folder) / "data.npz")
        call([sys.executable, str(HERE / "data.py"), data])
        for section in [s for s in SECTIONS if s in sections]:
            if section in WORKLOADS:
                results.setdefault("workloads", {})[section] = interleaved(programs, ["whole", section], repeats, data)
            elif section == "scoring":
                ours = {c: programs[c] for c in ("bare", "holdfast")}
                results["scoring"] = interleaved(ours, ["usual", "W1"], repeats, data)
            elif section == "growth":
                results["growth"] = {m: growth_of(m, programs, repeats, data) for m in GROWTH}
            else:
                results["compare"] = compared(repeats)
            results["conditions"]["load_after"] = os.getloadavg()
            yield results


def growth_of(method: str, programs: dict[str, list[str]], repeats: int, data: str) -> Runs:
    products = {"arithmetic": ours_program("arithmetic")} if method == "gem" else {}
    return interleaved(programs | products, ["growth", method], min(repeats, GROWTH_REPEATS), data)


def contestants() -> dict[str, list[str]]:
    """The command of every contestant; Avalanche is left out, with a note, where it is not installed."""
    programs = {"bare": ours_program("bare"), "holdfast": ours_program("with_holdfast")}
    python = os.environ.get("AVALANCHE_PYTHON") or str(HERE.parent / ".venv-avalanche/bin/python")
    if Path(python).exists():
        return programs | {"avalanche": [python, "-W", "ignore", str(HERE / "with_avalanche.py")]}
    print(f"Avalanche is left out: there is no {python}; make bench-avalanche creates it", file=sys.stderr)
    return programs


def ours_program(name: str) -> list[str]:
    return [sys.executable, str(HERE / f"{name}.py")]


def interleaved(programs: dict[str, list[str]], what: list[str], repeats: int, data: str) -> Runs:
    """`repeats` rounds in which every contestant has one turn; another one begins each time."""
    runs: Runs = {c: [] for c in programs}
    for r in range(repeats):
        for c in turns(list(programs), r):
            runs[c].append(call([*programs[c], *what, str(r), data]))
            print(f"{' '.join(what)}  repeat {r + 1} of {repeats}  {c}", file=sys.stderr)
    return runs


def compared(repeats: int) -> Runs:
    runs: Runs = {str(jobs): [] for jobs in JOBS}
    for r in range(repeats):
        for jobs in turns(list(runs), r):
            runs[jobs].append(call([*ours_program("parallel"), jobs]))
            print(f"compare  repeat {r + 1} of {repeats}  {jobs} jobs", file=sys.stderr)
    return runs


def turns(names: list[str], r: int) -> list[str]:
    first = r % len(names)
    return names[first:] + names[:first]


def call(command: list[str]) -> dict[str, Any]:
    """Run one measurement; its last line is JSON. Its own words are shown when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | ONE_THREAD)
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
    lines = done.stdout.splitlines()
    return json.loads(lines[-1]) if lines else {}


def conditions(programs: dict[str, list[str]], repeats: int) -> dict[str, Any]:
    """The machine, the versions and the load at the beginning."""
    versions = {name: version(name) for name in ("holdfast", "torch", "numpy")}
    if "avalanche" in programs:
        ask = "import importlib.metadata as m; print(m.version('avalanche-lib'), m.version('torch'))"
        found = subprocess.run([programs["avalanche"][0], "-c", ask], capture_output=True, text=True, check=True).stdout
        versions |= dict(zip(("avalanche", "torch of avalanche"), found.split(), strict=True))
    return {
        "when": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "versions": versions,
        "commit": subprocess.run(
            ["git", "-C", str(HERE), "describe", "--always", "--dirty"], capture_output=True, text=True
        ).stdout.strip(),
        "repeats": repeats,
        "load_before": os.getloadavg(),
    }


def processor() -> str:
    info = Path("/proc/cpuinfo")
    text = info.read_text() if info.exists() else ""
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


if __name__ == "__main__":
    main()
