"""How far the cells are: counted from events, on a clock that cannot jump, and readable from another process."""

import json
import platform
import subprocess
import sys
import time
from dataclasses import replace

import pytest

import holdfast as hf
from holdfast.protocols import Progress
from holdfast.sweeps import Event, Failure, board
from holdfast.sweeps.board import Board, read_board, titles


@pytest.fixture
def clock(monkeypatch):
    """A monotonic clock that goes only when told, beside a wall clock that must not be asked."""
    now = [100.0]
    monkeypatch.setattr(board.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(board.time, "time", lambda: pytest.fail("the wall clock may jump"))
    return now


def test_states_and_the_time_that_is_left(cell, record, clock):
    seen = Board([cell("finetune"), cell("er"), cell("joint"), cell("gem")])
    seen(Event(3, outcome=record, before=True))
    seen(Event(0, Progress(0, 2, 3, 6)))  # a quarter of two tasks
    clock[0] += 10
    seen(Event(0, Progress(1, 2, 3, 6)))  # three quarters
    seen(Event(2, Progress(0, 2, 6, 12)))  # half of what is mixed
    seen(Event(1, outcome=Failure("er", "it broke")))
    now = seen.snapshot()
    assert [row.state for row in now.rows] == ["running", "failed", "running", "done"]
    assert now.counts == {"waiting": 0, "running": 2, "done": 1, "failed": 1}
    assert (now.rows[0].task, now.rows[0].step, now.rows[0].steps) == (1, 3, 6)
    assert now.rows[0].eta == pytest.approx(5)  # half in 10 s, a quarter is left
    assert now.rows[2].eta is None  # heard of once
    assert now.rows[1].reason == "it broke" and now.rows[3].acc == record.acc
    assert now.eta == pytest.approx(10 * (3 - 2.25) / 2.25)  # of the three that were not kept


def test_work_beside_the_steps_is_told_and_moves_no_clock_hand(cell, clock):
    seen = Board([cell("finetune")])
    seen(Event(0, Progress(0, 2, 50, 200, "warming up")))
    (row,) = seen.rows
    assert (row.state, row.doing, row.step, row.steps, row.eta) == ("running", "warming up 50/200", 0, 0, None)
    seen(Event(0, Progress(0, 2, 6, 6)))
    assert row.doing == "" and seen.part(0) == 0.5
    seen(Event(0, Progress(0, 2, 30, 60, "coreset")))
    assert row.doing == "coreset 30/60" and (row.step, row.steps) == (6, 6) and seen.part(0) == 0.5
    seen(Event(0, Progress(1, 2, 20, 200, "warming up")))
    assert (row.task, row.step) == (1, 0) and seen.part(0) == 0.5


def test_written_at_most_once_a_second_but_the_last_word_is(cell, tmp_path, monkeypatch):
    writes, write = [], board.write_text
    monkeypatch.setattr(board, "write_text", lambda path, text: (writes.append(text), write(path, text)))
    monkeypatch.setattr(board, "EVERY", 0.2)
    began = time.monotonic()
    watch = Board([cell("finetune")])
    with board.posted(watch, tmp_path):
        for step in range(300):
            watch(Event(0, Progress(0, 2, step, 300)))
        while json.loads((tmp_path / "progress.json").read_text())["cells"][0]["step"] < 299:
            time.sleep(0.01)
    assert 2 <= len(writes) <= 2 + (time.monotonic() - began) / 0.2
    assert not (tmp_path / "progress.json").exists()


def test_a_run_can_be_read_while_it_goes_on_and_leaves_nothing(stream, tmp_path):
    seen = []
    hf.compare(
        ["finetune", "er"],
        stream,
        seeds=1,
        jobs=1,
        out=tmp_path / "out",
        watch=lambda e: seen.append(read_board(tmp_path / "out")),
    )
    assert {now.runner for now in seen} == {"running"}
    assert [row.title for row in seen[0].rows] == ["finetune seed 0", "er seed 0"]
    assert not (tmp_path / "out" / "progress.json").exists()
    now = read_board(tmp_path / "out")
    assert now.runner == "none" and now.counts["done"] == 2


def test_a_runner_that_was_killed_is_gone(cell, tmp_path):
    cells = [cell("finetune"), cell("er"), cell("gem")]
    (tmp_path / "experiment.json").write_text(json.dumps({"cells": [c.name for c in cells]}))
    with board.posted(Board(cells), tmp_path):
        assert read_board(tmp_path).runner == "running"
        said = json.loads((tmp_path / "progress.json").read_text())
    (tmp_path / "progress.json").write_text(json.dumps({**said, "born": "1"}))  # its number was given to another
    assert read_board(tmp_path).runner == ("gone" if sys.platform == "linux" else "running")
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    (tmp_path / "progress.json").write_text(json.dumps({**said, "pid": dead.pid, "born": None}))
    for name, file in ((cells[0].name, "record.json"), (cells[1].name, "error.txt")):
        (tmp_path / "cells" / name).mkdir(parents=True)
        (tmp_path / "cells" / name / file).touch()
    now = read_board(tmp_path)
    assert now.runner == "gone"
    assert [(row.title, row.state) for row in now.rows] == [
        ("finetune seed 0", "done"), ("er seed 0", "failed"), ("gem seed 0", "waiting")
    ]  # fmt: skip


def test_one_sweep_of_a_store_is_not_taken_for_another(stream, tmp_path):
    seen = []

    def watch(event):
        seen.append([read_board(tmp_path / "sweeps" / name) for name in ("first", "second")])

    hf.sweep("finetune", stream, name="first", jobs=1, out=tmp_path)
    hf.sweep(["finetune", "er"], stream, seeds=[1], name="second", jobs=1, out=tmp_path, watch=watch)
    assert {(first.runner, len(first.rows), first.counts["done"]) for first, _ in seen} == {("none", 1, 1)}
    assert {(second.runner, len(second.rows)) for _, second in seen} == {("running", 2)}


HUGE = json.dumps({"cells": [], "host": platform.node(), "pid": 10**30, "born": None, "seconds": 1, "eta": 1})


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"cells": 3}', '{"cells": [{"odd": 1}]}', HUGE])
def test_a_damaged_file_is_told(tmp_path, text):
    (tmp_path / "experiment.json").write_text("{}")
    (tmp_path / "progress.json").write_text(text)
    with pytest.raises(hf.BadInput, match=r"progress\.json cannot be read"):
        read_board(tmp_path)


