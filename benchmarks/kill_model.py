"""Random SIGKILLs while a model learns a task: is what is on disk the old model or the new one, bit for bit?

    python benchmarks/kill_model.py                        20 kills
    python benchmarks/kill_model.py --kills 50 --seed 1

`holdfast learn` teaches a model of two tasks a third one, undisturbed; then again and again in copies of its folder,
each process killed at a random moment between its first line of work and its last. After each kill the model is loaded,
compared, and learns the task once more, to the end. Every second kill waits for the save, which is a small part of it.
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
from typing import Any

import numpy as np

import holdfast as hf
from holdfast.checks.learner import _equal as equal

STREAM = {"tasks": 3, "examples": 200, "test_examples": 50}
PROTOCOL = hf.protocol("epochs", epochs=50)
READY, SAVING, SAVED = "begins", "saves", "has saved"


def learn(folder: Path, data: Path) -> int:
    """What the processes do that are killed: `holdfast learn`, which says how far it is."""
    from holdfast.cli import main
    from holdfast.commands import model

    save = model.model_folder.save

    def saving(*what: Any) -> None:
        print(SAVING, flush=True)
        save(*what)
        print(SAVED, flush=True)

    model.model_folder.save = saving  # type: ignore[attr-defined]
    print(READY, flush=True)
    return main(["learn", str(data), "--model", str(folder), "--test", "0.2", "--quiet"])


def started(folder: Path, data: Path) -> subprocess.Popen[str]:
    """A process at work."""
    words = [sys.executable, __file__, "--learn", str(folder), "--data", str(data)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    heard(process, READY)
    return process


def heard(process: subprocess.Popen[str], word: str) -> None:
    assert process.stdout is not None
    if process.stdout.readline().strip() != word:
        raise SystemExit(f"the process never said that it {word}")


def said(model: hf.Model) -> object:
    """All of a model but seconds."""
    tables = {name: found for name, found in model.state["measured"].items() if "seconds" not in name}
    return {**model.state, "measured": tables, "classes": model.classes}


def main() -> int:
    words = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    words.add_argument("--kills", type=int, default=20)
    words.add_argument("--seed", type=int, default=0)
    words.add_argument("--learn", type=Path)
    words.add_argument("--data", type=Path)
    asked = words.parse_args()
    if asked.learn is not None:
        return learn(asked.learn, asked.data)
    dice, hit, wrong = random.Random(asked.seed), Counter[str](), 0
    with tempfile.TemporaryDirectory() as home:
        first, data, stream = Path(home) / "first", Path(home) / "third.npz", hf.stream("split", **STREAM)
        hf.run("er", stream.first(2), protocol=PROTOCOL, keep_model=first)
        np.savez(data, x=stream.tasks[2].train.raw().numpy(), y=stream.tasks[2].train.y.numpy())
        old, whole = said(hf.load_model(first)), shutil.copytree(first, Path(home) / "undisturbed")
        process, began = started(whole, data), time.monotonic()
        heard(process, SAVING)
        learned = time.monotonic() - began
        heard(process, SAVED)
        saved = time.monotonic() - began - learned
        if process.wait():
            raise SystemExit("the undisturbed process failed")
        new = said(hf.load_model(whole))
        print(f"undisturbed: learned in {learned:.2f} s, saved in {saved:.2f} s", flush=True)
        for i in range(asked.kills):
            folder = shutil.copytree(first, Path(home) / f"killed{i}")
            process = started(folder, data)
            if i % 2:
                heard(process, SAVING)
            time.sleep(dice.uniform(0, saved if i % 2 else learned))
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            left = sorted(path.name for path in folder.iterdir())
            found = said(hf.load_model(folder))
            which = "the new model" if equal(found, new) else "the old model" if equal(found, old) else "NEITHER"
            hit[which] += 1
            again = which == "the new model" or (
                started(folder, data).wait() == 0 and equal(said(hf.load_model(folder)), new)
            )
            wrong += which == "NEITHER" or not again
            print(
                f"kill {i + 1}: {which} ({', '.join(left)}){'' if again else ', and it did NOT learn then'}", flush=True
            )
    print(", ".join(f"{times} times {which}" for which, times in hit.most_common()))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
