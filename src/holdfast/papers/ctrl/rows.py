"""What the tables of paper 000 share: their rows as methods, how they are trained, and how cells are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import holdfast as hf
from holdfast.papers.base import Entry, Found, Place, Scale

FIRST, LAST, CHANGE, TRANSFER = "first task", "last task", "last − first", "T(S)"
MEM, FLOPS = "Mem. (MB)", "FLOPs (T)"
ALONE = "last task alone"
LAMBDAS = (1.0, 5.0, 10.0, 50.0, 100.0, 500.0, 1e3, 5e3, 1e4)  # appendix C
FEW_LAMBDAS = (1.0, 50.0, 1e3)  # below the full scale
PER_CLASS = 15  # rows of each class of each task in ER's memory
NOT_BUILT = "not built yet"
CHEAP = "MNTDP-D (our cheap search)"  # no row of the paper's


@dataclass(frozen=True)
class Row:
    """A row of the tables: its method, and what is its own."""

    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    remembers: bool = False  # its memory has 15 rows per class
    heads: bool = False  # each task has outputs of its own, where the network convolves
    tuned: bool = False  # λ is chosen over the stream
    learns_on: bool = False  # weights that tasks share are trained after the first: there the authors' norms differ
    star: bool = False  # the AlexNet in place of the ResNet
    wide: bool = False  # as many times wider as Mem. says
    streams: Literal["all", "permuted", "images", "transfer"] = "all"  # Table 11, all others, or Tables 13 to 17


FISHER: Mapping[str, Any] = {"samples": 1024, "labels": "predicted"}
ROWS: Mapping[str, Row] = {
    "Independent": Row("independent"),
    "Finetune": Row("finetune", learns_on=True),
    "New-head freeze": Row("new_head"),
    "New-head finetune": Row("new_head", {"freeze": False}, learns_on=True),
    "New-leg freeze": Row("new_leg"),
    "New-leg finetune": Row("new_leg", {"freeze": False}, learns_on=True),
    "EWC": Row("ewc", FISHER, heads=True, tuned=True, learns_on=True),
    "Online EWC": Row("online_ewc", {**FISHER, "decay": 0.9}, heads=True, tuned=True, learns_on=True),
    "ER (reservoir)": Row("er", {"rule": "reservoir", "past_only": True}, remembers=True, learns_on=True),
    "ER": Row("er", {"rule": "task class ring", "past_only": True}, remembers=True, learns_on=True),
    "PNN": Row("pnn"),
    "MNTDP-S": Row("mntdp_s"),
    "MNTDP-S (k=all)": Row("mntdp_s", {"nearest_paths": None}),
    "MNTDP-D": Row("mntdp"),
    CHEAP: Row("mntdp", {"search": "halving"}, streams="transfer"),
    "MNTDP-D *": Row("mntdp", star=True, streams="images"),
    "HAT": Row("hat", streams="permuted"),
    "HAT (wide)": Row("hat", wide=True, streams="permuted"),
    "HAT *": Row("hat", star=True, streams="images"),
    "HAT (wide) *": Row("hat", star=True, wide=True, streams="images"),
    "DEN": Row("den", streams="permuted"),
    "RCL": Row("rcl", streams="permuted"),
}
RESNET: Mapping[Scale, Mapping[str, Any]] = {"smoke": {"width": 4}, "laptop": {"width": 16}, "full": {}}
ALEXNET: Mapping[Scale, Mapping[str, Any]] = {
    "smoke": {"width": 4, "hidden": 16},
    "laptop": {"width": 24, "hidden": 512},
    "full": {},
}
TRIALS: Mapping[Scale, int] = {"smoke": 2, "laptop": 3, "full": 50}  # of RCL's controller, per task
NOTES = (
    "T(S) is the accuracy on the last task less that of the same method, network and seed which learned the last task "
    f"alone: those runs stand in the column '{ALONE}'.",
    "Mem. is counted as the authors do, 4 bytes per number, for the network that was run: at the paper's width it has "
    "the printed digits (tests/methods: test_branches.py, test_pnn.py, test_hat.py), but for EWC and ER on Permuted "
    "MNIST, which print 20 copies "
    "of the network without the network itself, and 25 rows per class. FLOPs are multiplications and additions of all "
    "training, of trials too; how the paper counts is not known. Neither is judged.",
    "EWC's and online EWC's λ is chosen over the whole stream on validation rows (†), which no other row may: below "
    "the full scale from three of the paper's nine values.",
    "Rows with * have the AlexNet. HAT (wide) is as many times wider as its Mem. tells: 4.0 on Permuted MNIST, 3.2 on "
    "Split CIFAR-100 and S_long, 2.5 elsewhere. HAT's λ and s_max are Serrà et al.'s, not chosen over the stream.",
    "In the authors' code, batch normalisation that tasks share has the statistics of the first task in all later ones "
    "(authors' way). The paper does not say so, and rows without it are the ones compared.",
)


def method(row: str, stream: hf.Stream, **own: Any) -> hf.Learner:
    """With what a stream has of its own."""
    found = ROWS[row]
    memory = PER_CLASS * sum(len(classes) for classes in stream.info.task_classes)
    return hf.method(found.method, **{**found.settings, **({"memories": memory} if found.remembers else {}), **own})


def rows_on(table: Literal["permuted", "images", "transfer"]) -> list[str]:
    """The rows of Table 11, of Table 12, or of Tables 13 to 17."""
    mine = {"all", table, *(["images"] if table == "transfer" else [])}
    return [name for name, row in ROWS.items() if row.streams in mine]


def convolutional(row: str, scale: Scale, **norms: Any) -> Any:
    """The paper's ResNet, or its AlexNet; narrower below the full scale."""
    if ROWS[row].star:
        return hf.net("alexnet", **ALEXNET[scale])
    return hf.net("ctrl_resnet", **RESNET[scale], **norms)


