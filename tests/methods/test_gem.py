"""GEM's projection against brute force, and that it does its job."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.engine import SGD, Net
from holdfast.methods.gem import project
from holdfast.seeds import generator
from holdfast.types import Batch


def brute_force(g: np.ndarray, G: np.ndarray) -> np.ndarray:
    """The closest z to g with Gz ≥ 0: try every set of active constraints, keep the closest feasible projection."""
    best, distance = np.zeros_like(g), np.linalg.norm(g)  # 0 is always feasible
    for size in range(len(G) + 1):
        for active in combinations(range(len(G)), size):
            _, s, V = np.linalg.svd(G[list(active)], full_matrices=False)
            V = V[s > 1e-10 * s.max(initial=0)]  # spans the active rows
            z = g - V.T @ (V @ g)
            d = np.linalg.norm(z - g)
            if (G @ z >= -1e-9).all() and d < distance:
                best, distance = z, d
    return best


@settings(max_examples=300, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), tasks=st.integers(1, 6), size=st.integers(1, 12), rank=st.integers(1, 6))
def test_the_projection_is_the_closest_point_that_violates_nothing(seed, tasks, size, rank):
    rng = np.random.default_rng(seed)
    G = rng.normal(size=(tasks, min(rank, tasks))) @ rng.normal(size=(min(rank, tasks), size))  # often dependent rows
    g = rng.normal(size=size)
    z = project(torch.from_numpy(g), torch.from_numpy(G)).numpy()
    exact = brute_force(g, G)
    scale = np.linalg.norm(g)
    assert (G @ z >= -1e-6 * scale * np.linalg.norm(G)).all()
    assert np.linalg.norm(z - exact) <= 1e-6 * scale


def test_nothing_is_projected_when_no_constraint_is_violated():
    g, G = torch.tensor([1.0, 1.0]), torch.tensor([[1.0, 0.0], [0.0, 2.0]])
    assert project(g, G, margin=0.5) is g


def test_a_hand_worked_projection():
    # g points against g_1 = (1, 0): its first coordinate is cut off. With margin γ, v = max(1, γ) on g_1.
    g, G = torch.tensor([-1.0, 2.0]), torch.tensor([[1.0, 0.0]])
    assert project(g, G).tolist() == pytest.approx([0.0, 2.0])
    assert project(g, G, margin=0.5).tolist() == pytest.approx([0.0, 2.0])  # v* = 1 is above the margin
    assert project(g, G, margin=3.0).tolist() == pytest.approx([2.0, 2.0])  # v = 3: g + 3 g_1


def test_a_past_task_without_gradient_does_not_disturb():
    g, G = torch.tensor([-1.0, 2.0]), torch.tensor([[1.0, 0.0], [0.0, 0.0]])
    assert project(g, G).tolist() == pytest.approx([0.0, 2.0])


def brute_dual(g: np.ndarray, G: np.ndarray, margin: float) -> np.ndarray:
    """g + Gᵀv for the v ≥ γ of least ½vᵀGGᵀv + (Gg)ᵀv: try every set of duals that stand at γ."""
    Q, c = G @ G.T, G @ g
    best, least = None, np.inf
    for size in range(len(G) + 1):
        for bound in combinations(range(len(G)), size):
            v, free = np.full(len(G), margin), [k for k in range(len(G)) if k not in bound]
            held = list(bound)
            v[free] = np.linalg.lstsq(Q[np.ix_(free, free)], -c[free] - Q[np.ix_(free, held)] @ v[held], rcond=None)[0]
            value = v @ Q @ v / 2 + c @ v
            if (v >= margin - 1e-9).all() and value < least:
                best, least = v, value
    return g + G.T @ best


@settings(max_examples=100, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), tasks=st.integers(1, 4), margin=st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_with_a_margin_no_dual_variable_is_below_it(seed, tasks, margin):
    rng = np.random.default_rng(seed)
    G, g = rng.normal(size=(tasks, 8)) * rng.uniform(0.1, 3, (tasks, 1)), rng.normal(size=8)
    z = project(torch.from_numpy(g), torch.from_numpy(G), margin).numpy()
    expected = g if (G @ g >= 0).all() else brute_dual(g, G, margin)
    np.testing.assert_allclose(z, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("sizes", [(30, 30), (30, 14)])  # examples shown of the past tasks: both rings full, or one
@pytest.mark.parametrize("one_by_one", [False, True])
def test_a_step_goes_along_the_projection_on_the_memories_of_all_past_tasks(sizes, one_by_one):
    stream = hf.stream("split", scenario="task")
    torch.manual_seed(0)
    learner = hf.method("gem", memories=20, margin=0.3, one_by_one=one_by_one)
    learner.start(Net(hf.net("mlp", hidden=(12,)).build(stream.info)), SGD(0.3), stream.info, generator(0))

    def batch(t, first, n=2):
        rows = torch.arange(first, first + n)
        return Batch(stream.tasks[t].train.x(rows), stream.tasks[t].train.y[rows], t)

    def gradient(t, first, n):
        b, mine = batch(t, first, n), list(stream.tasks[t].classes)
        y = torch.tensor([mine.index(c) for c in b.y.tolist()])
        loss = torch.nn.functional.cross_entropy(learner.net(b.x)[:, mine], y)
        found = torch.autograd.grad(loss, list(learner.net.module.parameters()))
        return torch.cat([g.flatten() for g in found]).double().numpy()

    for t, size in enumerate(sizes):
        for first in range(0, size, 2):
            learner.observe(batch(t, first))
    fired = 0
    for first in range(0, 60, 2):
        G = np.stack([gradient(t, max(0, n - 20), min(20, n)) for t, n in enumerate(sizes)])
        g, before = gradient(2, first, 2), learner.net.theta.detach().clone()
        learner.observe(batch(2, first))
        step = (before - learner.net.theta.detach()).numpy() / 0.3
        violated = bool((G @ g < 0).any())
        fired += violated
        expected = brute_dual(g, G, 0.3) if violated else g
        np.testing.assert_allclose(step, expected, rtol=1e-2, atol=2e-4)
    assert 5 < fired < 30


def test_shares_of_an_unknown_number_of_tasks_shrink():
    record = hf.run(hf.method("gem", total=60), hf.stream("rotated", tasks=4, examples=100), seed=0)
    assert record.card["no_old_data"]["value"] == 60


@pytest.mark.parametrize("scenario", ["domain", "task"])
@pytest.mark.parametrize("method", ["gem", "ewc"])
def test_task_by_task_as_the_authors_compute_it_gives_the_same_result(method, scenario):
    stream = hf.stream("rotated", tasks=4, examples=60, scenario=scenario)
    if scenario == "task":
        stream = hf.stream("split", tasks=4, examples=60, scenario=scenario)
    fields = {"gem": {"memories": 20}, "ewc": {"strength": 5.0}}[method]
    runs = [hf.run(hf.method(method, one_by_one=one, **fields), stream, seed=1) for one in (False, True)]
    assert runs[0].acc == pytest.approx(runs[1].acc, abs=0.01)
    assert np.abs(runs[0].R - runs[1].R).max() < 0.05
