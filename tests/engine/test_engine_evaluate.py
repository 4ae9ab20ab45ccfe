"""Rows of several parts in one random order: each part's score is what it is alone, and no chunk tells a part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from holdfast.engine import Shuffled, evaluate, score, score_together
from holdfast.types import CENTRED, Part, Scale


def parts(floats: bool) -> list[Part]:
    rng = torch.Generator().manual_seed(0)
    found = []
    for n in (700, 1, 1500, 40):
        pixels = torch.randint(0, 256, (n + 5, 2, 3), generator=rng, dtype=torch.uint8)
        rows = torch.randperm(n + 5, generator=rng)[:n]
        y = torch.randint(0, 4, (n,), generator=rng)
        found.append(Part(pixels / 255 if floats else pixels, rows, y, transform=lambda x: x.flip(-1)))
    return found


def predict(x: torch.Tensor, task: int | None) -> torch.Tensor:
    """Of each row alone: four of its pixels."""
    return x.flatten(1)[:, :4]


@pytest.mark.parametrize("floats", [False, True])
@pytest.mark.parametrize("kept", [True, False])
def test_each_part_scores_as_it_does_alone(floats, kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(evaluate, "TABLE_BYTES", 100)
    mine = parts(floats)
    rows = Shuffled(mine, torch.Generator().manual_seed(1))
    together = score_together(predict, rows)
    for part, found in zip(mine, together, strict=True):
        alone = score(predict, part, None, None)
        assert found.accuracy == alone.accuracy and found.loss == pytest.approx(alone.loss, rel=1e-6)
        np.testing.assert_array_equal(found.predicted, alone.predicted)


@pytest.mark.parametrize("kept", [True, False])
def test_each_part_keeps_its_scale(kept, monkeypatch):
    if not kept:
        monkeypatch.setattr(evaluate, "TABLE_BYTES", 100)
    scales = [None, CENTRED, Scale.of([0.2, 0.7], [0.3, 2.0]), CENTRED]
    mine = [replace(part, scale=scale) for part, scale in zip(parts(floats=False), scales, strict=True)]
    rows = Shuffled(mine, torch.Generator().manual_seed(1))
    for part, place in zip(mine, rows.places, strict=True):
        assert torch.equal(rows.x(slice(None))[place], part.x())


def test_what_predict_does_to_its_inputs_stays_with_it():
    rows = Shuffled(parts(floats=True), torch.Generator().manual_seed(1))
    first = score_together(lambda x, task: x.flatten(1).sub_(1)[:, :4] + 1, rows)
    assert [s.accuracy for s in first] == [s.accuracy for s in score_together(predict, rows)]


def test_the_order_is_of_the_generator():
    one, again, other = (Shuffled(parts(False), torch.Generator().manual_seed(seed)).y for seed in (1, 1, 2))
    assert torch.equal(one, again) and not torch.equal(one, other)
