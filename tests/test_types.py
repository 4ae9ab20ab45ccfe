"""Parts, stream infos and records: views on shared data, caches that hide nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

import holdfast as hf
from holdfast import types
from holdfast.types import CENTRED, Part, Record, Scale, StreamInfo, as_float, shared_scale

INDICES = [
    slice(None),
    slice(2, 5),
    torch.tensor([4, 0, 4]),
    torch.tensor([], dtype=torch.long),
    torch.tensor([-1, 2]),
    torch.tensor([True, False, False, True, True, False]),
]


def part(dtype=torch.uint8, transform=None):
    pixels = torch.arange(10 * 6).view(10, 1, 2, 3).to(dtype)
    return Part(pixels, torch.tensor([9, 0, 3, 3, 7, 1]), torch.arange(6), transform)


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("transform", [None, lambda pixels: pixels.flip(-1)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("cached", [True, False])
def test_a_part_shows_its_rows_transformed_with_or_without_cache(cached, dtype, transform, index, monkeypatch):
    monkeypatch.setattr(types, "CACHE_BYTES", 10**6 if cached else 0)
    made = part(dtype, transform)
    raw = made.pixels[made.rows]
    raw = (raw if transform is None else transform(raw))[index]
    for _ in range(2):  # before and after the cache is there
        assert torch.equal(made.raw(index), raw)
        x = made.x(index)
        assert x.dtype == torch.float32
        assert torch.equal(x, raw / 255 if dtype == torch.uint8 else raw)
    assert (made._cache is not None) is cached


def test_the_cache_is_only_for_parts_that_are_small(monkeypatch):
    made = part()
    size = 6 * 6  # six rows of six bytes
    monkeypatch.setattr(types, "CACHE_BYTES", size - 1)
    made.x()
    assert made._cache is None
    monkeypatch.setattr(types, "CACHE_BYTES", size)
    made.x(slice(0, 1))
    assert made._cache.shape == (6, 1, 2, 3) and made._cache.dtype == torch.uint8


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
@pytest.mark.parametrize("index", INDICES[:3])
def test_what_is_shown_may_be_changed_without_changing_the_data(dtype, index):
    made = part(dtype)
    pixels, before = made.pixels.clone(), made.x()
    made.x(index).fill_(-1)
    assert torch.equal(made.x(), before)
    assert torch.equal(made.pixels, pixels)


def test_a_cache_made_while_scoring_serves_training():
    made = part(torch.float32)
    with torch.inference_mode():
        made.x()
    assert not made.raw().is_inference()
    weight = torch.ones(6, requires_grad=True)
    (made.x().flatten(1) @ weight).sum().backward()
    assert weight.grad.any()


def test_take_is_a_part_of_a_part():
    made = part(transform=lambda pixels: 255 - pixels)
    some = made.take(torch.tensor([5, 1]))
    assert torch.equal(some.x(), made.x(torch.tensor([5, 1])))
    assert some.y.tolist() == [5, 1]
    assert some.pixels is made.pixels


class Copies(TorchDispatchMode):
    """Counts tensors moved between devices, by their number of entries."""

    def __init__(self):
        super().__init__()
        self.moved = []

    def __torch_dispatch__(self, function, kinds, args=(), kwargs=None):
        if function is torch.ops.aten._to_copy.default:
            self.moved.append(args[0].numel())
        return function(*args, **(kwargs or {}))


def test_a_stream_moves_its_shared_pixels_once():
    stream = hf.stream("permuted", tasks=3)
    train, test = stream.tasks[0].train.pixels, stream.tasks[0].test.pixels
    with Copies() as copies:
        moved = stream.to(torch.device("meta"))
    assert copies.moved.count(train.numel()) == 1
    assert copies.moved.count(test.numel()) == 1
    parts = [p for t in moved.tasks for p in (t.train, t.val, t.test)]
    assert {t.device.type for p in parts for t in (p.pixels, p.rows, p.y)} == {"meta"}
    assert len({id(p.pixels) for p in parts}) == 2
    assert stream.to(torch.device("cpu")).tasks[0].train is stream.tasks[0].train


def test_tasks_share_the_pixels_of_their_data_set():
    stream = hf.stream("rotated", tasks=4)
    assert len({id(t.train.pixels) for t in stream.tasks} | {id(t.val.pixels) for t in stream.tasks}) == 1
    assert len({id(t.test.pixels) for t in stream.tasks}) == 1


@pytest.mark.parametrize(
    ("scenario", "task_classes", "mask"),
    [
        ("class", ((0, 1), (2,)), None),
        ("domain", ((0, 1, 2), (0, 1, 2)), None),
        ("task", ((0, 1), (2,)), [[1, 1, 0], [0, 0, 1]]),
        ("task", ((0, 1, 2), (0, 1, 2)), None),
        ("task", ((0, 1, 2), (1,)), [[1, 1, 1], [0, 1, 0]]),
    ],
)
def test_which_outputs_a_task_may_use(scenario, task_classes, mask):
    info = StreamInfo("split", scenario, (4,), 3, task_classes)
    got = info.allowed()
    assert (None if got is None else got.int().tolist()) == mask
    assert (info.tasks, info.task_given) == (2, scenario == "task")


def test_a_stream_prints_as_the_call_that_makes_it():
    stream = hf.stream("split", tasks=2, examples=50, seed=3)
    assert len(stream) == 2
    words = repr(stream)
    assert words.startswith("stream('split', data='digits', tasks=2, examples=50") and words.endswith("seed=3)")


def test_the_final_rows_are_the_last_scoring_of_each_task():
    record = Record(
        method="hand-made", seed=0, settings={}, stream={}, scenario="class", protocol={}, net={}, tasks=(),
        R=np.array([[0.1, 0.0], [0.2, 0.0], [0.3, 0.4], [0.5, 0.6]]),
        scorings=tuple({"after_task": t, "step": s} for t, s in ((0, 5), (0, 10), (1, 5), (1, 10))),
        baseline=np.zeros(2), curves=(), resources={},
        metrics={"acc": 0.55, "bwt": 0.3, "fwt": None, "forgetting": 0.0},
    )  # fmt: skip
    assert record.final.tolist() == [[0.2, 0.0], [0.5, 0.6]]
    assert (record.acc, record.bwt, record.fwt, record.forgetting) == (0.55, 0.3, None, 0.0)
    plain = replace(record, R=record.final, scorings=record.scorings[1::2])
    assert np.array_equal(plain.final, plain.R)


class Doubled:
    """Every pixel four times, in three channels."""

    def __call__(self, pixels):
        return pixels.repeat_interleave(2, 2).repeat_interleave(2, 3).expand(-1, 3, -1, -1)


def test_a_transform_may_change_the_shape(monkeypatch):
    made = part(transform=Doubled())
    assert made.shape == (3, 4, 6) and made.dtype == torch.uint8 and made.nbytes == 6 * 72
    assert made.x().shape == (6, 3, 4, 6)
    monkeypatch.setattr(types, "CACHE_BYTES", 6 * 72 - 1)  # the cache would hold what is shown, not what is stored
    fresh = made.take(torch.arange(6))
    assert torch.equal(fresh.x(), made.x()) and fresh._cache is None


def test_scales_are_exact():
    """Without one bytes are divided by 255; mean and deviation 0.5 is what −1 to 1 always was, bit for bit."""
    v = torch.arange(256, dtype=torch.uint8).view(256, 1, 1, 1)
    assert torch.equal(as_float(v), v.float() / 255)
    assert torch.equal(as_float(v, CENTRED), v.float() / 127.5 - 1)
    assert torch.equal(as_float(v, Scale.of([0.0], [1.0])), v.float() / 255)
    assert torch.equal(as_float(v.flatten(1), CENTRED), (v.float() / 127.5 - 1).flatten(1))


def test_a_scale_has_a_mean_and_a_deviation_per_channel():
    v = torch.arange(2 * 3 * 20).view(2, 3, 4, 5).to(torch.uint8)
    mean, deviation = [0.1, 0.2, 0.3], [0.5, 0.25, 2.0]
    wanted = (v.numpy() / 255 - np.reshape(mean, (3, 1, 1))) / np.reshape(deviation, (3, 1, 1))
    np.testing.assert_allclose(as_float(v, Scale.of(mean, deviation)).numpy(), wanted, atol=1e-6)
    assert as_float(v / 255, CENTRED).equal(v / 255)  # floats are shown as they come


def test_rows_of_several_parts_keep_each_its_scale():
    pixels = torch.randint(256, (9, 3, 2, 2), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    scales = [None, CENTRED, Scale.of([0.1, 0.2, 0.3], [0.5, 0.6, 0.7])]
    parts = [Part(pixels, torch.arange(3 * k, 3 * k + 3), torch.zeros(3).long(), scale=s) for k, s in enumerate(scales)]
    whole = Part(pixels, torch.arange(9), torch.zeros(9).long(), scale=shared_scale(parts))
    alone = torch.cat([p.x() for p in parts])
    some = torch.tensor([8, 0, 4])
    assert torch.equal(whole.x(), alone) and torch.equal(whole.x(some), alone[some])
    assert torch.equal(whole.take(some).x(), alone[some]) and torch.equal(whole.x(slice(2, 7)), alone[2:7])
    assert shared_scale(parts[1:2] * 2) is CENTRED and shared_scale(parts[:1]) is None
