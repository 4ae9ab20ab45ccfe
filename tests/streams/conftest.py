"""Data sets made for a purpose."""

from collections.abc import Callable

import pytest
import torch

from holdfast.types import DataSet


@pytest.fixture
def numbered() -> Callable[..., DataSet]:
    """numbered(classes) -> vectors that begin with their row (test rows: from 1000), 10 train and 4 test per class."""

    def make(classes: int = 6, each: int = 10, each_test: int = 4) -> DataSet:
        y, y_test = torch.arange(classes).repeat(each), torch.arange(classes).repeat(each_test)
        x = torch.arange(len(y)).float()[:, None].repeat(1, 5) + torch.arange(5) / 10
        x_test = 1000 + torch.arange(len(y_test)).float()[:, None].repeat(1, 5) + torch.arange(5) / 10
        names = tuple("abcdefghijklmnopqrstuvwxyz"[:classes])
        return DataSet("numbered", x, y, x_test, y_test, names, "0" * 64)

    return make