def test_titles_say_what_differs(cell):
    cells = [
        cell(hf.method("ewc", strength=s), protocol=hf.protocol("online", lr=lr)) for s in (1, 2) for lr in (0.1, 0.2)
    ]
    assert titles([*cells, cell("er", seed=3)]) == [
        "ewc[protocol.lr=0.1,strength=1] seed 0",
        "ewc[protocol.lr=0.2,strength=1] seed 0",
        "ewc[protocol.lr=0.1,strength=2] seed 0",
        "ewc[protocol.lr=0.2,strength=2] seed 0",
        "er seed 3",
    ]


def test_titles_name_the_scenario_as_labels_do(cell):
    streams = [hf.stream("split", tasks=2, scenario=scenario) for scenario in ("class", "task")]
    assert titles([cell("ewc", stream=stream) for stream in streams]) == ["ewc/class seed 0", "ewc/task seed 0"]
    assert titles([cell("ewc", stream=streams[1])]) == ["ewc seed 0"]


def test_a_title_that_is_given_is_taken_and_decides_nothing(cell):
    named = replace(cell("er", seed=3), title="ER, 10 tasks")
    assert titles([named, cell("er", seed=4)]) == ["ER, 10 tasks seed 3", "er seed 4"]
    assert named.name == cell("er", seed=3).name
