"""Methods that promise to forget nothing, on every stream of paper 000: logits of old tasks, bit for bit."""

from __future__ import annotations

from functools import cache

import pytest
import torch

import holdfast as hf
from holdfast.methods.hat import HAT
from holdfast.methods.mntdp import MNTDP
from holdfast.methods.mntdp_s import MNTDPS
from holdfast.methods.packnet import PackNet
from holdfast.methods.pnn import PNN

KINDS = ("minus", "plus", "in", "out", "pl", "long")
METHODS = {
    "mntdp": (MNTDP, {}),
    "mntdp halving": (MNTDP, {"search": "halving"}),
    "mntdp all past paths": (MNTDP, {"nearest_paths": None, "thrift": 0.05}),
    "mntdp_s": (MNTDPS, {}),
    "pnn": (PNN, {}),
    "hat": (HAT, {}),
    "packnet": (PackNet, {}),
}
QUICK = {"lr": (0.01,), "decay": (0.01,), "epochs": 1, "batch": 10, "reset_optimiser": False}


@cache
def stream(name):
    if name in KINDS:
        few = {"tasks": 4} if name == "long" else {}
        head = ("shared", "task")[KINDS.index(name) % 2]
        return hf.stream("ctrl", kind=name, data="synth", rows=0.005, test=2, head=head, **few)
    return hf.stream(name, tasks=3, examples=40, test_examples=40, val=0.3, scenario="task")


@pytest.mark.parametrize("name", [*KINDS, "split", "permuted"])
@pytest.mark.parametrize("method", METHODS)
def test_logits_of_every_past_task_stay_what_they_were(method, name):
    """Also where momentum and decay go on over the tasks."""
    shown, (cls, words) = stream(name), METHODS[method]
    tests = [task.test.x() for task in shown.tasks]
    logits = []

    class Watched(cls):
        def finish(self, train):
            super().finish(train)
            logits.append([self.predict(tests[t], t) for t in range(train.task + 1)])

    optimiser = ("adam", "momentum", "adamw")[len(name) % 3]
    protocol = hf.protocol("crossval", **QUICK, optimiser=optimiser)
    record = hf.run(Watched(**words), shown, net=hf.net("mlp", hidden=(8, 8), dropout=0.2), protocol=protocol)
    for now in logits:
        for t, found in enumerate(now):
            assert torch.equal(found, logits[t][t])
    assert record.bwt == 0.0 and record.metrics["forgetting_ctrl"] == 0.0
    assert all((found[t:] == found[t]).all() for t, found in enumerate(record.predictions))
