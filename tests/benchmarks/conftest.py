from __future__ import annotations

import importlib
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

HERE = Path(__file__).parents[2] / "benchmarks"
TASKS, ROWS = 3, 270  # a task has room for GEM's 256 memories


@pytest.fixture
def benchmarks(monkeypatch):
    """The benchmarks' modules by name: scripts beside each other, no package."""
    monkeypatch.syspath_prepend(str(HERE))

    def load(name: str) -> ModuleType:
        return importlib.import_module(name)

    return load


@pytest.fixture
def arrays() -> dict[str, torch.Tensor]:
    rng = np.random.default_rng(0)
    return {
        "x": torch.from_numpy(rng.integers(0, 256, (ROWS, 1, 28, 28), dtype=np.uint8)),
        "y": torch.from_numpy(rng.integers(0, 10, ROWS)),
        "test_x": torch.from_numpy(rng.integers(0, 256, (20, 1, 28, 28), dtype=np.uint8)),
        "test_y": torch.from_numpy(rng.integers(0, 10, 20)),
        "orders": torch.stack([torch.from_numpy(rng.permutation(784)) for _ in range(TASKS)]),
        "rows": torch.stack([torch.from_numpy(rng.permutation(ROWS)) for _ in range(TASKS)]),
    }


@pytest.fixture
def data(benchmarks, arrays, tmp_path) -> Path:
    path = tmp_path / "data.npz"
    benchmarks("workloads").save(path, **arrays)
    return path
