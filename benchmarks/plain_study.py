"""A study of paper 004 in plain torch, to check ours: python benchmarks/plain_study.py D5-5a --seed 3 --hidden 800 800

A perceptron learns D1 (ε₁ = 0.001, momentum 0.99, batches of 100) and then D2 with each ε₂, its momentum carried over
and its initial weights drawn as in the authors' code. Printed: the highest accuracy on D1; per ε₂ the step and the
accuracies on D1, D2 and D1 ∪ D2 where the union is best, where D2 first has 0.999 of its best, and at the end. Only the
data come from Holdfast.
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor

import holdfast as hf

BATCH, MOMENTUM, EVERY = 100, 0.99, 50


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", help="D5-5a ... DP10-10")
    parser.add_argument("--hidden", type=int, nargs="+", default=[800, 800])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--rates", type=float, nargs="+", default=[1e-5], help="of retraining")
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--later-steps", type=int, help="of retraining; none: --steps")
    given = parser.parse_args()
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(given.seed)
    tasks = hf.stream("slt", data="mnist", parts=given.parts, val=1 / 12).tasks
    parts = [[(part.x().flatten(1), part.y.long()) for part in (task.train, task.test)] for task in tasks]
    tests = [test for _, test in parts]
    weights = initial([784, *given.hidden, 10], rng)
    speeds = [torch.zeros_like(w) for w in weights]
    first = train(weights, speeds, *parts[0][0], 1e-3, given.steps, rng, tests[:1])
    print(f"{given.parts} {given.hidden}: D1 {max(look[1] for look in first):.4f}")
    after = [[t.detach().clone() for t in tensors] for tensors in (weights, speeds)]
    for rate in given.rates:
        with torch.no_grad():
            for tensors, old in zip((weights, speeds), after, strict=True):
                for tensor, kept in zip(tensors, old, strict=True):
                    tensor.copy_(kept)
        looks = train(weights, speeds, *parts[1][0], rate, given.later_steps or given.steps, rng, tests)
        reached = 0.999 * max(look[2] for look in looks)
        for name, look in (
            ("best", max(looks, key=lambda look: look[3])),
            ("0.999", next(look for look in looks if look[2] >= reached)),
            ("last", looks[-1]),
        ):
            print(f"{given.parts} ε₂ {rate:g} {name:6} step {look[0]:5}  " + "  ".join(f"{q:.3f}" for q in look[1:]))


def initial(sizes: list[int], rng: torch.Generator) -> list[Tensor]:
    """Deviation 1/√fan_in, cut at two; 1/√fan_out for the third hidden layer, as in the authors' code."""
    made = []
    for i, (n, m) in enumerate(pairwise(sizes)):
        deviation = 1 / math.sqrt(m if len(sizes) == 5 and i == 2 else n)
        weight = torch.empty(n, m)
        torch.nn.init.trunc_normal_(weight, 0, deviation, -2 * deviation, 2 * deviation, generator=rng)
        made += [weight, torch.zeros(m)]
    return [w.requires_grad_() for w in made]


def outputs(weights: list[Tensor], x: Tensor) -> Tensor:
    for i in range(0, len(weights), 2):
        x = x @ weights[i] + weights[i + 1]
        x = torch.relu(x) if i < len(weights) - 2 else x
    return x


def train(
    weights: list[Tensor],
    speeds: list[Tensor],
    x: Tensor,
    y: Tensor,
    rate: float,
    steps: int,
    rng: torch.Generator,
    tests: list[tuple[Tensor, Tensor]],
) -> list[tuple[float, ...]]:
    """Train in place; every so many steps, the accuracies on the test sets and on all of them."""
    looks: list[tuple[float, ...]] = []
    order, at = torch.randperm(len(x), generator=rng), 0
    for step in range(steps + 1):
        if tests and step % EVERY == 0:
            with torch.no_grad():
                right = [(outputs(weights, a).argmax(1) == b).float() for a, b in tests]
            looks.append((step, *(r.mean().item() for r in [*right, torch.cat(right)])))
        if step == steps:
            break
        if at + BATCH > len(x):
            order, at = torch.randperm(len(x), generator=rng), 0
        rows = order[at : at + BATCH]
        at += BATCH
        gradients = torch.autograd.grad(F.cross_entropy(outputs(weights, x[rows]), y[rows]), weights)
        with torch.no_grad():
            for weight, speed, gradient in zip(weights, speeds, gradients, strict=True):
                speed.mul_(MOMENTUM).add_(gradient)
                weight.sub_(rate * speed)
    return looks


if __name__ == "__main__":
    main()
