"""The bare contestants do the work they are said to do, and all contestants are shown the same tasks."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from holdfast.methods.gem import project


@pytest.fixture
def work(benchmarks):
    def of(method: str):
        return benchmarks("workloads").Workload(method, tasks=3, examples=270)

    return of


def test_a_task_shows_its_rows_with_its_permutation(benchmarks, arrays, data, work):
    task = benchmarks("workloads").load(data, work("naive"))[1]
    row = arrays["rows"][1, 7]
    assert torch.equal(task.x[7], arrays["x"][row].flatten()[arrays["orders"][1]])
    assert task.y[7] == arrays["y"][row]
    assert torch.equal(task.test_x[3], arrays["test_x"][3].flatten()[arrays["orders"][1]])


@pytest.mark.parametrize("method", ["naive", "gem", "ewc", "replay"])
def test_every_step_is_ticked_and_every_task_scored(benchmarks, data, work, method):
    one = benchmarks("bare").METHODS[method](work(method), data)
    found = benchmarks("contestant").growth(one, work(method))
    assert [len(v) for v in found.values()] == [3, 3]
    assert len(one.score()) == 3


def test_the_floor_of_gem_has_the_memories_gradients(benchmarks, data, work):
    torch.manual_seed(0)
    one = benchmarks("bare").GEM(work("gem"), data)
    for t in range(2):
        one.learn(t)
    with torch.no_grad():
        G = one.memory_gradients()
    for k in range(2):
        g = torch.autograd.grad(F.cross_entropy(one.net(one.x[k]), one.y[k]), one.parameters)
        torch.testing.assert_close(G[k], torch.cat([piece.flatten() for piece in g]), atol=1e-6, rtol=1e-4)


def test_the_floor_of_gem_projects_as_holdfast_does(benchmarks, data, work):
    torch.manual_seed(0)
    one = benchmarks("bare").GEM(work("gem"), data)
    for p in one.parameters:
        p.grad = torch.randn_like(p)
    g = torch.cat([p.grad.flatten() for p in one.parameters])
    G = torch.stack([-g, g.roll(1), -g.roll(2) - g / 2])
    one.project(G)
    found = torch.cat([p.grad.flatten() for p in one.parameters])
    torch.testing.assert_close(found, project(g, G, margin=0.5), atol=1e-4, rtol=1e-4)


def test_the_floor_of_ewc_has_the_fisher_of_single_examples(benchmarks, data, work, monkeypatch):
    one = benchmarks("bare").EWC(work("ewc"), data)
    x, y = one.data[0].x[:12], one.data[0].y[:12]
    monkeypatch.setattr(torch, "multinomial", lambda p, n: y[:, None])  # the labels it draws
    one.finish(x, y)
    for i, importance in enumerate(one.importance):
        squares = [
            torch.autograd.grad(F.cross_entropy(one.net(row[None].float() / 255), label[None]), one.parameters)[i] ** 2
            for row, label in zip(x, y, strict=True)
        ]
        torch.testing.assert_close(importance, torch.stack(squares).mean(0), atol=1e-7, rtol=1e-4)
