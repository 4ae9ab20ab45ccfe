from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from holdfast.types import Record


def make(R, *, baseline=None, method="gem", seed=0, settings=None, scenario="class", net=None, **fields) -> Record:
    """A record around a matrix R with one row per task."""
    R = np.array(R, dtype=float)
    rows, tasks = R.shape
    values = {
        "method": method,
        "seed": seed,
        "settings": settings or {},
        "stream": {"name": "split", "data": "digits", "tasks": tasks, "seed": seed},
        "scenario": scenario,
        "protocol": {"name": "online", "batch": 10, "lr": 0.1},
        "net": net or {"name": "mlp", "hidden": [100, 100]},
        "tasks": tuple(
            {"name": f"t{t}", "classes": [2 * t, 2 * t + 1], "n_train": 9, "n_val": 0, "n_test": 4}
            for t in range(tasks)
        ),
        "R": R,
        "scorings": tuple({"after_task": t, "step": 0} for t in range(rows)),
        "baseline": np.zeros(tasks) if baseline is None else np.array(baseline, dtype=float),
        "curves": (),
        "resources": {
            "bytes": [100 * (t + 1) for t in range(tasks)],
            "flops": [1e6] * tasks,
            "train_seconds": [0.5] * tasks,
            "eval_seconds": 0.25,
        },
    }
    return Record(**{**values, **fields})


@pytest.fixture
def record() -> Callable[..., Record]:
    return make
