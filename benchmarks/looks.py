"""By which look a path is to be judged: python benchmarks/looks.py [--seeds 0,1,2] [--out FILE.json]

A plain torch loop, none of ours but data and network: paper 000's S⁻ at `laptop` (ResNet of width 16, Adam 0.003,
batches of 64). The first task is learned, then the last one with the first d of its modules, for every depth d, looked
at after every pass. Printed per seed and rule: the depth that is taken, what the validation rows said and what the test
rows say. `best` is the highest look, `last` the look at the end; `later` compares by the mean of the later half of the
looks, and takes the weights of the highest.
"""

from __future__ import annotations

import argparse
import copy
import json
from collections.abc import Sequence
from statistics import fmean

import torch
from torch import nn
from torch.nn import functional as F

import holdfast as hf
from holdfast.engine import batches
from holdfast.types import Part, Stream, Task

WIDTH, RATE, BATCH, FIRST, LAST = 16, 3e-3, 64, 25, 40
Look = tuple[float, float]  # accuracy on validation and test rows
RULES = ("best", "last", "later")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--out", help="keep all looks there")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    found = {}
    for seed in map(int, asked.seeds.split(",")):
        first, depths = looks(seed)
        found[seed] = {"first": first, "depths": depths}
        for rule in RULES:
            judged = {d: judge(rule, course) for d, course in depths.items()}
            depth = max(judged, key=lambda d: (judged[d][0], d))
            val, test = judged[depth]
            print(f"seed {seed}  {rule}  depth {depth}  val {val:.3f}  test {test:.3f}  first task {first[-1][1]:.3f}  "
                  f"independent {judged[0][1]:.3f}", flush=True)  # fmt: skip
    if asked.out:
        with open(asked.out, "w", encoding="utf-8") as file:
            json.dump(found, file)


def judge(rule: str, course: Sequence[Look]) -> Look:
    """What the validation rows say of a course, and the accuracy on the test rows of the weights that are taken."""
    highest = max(course, key=lambda look: look[0])
    if rule == "later":
        return fmean(val for val, _ in course[len(course) // 2 :]), highest[1]
    return course[-1] if rule == "last" else highest


def looks(seed: int) -> tuple[list[Look], dict[int, list[Look]]]:
    """Of the first task, and of the last one by how many modules it reuses."""
    stream = hf.stream("ctrl", kind="minus", data="paper", test=200, seed=seed)
    first, last = stream.tasks[0], stream.tasks[-1]
    base, rng = modules(stream, seed), torch.Generator().manual_seed(seed)
    learned = learn(base, 0, first, FIRST, rng)
    depths = {len(base): [look(base, last)]}
    for d in range(len(base)):
        path = [*copy.deepcopy(base[:d]), *modules(stream, 100 + seed)[d:]]
        depths[d] = learn(path, d, last, LAST, torch.Generator().manual_seed(seed))
    return learned, depths


def modules(stream: Stream, seed: int) -> list[nn.Module]:
    torch.manual_seed(seed)
    return list(hf.net("ctrl_resnet", width=WIDTH).build(stream.info).to(memory_format=torch.channels_last))


def learn(path: Sequence[nn.Module], d: int, task: Task, epochs: int, rng: torch.Generator) -> list[Look]:
    """Train what comes after the first d modules, which stay as they are, in eval mode."""
    adam = torch.optim.Adam([p for module in path[d:] for p in module.parameters()], lr=RATE)
    course = []
    for _ in range(epochs):
        for i, module in enumerate(path):
            module.train(i >= d)
        for batch in batches(task.train, BATCH, rng, task.t):
            h = batch.x.contiguous(memory_format=torch.channels_last)
            with torch.no_grad():
                for module in path[:d]:
                    h = module(h)
            for module in path[d:]:
                h = module(h)
            adam.zero_grad()
            F.cross_entropy(h, batch.y).backward()
            adam.step()
        course.append(look(path, task))
    return course


def look(path: Sequence[nn.Module], task: Task) -> Look:
    for module in path:
        module.eval()
    return accuracy(path, task.val), accuracy(path, task.test)


@torch.inference_mode()
def accuracy(path: Sequence[nn.Module], part: Part) -> float:
    right = 0
    for rows in torch.arange(len(part)).split(128):
        h = part.x(rows).contiguous(memory_format=torch.channels_last)
        for module in path:
            h = module(h)
        right += int((h.argmax(1) == part.y[rows]).sum())
    return right / len(part)


if __name__ == "__main__":
    main()
