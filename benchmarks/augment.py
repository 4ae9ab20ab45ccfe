"""What augmenting and auditing images costs beside a thin ResNet, as ratios in one run: python benchmarks/augment.py

Random crops and mirror images of 256 images of 32×32×3, which must cost less than a tenth of the network's forward
pass; and one look for augmented rows among those a learner keeps. CPU time of one thread, medians of several rounds.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch

import holdfast as hf
from holdfast.audit import Retention
from holdfast.streams._images import CropFlip
from holdfast.types import Part, as_float

IMAGES, PAST, KEPT, ROUNDS = 256, 5000, (500, 1000, 5000), 7


def main() -> None:
    torch.set_num_threads(1)
    rng = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (PAST, 3, 32, 32), generator=rng, dtype=torch.uint8)
    some, augment = pixels[:IMAGES], CropFlip(4)
    net = hf.net("resnet").build(hf.stream("split", data=_as_images(pixels), tasks=2).info)
    floats = as_float(some)
    with torch.no_grad():
        forward = seconds(lambda: net(floats))
    for what, images in (("bytes", some), ("floats", floats)):
        spent = seconds(lambda images=images: augment(images, rng))
        print(f"augmenting {IMAGES} images as {what}: {1e3 * spent:.2f} ms, {spent / forward:.4f} of a forward pass")
    print(f"forward pass of the thin ResNet: {1e3 * forward:.0f} ms")
    rows = torch.arange(PAST)
    for kept in KEPT:
        memory = as_float(augment(pixels[:kept], rng))
        for what, used in (("exact", None), ("augmented", augment)):
            retention = Retention((3, 32, 32))
            retention.remember(Part(pixels, rows, rows % 10, augment=used))
            retention.scan([memory[:1]])  # hashes the past
            spent = seconds(lambda memory=memory, retention=retention: retention.scan([memory]), 3)
            found = retention.scan([memory])[0]
            in_passes = f"{1e3 * spent:.0f} ms, {spent / forward:.2f} forward passes"
            print(f"a scan of {kept} kept rows, {what}: {in_passes}, {found} found")


def _as_images(pixels: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return pixels, torch.arange(len(pixels)) % 10


def seconds(way: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of several rounds."""
    spent = []
    for _ in range(rounds):
        begun = time.process_time()
        way()
        spent.append(time.process_time() - begun)
    return statistics.median(spent)


if __name__ == "__main__":
    main()
