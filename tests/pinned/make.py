"""R of every method on every kind of stream under every protocol, pinned: `python tests/pinned/make.py` writes R.json.

Small runs on `digits`, two seeds. The numbers are of one version of torch, in its plainest arithmetic (`PLAIN`), so
that they are the same on any x86 processor. A change of R is a change of results: it is written down with its reason in
docs/decisions.md, and the file is made anew.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("R.json")
PLAIN = {"ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41"}
SEEDS = (0, 1)

STREAMS: dict[str, dict[str, Any]] = {
    "split class": {"name": "split", "scenario": "class"},
    "split domain": {"name": "split", "scenario": "domain"},
    "split task": {"name": "split", "scenario": "task"},
    "rotated": {"name": "rotated"},
    "permuted": {"name": "permuted"},
    "slt": {"name": "slt"},
}
STUDY = {
    "batch": 20, "lr": (0.05,), "later_lr": (0.01, 0.1), "momentum": 0.9, "layers": (1,), "sizes": (20, 30),
    "steps": 20, "score_every": 10,
}  # fmt: skip
PROTOCOLS: dict[str, dict[str, Any]] = {
    "online": {},
    "epochs": {"epochs": 2, "optimiser": "adam", "lr": 0.003},
    "prescient": STUDY,
    "realistic": STUDY,
    "application": {**STUDY, "alphas": 4},
    "crossval": {"batch": 20, "lr": (0.01, 0.003), "decay": (0.0,), "epochs": 3},
    "early": {"batch": 20, "steps": 10, "batches": 2, "rows": 4},
}
METHODS: dict[str, dict[str, Any]] = {
    "er": {"memories": 30},
    "gem": {"memories": 20},
    "agem": {"memories": 20, "replay": 20},
    "icarl": {"memories": 60},
    "ewc": {"samples": 30},
    "online_ewc": {"samples": 30},
    "imm": {"merge": "mode", "samples": 30},
    "si": {"strength": 5.0},
    "lwf": {"strength": 3.0},
    "vcl": {"test_samples": 3},
    "vgr": {"test_samples": 3, "generator_steps": 4, "width": 4},
    "dgr": {"hidden": (30,), "latent": 8},
    "den": {"units": 3, "sparsity": 1e-3},
    "rcl": {"trials": 2, "most": 6, "hidden": 8},
}


def asked(seed: int, once: bool) -> Iterator[tuple[str, str, str]]:
    """Method, stream and protocol of every run with this seed. `once`: the seeds take turns, as a chessboard's colours
    do, so that together they have each combination once, and each seed has every method, stream and protocol.
    """
    from holdfast.methods import methods

    for p, protocol in enumerate(PROTOCOLS):
        for s, stream in enumerate(STREAMS):
            for m, method in enumerate(methods.names()):
                if not once or (p + s + m) % len(SEEDS) == SEEDS.index(seed):
                    yield method, stream, protocol


def runs(seed: int, once: bool) -> Iterator[tuple[str, Any]]:
    """(name, R as lists) of what is asked for; 'refused' where a combination cannot be."""
    import holdfast as hf

    for method, stream, protocol in asked(seed, once):
        tasks = 2 if protocol in ("prescient", "early") else 3
        val = 0.2 if protocol in ("realistic", "application", "crossval") else 0.0
        learner = hf.method(method, **METHODS.get(method, {}))
        cut = _cut(STREAMS[stream], tasks, val, seed, learner.needs_task)
        try:
            record = hf.run(learner, cut, protocol=hf.protocol(protocol, **PROTOCOLS[protocol]), seed=seed)
        except hf.BadInput:
            yield name_of(method, stream, protocol, seed), "refused"
            continue
        yield name_of(method, stream, protocol, seed), record.R.tolist()


def name_of(method: str, stream: str, protocol: str, seed: int) -> str:
    return f"{method} on {stream} under {protocol}, seed {seed}"


def _cut(words: dict[str, Any], tasks: int, val: float, seed: int, needs_task: bool) -> Any:
    import holdfast as hf

    given = {"examples": 100, "test_examples": 90, "val": val, **words}
    name = given.pop("name")
    if name == "slt":
        given["parts"] = "-".join(["d3", *["3"] * (tasks - 1)])
    else:
        given["tasks"] = tasks
    if name == "split":
        given["sizes"] = (3,) * tasks
    if needs_task and "scenario" not in given:
        given["scenario"] = "task"
    return hf.stream(name, seed=seed, **given)


def measured(once: bool = False) -> dict[str, Any]:
    """All of them, or each combination once; each seed in a process of its own that computes in plain arithmetic."""
    env = {**os.environ, **PLAIN, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    each = [
        subprocess.Popen(
            [sys.executable, __file__, str(seed), *["once"] * once], env=env, stdout=subprocess.PIPE, text=True
        )
        for seed in SEEDS
    ]
    found: dict[str, Any] = {}
    for process in each:
        said, _ = process.communicate()
        assert process.returncode == 0, f"{__file__} ended with exit code {process.returncode}"
        found |= json.loads(said)
    return found


def versions() -> dict[str, str]:
    import torch

    return {"torch": torch.__version__}


def main(seed: str | None = None, once: str | None = None) -> None:
    if seed is not None:
        json.dump(dict(runs(int(seed), once == "once")), sys.stdout)
        return
    lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(R)}" for name, R in measured().items())
    FILE.write_text(f'{{\n"versions": {json.dumps(versions())},\n"R": {{\n{lines}\n}}\n}}\n')


if __name__ == "__main__":
    main(*sys.argv[1:])
