"""What papers 003 and 004 share: their twelve tasks, their models, how a record is read, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import holdfast as hf
from holdfast.papers.base import Entry, Scale

FIVE = tuple(f"D5-5{c}" for c in "abcdefgh")
NINE = tuple(f"D9-1{c}" for c in "abc")
PERMUTED = "DP10-10"
SLTS = (*FIVE, *NINE, PERMUTED)
TYPES = {"D5-5": FIVE, "D9-1": NINE, PERMUTED: (PERMUTED,)}  # 003 takes the minimum over the tasks of a type
SMOKE = ("D5-5a", "D9-1a", PERMUTED)
VAL = 1 / 12  # of MNIST: 55,000 of 60,000 rows are trained on, as in the papers; the others are kept out

Settings = Mapping[str, Any]
Reading = Callable[[hf.Record], float]


@dataclass(frozen=True)
class Model:
    """One model of the papers: a method on a network, and what its training has of its own."""

    method: str
    net: str
    settings: Settings = field(default_factory=dict)
    shape: Settings = field(default_factory=dict)
    training: Settings = field(default_factory=dict)
    long: bool = False  # 2,500 steps in paper 004, the others 1,500

    @property
    def convolves(self) -> bool:
        return self.net == "conv"


ALL = 60_000  # rows behind an importance: all that D1 has, of a larger data set at most as many
DROPS = {"dropout": 0.5, "input_dropout": 0.2}
MODELS = {
    "fc": Model("finetune", "mlp", shape={"init": "truncated"}),
    "D-fc": Model("finetune", "mlp", shape={"init": "truncated", **DROPS}),
    "conv": Model("finetune", "conv", shape={"init": "tenth0"}),
    "D-conv": Model(
        "finetune", "conv", shape={"init": "tenth0", "dropout": 0.5, "map_dropout": 0.5, "input_dropout": 0.5}
    ),
    "LWTA": Model("finetune", "lwta"),
    "EWC": Model("ewc", "mlp", {"strength": "1/lr", "samples": ALL}, {"init": "truncated", **DROPS}, long=True),
    "wtIMM": Model("imm", "mlp", {"merge": "mode", "samples": ALL}, {"init": "tenth", **DROPS}, {"optimiser": "sgd"}),
}
EMULATED = {  # as the authors' code ran them, where that needs another training
    "EWC": Model(
        "ewc",
        "mlp",
        {"strength": "1/lr", "samples": ALL, "labels": "true"},
        {"init": "tenth", **DROPS},
        {"optimiser": "adam", "reset_optimiser": True, "test_batch": 100, "weights_from": "last"},
        long=True,
    ),
    "wtIMM": Model(
        "imm",
        "mlp",
        {"merge": "mode", "samples": ALL, "emulate": "batch sums"},
        {"init": "tenth"},
        {"optimiser": "sgd", "later_lr": (0.01,), "layers": (3,), "weights_from": "last"},
    ),
}


def kind(slt: str) -> str:
    """
    >>> kind("D9-1c"), kind("DP10-10")
    ('D9-1', 'DP10-10')
    """
    return slt if slt == PERMUTED else slt[:4]


def threshold(slt: str) -> float:
    """Below it, a model has forgotten (003, Table 3)."""
    return 0.9 if kind(slt) == "D9-1" else 0.5


def entry(
    place: tuple[str, str],
    slt: str,
    model: Model,
    scale: Scale,
    protocol: str,
    training: Settings,
    *,
    data: str = "mnist",
    emulated: bool = False,
    permute: bool = True,
    setting: str = "",
) -> Entry:
    """One model on one task of a data set; `training`: the protocol's settings beside the model's own."""
    shown: dict[str, Any] = {"data": data, "parts": slt, "val": VAL, "permute": permute}
    if data != "mnist":  # as in the authors' code
        shown |= {"val": 0.0, "scale": "centred"}
    small: dict[str, Any] = {}
    shape = dict(model.shape)
    if scale == "smoke":
        shown |= {"data": "digits", "val": 0.2} if data == "mnist" else {}
        small = {"layers": (1,), "sizes": (20,), "lr": (0.01,), "later_lr": (0.01, 0.001), "steps": 60, "batch": 20}
        small |= {"score_every": 10, **({"alphas": 10} if protocol == "application" else {})}
        small |= {"lr": (0.3,), "later_lr": (0.3, 0.1)} if model.training.get("optimiser") == "sgd" else {}
        shape |= {"filters": (4,), "hidden": 20} if model.convolves else {}
    fixed = ("layers", "sizes", "mix_sizes") if model.convolves else ()  # its shape is not chosen
    settings = {"choose_on": "test", **training, **model.training, **small}
    return Entry(
        row=place[0],
        column=place[1],
        method=hf.method(model.method, **model.settings),
        stream=hf.stream("slt", **shown),
        net=hf.net(model.net, **shape),
        protocol=hf.protocol(protocol, **{k: v for k, v in settings.items() if k not in fixed}),
        emulated=emulated,
        setting=setting,
    )


def at_stop(record: hf.Record) -> float:
    """The accuracy on D1 ∪ D2 where the chosen retraining was stopped."""
    row = hf.panels.retraining(record)
    return dict(hf.study.union(record, row["trial"]))[row["stop"]]
