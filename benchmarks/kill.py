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


def moment(out: Path) -> str:
    """What a kill hit."""
    if not (out / "experiment.json").exists():
        return "before the folder was claimed"
    if list(out.glob("cells/*/checkpoint/*.part")):
        return "while a checkpoint was written"
    if list(out.glob("cells/*/.*")):
        return "while a record was written"
    if list(out.glob("cells/*/checkpoint/*")):
        return "between two checkpoints"
    return "while summary and report were written" if len(list(out.glob("cells/*/record.json"))) == 8 else "elsewhere"


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--kills", type=int, default=30)
    words.add_argument("--seed", type=int, default=0)
    asked = words.parse_args()
    dice, hit, finished, wrong = random.Random(asked.seed), Counter[str](), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        if started(Path(folder) / "undisturbed").wait() != 0:
            raise SystemExit("the undisturbed run failed")
        seconds, expected = time.monotonic() - began, contents(Path(folder) / "undisturbed")
        while hit.total() < asked.kills:
            out = Path(folder) / f"disturbed{finished}"
            while True:
                process = started(out)
                try:
                    code = process.wait(dice.uniform(0, seconds) if hit.total() < asked.kills else None)
                    break
                except subprocess.TimeoutExpired:
                    os.kill(process.pid, signal.SIGKILL)
                    process.wait()
                    hit[moment(out)] += 1
            finished += 1
            same = code == 0 and contents(out) == expected
            wrong += not same
            said = "" if same else f" (exit code {code}) {(process.stderr and process.stderr.read()) or ''}"
            print(f"run {finished}: {'identical' if same else 'DIFFERENT'} after {hit.total()} kills so far{said}")
    for what, times in hit.most_common():
        print(f"{times:4d} {what}")
    print(f"{hit.total()} kills, {finished} runs of {len(expected)} cells finished, {finished - wrong} bit-identical")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
