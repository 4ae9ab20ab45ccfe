"""GEM's projection against brute force, and that it does its job."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.methods.gem import project


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


def test_gem_beats_finetune_on_rotated_digits():
    # Measured over these five seeds: GEM 0.84, finetune 0.49.
    found = hf.compare(["finetune", "gem"], hf.stream("rotated"), seeds=5).summary()["methods"]
    differences = np.subtract(found["gem"]["acc"]["values"], found["finetune"]["acc"]["values"])
    assert differences.min() > 0.1 and differences.mean() > 0.2


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
