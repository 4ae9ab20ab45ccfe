"""Random numbers derived from names, so that adding one component never shifts another's."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
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


def beside(rng: torch.Generator, name: str) -> torch.Generator:
    """A generator for another purpose, seeded by its name and by the state of this one, which stays as it is."""
    digest = hashlib.sha256(state_of(rng)).hexdigest()
    return generator(0, name, beside=digest)


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Run code that draws from global generators (`nn.Linear`'s init, dropout, `np.random`) from a known seed."""
    before = dice()  # torch.random.fork_rng would begin to use CUDA, which forbids a fork later
    if torch.backends.cuda.is_built() or torch.backends.mps.is_built():
        torch.manual_seed(seed)
    else:  # the same, without noting who asked in case that devices begin later: half a millisecond of every trial
        torch.default_generator.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        set_dice(before)


def dice() -> dict[str, Any]:
    """The states of all global generators: torch's, NumPy's and Python's."""
    kind, words, *rest = np.random.get_state()
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else [],
        "numpy": (kind, torch.from_numpy(np.asarray(words, np.int64)), *rest),
        "python": random.getstate(),
    }


def state_of(generator: torch.Generator | random.Random | np.random.Generator | np.random.RandomState) -> bytes:
    """What a generator's next number depends on."""
    if isinstance(generator, torch.Generator):
        return generator.get_state().numpy().tobytes()
    if isinstance(generator, np.random.RandomState):
        _, words, *rest = generator.get_state(legacy=True)
        return np.asarray(words).tobytes() + repr(rest).encode()
    state = generator.getstate() if isinstance(generator, random.Random) else generator.bit_generator.state
    return repr(state).encode()


def states() -> list[Any]:
    """The same of all global generators."""
    _, words, *rest = np.random.get_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    torchs = [state.numpy().tobytes() for state in (torch.get_rng_state(), *cuda)]
    return [*torchs, np.asarray(words).tobytes(), rest, random.getstate()]


def set_dice(state: dict[str, Any]) -> None:
    """Put back what `dice` gave."""
    torch.set_rng_state(state["torch"])
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    elif torch.cuda.is_initialized():  # it had not begun then, and would have begun with torch's own seed
        torch.cuda.manual_seed_all(torch.initial_seed())
    kind, words, *rest = state["numpy"]
    np.random.set_state((kind, words.numpy().astype(np.uint32), *rest))
    random.setstate(state["python"])
