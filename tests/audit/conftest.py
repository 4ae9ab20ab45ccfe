"""Parts of random images, and something that keeps what it is given."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from holdfast.types import Part


@pytest.fixture
def part() -> Callable[..., Part]:
    """part(n, shape) -> n random images as bytes, or vectors as floats."""

    def make(n: int = 12, shape: tuple[int, ...] = (1, 4, 4), seed: int = 0, floats: bool = False) -> Part:
        rng = torch.Generator().manual_seed(seed)
        pixels = torch.randint(0, 256, (n, *shape), generator=rng, dtype=torch.uint8)
        return Part(pixels / 255 if floats else pixels, torch.arange(n), torch.arange(n) % 3)

    return make


@pytest.fixture
def keeper() -> Callable[[Any], SimpleNamespace]:
    return lambda kept: SimpleNamespace(name="a learner", kept=kept)