def setting(row: str, scale: Scale) -> str:
    """What a convolutional network has in place of the paper's."""
    narrow = (ALEXNET if ROWS[row].star else RESNET)[scale]
    return f"width {narrow['width']}" if narrow else ""


def grid(row: str, scale: Scale) -> dict[str, Sequence[float]]:
    if not ROWS[row].tuned:
        return {}
    return {"strength": LAMBDAS if scale == "full" else FEW_LAMBDAS if scale == "laptop" else FEW_LAMBDAS[1:]}


def alone(entry: Entry) -> Entry:
    """The same on the last task alone."""
    return Entry(
        entry.row,
        f"{entry.column}, {ALONE}",
        entry.method,
        entry.stream.only(-1),
        entry.net,
        entry.protocol,
        emulated=entry.emulated,
    )


def measured(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
    records = found.get((row, column, emulated))
    if not records:
        return None
    if metric == TRANSFER:
        last = found.get((row, f"{column}, {ALONE}", False))
        return transfers(records, last) if last else None
    values = [_number(record, metric) for record in records]
    return [value for value in values if value is not None] or None


def transfers(records: Sequence[hf.Record], alone: Sequence[hf.Record]) -> list[float] | None:
    """T(S) per seed that both have finished."""
    mates = {record.seed: record for record in alone}
    pairs = [(record, mates[record.seed]) for record in records if record.seed in mates]
    values = [hf.transfer(record, mate) for record, mate in pairs]
    return [value for value in values if value is not None] or None


def _number(record: hf.Record, metric: str) -> float | None:
    R = record.final
    if metric in (FIRST, LAST, CHANGE):
        first, last = float(R[0, 0]), float(R[-1, -1])
        return {FIRST: first, LAST: last, CHANGE: last - first}[metric]
    if metric == MEM:
        return 4 * record.resources["numbers"][-1] / 1e6
    value = record.metrics.get("flops" if metric == FLOPS else metric)
    return value if value is None or metric != FLOPS else value / 1e12


def missing(cells: Sequence[Mapping[str, Any]]) -> dict[Place, str]:
    """Rows that have no method yet."""
    return {(cell["row"], cell["column"]): NOT_BUILT for cell in cells if cell["row"] not in ROWS}
