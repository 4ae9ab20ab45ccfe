"""Tables 3, 4 and 10: data sets, streams and what methods keep, counted in the real objects. Nothing is trained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import holdfast as hf
from holdfast.papers.base import ABSENT, SCALES, Found, Place, Recipe, published
from holdfast.papers.ctrl import rows, transfer

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
KINDS = dict(transfer.TABLES.values())  # by how the paper calls the streams
TRAIN = "train"

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
    """One that tables 13 to 17 are run on; where its data sets are not here, the same of procedural ones."""
    data = "paper" if all(map(hf.at_hand, transfer.DATA)) else "synth"
    return hf.stream("ctrl", kind=KINDS[row], data=data, augment=False)


def _rows_of_task(row: str, column: str, metric: str) -> float:
    task = _stream(row).tasks[int(column[1]) - 1]
    counts = {"training rows": len(task.train), "validation rows": len(task.val), "classes": len(task.classes)}
    return float(counts[metric])


def _why_not_task(row: str, column: str, metric: str, printed: float) -> str:
    if not all(map(hf.at_hand, transfer.DATA)):
        return IN_PLACE
    return REDUCED if _stream(row).tasks[int(column[1]) - 1].note else ""


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
