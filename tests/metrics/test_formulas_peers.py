"""Formulas against the libraries' own code, on random accuracies; each skips where its library is not installed.

`sh benchmarks/avalanche_env.sh FOLDER` installs Avalanche, `pip install continuum==1.2.7` Continuum; both bring
torchvision, so neither is among our extras.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from holdfast.metrics import Matrix, formulas

pytestmark = pytest.mark.slow
TASKS = (2, 3, 4, 7)


def drawn(tasks, seed):
    """Per task its test rows; (T+1, T) how many of them are right, before training and after each task."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(20, 60, tasks)
    return rows, rng.integers(0, rows + 1, (tasks + 1, tasks))


def matrix(rows, hits):
    return Matrix.of(hits[1:] / rows, baseline=hits[0] / rows, n_test=rows.tolist())


def agrees(source, found, theirs):
    mine = {name: formulas(source)[name](found) for name in theirs}
    assert mine == pytest.approx(theirs, abs=1e-6)  # Avalanche's accuracies are float32 in parts


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tasks", TASKS)
def test_continuum(tasks, seed):
    peer = pytest.importorskip("continuum.metrics", reason="continuum is not installed", exc_type=ImportError)
    rows, hits = drawn(tasks, seed)
    logger = peer.Logger(list_subsets=["test"])
    for i, right in enumerate(hits[1:], 1):
        wrong = np.concatenate([np.arange(n) >= k for n, k in zip(rows[:i], right[:i], strict=True)])
        labels = np.repeat(np.arange(i), rows[:i])
        logger.add([wrong.astype(int), np.zeros(len(wrong), dtype=int), labels], subset="test")
        if i < tasks:
            logger.end_task()
    theirs = {
        "acc": logger.accuracy,
        "acc_all": logger.accuracy_A,
        "aia": logger.average_incremental_accuracy,
        "bwt": logger.backward_transfer,
        "fwt": logger.forward_transfer,
        "forgetting": logger.forgetting,
    }
    agrees("continuum", matrix(rows, hits), theirs)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("tasks", TASKS)
def test_avalanche(tasks, seed):
    """Its metrics are told what its training loop tells them."""
    peer = pytest.importorskip(
        "avalanche.evaluation.metrics", reason="avalanche is not installed", exc_type=ImportError
    )
    metrics = {
        "acc": peer.StreamAccuracy(),
        "bwt": peer.StreamBWT(),
        "fwt": peer.StreamForwardTransfer(),
        "forgetting": peer.StreamForgetting(),
    }
    rows, hits = drawn(tasks, seed)
    stream = SimpleNamespace(name="test_stream")
    experiences = [SimpleNamespace(current_experience=t, origin_stream=stream, task_labels=[t]) for t in range(tasks)]
    strategy = SimpleNamespace(eval_every=0, is_eval=True, clock=SimpleNamespace(train_iterations=0))

    def tell(event):
        return {name: getattr(metric, event)(strategy) for name, metric in metrics.items()}

    def evaluate(right):
        tell("before_eval")
        for strategy.experience, n, k in zip(experiences, rows, right, strict=True):
            tell("before_eval_exp")
            strategy.mb_y = torch.zeros(n, dtype=torch.long)
            strategy.mb_output = (torch.arange(n) >= k).long()
            tell("after_eval_iteration")
            tell("after_eval_exp")
        return tell("after_eval")

    evaluate(hits[0])
    for experience, right in zip(experiences, hits[1:], strict=True):
        strategy.experience = experience
        tell("before_training_exp")
        told = evaluate(right)
    agrees("avalanche", matrix(rows, hits), {name: value[0].value for name, value in told.items()})
