"""The methods of paper 002 on CIFAR-100, in the sizes that each scale can afford."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Scale, smaller

RATES = (0.03, 0.1, 0.3)  # to choose from where the data are not the paper's


@dataclass(frozen=True)
class Size:
    """How large an experiment is at one scale."""

    stream: Mapping[str, Any]
    maps: int  # of the ResNet's first stage
    epochs: int
    memories: tuple[int, int, int, int]  # in all, in place of the paper's 200, 1,280, 2,560 and 5,120

    @property
    def tasks(self) -> int:
        return int(self.stream["tasks"])


SIZES: dict[Scale, Size] = {
    "smoke": Size(
        {"data": "digits", "tasks": 3, "examples": 20, "test_examples": 50, "val": 0.2}, 1, 1, (12, 24, 36, 48)
    ),
    "laptop": Size(
        {"data": "cifar-100", "tasks": 5, "sizes": (5,) * 5, "order": tuple(range(25)), "val": 0.2},
        4, 3, (50, 160, 320, 640),
    ),
    "full": Size({"data": "cifar-100", "tasks": 20, "examples": 2500}, 20, 1, (200, 1280, 2560, 5120)),
}  # fmt: skip
SAID: dict[Scale, str] = {
    "smoke": "In place of CIFAR-100: 3 tasks of 20 digits, a ResNet with 1 map.",
    "laptop": "CIFAR-100 here: 5 tasks of 5 classes with 320 examples, 3 passes, a ResNet with 4 maps (the paper: 20 "
    "tasks of 2,500 examples, 1 pass, 20 maps).",
    "full": "",
}
LR = {"single": 1.0, "independent": 0.3, "EWC": 1.0, "iCARL": 1.0, "GEM": 0.1}  # released, for the full data
METHODS = {"single": "finetune", "independent": "independent", "EWC": "ewc", "iCARL": "icarl", "GEM": "gem"}


def entry(
    place: tuple[str, str],
    method: str,
    scale: Scale,
    settings: Mapping[str, Any],
    setting: str = "",
    tuned_at: str | None = None,
    grid: Mapping[str, Sequence[Any]] | None = None,
) -> Entry:
    """One method on the stream of this scale. Released settings are for the paper's data; other data need a grid."""
    size = SIZES[scale]
    protocol = hf.protocol("online", batch=10, lr=LR[method])
    if size.epochs > 1:
        protocol = hf.protocol("epochs", epochs=size.epochs, batch=10, lr=LR[method])
    return Entry(
        row=place[0],
        column=place[1],
        method=hf.method(METHODS[method], **settings),
        stream=hf.stream("split", scenario="task", **size.stream),
        net=hf.net("resnet", maps=max(1, size.maps // size.tasks) if method == "independent" else size.maps),
        protocol=protocol,
        setting=setting,
        grid=smaller({"protocol.lr": RATES, **(grid or {})}, scale) if scale != "full" else {},
        tuned_at=tuned_at,
    )


def per_task(scale: Scale, total: int) -> int:
    """GEM's memory of each task: the paper's sizes are totals."""
    return total // SIZES[scale].tasks
