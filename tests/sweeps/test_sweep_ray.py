"""The same cells on a Ray cluster: the same bits, also when a worker or a whole node is killed on the way."""

import errno
import json
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.data import data_folder
from holdfast.errors import NotKept, RunFailed
from holdfast.protocols import Progress
from holdfast.sweeps import Event, Failure, execute, on_ray
from holdfast.sweeps.on_node import Mailbox, recipe
from holdfast.sweeps.on_ray import _Cluster, execute_on_ray
from holdfast.sweeps.store import to_json
from holdfast.types import Record

NODE = {"num_cpus": 1, "object_store_memory": 100 * 2**20, "include_log_monitor": False}
LOST = "its Ray worker or node was lost; it is tried again"
GOES_ON = "goes on with task 1, where it was interrupted"


@dataclass
class Logged(hf.Learner):
    """Notes in a file which tasks it learns, and on which node."""

    log: str

    def begin(self, train, plan):
        self.steps = 0

    def observe(self, batch):
        self.steps += 1
        if self.steps == 1:
            with Path(self.log).open("a") as log:
                log.write(f"{node()} {batch.task}\n")
        if self.steps == 3 and batch.task == 1:
            self.halfway()
        return self.descend(self.cross_entropy(batch))

    def halfway(self):
        """In the middle of the second task."""


@dataclass
class Killed(Logged):
    """Its process is killed in the second task: the first time, or always."""

    always: bool = False

    def halfway(self):
        if self.always or len(tasks(self.log)) == 2:
            os.kill(os.getpid(), signal.SIGKILL)


class KilledOnce(Logged):
    """Its process is killed in the middle of the second task, and not when it goes on from there."""

    def halfway(self):
        mark = Path(f"{self.log}.killed")
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)


@dataclass
class Stuck(Logged):
    """On one of the nodes it never ends."""

    where: str = ""

    def halfway(self):
        while node() == self.where:
            time.sleep(0.1)


class Lingers(Logged):
    """Long enough for its word about the second task to be sent, and to be heard before its record."""

    def halfway(self):
        time.sleep(0.5)

    def finish(self, train):
        time.sleep(2 if len(tasks(self.log)) == 2 else 0)


class Raises(hf.Learner):
    def observe(self, batch):
        raise ZeroDivisionError("one by zero")


@dataclass
class Holds(hf.Learner):
    """Has something that cannot be sent anywhere."""

    lock: Any = None

    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))


def narrow(info):
    """A network whose source is here and not on the node; `classes` is also the name of a module of torch."""
    assert torch.Size(info.shape).numel() == 64
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 5), nn.ReLU(), nn.Linear(5, info.classes))


def node():
    """Where this is run; nothing on no cluster."""
    import ray

    return ray.get_runtime_context().get_node_id() if ray.is_initialized() else "-"


