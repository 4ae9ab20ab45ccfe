"""The command of a cell runs that cell: it is found in the folder under the same name."""

from __future__ import annotations

import shlex

import numpy as np
import pytest

import holdfast as hf
from holdfast.cli import main
from holdfast.data import Source
from holdfast.methods import methods
from holdfast.sweeps import Cell, own
from holdfast.sweeps.command import command

MINE = """
import math
from dataclasses import dataclass

import numpy as np
import torch

import holdfast as hf


@dataclass
class Mine(hf.Learner):
    pace: float = 1.0

    def observe(self, batch):
        return self.fit(batch)


def small(info):
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(math.prod(info.shape), info.classes))


def lengths(rows):
    return np.asarray(rows)[:, :2].astype("float32")
"""
SMALL = {"tasks": 2, "examples": 15, "test_examples": 8}


@pytest.fixture
def there(tmp_path, monkeypatch):
    """mine.py, rows.npz and rows.csv in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(MINE)
    y = np.arange(120) % 4
    x = np.random.default_rng(0).normal(size=(120, 5)).astype("float32")
    np.savez("rows.npz", x=x, y=y)
    lines = [",".join([*(f"{v:.3f}" for v in row), "abcd"[label]]) for row, label in zip(x, y, strict=True)]
    (tmp_path / "rows.csv").write_text("\n".join(["p,q,r,s,t,a kind", *lines]) + "\n")
    return tmp_path


def made(method="er", data=None, net="mlp", protocol="online", seed=0, threads=1, **settings):
    method = hf.method(method) if isinstance(method, str) else method
    net = hf.net(net) if isinstance(net, str) else net
    protocol = hf.protocol(protocol) if isinstance(protocol, str) else protocol
    return Cell(method, hf.stream("split", data, **{**SMALL, **settings}), net, protocol, seed, threads=threads)


CELLS = {
    "usual": lambda: made(),
    "settings": lambda: made(hf.method("er", memories=30, rule="class ring"), scenario="task", order=(3, 1, 0, 2)),
    "net": lambda: made(net=hf.net("mlp", hidden=(9, 8))),
    "realistic": lambda: made(
        "finetune",
        protocol=hf.protocol("realistic", steps=4, score_every=2, lr=(0.01,), later_lr=(0.1, 0.01), sizes=(5,)),
        val=0.2,
    ),
    "given shape": lambda: made(
        "finetune",
        net=hf.net("mlp", hidden=(9,)),
        protocol=hf.protocol("realistic", steps=4, score_every=2, lr=(0.01,), later_lr=(0.01,)),
        val=0.2,
    ),
    "seed and threads": lambda: made(seed=3, threads=2),
    "npz": lambda: made(data="rows.npz", val=0.1),
    "table": lambda: made(data=Source("rows.csv", label="a kind", columns={"q": "skip", "p": "category"})),
    "own": lambda: made(own.find(methods, "mine.py:Mine")[1](pace=2.0), net=own.net("mine.py:small")),
    "features": lambda: made(data=Source("rows.npz", features=own.features("mine.py:lengths"))),
}

OWN = {"own": lambda: {"method": own.find(methods, "mine.py:Mine")[1](pace=2.0), "net": own.net("mine.py:small")}}


@pytest.mark.parametrize("name", CELLS)
def test_it_runs_the_cell(there, name):
    cell = CELLS[name]()
    words = shlex.split(command(cell))
    assert words[0] == "holdfast" and main([*words[1:], "--quiet"]) == 0
    (home,) = there.glob("runs/*/cells/*")
    assert home.name == cell.name and hf.load_model(home / "model", **OWN.get(name, dict)()).tasks == 2


@pytest.mark.parametrize("given", ["arrays", "method", "net", "shortened"])
def test_what_has_no_name_has_no_command(given):
    import torch

    class Mine(hf.Learner):
        def observe(self, batch):
            return self.fit(batch)

    x, y = np.zeros((120, 3), "float32"), np.arange(120) % 4
    cells = {
        "arrays": lambda: made(data=(x, y)),
        "method": lambda: made(Mine()),
        "net": lambda: made(net=torch.nn.Linear(64, 10)),
        "shortened": lambda: Cell(
            hf.method("er"), hf.stream("split", tasks=3).first(2), hf.net("mlp"), hf.protocol("online"), 0
        ),
    }
    assert command(cells[given]()) is None
