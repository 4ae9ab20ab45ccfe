"""Threads: the user's process keeps its own, a run takes one unless it is given more, and no forked process hangs."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from types import SimpleNamespace

import pytest
import torch

import holdfast as hf
from holdfast.sweeps import Event, execute, executor, on_ray, read_sweep, workers
from holdfast.types import Record

SETTINGS = ("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
TWO_CORES = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="torch uses one thread on one core")


class Counts(hf.Learner):
    """Fails with the number of threads it is run with."""

    def observe(self, batch):
        raise hf.RunFailed(f"{torch.get_num_threads()} threads")


def python(code, timeout=600, **environ):
    """What a new process says; a hang is a failure. Its idle threads sleep: spinning, they would starve other tests."""
    plain = {name: value for name, value in os.environ.items() if name not in SETTINGS} | {"GOMP_SPINCOUNT": "0"}
    done = subprocess.run(
        [sys.executable, "-c", code], env={**plain, **environ}, capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


ALONE = """
import os
before = dict(os.environ)
import holdfast
assert dict(os.environ) == before, set(os.environ) - set(before)
import torch

threads = torch.get_num_threads()
import holdfast as hf
hf.run("gem", hf.stream("rotated", tasks=2, examples=20, test_examples=20), net="conv")
hf.compare(["finetune", "er"], hf.stream("split", tasks=2, examples=20, test_examples=20), seeds=1, jobs=2)
hf.ContinualClassifier("finetune").fit([[0.0, 1.0], [1.0, 0.0]] * 5, [0, 1] * 5)
for name in {names}:  # torch and scikit-learn set others
    assert os.environ.get(name) == before.get(name), name
