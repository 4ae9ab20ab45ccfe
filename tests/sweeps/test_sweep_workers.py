"""Processes that die, hang on to threads, or are stopped: every cell is finished once, or failed with its reason."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass

import pytest

import holdfast as hf
from holdfast.sweeps import Cell, Failure, execute
from holdfast.sweeps.workers import in_processes
from holdfast.types import Record


@dataclass
class Dies(hf.Learner):
    """Its process ends in the second task, as often as there are words in the file `deaths`."""

    deaths: str = ""
    how: str = "kill"

    def observe(self, batch):
        if batch.task == 1 and os.path.getsize(self.deaths):
            os.truncate(self.deaths, os.path.getsize(self.deaths) - 1)
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            os._exit(7)
        return self.descend(self.cross_entropy(batch))


@pytest.fixture
def dies(tmp_path):
    def make(times, how="kill"):
        path = tmp_path / f"{how}{times}"
        path.write_text("x" * times)
        return Dies(str(path), how)

    return make


@dataclass
class Waits(hf.Learner):
    """Its second task begins once the file `gate` is there: until then no cell of it is finished."""

    gate: str = ""

    def observe(self, batch):
        while batch.task == 1 and not os.path.exists(self.gate):
            time.sleep(0.001)
        return self.descend(self.cross_entropy(batch))


@pytest.fixture
def completions(tmp_path, monkeypatch):
    """How often each cell was run to its end, by whichever process."""
    path, run = tmp_path / "completions", Cell.run

    def noted(self, *args, **words):
        record = run(self, *args, **words)
        with path.open("a") as file:
            file.write(f"{self.name}\n")
        return record

    monkeypatch.setattr(Cell, "run", noted)
    return lambda: Counter(path.read_text().split())


def test_a_killed_worker_costs_its_cell_one_retry(cell, dies, completions, tmp_path):
    cells = [cell(dies(1)), *(cell("finetune", seed) for seed in range(3))]
    events = []
    results = execute(cells, tmp_path / "out", jobs=2, watch=events.append)
    assert all(isinstance(r, Record) for r in results)
    assert completions() == {c.name: 1 for c in cells}
    assert [(e.cell, e.note) for e in events if e.note] == [
        (0, "its process was killed (signal 9; out of memory?); it is tried once more"),
        (0, "goes on with task 1, where it was interrupted"),
    ]


@pytest.mark.parametrize(
    ("how", "fate"), [("kill", "was killed (signal 9; out of memory?)"), ("exit", "ended with exit code 7")]
)
def test_a_second_death_marks_the_cell_failed_and_the_others_go_on(how, fate, cell, dies, completions, tmp_path):
    cells = [cell("finetune"), cell(dies(2, how)), *(cell("er", seed) for seed in range(3))]
    first, failed, *others = execute(cells, tmp_path / "out", jobs=2)
    assert failed == Failure(cells[1].name, f"its process died twice, the last time it {fate}")
    assert (tmp_path / "out" / "cells" / cells[1].name / "error.txt").read_text() == f"{failed.reason}\n"
    assert all(isinstance(r, Record) for r in [first, *others])
    assert completions() == {c.name: 1 for c in cells if c is not cells[1]}


def test_a_record_written_just_before_death_is_not_made_again(cell, completions, tmp_path, monkeypatch):
    from holdfast.sweeps import executor

    write = executor.write_record

    def last_words(record, folder):
        write(record, folder)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(executor, "write_record", last_words)
    cells = [cell("finetune", seed) for seed in range(2)]
    assert all(isinstance(r, Record) for r in execute(cells, tmp_path / "out", jobs=2))
    assert completions() == {c.name: 1 for c in cells}


def test_kill_9_of_one_worker_of_four_loses_and_repeats_nothing(cell, completions, tmp_path):
    gate = tmp_path / "gate"
    cells = [cell(Waits(str(gate)), seed) for seed in range(8)]
    killed = []

    def shoot(event):
        if not killed and event.progress is not None:
            workers = multiprocessing.active_children()
            assert len(workers) == 4
            killed.append(workers[0])
            os.kill(workers[0].pid, signal.SIGKILL)
            workers[0].join()  # a worker let go before it is dead could finish its cell first
            gate.touch()

    results = execute(cells, tmp_path / "out", jobs=4, watch=shoot)
    assert all(isinstance(r, Record) for r in results)
    assert completions() == {c.name: 1 for c in cells}
    assert multiprocessing.active_children() == []


def test_an_exception_while_watching_ends_all_workers(cell):
    def stop(event):
        raise KeyboardInterrupt

    cells = [cell("finetune", seed, protocol=hf.protocol("epochs", epochs=500)) for seed in range(3)]
    with pytest.raises(KeyboardInterrupt):
        execute(cells, jobs=2, watch=stop)
    assert multiprocessing.active_children() == []


def test_a_grandchild_that_holds_the_pipe_open_hides_no_death(cell, tmp_path):
    class Parent(hf.Learner):
        def observe(self, batch):
            if os.fork() == 0:
                signal.pause()
            os._exit(3)

    (path := tmp_path / "pids").touch()

    class Noting(Parent):
        def start(self, *args):
            super().start(*args)
            os.setpgid(0, 0)
            with path.open("a") as file:
                file.write(f"{os.getpid()}\n")

    try:
        died, other = execute([cell(Noting()), cell("finetune")], jobs=2)
        assert died.reason == "its process died twice, the last time it ended with exit code 3"
        assert isinstance(other, Record)
    finally:
        for pid in set(path.read_text().split()) - {str(os.getpid())}:
            os.killpg(int(pid), signal.SIGKILL)


THREADED = """
import torch
assert torch.get_num_threads() > 1, "one thread"
a = torch.randn(1500, 1500)
(a @ a).exp().sum()  # the pool of threads exists now
import holdfast as hf
x, y = torch.rand(8000, 64), torch.arange(8000) % 10
stream = hf.stream("split", (x, y, x[:2000], y[:2000]), tasks=2)
found = hf.compare(["finetune", "er"], stream, seeds=2, jobs=2, protocol=hf.protocol("online", batch=2000))
print(len(found.records))
"""


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="torch uses one thread on one core")
def test_workers_of_a_parent_with_threads_do_not_hang():
    """A forked process that waits for its parent's threads waits forever; they were not forked along."""
    drop = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    plain = {name: value for name, value in os.environ.items() if name not in drop}
    plain["GOMP_SPINCOUNT"] = "0"  # idle threads sleep: spinning, they would starve other tests
    done = subprocess.run([sys.executable, "-c", THREADED], env=plain, capture_output=True, text=True, timeout=600)
    assert done.stdout == "4\n", done.stderr


@pytest.fixture
def interruptible():
    """A test that is run in the background ignores Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_while_a_process_starts_leaves_none_behind(monkeypatch, interruptible):
    start = multiprocessing.context.ForkProcess.start

    def interrupted(process):
        start(process)
        signal.raise_signal(signal.SIGINT)  # it runs, and nobody knows of it yet

    monkeypatch.setattr(multiprocessing.context.ForkProcess, "start", interrupted)
    work = in_processes(lambda cell, tell: time.sleep(600), [0, 1], 2, lambda cell, why: None)
    with pytest.raises(KeyboardInterrupt):
        next(work)
    assert multiprocessing.active_children() == []
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
