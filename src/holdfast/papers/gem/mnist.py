"""The methods of paper 002 on MNIST rotations and permutations, with the authors' released settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Scale, smaller

TASKS = 20
THIN = (100 // TASKS, 100 // TASKS)  # `independent` has T times fewer hidden units
STRENGTHS = (1.0, 3.0, 10.0, 30.0)  # of the correct EWC, for which nothing was released

SAID: dict[Scale, str] = {
    "smoke": "In place of MNIST: 3 tasks of 50 digits.",
    "laptop": "As the paper: 20 tasks of 1,000 examples.",
    "full": "As the paper: 20 tasks of 1,000 examples.",
}

Settings = Mapping[str, Any]
Place = tuple[str, str]  # row and column of a table


@dataclass(frozen=True)
class Row:
    """One method of the paper with its released settings, the learning rate per stream."""

    method: str
    lr: Mapping[str, float]
    settings: Settings = field(default_factory=dict)
    emulated: Mapping[str, Settings] = field(default_factory=dict)  # per stream: as the authors' code really ran
    hidden: tuple[int, ...] = (100, 100)
    scenario: str = "domain"
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # of what was not released


ROWS = {
    "single, shuffled data": Row("joint", {"rotated": 0.1, "permuted": 0.1}, grid={"protocol.lr": (0.03, 0.1, 0.3)}),
    "single": Row("finetune", {"rotated": 0.003, "permuted": 0.03}),
    "independent": Row(
        "independent", {"rotated": 0.1, "permuted": 0.03}, {"initial": "clone"}, hidden=THIN, scenario="task"
    ),
    "multimodal": Row("multimodal", {"rotated": 0.1, "permuted": 0.1}, scenario="task"),
    "EWC": Row(
        "ewc",
        {"rotated": 0.01, "permuted": 0.1},
        {"samples": 200},
        {  # λ is 1000 and 3 without the ½
            "rotated": {"strength": 2000.0, "samples": 1000, "emulate": "batch mean"},
            "permuted": {"strength": 6.0, "samples": 10, "emulate": "batch mean"},
        },
        grid={"strength": STRENGTHS},
    ),
    "GEM": Row("gem", {"rotated": 0.1, "permuted": 0.1}, {"memories": 256, "margin": 0.5}),
}


def entries(place: Place, method: str, stream: str, scale: Scale, epochs: int = 1) -> list[Entry]:
    """The correct run of a method and, where the authors' procedure differs, the emulated one."""
    made = ROWS[method]
    variants = [(made.settings, made.grid, False)]
    if stream in made.emulated:
        variants.append((made.emulated[stream], {}, True))
    return [
        entry(place, method, stream, scale, settings, epochs=epochs, grid=grid, emulated=emulated)
        for settings, grid, emulated in variants
    ]


def entry(
    place: Place,
    method: str,
    stream: str,
    scale: Scale,
    settings: Settings,
    *,
    epochs: int = 1,
    grid: Mapping[str, Sequence[Any]] | None = None,
    emulated: bool = False,
    **size: Any,
) -> Entry:
    """One method on a stream of 20 tasks of 1,000 examples; rows for validation are none of them, in any task."""
    made = ROWS[method]
    usual = {"data": "mnist", "tasks": TASKS, "examples": 1000, "val": 0.05}
    if scale == "smoke":
        usual = {"data": "digits", "tasks": 3, "examples": 50, "test_examples": 100, "val": 0.1}
    protocol = hf.protocol("epochs", epochs=epochs, batch=10, lr=made.lr[stream])
    if epochs == 1:
        protocol = hf.protocol("online", batch=10, lr=made.lr[stream])
    return Entry(
        row=place[0],
        column=place[1],
        method=hf.method(made.method, **settings),
        stream=hf.stream(stream, scenario=made.scenario, **{**usual, **size}),
        net=hf.net("mlp", hidden=made.hidden, init="torch" if made.method == "multimodal" else "xavier"),
        protocol=protocol,
        emulated=emulated,
        grid=smaller(grid or {}, scale),
    )
