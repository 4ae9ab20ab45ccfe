"""Random numbers derived from names, so that adding one component never shifts another's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import torch


def seed_for(seed: int, *names: str, **keys: int | str) -> int:
    """A 63-bit seed that depends on every name and key, and on nothing else.

    >>> seed_for(0, "permuted", task=3) == seed_for(0, "permuted", task=3)
    True
    >>> seed_for(0, "permuted", task=3) == seed_for(0, "permuted", task=4)
    False
    """
    text = repr((seed, names, sorted(keys.items())))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def generator(seed: int, *names: str, **keys: int | str) -> torch.Generator:
    """A CPU generator seeded by `seed_for`: all sampling decisions are made on the CPU."""
    return torch.Generator().manual_seed(seed_for(seed, *names, **keys))


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run code that draws from torch's global generator (`nn.Linear`'s init, dropout) from a known seed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield
