"""The one way rows are parted into train and test when a source does not say."""

from __future__ import annotations

import numpy as np

from holdfast.seeds import seed_for


def split_rows(y: np.ndarray, seed: int, share: float = 0.2) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of train and test: a share of each class, at least one row, goes to test; order is kept.

    >>> train, test = split_rows(np.array([0] * 10 + [1] * 5), seed=0)
    >>> len(train), len(test), (test >= 10).sum().item()
    (12, 3, 1)
    """
    rng = np.random.default_rng(seed_for(seed, "data", "split"))
    test = np.zeros(len(y), bool)
    for value in np.unique(y):
        rows = np.flatnonzero(y == value)
        test[rng.permutation(rows)[: max(1, round(share * len(rows)))]] = True
    return np.flatnonzero(~test), np.flatnonzero(test)
