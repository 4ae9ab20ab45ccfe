"""Tables 3 to 10: data sets, streams, networks and what methods keep, counted. Nothing is trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from functools import cache
from typing import Any

import holdfast as hf
from holdfast.papers.base import ABSENT, SCALES, Found, Place, Recipe, published
from holdfast.papers.ctrl import long, rows, transfer

DATA = {  # as Table 3 calls them; Rainbow-MNIST is MNIST, and gets its colours in the stream
    "CIFAR-100": "cifar-100",
    "CIFAR-10": "cifar-10",
    "D. Textures": "dtd",
    "SVHN": "svhn",
    "MNIST": "mnist",
    "Fashion-MNIST": "fashion-mnist",
    "Rainbow-MNIST": "mnist",
}
BOTH, REDUCED, IN_PLACE = "training and validation", "reduced here", "procedural data in their place"
KINDS = {**dict(transfer.TABLES.values()), long.COLUMN: "long"}  # by how the paper calls the streams
TRAIN = "train"
NETS: Mapping[str, tuple[str, Mapping[str, Any], hf.StreamInfo]] = {  # as Tables 7 to 9 call them, and what they see
    "MLP": ("mlp", {"hidden": (1000, 1000)}, hf.StreamInfo("permuted", "task", (784,), 10, (tuple(range(10)),))),
    "ResNet": ("ctrl_resnet", {}, hf.StreamInfo("ctrl", "task", (3, 32, 32), 10, (tuple(range(10)),))),
    "AlexNet": ("alexnet", {}, hf.StreamInfo("ctrl", "task", (3, 32, 32), 5, (tuple(range(5)),))),
}

Counted = Callable[[str, str, str], "float | None"]  # row, column, metric


def recipes() -> list[Recipe]:
    return [
        _recipe(
            "table3",
            tuple(dict.fromkeys(DATA.values())),
            _rows_of_data,
            _why_not_data,
            "The paper's split into training and validation rows is not that of its code, which validates on 500 rows "
            "per class (CIFAR-100 50, DTD 27). Streams here take both out of the same rows: they are judged together.",
            f"`{REDUCED}`: the file at hand has fewer rows than the published set, as `holdfast data status` says.",
        ),
        _recipe(
            "table4",
            transfer.DATA,
            _rows_of_task,
            _why_not_task,
            "Counted in the streams of ctrl/table13 to table17, before augmentation: the last task of S_in validates "
            "on four augmented copies of each row, too.",
        ),
        *(
            _recipe(
                table,
                long.DATA,
                _rows_of_task,
                _why_not_task,
                "Counted in the published instance of the stream, before augmentation: small tasks validate on four "
                "augmented copies of each row, too. Classes are those printed, but their names are not shown here.",
            )
            for table in ("table5", "table6")
        ),
        *(
            _recipe(table, (), _of_module, lambda row, column, metric, printed: "", *more)
            for table, more in {
                "table7": (),
                "table8": (),
                "table9": ("The paper counts the last module as the seventh; there are six.",),
            }.items()
        ),
        _recipe(
            "table10",
            (),
            _size,
            lambda row, column, metric, printed: "" if row in rows.ROWS else rows.NOT_BUILT,
            "N is the size of the backbone, the ResNet of width 64 or, with *, the AlexNet, on S-, where T = 6, ER's "
            "memory has r = 150 rows of 3,074 numbers per task, k = 1 and b = 7. `test`: what a row of the last task "
            "passes through. `train`: that, and what is kept beside the network; what other tasks have for themselves "
            "lies idle, though Mem. of Tables 11 to 17 counts it.",
            "EWC's outputs of other tasks and batch statistics are what is missing to whole numbers. kbN of MNTDP-D is "
            "of paths that are learned side by side, 2kN of MNTDP-S of the past path and a second set of modules; here "
            "is what a task's own path has. Wide HAT (SN), DEN and RCL (N + pT) and Learn to Grow (N + 2pT) "
            "are left out: the paper does not print S and p.",
        ),
    ]


def _recipe(
    table: str, data: tuple[str, ...], count: Counted, why_not: Callable[[str, str, str, float], str], *notes: str
) -> Recipe:
    title, cells = published("ctrl", table)

    def measure(found: Found, row: str, column: str, metric: str, emulated: bool) -> list[float] | None:
        value = None if emulated else count(row, column, metric)
        return None if value is None else [value]

    def missing(scale: str) -> dict[Place, str]:
        why = {(c["row"], c["column"]): why_not(c["row"], c["column"], c["metric"], c["published"]) for c in cells}
        return {place: said for place, said in why.items() if said}

    return Recipe(
        f"ctrl/{table}",
        title,
        {"smoke": (), "laptop": data, "full": data},
        dict.fromkeys(SCALES, 0.1),
        lambda scale: [],
        measure,
        cells,
        seeds=dict.fromkeys(SCALES, 1),
        notes=("Nothing is trained: all numbers are counted in data sets, streams and networks.", *notes),
        missing=missing,
    )


@cache
def _task(row: str) -> hf.Task | None:
    """A data set as one task; None where it is not here."""
    return hf.stream("assorted", data=DATA[row]).tasks[0] if hf.at_hand(DATA[row]) else None


def _rows_of_data(row: str, column: str, metric: str) -> float | None:
    task = _task(row)
    if task is None or column in ("training", "validation"):
        return None
    return float({"classes": len(task.classes), BOTH: len(task.train), "testing": len(task.test)}[column])


def _why_not_data(row: str, column: str, metric: str, printed: float) -> str:
    if _task(row) is None:
        return ABSENT
    counted = _rows_of_data(row, column, metric)
    return f"part of {BOTH}" if counted is None else REDUCED if counted < printed else ""


@cache
def _stream(row: str) -> hf.Stream:
    """One that tables 13 to 18 are run on; where its data sets are not here, the same of procedural ones."""
    apart = {"disjoint": False} if row == long.COLUMN else {}
    return hf.stream("ctrl", kind=KINDS[row], data="paper" if _here(row) else "synth", augment=False, **apart)


def _here(row: str) -> bool:
    return all(map(hf.at_hand, long.DATA if row == long.COLUMN else transfer.DATA))


def _rows_of_task(row: str, column: str, metric: str) -> float:
    task = _stream(row).tasks[_number(column) - 1]
    parts: Mapping[str, Sized] = {"training": task.train, "validation": task.val, "test": task.test}
    return float(len(task.classes if metric == "classes" else parts[metric.partition(" ")[0]]))


def _why_not_task(row: str, column: str, metric: str, printed: float) -> str:
    if not _here(row):
        return IN_PLACE
    fewer = _rows_of_task(row, column, metric) < printed
    return REDUCED if fewer or _stream(row).tasks[_number(column) - 1].note else ""


def _number(column: str) -> int:
    """
    >>> _number("T12: SVHN"), _number("module 3")
    (12, 3)
    """
    return int(column.partition(":")[0].strip("Tmodule "))


def _of_module(row: str, column: str, metric: str) -> float:
    """Layers without weights belong to the module before them."""
    name, settings, info = NETS[row]
    modules = [list(layer.parameters()) for layer in hf.net(name, **settings).build(info).children()]
    mine = [weights for weights in modules if weights][_number(column) - 1]
    return float(sum(w.numel() for w in mine) if metric == "parameters" else len(mine[-1]))


def _size(row: str, column: str, metric: str) -> float | None:
    if row not in rows.ROWS:
        return None
    kept, passed, idle = _sizes(row, row)
    _, backbone, _ = _sizes("Finetune", row)
    return (kept - idle if column.startswith(TRAIN) else passed) / backbone


@cache
def _sizes(row: str, whose: str) -> tuple[int, int, int]:
    """Numbers of a row's method on the network of another row: kept after the last task (Mem.), passed through by a row
    of it, and idle in the networks meanwhile."""
    stream = hf.stream("ctrl", kind="minus", data="synth", rows=0.0025, test=1, head=transfer.head(row))
    cell = hf.Cell(rows.method(row, stream), stream, rows.convolutional(whose, "full"), hf.protocol("epochs"), seed=0)
    return cell.numbers()[-1], *cell.passed()
