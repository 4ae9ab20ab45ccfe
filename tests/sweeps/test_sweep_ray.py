"""The same cells on a Ray cluster: the same bits, also when a worker or a whole node is killed on the way."""

import json
import os
import signal
import socket
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.sweeps import Failure, execute, on_ray
from holdfast.sweeps.on_ray import execute_on_ray
from holdfast.sweeps.store import to_json
from holdfast.types import Record


@dataclass
class Killed(hf.Learner):
    """Its process is killed in the second task as long as the marker is not there."""

    marker: str
    always: bool = False

    def begin(self, train):
        self.steps = 0

    def observe(self, batch):
        self.steps += 1
        if batch.task == 1 and self.steps == 3 and (self.always or not Path(self.marker).exists()):
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.descend(self.cross_entropy(batch))


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


@pytest.fixture(scope="module")
def cluster():
    """Two nodes on this machine with one core each; tests may kill the second."""
    local = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_DEDUP_LOGS_SKIP_REGEX": "."}
    os.environ.update(local)
    ray = pytest.importorskip("ray", reason="the ray extra is not installed")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 100 * 2**20}
    made = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    made.second = made.add_node(**node)
    ray.init(made.address, logging_level="ERROR", log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def content(record: Record) -> dict:
    """All of a record but the seconds, which no two runs share."""
    found = json.loads(json.dumps(to_json(record)))
    found["resources"] = {k: v for k, v in found["resources"].items() if "seconds" not in k}
    found["metrics"] = {k: v for k, v in found["metrics"].items() if "seconds" not in k}
    found["card"] = {k: v for k, v in found["card"].items() if "seconds" not in k}
    return found


def same(a: Record, b: Record) -> bool:
    arrays = [*zip(a.predictions, b.predictions, strict=True), *zip(a.labels, b.labels, strict=True)]
    return content(a) == content(b) and all(np.array_equal(x, y) for x, y in arrays)


@pytest.mark.ray
def test_a_killed_worker_costs_a_try_and_own_code_travels(cluster, cell, tmp_path):
    cells = [
        cell(Killed(str(tmp_path / "once"))),
        cell(Killed(str(tmp_path / "always"), always=True)),
        cell(Raises()),
        cell("er", net=narrow),
        cell(Holds(threading.Lock())),
        cell("er", stream=hf.stream("split", data=(np.eye(64, dtype=np.float32).repeat(5, 0), [0, 1] * 160), tasks=2)),
    ]
    events = []
    once, always, raised, own, held, arrays = execute_on_ray(cells, tmp_path / "out", "ray", watch=events.append)
    undisturbed = execute([cells[0], cells[3], cells[5]], jobs=1)  # the marker is there by now
    assert all(map(same, [once, own, arrays], undisturbed))
    assert own.net["name"] == "narrow" and own.net["source"] == undisturbed[1].net["source"]
    assert isinstance(always, Failure) and f"lost {on_ray.TRIES} times" in always.reason
    assert isinstance(held, Failure) and held.reason.startswith("it cannot be sent to a Ray worker: cannot pickle")
    error = tmp_path / "out" / "cells" / cells[2].name / "error.txt"
    assert raised == Failure(cells[2].name, f"ZeroDivisionError: one by zero (the traceback is in {error})")
    assert "in observe" in error.read_text()
    assert sorted(e.cell for e in events if e.outcome is not None) == [0, 1, 2, 3, 4, 5]
    assert any(e.progress is not None for e in events)
    lost = [e.cell for e in events if e.note is not None]
    assert lost.count(0) == 1 and lost.count(1) == on_ray.TRIES - 1 and set(lost) == {0, 1}
    kept = execute(
        [cells[0], cells[3], cells[5]], tmp_path / "out", jobs=1
    )  # what Ray left is what the other executor reads
    assert all(map(same, kept, undisturbed))


@pytest.mark.ray
def test_a_killed_node_costs_nothing_but_time(cluster, cell, tmp_path):
    cells = [cell(name, seed) for name in ("finetune", "ewc", "er", "gem") for seed in range(6)]
    done = []

    def watch(event):
        if event.outcome is not None:
            done.append(event.cell)
            if len(done) == 8:
                cluster.remove_node(cluster.second, allow_graceful=False)

    found = execute_on_ray(cells, tmp_path, "ray", watch=watch)
    assert sorted(done) == list(range(24)) and all(isinstance(r, Record) for r in found)
    assert all(map(same, found, execute(cells, jobs=1)))
    assert len(list(tmp_path.glob("cells/*/record.json"))) == 24


def test_addresses():
    for wrong in ("rya", "ray:", "ray://", "ray://host", "ray://host:port", "ray://a b:1", "spark"):
        assert "unknown executor" in on_ray.faults(wrong)[0] and "ray://HOST:PORT" in on_ray.faults(wrong)[0]
    assert on_ray.faults(None) == []


@pytest.mark.ray
def test_a_cluster_that_does_not_answer():
    pytest.importorskip("ray", reason="the ray extra is not installed")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"ray://127.0.0.1:{free.getsockname()[1]}"
        (fault,) = on_ray.faults(address)
    assert address in fault and "10001" in fault


def test_without_ray_it_says_how_to_get_it(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(hf.BadInput, match=r"pip install 'holdfast\[ray\]'"):
        hf.sweep("finetune", on="ray", out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
