"""What tests of all rooms share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import holdfast as hf

FEW_STEPS = {  # methods that train networks of their own, with as little of it as shows what they do
    "vgr": {"generator_steps": 5, "width": 4, "test_samples": 5},
    "dgr": {"hidden": (30,), "latent": 8},
}


@pytest.fixture(scope="session")
def quick() -> Callable[[str], hf.Learner]:
    """quick("vgr") -> the method by that name, with settings that take little time where it has such."""
    return lambda name: hf.method(name, **FEW_STEPS.get(name, {}))
