"""What a user has at hand, as a data set: a name, arrays, a torch Dataset, or a Hugging Face one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch.utils.data import Dataset

from holdfast.data.canonical import canonical
from holdfast.data.load import load
from holdfast.data.sources import Table, from_hub, from_splits, from_torch, is_hub
from holdfast.errors import BadInput
from holdfast.types import DataSet

KINDS = (
    "a data set's name, (x, y), (x, y, x_test, y_test), a torch Dataset of (x, y) items or (train, test) of them, "
    "or a Hugging Face Dataset or DatasetDict"
)


def as_dataset(data: Any, seed: int) -> DataSet:
    """Any data a user may pass, as a data set; without test rows, 20 % of each class become them.

    >>> import numpy as np
    >>> x = np.arange(40.0).reshape(20, 2)
    >>> y = ["cat", "dog"] * 10
    >>> made = as_dataset((x, y), seed=0)
    >>> made.classes, made.x.shape, made.x_test.shape, made.y[:4].tolist()
    (('cat', 'dog'), torch.Size([16, 2]), torch.Size([4, 2]), [0, 1, 0, 1])
    """
    if isinstance(data, DataSet):
        return data
    if isinstance(data, str):
        return load(data, seed=seed)
    if isinstance(data, Mapping):
        train, test = from_splits(data)
        return canonical("hub", train, test, seed)
    if is_hub(data):
        return canonical("hub", from_hub(data), None, seed)
    if isinstance(data, Dataset):
        return canonical("torch", from_torch(data), None, seed)
    if isinstance(data, tuple | list) and len(data) == 2:
        if all(isinstance(part, Dataset) for part in data):
            return canonical("torch", from_torch(data[0]), from_torch(data[1]), seed)
        return canonical("arrays", Table(*data), None, seed)
    if isinstance(data, tuple | list) and len(data) == 4:
        return canonical("arrays", Table(*data[:2]), Table(*data[2:]), seed)
    many = f" of {len(data)} items" if isinstance(data, tuple | list) else ""
    raise BadInput(f"data must be {KINDS}, not a {type(data).__name__}{many}")
