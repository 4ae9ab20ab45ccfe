from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture
def hand_made():
    """A record as the recipes of paper 000 read it."""

    def made(R, seed=0, numbers=(250_000,), flops=3e12, **metrics):
        R = np.array(R, dtype=float)
        return SimpleNamespace(
            scenario="task",
            final=R,
            seed=seed,
            resources={"numbers": list(numbers)},
            metrics={"flops": flops, **metrics},
        )

    return made
