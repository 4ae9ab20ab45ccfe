"""scikit-learn's 1,797 real handwritten digits, 8 x 8: the data set that is there on a fresh machine."""

from __future__ import annotations

import numpy as np

from holdfast.data.catalog import DIGITS
from holdfast.data.files import Arrays
from holdfast.data.split import split_rows

ROWS = (1438, 359)  # train and test


def read() -> Arrays:
    """The whole set with one fixed split, 80/20 per class, the same for every seed.

    >>> digits = read()
    >>> digits.x.shape, digits.x_test.shape, digits.x.dtype
    ((1438, 1, 8, 8), (359, 1, 8, 8), dtype('uint8'))
    """
    from sklearn.datasets import load_digits

    pixels, y = load_digits(return_X_y=True)  # (1797, 64) from 0 to 16
    x = np.round(pixels * (255 / 16)).astype(np.uint8).reshape(-1, 1, 8, 8)
    train, test = split_rows(y, seed=0)
    return Arrays(x[train], y[train].astype(np.int64), x[test], y[test].astype(np.int64), DIGITS)
