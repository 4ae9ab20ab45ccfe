"""Strips of test images: whole files, beside the names of their tasks."""

from __future__ import annotations

import dataclasses
import io
import re
from base64 import b64decode

import numpy as np
import pytest

from holdfast import report
from holdfast.report import images


def some(tasks=5, n=3, channels=1, side=8):
    rng = np.random.default_rng(0)
    return tuple(rng.integers(0, 256, (n, channels, side, side), dtype=np.uint8) for _ in range(tasks))


def files(page):
    return [b64decode(found) for found in re.findall(r'<img[^>]* src="data:image/png;base64,([^"]*)"', page)]


@pytest.mark.parametrize("channels", [1, 3])
def test_a_file_holds_the_pixels_with_clear_columns_between_images(fake, channels):
    pillow = pytest.importorskip("PIL.Image", reason="the images extra is not installed")
    (shown, *_) = given = some(channels=channels, side=16)
    drawn = files(images.strips(dataclasses.replace(fake("gem"), images=given)))
    assert len(drawn) == 5
    back = np.asarray(pillow.open(io.BytesIO(drawn[0])))
    assert back.shape == (16, 3 * 17, 4) and (back[:, 16::17] == 0).all()
    for i, image in enumerate(shown):
        assert (back[:, 17 * i : 17 * i + 16, :3] == np.broadcast_to(image, (3, 16, 16)).transpose(1, 2, 0)).all()
        assert (back[:, 17 * i : 17 * i + 16, 3] == 255).all()


def test_the_same_images_are_on_the_page_once_and_nothing_is_fetched(fake):
    runs = [dataclasses.replace(fake("gem", s, seed), images=some()) for s in ("class", "task") for seed in (0, 1)]
    page = report.html([*runs, fake("er")])
    assert len(files(page)) == 5
    assert page.count("<figure><img") == 5
    assert 'alt="3 test images of task 2, digits 2-3"' in page


def test_names_of_tasks_cannot_inject(fake):
    record = dataclasses.replace(fake("gem", tasks=1), images=some(1))
    record = dataclasses.replace(record, tasks=({**record.tasks[0], "name": '"><script>alert(1)</script>'},))
    assert "<script>alert" not in images.strips(record)


def test_what_many_tasks_are_made_of_is_folded(fake):
    long, short = (fake("gem", tasks=tasks) for tasks in (30, 5))
    told = [
        report.html([dataclasses.replace(r, tasks=tuple({**task, "about": "rows"} for task in r.tasks))])
        for r in (long, short)
    ]
    assert ["<summary>What 30 tasks are made of</summary>" in page for page in told] == [True, False]
