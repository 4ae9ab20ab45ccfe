"""Whoever is killed while a model learns or is saved leaves the old model or the new one, bit for bit."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import time

import pytest

import holdfast as hf
from holdfast.checks.learner import _equal as equal

PROTOCOL = hf.protocol("epochs", epochs=30)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """A folder with a model, the rows of its next task, and what it is before and after it learned them."""
    folder = tmp_path_factory.mktemp("killed") / "model"
    stream = hf.stream("split", tasks=2, examples=60, test_examples=20)
    hf.run("er", stream.first(1), net=hf.net("mlp", hidden=(12,)), protocol=PROTOCOL, keep_model=folder)
    task = stream.tasks[1]
    rows = task.train.raw(), task.train.y
    old, new = hf.load_model(folder), hf.load_model(folder)
    began = time.monotonic()
    new.learn(*rows, test=0.2)
    return folder, rows, old, new, time.monotonic() - began


def same(one, other) -> bool:
    mine, its = ({k: v for k, v in model.state.items() if k != "measured"} for model in (one, other))
    tables = [{k: v for k, v in m.state["measured"].items() if "seconds" not in k} for m in (one, other)]
    return equal(mine, its) and equal(*tables) and one.classes == other.classes


def test_killed_at_any_touch_of_the_disk(told, child, tmp_path):
    folder, _, old, new, _ = told
    outcomes = []
    for nth in range(1, 1000):
        place = shutil.copytree(folder, tmp_path / str(nth))

        def work(nth=nth, place=place):
            touches = 0

            def count(event, given):
                nonlocal touches
                if event in ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir") and str(place) in str(given):
                    touches += 1
                    if touches == nth:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count)
            hf.save(new, place)
            return 0

        code = child(work).wait()
        found = hf.load_model(place)
        outcomes.append(same(found, new))
        assert outcomes[-1] or same(found, old)
        if code != -signal.SIGKILL:
            assert code == 0
            break
        hf.save(new, place)  # over what was left
        assert same(hf.load_model(place), new)
        assert [path.name for path in place.iterdir()] in (["2"], ["3"])
    assert len(outcomes) > 15 and not outcomes[0] and outcomes == sorted(outcomes)  # at one moment, and for good


def test_killed_at_random_while_it_learns(told, child, tmp_path):
    folder, rows, old, new, seconds = told
    dice, kills = random.Random(0), 0
    for i in range(4):
        place = shutil.copytree(folder, tmp_path / str(i))

        def work(place=place):
            model = hf.load_model(place)
            model.learn(*rows, test=0.2)
            hf.save(model, place)
            return 0

        kills += child(work).kill_after(dice.uniform(0, 1.5 * seconds)) == -signal.SIGKILL
        found = hf.load_model(place)
        assert same(found, new) or same(found, old)
    assert kills
