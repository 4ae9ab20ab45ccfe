"""The images that a record keeps: a few test rows of each task, as its network sees them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.protocols._images import BYTES, images_of


def coloured(side, n=40):
    pixels = torch.randint(256, (n, 3, side, side), generator=torch.Generator().manual_seed(0), dtype=torch.uint8)
    return pixels.numpy(), np.arange(n) % 4


@pytest.mark.parametrize("name", ["split", "permuted", "rotated"])
def test_they_are_test_rows_of_their_task_transformed_class_by_class(name):
    stream = hf.stream(name, tasks=3, examples=40)
    record = hf.run("finetune", stream, net=hf.net("mlp", hidden=(4,)), seed=0)
    for task, images in zip(stream.tasks, record.images, strict=True):
        assert images.shape == (10, 1, 8, 8) and images.dtype == np.uint8
        rows = {row.numpy().tobytes(): int(y) for row, y in zip(task.test.cut(), task.test.y, strict=True)}
        classes = [rows[image.tobytes()] for image in images]
        assert classes == sorted(classes) and set(classes) == set(task.test.y.tolist())
        assert not rows.keys() & {row.numpy().tobytes() for row in task.train.cut()}  # what is shown is no training row


def test_large_images_are_made_smaller_and_many_tasks_have_fewer():
    one = images_of(hf.stream("split", data=coloured(64), tasks=2))
    assert [images.shape[1:] for images in one] == [(3, 32, 32)] * 2
    many = images_of(hf.stream("permuted", data=coloured(32), tasks=100))
    assert len(many) == 100 and all(len(images) for images in many)
    assert sum(images.nbytes for images in many) <= BYTES < 100 * 3 * 32 * 32


def test_the_mean_of_a_square_stands_for_it():
    x, y = coloured(64)
    x[:, :, ::2] = 10
    x[:, :, 1::2] = 20
    assert all((images == 15).all() for images in images_of(hf.stream("split", data=(x, y), tasks=2)))


@pytest.mark.parametrize(
    "x",
    [np.zeros((40, 5), np.float32), np.zeros((40, 1, 8, 8), np.float32), np.zeros((40, 4, 8, 8), np.uint8)],
    ids=["vectors", "floats", "four channels"],
)
def test_what_is_no_image_of_bytes_is_not_shown(x):
    assert images_of(hf.stream("split", data=(x, np.arange(40) % 4), tasks=2)) == ()
