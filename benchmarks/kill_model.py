"""Random SIGKILLs while a model learns a task: is what is on disk the old model or the new one, bit for bit?

    python benchmarks/kill_model.py                        20 kills
    python benchmarks/kill_model.py --kills 50 --seed 1

A model of two tasks learns a third one and is saved, undisturbed; then again and again in copies of its folder, each
process killed at a random moment between the load and the end of the save. After each kill the model is loaded,
compared, and learns the task once more, to the end.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import holdfast as hf
from holdfast.checks.learner import _equal as equal

STREAM = {"tasks": 3, "examples": 200, "test_examples": 50}
PROTOCOL = hf.protocol("epochs", epochs=50)
READY, DONE = "loaded", "saved"


def learn(folder: Path) -> None:
    """What the processes do that are killed."""
    model, task = hf.load_model(folder), hf.stream("split", **STREAM).tasks[2]
    print(READY, flush=True)
    model.learn(task.train.raw(), task.train.y, test=(task.test.raw(), task.test.y))
    hf.save(model, folder)
    print(DONE, flush=True)


def started(folder: Path) -> subprocess.Popen[str]:
    """A process at work, when it has the model."""
    process = subprocess.Popen([sys.executable, __file__, "--learn", str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    if process.stdout.readline().strip() != READY:
        raise SystemExit("the process could not load the model")
    return process


def said(model: hf.Model) -> object:
    """All of a model but seconds."""
    tables = {name: found for name, found in model.state["measured"].items() if "seconds" not in name}
    return {**model.state, "measured": tables, "classes": model.classes}


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--kills", type=int, default=20)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--learn", type=Path)
    asked = words.parse_args()
    if asked.learn is not None:
        learn(asked.learn)
        return 0
    dice, hit, wrong = random.Random(asked.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as home:
        first = Path(home) / "first"
        hf.run("er", hf.stream("split", **STREAM).first(2), protocol=PROTOCOL, keep_model=first)
        old, whole = said(hf.load_model(first)), shutil.copytree(first, Path(home) / "undisturbed")
        process, began = started(whole), time.monotonic()
        assert process.stdout is not None
        if process.stdout.readline().strip() != DONE:
            raise SystemExit("the undisturbed process failed")
        seconds, new = time.monotonic() - began, said(hf.load_model(whole))
        print(f"undisturbed: learned and saved in {seconds:.2f} s", flush=True)
        for i in range(asked.kills):
            folder = shutil.copytree(first, Path(home) / f"killed{i}")
            process = started(folder)
            time.sleep(dice.uniform(0, seconds))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            left = sorted(path.name for path in folder.iterdir())
            found = said(hf.load_model(folder))
            which = "the new model" if equal(found, new) else "the old model" if equal(found, old) else "NEITHER"
            hit[which] += 1
            again = which == "the new model" or (
                started(folder).wait() == 0 and equal(said(hf.load_model(folder)), new)
            )
            wrong += which == "NEITHER" or not again
            print(
                f"kill {i + 1}: {which} ({', '.join(left)}){'' if again else ', and it did NOT learn then'}", flush=True
            )
    print(", ".join(f"{times} times {which}" for which, times in hit.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
