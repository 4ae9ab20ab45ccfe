"""A few test images of each task, for the report: what the tasks of a stream look like."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional as F

from holdfast.types import Gone, Part, Stream

MOST = 10  # images of a task
SIDE = 32  # pixels; larger images are made smaller
BYTES = 200_000  # of all tasks together; of many tasks there are fewer and smaller images


def images_of(stream: Stream) -> tuple[np.ndarray, ...]:
    """Per task (n, C, H, W) bytes, transformed as a network sees them but for the scale; nothing where tasks are not
    made of grey or coloured images, or test rows are not at hand.
    """
    shape, tasks = stream.info.shape, len(stream)
    if any(isinstance(task.test, Gone) or not len(task.test) for task in stream.tasks):
        return ()
    if len(shape) != 3 or shape[0] not in (1, 3) or any(task.test.dtype != torch.uint8 for task in stream.tasks):
        return ()
    shrink = math.ceil(max(shape[1:]) / SIDE)
    while tasks * (size := shape[0] * math.ceil(shape[1] / shrink) * math.ceil(shape[2] / shrink)) > BYTES:
        shrink *= 2
    return tuple(_shown(task.test, min(MOST, BYTES // (tasks * size)), shrink) for task in stream.tasks)


def _shown(part: Part, n: int, shrink: int) -> np.ndarray:
    pixels = part.cut(torch.from_numpy(rows_of(part.y.cpu().numpy(), n)).to(part.rows.device)).cpu()
    if shrink > 1:
        size = [math.ceil(side / shrink) for side in pixels.shape[2:]]
        pixels = F.interpolate(pixels.float(), size, mode="area").round().byte()
    return pixels.numpy()


def rows_of(y: np.ndarray, n: int) -> np.ndarray:
    """Rows class by class: the first of each class, and the second of each while there are fewer than n, and so on.

    >>> rows_of(np.array([1, 1, 0, 1, 2, 0]), 4).tolist()
    [2, 5, 0, 4]
    """
    by_class = np.argsort(y, kind="stable")
    _, counts = np.unique(y, return_counts=True)
    nth = np.concatenate([np.arange(count) for count in counts])  # of its class
    some = by_class[np.argsort(nth, kind="stable")[:n]]
    return some[np.argsort(y[some], kind="stable")]