def tasks(log):
    """Which tasks were learned, in order."""
    return [int(line.split()[1]) for line in Path(log).read_text().splitlines()]


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture(scope="module")
def cluster():
    """A node on this machine with one core; `second` adds another, which a test may kill."""
    local = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_worker_niceness": "0",
        "RAY_raylet_start_wait_time_s": "180",
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_DEDUP_LOGS_SKIP_REGEX": ".",
    }
    os.environ.update(local)
    ray = pytest.importorskip("ray", reason="the ray extra is not installed")
    from ray.cluster_utils import Cluster

    port = free_port()
    made = Cluster(
        initialize_head=True, head_node_args={**NODE, "include_dashboard": False, "ray_client_server_port": port}
    )
    made.client = f"ray://127.0.0.1:{port}"
    ray.init(made.address, logging_level="ERROR", log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


@pytest.fixture
def second(cluster):
    added = cluster.add_node(**NODE)
    yield added
    if added in cluster.worker_nodes:
        cluster.remove_node(added)


def content(record: Record) -> dict:
    """All of a record but the seconds, which no two runs share."""
    found = json.loads(json.dumps(to_json(record)))
    found["resources"] = {k: v for k, v in found["resources"].items() if "seconds" not in k}
    found["metrics"] = {k: v for k, v in found["metrics"].items() if "seconds" not in k}
    found["card"] = {k: v for k, v in found["card"].items() if "seconds" not in k}
    for costs in (found["resources"].get("trials", {}), *found["study"].get("trials", [])):
        costs.pop("seconds", None)
    return found


def same(a: Record, b: Record) -> bool:
    arrays = [*zip(a.predictions, b.predictions, strict=True), *zip(a.labels, b.labels, strict=True)]
    return content(a) == content(b) and all(np.array_equal(x, y) for x, y in arrays)


def notes(events, i):
    return [e.note for e in events if e.cell == i and e.note is not None]


@pytest.mark.ray
def test_a_killed_worker_costs_its_cell_the_unfinished_task_and_own_code_travels(cluster, cell, tmp_path, monkeypatch):
    monkeypatch.setattr(on_ray, "TRIES", 2)
    cells = [
        cell(Killed(str(tmp_path / "once"))),
        cell(Killed(str(tmp_path / "always"), always=True)),
        cell(Raises()),
        cell("er", net=narrow),
        cell(Holds(threading.Lock())),
        cell("er", stream=hf.stream("split", data=(np.eye(64, dtype=np.float32).repeat(5, 0), [0, 1] * 160), tasks=2)),
        cell(
            "ewc",
            net=hf.net("mlp"),
            protocol=hf.protocol("realistic", layers=(1,), sizes=(4, 6), steps=20, choose_on="test"),
        ),
    ]
    events = []
    once, always, raised, own, held, arrays, study = execute_on_ray(cells, tmp_path / "out", "ray", watch=events.append)
    assert tasks(tmp_path / "once") == tasks(tmp_path / "always") == [0, 1, 1]
    assert notes(events, 0) == notes(events, 1) == [LOST, GOES_ON]
    undisturbed = execute([cells[0], cells[3], cells[5], cells[6]], jobs=1)  # it has been killed by now
    assert all(map(same, [once, own, arrays, study], undisturbed))
    assert own.net["name"] == "narrow" and own.net["source"] == undisturbed[1].net["source"]
    assert isinstance(always, Failure) and "lost 2 times" in always.reason
    assert isinstance(held, Failure) and held.reason.startswith("it cannot be sent to a Ray worker: cannot pickle")
    error = tmp_path / "out" / "cells" / cells[2].name / "error.txt"
    assert raised == Failure(cells[2].name, f"ZeroDivisionError: one by zero (the traceback is in {error})")
    assert "in observe" in error.read_text()
    assert sorted(e.cell for e in events if e.outcome is not None) == list(range(7))
    assert any(e.progress is not None for e in events)
    kept = execute(
        [cells[0], cells[3], cells[5]], tmp_path / "out", jobs=1
    )  # what Ray left is what the other executor reads
    assert all(map(same, kept, undisturbed))
    assert [p.parent.name for p in tmp_path.glob("out/cells/*/checkpoint")] == [cells[1].name]


@pytest.mark.ray
@pytest.mark.parametrize(
    "data",
    ["digits,synth-shapes", pytest.param("digits,synth,mnist,cifar-10,svhn", marks=pytest.mark.data)],
)
@pytest.mark.parametrize("protocol", [hf.protocol("online"), hf.protocol("epochs", epochs=2)])
def test_several_data_sets_go_to_the_nodes_by_their_names(data, protocol, cluster, cell, tmp_path):
    """Five tasks, augmented and each with its own scale; the worker is killed in the second."""
    if missing := [name for name in data.split(",")[2:] if not (data_folder() / name).is_dir()]:
        pytest.skip(f"HOLDFAST_DATA does not have {', '.join(missing)}")
    words = {"tasks": 5, "per_class": (4, 0, 3), "augment": True, "scale": "task"}
    stream = hf.stream("assorted", data=data, **words)
    assert recipe(stream).given == data and len(pickle.dumps(recipe(stream))) < 10_000
    cells = [cell(method, stream=stream, protocol=protocol) for method in (KilledOnce(str(tmp_path / "log")), "er")]
    events: list[Event] = []
    found = execute_on_ray(cells, tmp_path / "out", "ray", watch=events.append, checkpoint_every=2)
    assert notes(events, 0) == [LOST, "goes on in task 1 after step 2, where it was interrupted"]
    assert all(map(same, found, execute(cells, jobs=1)))


def test_a_node_whose_data_sets_differ_says_which():
    stream = hf.stream("assorted", data="digits,synth-shapes")
    sent = replace(recipe(stream), fingerprint="0" * 64)
    with pytest.raises(hf.BadInput, match="data set 'digits,synth-shapes' of that node differs from the one here"):
        sent.cut()


@pytest.mark.ray
def test_a_killed_node_costs_its_cell_the_unfinished_task(cluster, second, cell, tmp_path):
    cells = [cell(Stuck(str(tmp_path / f"log{seed}"), where=second.node_id), seed) for seed in range(2)]

    def kill():
        """When the cell there has begun its second task."""
        while not any(f"{second.node_id} 1" in log.read_text() for log in tmp_path.glob("log*")):
            time.sleep(0.05)
        cluster.remove_node(second, allow_graceful=False)

    events: list[Event] = []
    killing = threading.Thread(target=kill)
    killing.start()
    found = execute_on_ray(cells, tmp_path / "out", "ray", watch=events.append)
    killing.join()
    lost = next(i for i in range(2) if notes(events, i))
    assert notes(events, lost) == [LOST, GOES_ON] and notes(events, 1 - lost) == []
    assert tasks(tmp_path / f"log{lost}") == [0, 1, 1] and tasks(tmp_path / f"log{1 - lost}") == [0, 1]
    assert all(map(same, found, execute(cells, jobs=1)))


@pytest.mark.ray
def test_each_executor_goes_on_with_what_the_other_left(cluster, cell, tmp_path):
    def stopped(event):
        if event.progress is not None and event.progress.task == 1:
            raise KeyboardInterrupt

    ours = [cell(Lingers(str(tmp_path / name))) for name in ("there", "here")]
    for ran, run in zip(ours, (execute_on_ray, execute), strict=True):
        with pytest.raises(KeyboardInterrupt):
            run([ran], tmp_path, **({"on": "ray"} if run is execute_on_ray else {}), watch=stopped, checkpoint_every=2)
    newest = max((tmp_path / "cells" / ours[1].name / "checkpoint").iterdir(), key=lambda p: int(p.name))
    (newest / "tensors.safetensors").write_bytes(b"spoiled")
    events: list[Event] = []
    (there,) = execute(ours[:1], tmp_path, jobs=1, watch=events.append)
    in_the_middle = "goes on in task 1 after step 4, where it was interrupted"
    assert notes(events, 0) == [in_the_middle] and tasks(tmp_path / "there") == [0, 1]
    events.clear()
    (here,) = execute_on_ray(ours[1:], tmp_path, "ray", watch=events.append)
    damaged = "a checkpoint cannot be used (tensors.safetensors is damaged); goes on from the one before"
    assert notes(events, 0) == [damaged, "goes on in task 1 after step 2, where it was interrupted"]
    assert tasks(tmp_path / "here") == [0, 1]
    assert all(map(same, [there, here], execute(ours, jobs=1)))
    assert list(tmp_path.glob("cells/*/checkpoint")) == []


@pytest.mark.ray
def test_a_full_disk_stops_the_cluster_and_nothing_half_written_is_left(cluster, cell, tmp_path, monkeypatch):
    def full(path, content):
        path.write_bytes(content[:10])
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("holdfast.engine.state.fill", full)
        with pytest.raises(NotKept, match="No space left on device"):
            execute_on_ray([cell("er")], tmp_path, "ray")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
    assert same(*execute_on_ray([cell("er")], tmp_path, "ray"), *execute([cell("er")], jobs=1))


def test_a_mailbox_keeps_the_last_of_each_and_a_state_until_it_is_fetched():
    box = Mailbox()
    for step in range(3):
        box.post((0, 0), Progress(0, 2, step, 3))
        box.keep((0, 0), {"state.json": bytes([step])})
    box.keep((0, 1), {"state.json": b"again"})
    box.note((0, 1), "goes on")
    assert box.take() == ([((0, 1), "goes on")], [((0, 0), Progress(0, 2, 2, 3))], [(0, 0), (0, 1)])
    assert box.take() == ([], [], [(0, 0), (0, 1)])  # in case nobody heard
    assert box.state((0, 0)) == {"state.json": b"\x02"} and box.state((0, 0)) is None
    assert box.take() == ([], [], [(0, 1)])


@pytest.mark.ray
def test_a_killed_node_costs_nothing_but_time(cluster, second, cell, tmp_path):
    cells = [cell(name, seed) for name in ("finetune", "ewc", "er", "gem") for seed in range(6)]
    done = []

    def watch(event):
        if event.outcome is not None:
            done.append(event.cell)
            if len(done) == 8:
                cluster.remove_node(second, allow_graceful=False)

    found = execute_on_ray(cells, tmp_path, "ray", watch=watch)
    assert sorted(done) == list(range(24)) and all(isinstance(r, Record) for r in found)
    assert all(map(same, found, execute(cells, jobs=1)))
    assert len(list(tmp_path.glob("cells/*/record.json"))) == 24


@pytest.mark.ray
def test_tasks_from_several_data_sets_under_every_kind_of_protocol(cluster, tmp_path):
    """Five tasks of 32×32 RGB, augmented and each with a scale of its own; a worker is killed in each run."""
    here = [name for name in ("mnist", "cifar-10", "svhn") if (data_folder() / name).is_dir()]
    shown = {"tasks": 5, "per_class": (6, 3, 4), "augment": True, "scale": "task", "head": "task"}
    stream = hf.stream("assorted", data=",".join(["digits", "synth", *here]), **shown)
    tried = {"lr": (0.01, 0.001), "decay": (0.0,), "epochs": 2, "batch": 20}
    protocols = [hf.protocol("online"), hf.protocol("epochs", epochs=2), hf.protocol("crossval", **tried)]
    net, logs = hf.net("mlp", hidden=(20,)), [str(tmp_path / f"log{i}") for i in range(3)]

    def cells(method):
        return [hf.Cell(method(logs[i]), stream, net, p, 0, reseed=False) for i, p in enumerate(protocols)]

    found = execute_on_ray(cells(KilledOnce), tmp_path, "ray")
    assert all(Path(f"{log}.killed").exists() for log in logs)
    for record, alone in zip(found, execute(cells(KilledOnce), jobs=1), strict=True):
        assert same(record, alone), record


OWN = """
import os, signal
from dataclasses import dataclass
from pathlib import Path
import holdfast as hf

@dataclass
class Killed(hf.Learner):
    log: str

    def begin(self, train, plan):
        with open(self.log, "a") as log:
            log.write("begins ")

    def observe(self, batch):
        if batch.task == 1 and len(Path(self.log).read_text().split()) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.descend(self.cross_entropy(batch))
"""


@pytest.mark.ray
def test_a_cluster_at_an_address_runs_a_sweep_file_and_survives_a_killed_worker(cluster, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    sweep = tmp_path / "small.toml"
    sweep.write_text(f"""
        method = ["er", {{name = "own.py:Killed", log = "{tmp_path}/log"}}]
        stream = {{name = "split", tasks = 2, examples = 60, test_examples = 30}}
        net = {{name = "mlp", hidden = [8]}}
    """)
    # A program has one connection to Ray, and this one has its own already.
    command = [
        sys.executable,
        "-m",
        "holdfast",
        "sweep",
        str(sweep),
        "--on",
        cluster.client,
        "--out",
        str(tmp_path / "out"),
    ]
    for _ in range(3):  # Ray forks a server for each client beside gRPC's threads; on a busy machine it may die at once
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if "Starting Ray client server failed" not in ran.stderr:
            break
    assert ran.returncode == 0, ran.stderr
    said = [line for line in ran.stderr.splitlines() if line.startswith("Killed seed 0: ")]
    assert said == [f"Killed seed 0: {LOST}", f"Killed seed 0: {GOES_ON}"]
    assert (tmp_path / "log").read_text().split() == ["begins"] * 3
    found = hf.Comparison.read(tmp_path / "out").records
    assert all(map(same, found, hf.sweep(sweep, jobs=1).records)) and len(found) == 2


def test_addresses():
    for wrong in ("rya", "ray:", "ray://", "ray://host", "ray://host:port", "ray://a b:1", "spark"):
        assert "unknown executor" in on_ray.faults(wrong)[0] and "ray://HOST:PORT" in on_ray.faults(wrong)[0]
    assert on_ray.faults(None) == []


@pytest.mark.ray
def test_a_cluster_that_does_not_answer():
    pytest.importorskip("ray", reason="the ray extra is not installed")
    address = f"ray://127.0.0.1:{free_port()}"
    (fault,) = on_ray.faults(address)
    assert address in fault and "10001" in fault


@pytest.mark.ray
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("The node timed out during startup.\nThis could happen because ...", "The node timed out during startup."),
        ("Failure from server:\nTraceback\n  File\nOSError: no port", "Failure from server: OSError: no port"),
        ("", "Exception"),
    ],
)
def test_a_cluster_that_does_not_start_is_told_in_one_line(said, told, cell, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="the ray extra is not installed")
    places = []

    def fails(_temp_dir, **words):
        places.append(_temp_dir)
        raise Exception(said)

    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    monkeypatch.setattr(ray, "init", fails)
    with pytest.raises(RunFailed) as error:
        execute_on_ray([cell("er")], tmp_path, "ray")
    assert str(error.value) == f"Ray cannot start a cluster on this machine: {told}"
    assert len(places) == 1 and not Path(places[0]).exists()


@pytest.mark.parametrize(("raised", "told"), [(ConnectionError, RunFailed), (ZeroDivisionError, ZeroDivisionError)])
def test_a_cluster_that_is_lost_altogether_is_told_in_one_line(raised, told):
    class Lost(_Cluster):
        def __init__(self):
            pass

        def events(self, waiting):
            raise raised("GRPC connection failed: <_MultiThreadedRendezvous of RPC ...")

    with pytest.raises(told) as error:
        list(Lost().run([0]))
    assert raised is ZeroDivisionError or "cluster was lost; what is finished is kept" in str(error.value)


def test_without_ray_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(hf.BadInput, match=r"pip install 'holdfast\[ray\]'"):
        hf.sweep("finetune", on="ray", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
