"""Commands in processes that can be killed, and records compared bit for bit."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from holdfast.cli import main

COMPARE = (
    "compare finetune,ewc,gem,icarl --stream split --tasks 3 --examples 60 --epochs 3 --set stream.test_examples=40 "
    "--set icarl.memories=50 --set gem.memories=10 --checkpoint-every 7 --jobs 2"
)


class Child:
    """A forked process at work; what it says goes to a file."""

    def __init__(self, work: Callable[[], int], said: Path) -> None:
        self.said, self.pid = said, os.fork()
        if self.pid == 0:
            try:
                torch.set_num_threads(1)  # those of this process are not forked along, and waiting for them hangs
                handle = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(handle, 1)
                os.dup2(handle, 2)
                sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
                code = work()
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
            except BaseException:
                traceback.print_exc()
                sys.stderr.flush()
            finally:
                os._exit(99)

    def wait(self) -> int:
        """Its exit code, negative where it was killed."""
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def kill_after(self, seconds: float) -> int:
        """Its exit code, -9 where it was not finished by then."""
        time.sleep(seconds)
        os.kill(self.pid, signal.SIGKILL)
        return self.wait()


@pytest.fixture
def child(tmp_path):
    """child(work): a process of its own that does the work; its result is the exit code."""
    count = itertools.count()
    return lambda work: Child(work, tmp_path / f"said{next(count)}")


@pytest.fixture
def holdfast(child):
    """holdfast("compare ... --out out"): the command, under way in a process of its own."""
    return lambda command: child(lambda: main(shlex.split(command)))


@pytest.fixture
def compare():
    """A comparison of four methods that saves states often."""
    return COMPARE


@pytest.fixture
def contents():
    """contents(out): all that the records of a folder say but seconds."""
    return _contents


def _contents(out: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted((out / "cells").glob("*/record.json")):
        record = json.loads(path.read_text())
        record["card"].pop("update_seconds")
        for part in ("resources", "metrics"):
            record[part] = {k: v for k, v in record[part].items() if "seconds" not in k}
        for costs in (record["resources"].get("trials", {}), *record.get("study", {}).get("trials", [])):
            costs.pop("seconds", None)
        with np.load(path.parent / "predictions.npz") as arrays:
            found[path.parent.name] = (record, {name: array.tobytes() for name, array in arrays.items()})
    return found


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory):
    """What COMPARE finds when nobody disturbs it."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    child = Child(lambda: main([*shlex.split(COMPARE), "--quiet", "--out", str(out)]), out.parent / "said")
    assert child.wait() == 0, child.said.read_text()
    return _contents(out)
