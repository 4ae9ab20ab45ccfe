"""Seconds of training and scoring: a bare hand-written PyTorch loop and Holdfast, on the same work.

    make bench                                       all workloads, medians of 5 interleaved repeats
    python benchmarks/speed.py --repeats 3 W1 W2     some of them
    python benchmarks/speed.py --one holdfast W1     one measurement, in this process

Every measurement is a process of its own with one thread; contestants take turns, so that noise meets all of them.
Training and scoring are timed apart; scoring is one final pass over all test sets, for every contestant. What is
compared are ratios of medians in one run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

WORKLOADS = {
    "W1": {"method": "naive", "tasks": 10, "examples": 1000, "batch": 10, "hidden": (100, 100)},
    "W2": {"method": "gem", "tasks": 10, "examples": 1000, "batch": 10, "hidden": (100, 100)},
    "W3": {"method": "ewc", "tasks": 10, "examples": 1000, "batch": 10, "hidden": (100, 100)},
    "W4": {"method": "replay", "tasks": 10, "examples": 1000, "batch": 10, "hidden": (100, 100)},
    "W5": {"method": "naive", "tasks": 5, "examples": 60000, "batch": 128, "hidden": (400, 400)},
}
LR, MEMORIES, MARGIN, BUFFER, STRENGTH, SAMPLES = 0.1, 256, 0.5, 500, 10.0, 200


def stream_of(work):
    import holdfast as hf

    return hf.stream("permuted", data="mnist", tasks=work["tasks"], examples=work["examples"], seed=0)


# (a) The bare loop: what one would write by hand for this workload alone, with torch.optim and no library.


def bare(work):
    import torch
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    stream = stream_of(work)
    data = [(t.train.raw(torch.arange(len(t.train))), t.train.y, t.test.raw(), t.test.y) for t in stream.tasks]
    a, b = work["hidden"]
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, a), nn.ReLU(), nn.Linear(a, b), nn.ReLU(), nn.Linear(b, 10))
    optimiser = torch.optim.SGD(net.parameters(), lr=LR)
    step = {"naive": _bare_naive, "gem": _bare_gem, "ewc": _bare_ewc, "replay": _bare_replay}[work["method"]]
    observe, finish = step(net, optimiser)
    size = work["batch"]

    began = time.perf_counter()
    for x, y, _, _ in data:
        order = torch.randperm(len(y))
        for i in range(0, len(y), size):
            rows = order[i : i + size]
            observe(x[rows].float() / 255, y[rows])
        finish(x, y)
    train = time.perf_counter() - began
    began = time.perf_counter()
    right = []
    with torch.inference_mode():
        for _, _, x, y in data:
            hits = sum(
                (net(x[i : i + 1000].float() / 255).argmax(1) == y[i : i + 1000]).sum() for i in range(0, len(y), 1000)
            )
            right.append(float(hits) / len(y))
    return {"train": train, "score": time.perf_counter() - began, "acc": sum(right) / len(right)}


def _bare_naive(net, optimiser):
    import torch.nn.functional as F

    def observe(x, y):
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        optimiser.step()

    return observe, lambda x, y: None


def _bare_replay(net, optimiser):
    import torch

    plain, _ = _bare_naive(net, optimiser)
    xs, ys = torch.zeros(BUFFER, 1, 28, 28), torch.zeros(BUFFER, dtype=torch.long)
    seen = 0

    def observe(x, y):
        nonlocal seen
        if seen:
            rows = torch.randint(min(seen, BUFFER), (len(y),))
            plain(torch.cat([x, xs[rows]]), torch.cat([y, ys[rows]]))
        else:
            plain(x, y)
        if seen < BUFFER:
            xs[seen : seen + len(y)], ys[seen : seen + len(y)] = x, y
        else:
            slots = (torch.rand(len(y)) * (seen + torch.arange(len(y)) + 1)).long()
            keep = slots < BUFFER
            xs[slots[keep]], ys[slots[keep]] = x[keep], y[keep]
        seen += len(y)

    return observe, lambda x, y: None


def _bare_ewc(net, optimiser):
    """Two accumulated vectors per parameter carry all anchors; the Fisher is one product per layer."""
    import torch
    import torch.nn.functional as F

    parameters = list(net.parameters())
    importance = [torch.zeros_like(p) for p in parameters]
    anchored = [torch.zeros_like(p) for p in parameters]

    def observe(x, y):
        optimiser.zero_grad()
        loss = F.cross_entropy(net(x), y)
        pull = sum(
            (f * p * p).sum() / 2 - (b * p).sum() for f, b, p in zip(importance, anchored, parameters, strict=True)
        )
        (loss + STRENGTH * pull).backward()
        optimiser.step()

    def finish(x, y):
        rows = torch.randperm(len(y))[:SAMPLES]
        for i in rows.tolist():
            loss = F.cross_entropy(net(x[i : i + 1].float() / 255), y[i : i + 1])
            for f, b, p, g in zip(importance, anchored, parameters, torch.autograd.grad(loss, parameters), strict=True):
                f += g * g / SAMPLES
                b += g * g / SAMPLES * p.detach()

    return observe, finish


def _bare_gem(net, optimiser):
    """The floor: memory gradients of all past tasks in one batched pass over hand-written layers."""
    import torch
    import torch.nn.functional as F

    from holdfast.methods.gem import project

    layers = [m for m in net if isinstance(m, torch.nn.Linear)]
    parameters = list(net.parameters())
    past_x, past_y, current = [], [], []

    def memory_gradients():
        x, y = torch.stack(past_x), torch.stack(past_y)  # (K, m, 784), (K, m)
        k, m = y.shape
        inputs = [x.view(k * m, -1)]
        for layer in layers:
            z = torch.addmm(layer.bias, inputs[-1], layer.weight.t())
            inputs.append(z.relu_() if layer is not layers[-1] else z)
        d = inputs.pop().softmax(1)
        d[torch.arange(k * m), y.view(-1)] -= 1
        d /= m
        pieces = []
        for layer, a in zip(reversed(layers), reversed(inputs), strict=True):
            pieces += [
                d.view(k, m, -1).sum(1),
                torch.bmm(d.view(k, m, -1).transpose(1, 2), a.view(k, m, -1)).flatten(1),
            ]
            d = torch.mm(d, layer.weight).mul_(a > 0) if layer is not layers[0] else d
        return torch.cat(pieces[::-1], 1)

    def observe(x, y):
        current.append((x.flatten(1), y))
        optimiser.zero_grad()
        F.cross_entropy(net(x), y).backward()
        if past_x:
            with torch.no_grad():
                g = torch.cat([p.grad.flatten() for p in parameters])
                z, start = project(g, memory_gradients(), MARGIN), 0
                for p in parameters:
                    p.grad.copy_(z[start : start + p.numel()].view_as(p))
                    start += p.numel()
        optimiser.step()

    def finish(x, y):
        past_x.append(torch.cat([b[0] for b in current])[-MEMORIES:])
        past_y.append(torch.cat([b[1] for b in current])[-MEMORIES:])
        current.clear()

    return observe, finish


# (b) Holdfast


def holdfast(work):
    import torch

    import holdfast as hf
    from holdfast.protocols import Session
    from holdfast.seeds import seeded

    torch.set_num_threads(1)
    method = {
        "naive": lambda: hf.method("finetune"),
        "gem": lambda: hf.method("gem", memories=MEMORIES, margin=MARGIN),
        "ewc": lambda: hf.method("ewc", strength=STRENGTH, samples=SAMPLES),
        "replay": lambda: hf.method("er", memories=BUFFER),
    }[work["method"]]()
    stream = stream_of(work)
    for task in stream.tasks:
        task.train.raw(torch.arange(2)), task.test.raw()
    protocol = hf.protocol("online", batch=work["batch"], lr=LR)
    with seeded(0):
        net = hf.Net(hf.net("mlp", hidden=work["hidden"]).build(stream.info))
        session = Session(method, stream, net, protocol.descent(), seed=0)
        began = time.perf_counter()
        for task in stream.tasks:
            for _ in session.learn(task, 1, work["batch"], lease_at_begin=False):
                pass
        train = time.perf_counter() - began  # everything: the audit and the FLOP count, too
        began = time.perf_counter()
        session.score(len(stream) - 1, 0)
    score = time.perf_counter() - began
    accuracy = sum(session.measured.R[-1]) / len(stream)
    return {"train": train, "score": score, "acc": accuracy, "steps_only": sum(session.measured.seconds)}


CONTESTANTS = {"bare": bare, "holdfast": holdfast}


def measure(contestant: str, workload: str) -> dict:
    found = CONTESTANTS[contestant](WORKLOADS[workload])
    return {**found, "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", default=list(WORKLOADS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--one", choices=CONTESTANTS, help="measure one contestant here and print it as JSON")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/speed.json"))
    asked = parser.parse_args()
    if asked.one:
        print(json.dumps(measure(asked.one, asked.workloads[0])))
        return
    results: dict[str, dict[str, list[dict]]] = {w: {c: [] for c in CONTESTANTS} for w in asked.workloads}
    for _ in range(asked.repeats):
        for workload in asked.workloads:
            for contestant in CONTESTANTS:
                command = [sys.executable, __file__, "--one", contestant, workload]
                line = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1]
                results[workload][contestant].append(json.loads(line))
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    asked.out.write_text(json.dumps(results, indent=1))
    for workload, found in results.items():
        base = None
        for contestant, runs in found.items():
            train, score, acc, peak = (
                statistics.median(r[k] for r in runs) for k in ("train", "score", "acc", "peak_mb")
            )
            base = base or train + score
            print(
                f"{workload} {contestant:9s} train {train:6.2f} s  score {score:5.2f} s  "
                f"ratio to bare {(train + score) / base:5.2f}  ACC {acc:.3f}  peak {peak:5.0f} MB"
            )


if __name__ == "__main__":
    main()
