"""Random SIGKILLs over a comparison of four methods: does every resumed run end as the undisturbed one?

    python benchmarks/kill.py                        30 kills
    python benchmarks/kill.py --kills 5 --seed 1

One command is run undisturbed, then again and again in new folders, killed at random moments and repeated until it is
done, until so many kills have hit. Records and predictions are compared bit for bit; only seconds may differ.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

COMPARE = (
    "compare finetune,ewc,gem,icarl --stream permuted --tasks 4 --examples 400 --epochs 2 --seeds 0,1 --jobs 2 "
    "--set stream.test_examples=100 --set gem.memories=50 --checkpoint-every 15 --quiet"
)


def started(out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "holdfast", *COMPARE.split(), "--out", str(out)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


def contents(out: Path) -> dict[str, object]:
    """All that the records of a folder say but seconds."""
    found: dict[str, object] = {}
    for path in sorted((out / "cells").glob("*/record.json")):
        record = json.loads(path.read_text())
        record["card"].pop("update_seconds")
        for part in ("resources", "metrics"):
            record[part] = {k: v for k, v in record[part].items() if "seconds" not in k}
        with np.load(path.parent / "predictions.npz") as arrays:
            found[path.parent.name] = (record, {name: array.tobytes() for name, array in arrays.items()})
    return found


def half_written(out: Path) -> set[tuple[Path, int]]:
    """What killed processes left, told apart by the number of its file."""
    found = [*out.glob("cells/*/checkpoint/*.part"), *out.glob("cells/*/.*")]
    return {(path, path.stat().st_ino) for path in found}


def moment(out: Path, before: set[tuple[Path, int]]) -> str:
    """What a kill hit; `before` was left by earlier ones."""
    if not (out / "experiment.json").exists():
        return "before the folder was claimed"
    names = {path.name for path, _ in half_written(out) - before}
    if any(name.endswith(".part") for name in names):
        return "while a checkpoint was written"
    if names:
        return "while a record was written"
    if list(out.glob("cells/*/checkpoint/*")):
        return "between two checkpoints"
    return "before the first checkpoint or after the last record"


def at_work(process: subprocess.Popen[str], out: Path) -> float | None:
    """When the process has the folder and begins to work; None if it ended before."""
    while process.poll() is None:
        try:
            if (out / ".lock").read_text() == str(process.pid):
                return time.monotonic()
        except FileNotFoundError:
            pass
        time.sleep(0.005)
    return None


def killed(out: Path, seconds: float) -> subprocess.Popen[str]:
    """The process: killed so many seconds after it began to work, or ended before."""
    process = started(out)
    at_work(process, out)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
    return process


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--kills", type=int, default=30)
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    dice, hit, finished, wrong = random.Random(asked.seed), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        first = started(Path(folder) / "undisturbed")
        began = at_work(first, Path(folder) / "undisturbed")
        if began is None or first.wait() != 0:
            raise SystemExit("the undisturbed run failed")
        seconds, expected = time.monotonic() - began, contents(Path(folder) / "undisturbed")
        print(f"undisturbed: {len(expected)} cells in {seconds:.1f} s", flush=True)
        while hit.total() < asked.kills:
            out, kills = Path(folder) / f"disturbed{finished}", 0
            while True:
                over = hit.total() >= asked.kills or len(contents(out)) == len(expected)
                before = half_written(out)
                process = killed(out, 10 * seconds + 600 if over else dice.uniform(0, seconds / 3))
                if process.returncode != -signal.SIGKILL:
                    break
                hit[moment(out, before)] += 1
                kills += 1
            finished += 1
            same = process.returncode == 0 and contents(out) == expected
            wrong += not same
            said = "" if same or process.stderr is None else f": exit {process.returncode}, {process.stderr.read()}"
            print(f"run {finished}: {'identical' if same else 'DIFFERENT'} after {kills} kills{said}", flush=True)
    for what, times in hit.most_common():
        print(f"{times:4d} {what}")
    print(f"{hit.total()} kills, {finished} runs of {len(expected)} cells, {finished - wrong} of them bit-identical")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
