"""What a comparison says of its seeds: which belong together, which are missing, and who is ranked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import holdfast as hf

NET = hf.net("mlp", hidden=(8,))


@pytest.fixture
def arrays():
    """120 rows of six classes that can be told apart, but not always."""
    y = np.arange(120) % 6
    return np.random.default_rng(0).normal(y[:, None], 1.0, (120, 4)), y


def as_pair(x, y):
    return x, y


def as_torch(x, y):
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class Hub(dict):
    """Looks like a Hugging Face Dataset."""

    features = {}  # noqa: RUF012

    def __init__(self, x, y):
        super().__init__(x=x.tolist(), y=y.tolist())
        self.column_names = ["x", "y"]


def as_hub(x, y):
    return {"train": Hub(x, y)}


@pytest.mark.parametrize("of", [as_pair, as_torch, as_hub])
def test_the_seeds_of_a_users_own_data_are_one_row_with_an_interval(of, arrays):
    stream = hf.stream("split", data=of(*arrays), tasks=3)
    found = hf.compare(["finetune", "er"], stream, seeds=3, net=NET, jobs=1)
    methods = found.summary()["methods"]
    assert list(methods) == ["finetune", "er"]
    for entry in methods.values():
        assert entry["seeds"] == [0, 1, 2] and entry["acc"]["low"] < entry["acc"]["high"]
    tests = {record.seed: np.concatenate(record.labels).size for record in found.records}
    assert tests == {0: 24, 1: 24, 2: 24}


def test_other_data_make_other_cells(arrays, tmp_path):
    x, y = arrays
    names = []
    for i, data in enumerate([(x, y), (x + 1, y), (x, y[::-1])]):
        stream = hf.stream("split", data=data, tasks=3)
        out = tmp_path / str(i)
        hf.compare("finetune", stream, seeds=2, net=NET, jobs=1, out=out)
        names += [path.name for path in (out / "cells").iterdir()]
    assert len(set(names)) == 6
