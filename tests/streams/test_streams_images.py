"""What streams do to images: one size for all, random crops and mirror images, scales per task."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import holdfast as hf
from holdfast.audit import Lease
from holdfast.checks import check_stream
from holdfast.engine.batching import batches
from holdfast.seeds import beside, generator
from holdfast.streams._images import CropFlip, Fitted

PARTS = ("train", "val", "test")


def images(n=40, channels=3, side=8, seed=0):
    return torch.randint(1, 256, (n, channels, side, side), dtype=torch.uint8, generator=generator(seed))


# Random crops and mirror images


def crops(image, margin):
    """All that can come of one image, cut one by one."""
    side = image.shape[-1]
    padded = np.pad(image.numpy(), ((0, 0), (margin, margin), (margin, margin)))
    for down in range(2 * margin + 1):
        for right in range(2 * margin + 1):
            crop = padded[:, down : down + side, right : right + side]
            yield from (crop.tobytes(), crop[..., ::-1].tobytes())


@pytest.mark.parametrize("margin", [0, 1, 2])
def test_what_comes_of_an_image_is_one_of_its_crops_each_as_often(margin):
    image = images(1)
    shown = CropFlip(margin)(image.expand(20_000, -1, -1, -1), generator(1))
    ways = list(crops(image[0], margin))
    assert len(set(ways)) == 2 * (2 * margin + 1) ** 2
    counts = dict.fromkeys(ways, 0)
    for row in shown:
        counts[row.numpy().tobytes()] += 1
    expected = 20_000 / len(ways)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_bytes_and_floats_are_augmented_alike():
    x, augment = images(), CropFlip(2)
    as_bytes, as_floats = augment(x, generator(0)), augment(x / 255, generator(0))
    assert as_bytes.dtype == torch.uint8 and torch.equal(as_bytes / 255, as_floats)
    tall = images()[:, :, :, :5]
    assert augment(tall, generator(0)).shape == tall.shape


def test_only_training_batches_are_augmented_and_nothing_of_it_is_kept():
    plain, augmented = (hf.stream("split", tasks=2, val=0.2, augment=flag).tasks[0] for flag in (False, True))
    for name in PARTS:
        mine, other = getattr(plain, name), getattr(augmented, name)
        assert torch.equal(mine.x(), other.x()) and torch.equal(mine.rows, other.rows)
        (shown,), (as_it_is,) = (list(batches(p, len(p), generator(0), 0)) for p in (other, mine))
        assert torch.equal(shown.y, as_it_is.y)
        assert torch.equal(shown.x, as_it_is.x) is (name != "train")
    assert torch.equal(plain.train.x(), augmented.train.x())
    lease = Lease(0, augmented.train, augmented.val)
    assert torch.equal(lease.x, plain.train.x())


def test_the_order_is_the_same_with_and_without_and_each_pass_is_augmented_anew():
    plain, augmented = (hf.stream("split", tasks=2, augment=flag).tasks[0].train for flag in (False, True))
    seen = []
    for part in (plain, augmented):
        rng = generator(7)
        passes = [list(batches(part, 50, rng, 0)) for _ in range(2)]
        seen.append([(torch.cat([b.y for b in p]), torch.cat([b.x for b in p])) for p in passes])
    for (y, _), (z, _) in zip(*seen, strict=True):
        assert torch.equal(y, z)
    changed = [(x != z).flatten(1).any(1) for (_, x), (_, z) in zip(*seen, strict=True)]
    assert all(c.float().mean() > 0.9 for c in changed)
    assert (changed[0] == changed[1]).float().mean() > 0.3 and not torch.equal(seen[1][0][1], seen[1][1][1])


def test_views_are_drawn_once_and_stand_behind_the_rows():
    plain = hf.stream("split", tasks=2, val=0.2, scale="task", scenario="task").tasks[0]
    words = {"tasks": 2, "val": 0.2, "scale": "task", "scenario": "task", "augment": True}
    first, again, other = (hf.stream("split", views=3, seed=seed, **words).tasks[0] for seed in (0, 0, 1))
    n, part = len(plain.train), first.train
    assert len(part) == 4 * n and part.augment is None and len(first.val) == len(plain.val)
    assert torch.equal(part.x()[:n], plain.train.x()) and torch.equal(part.y, plain.train.y.repeat(4))
    assert torch.equal(part.x(), again.train.x()) and not torch.equal(part.y[:n], other.train.y)
    views, rows = part.raw()[n:].view(3, n, 8, 8), plain.train.raw()[:, 0]
    assert not torch.equal(views[0], views[1])
    middle = rows[:, 1:-1, 1:-1]  # in every crop, moved by one pixel at most and perhaps mirrored
    for view in views:
        spots = [view[:, i : i + 6, j : j + 6] for i in range(3) for j in range(3)]
        assert torch.stack([(spot == m).all((1, 2)) for spot in spots for m in (middle, middle.flip(2))]).any(0).all()


def test_views_need_rows_that_are_augmented():
    with pytest.raises(hf.BadInput, match="views=3 are crops and mirror images, which augment=yes asks for; add it"):
        hf.stream("split", views=3)


def test_a_generator_beside_another_leaves_it_as_it_is():
    rng, same = generator(3), generator(3)
    draws = [torch.rand(3, generator=beside(rng, name)) for name in ("a", "a", "b")]
    assert torch.equal(draws[0], draws[1]) and not torch.equal(draws[0], draws[2])
    assert torch.equal(torch.rand(3, generator=rng), torch.rand(3, generator=same))
    assert not torch.equal(torch.rand(3, generator=beside(rng, "a")), draws[0])


@pytest.mark.parametrize(
    ("name", "settings", "complaint"),
    [
        ("permuted", {}, "augment of stream 'permuted' would move and mirror permuted pixels; leave it out"),
        ("slt", {"parts": "DP10-10"}, "augment would move and mirror the permuted pixels of parts 'DP10-10'"),
        (
            "split",
            {"data": (np.zeros((20, 5)), [0, 1] * 10), "tasks": 2},
            "augment needs images, but data set 'arrays' has",
        ),
    ],
)
def test_what_cannot_be_augmented(name, settings, complaint):
    with pytest.raises(hf.BadInput, match=complaint):
        hf.stream(name, augment=True, **settings)


# One size


@pytest.mark.parametrize(("channels", "wanted"), [(1, 3), (3, 1), (3, 3), (1, 1)])
def test_images_of_any_size_are_brought_to_one(channels, wanted):
    x = images(1030, channels, side=8)
    fitted = Fitted(12, wanted)(x)
    assert fitted.shape == (1030, wanted, 12, 12) and fitted.dtype == torch.uint8
    grey = x.float().mean(1, keepdim=True) if channels > wanted else x.float()
    oracle = F.interpolate(grey, (12, 12), mode="bilinear", align_corners=False).round()
    torch.testing.assert_close(fitted.float(), oracle.expand(-1, wanted, -1, -1), atol=1, rtol=0)  # halves are rounded
    assert torch.equal(Fitted(12, wanted)(x[1025:1026]), fitted[1025:1026])
    same = Fitted(8, 3)(images(5, 1))
    assert torch.equal(same, images(5, 1).expand(-1, 3, -1, -1))


# Scales


def test_a_tasks_training_rows_get_mean_0_and_deviation_1_in_each_channel():
    stream = hf.stream("split", data="synth", tasks=2, examples=300, val=0.1, scale="task", scenario="task")
    check_stream(stream)
    for task in stream.tasks:
        x = task.train.x().double()
        torch.testing.assert_close(x.mean((0, 2, 3)), torch.zeros(3).double(), atol=1e-5, rtol=0)
        torch.testing.assert_close(x.std((0, 2, 3), correction=0), torch.ones(3).double(), atol=1e-5, rtol=0)
        for part in (task.val, task.test):
            assert part.scale is task.train.scale
    assert not torch.equal(stream.tasks[0].train.scale.divisor, stream.tasks[1].train.scale.divisor)


def test_a_channel_of_one_value_becomes_0():
    x = np.full((20, 2, 2), 7, np.uint8)
    task = hf.stream("split", data=(x, [0, 1] * 10), tasks=2, scale="task", scenario="task").tasks[0]
    assert task.train.x().abs().max() < 1e-6


@pytest.mark.parametrize("scenario", ["class", "domain"])
def test_a_scale_per_task_would_tell_the_task_where_it_is_hidden(scenario):
    with pytest.raises(
        hf.BadInput, match=f"scale=task needs the task label .* the '{scenario}' scenario hides it; use"
    ):
        hf.stream("split", scale="task", scenario=scenario)


def test_floats_have_no_scale_per_task():
    data = (np.random.default_rng(0).random((20, 4, 4)), [0, 1] * 10)
    with pytest.raises(hf.BadInput, match="scale=task is for bytes, but data set 'arrays' has floats"):
        hf.stream("split", data=data, tasks=2, scale="task", scenario="task")