assert torch.get_num_threads() == threads
print(threads)
"""


def test_the_users_process_is_left_alone():
    code = ALONE.replace("{names}", repr(SETTINGS))
    assert int(python(code)) >= 1
    assert python(code, OMP_NUM_THREADS="1") == "1\n"


def reason(threads, **words):
    with pytest.raises(hf.RunFailed) as caught:
        hf.run(Counts(), hf.stream("split", tasks=2, examples=20), threads=threads, **words)
    return str(caught.value)


def test_a_run_has_one_thread_or_as_many_as_it_is_given():
    before = torch.get_num_threads()
    assert reason(1) == "1 threads"
    assert reason(3) == "3 threads"
    assert torch.get_num_threads() == before


def test_the_command_line_takes_one_thread_in_its_own_process_only(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "import os, torch, holdfast as hf\n"
        "class Tells(hf.Learner):\n"
        "    def observe(self, batch):\n"
        f"        found = [os.environ.get(name) for name in {SETTINGS[:3]}]\n"
        "        raise hf.RunFailed(f'{found} {torch.get_num_threads()} threads')\n"
    )
    words = ["run", f"{tmp_path / 'mine.py'}:Tells", "--tasks", "2", "--out", str(tmp_path / "out"), "--json"]
    code = "import sys\nfrom holdfast.cli import main\nassert 'torch' not in sys.modules\n" + f"main({words})"
    said = json.loads(python(code))["failed"][0]["reason"]
    assert said == "['1', 'PASSIVE', '1'] 1 threads"

    from holdfast.cli import main

    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    before = dict(os.environ)
    assert main(["list", "nets", "--json"]) == 0
    assert dict(os.environ) == before  # torch is here already: this is somebody else's process


def test_more_threads_are_a_setting_of_the_cell_and_of_the_record(cell, stream):
    one, two = cell(), cell(threads=2)
    assert "threads" not in one.settings() and two.settings()["threads"] == 2
    assert one.hash != two.hash and cell(threads=1).hash == one.hash
    assert two.run().settings["run.threads"] == {"value": 2, "chosen_by": "given"}
    assert "run.threads" not in one.run().settings
    both = hf.Comparison((one.run(), two.run()))
    assert list(both.summary()["methods"]) == ["finetune", "finetune[run.threads=2]"]


@pytest.mark.parametrize(
    ("cores", "threads", "jobs", "found"), [(8, 1, None, 8), (8, 3, None, 2), (8, 16, None, 1), (2, 2, 4, 4)]
)
def test_by_default_jobs_and_threads_make_up_the_cores(cell, monkeypatch, cores, threads, jobs, found):
    asked = []

    def in_processes(work, waiting, jobs, lost):
        asked.append(jobs)
        return (Event(i, outcome=runs[i].perform(i, lambda event: None)) for i in waiting)

    cells = [cell("finetune", seed, threads=threads) for seed in range(9)]
    runs, _ = executor.begin(cells, None, None, lambda event: None)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    monkeypatch.setattr(executor, "in_processes", in_processes)
    monkeypatch.setattr(executor, "has_strange_threads", lambda: False)
    assert all(isinstance(found, Record) for found in execute(cells, jobs=jobs))
    assert asked == ([found] if found > 1 else [])


POOL = """
import torch
assert torch.get_num_threads() > 1, "one thread"
a = torch.randn(1500, 1500)
(a @ a).exp().sum()  # the pool of threads exists now
import os, holdfast as hf
x, y = torch.rand(8000, 64), torch.arange(8000) % 10
stream = hf.stream("split", (x, y, x[:2000], y[:2000]), tasks=2)
notes = []
found = hf.compare(
    ["finetune", "er"], stream, seeds=2, jobs=2, threads=2, protocol=hf.protocol("online", batch=2000),
    watch=lambda event: notes.append(event.note) if event.note else None,
)
print(len(found.records), *notes, sep=chr(10))
"""


@TWO_CORES
def test_processes_with_threads_are_not_forked_from_one_that_has_them():
    """They would wait for threads that were not forked along."""
    number, *notes = python(POOL).splitlines()
    assert number == "4"
    assert notes == [
        "the cells are run in this process, one after the other: it has threads running, "
        "and processes forked from it could not have several of their own"
    ]


CLEAN = """
import sys
from holdfast.cli import main
sys.exit(main(sys.argv[1:] or {words}))
"""


@TWO_CORES
def test_the_command_line_runs_processes_with_threads(tmp_path):
    """Its own process has no threads, so that those it forks may have."""
    (tmp_path / "mine.py").write_text(
        "import os, torch, holdfast as hf\n"
        "class Tells(hf.Learner):\n"
        "    def observe(self, batch):\n"
        "        a = torch.randn(1000, 1000)\n"
        "        (a @ a).exp().sum()\n"
        "        assert torch.get_num_threads() == 2\n"
        "        assert len(os.listdir('/proc/self/task')) > 1  # they are there\n"
        f"        open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')\n"
        "        return self.descend(self.cross_entropy(batch))\n"
    )
    words = ["run", f"{tmp_path / 'mine.py'}:Tells", "--tasks", "2", "--examples", "20", "--seeds", "0,1"]
    words += ["--threads", "2", "--jobs", "2", "--out", str(tmp_path / "out"), "--json"]
    said = json.loads(python(CLEAN.format(words=words)))
    assert said["methods"]["Tells"]["seeds"] == [0, 1], said
    assert len(set((tmp_path / "pids").read_text().split())) == 2


def test_threads_that_python_does_not_know_of_are_noticed():
    code = "from holdfast.sweeps import workers\nprint(workers.has_strange_threads())\n"
    with_pool = "import torch\na = torch.randn(1500, 1500)\n(a @ a).exp().sum()\n" + code
    quiet = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    own = "import sklearn.datasets, threading as t\nt.Thread(target=t.Event().wait, daemon=True).start()\n"
    if sys.platform == "linux":
        assert python(own + code, **quiet) == "False\n"
    if (os.cpu_count() or 1) > 1:
        assert python(with_pool) == "True\n"
    assert isinstance(workers.has_strange_threads(), bool)


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "2", True, 100_000])
def test_threads_must_be_a_whole_number(wrong):
    for make in (hf.run, hf.compare, hf.sweep):
        with pytest.raises(hf.BadInput, match=r"threads.* must be a whole number from 1 to 256, not"):
            make("finetune", "split", threads=wrong)


def test_sweep_files_say_it_as_they_say_the_device(tmp_path):
    path = tmp_path / "some.toml"
    path.write_text('method = "finetune"\nthreads = 2\n')
    assert [cell.threads for cell in read_sweep(path).cells] == [2]
    for wrong in ("0", '"2"', "true", "1.5"):
        path.write_text(f'method = "finetune"\nthreads = {wrong}\n')
        with pytest.raises(hf.BadInput, match="threads: must be a whole number from 1 to 256, not"):
            read_sweep(path)
    with pytest.raises(hf.BadInput, match="says its own threads"):
        hf.sweep(path, threads=2)


def test_a_ray_cluster_must_have_a_node_with_so_many_cores():
    nodes = [{"Alive": True, "Resources": {"CPU": 4.0}}, {"Alive": False, "Resources": {"CPU": 64.0}}, {"Alive": True}]
    ray = SimpleNamespace(nodes=lambda: [{"Resources": {}, **node} for node in nodes])
    on_ray._refuse_threads(ray, 4)
    with pytest.raises(hf.BadInput, match=r"no node of the Ray cluster has 5 cores for a cell of 5 threads; .* 4"):
        on_ray._refuse_threads(ray, 5)


def test_a_protocol_that_passes_over_nothing_is_refused():
    @dataclass(frozen=True)
    class Nothing(hf.Passing):
        passes = 0

    with pytest.raises(hf.BadInput, match="protocol 'Nothing' passes 0 times over task 0"):
        hf.run("finetune", hf.stream("split", tasks=2, examples=20), protocol=Nothing())
