"""The experiment of paper 003: every model on every task of every data set, in the sizes that each scale can afford."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import holdfast as hf
from holdfast.papers import common
from holdfast.papers.base import ABSENT, Entry, Found, Place, Scale

DATA = {
    "CIFAR10": "cifar-10",
    "Devanagari": "devanagari",
    "EMNIST": "emnist",
    "FashionMNIST": "fashion-mnist",
    "Fruits 360": "fruits-360",
    "MADBase": "madbase",
    "MNIST": "mnist",
    "NotMNIST": "notmnist",
    "SVHN": "svhn",
}  # the paper's name -> Holdfast's
BY_HAND = ("Devanagari", "EMNIST", "Fruits 360", "MADBase", "NotMNIST")  # run at every scale wherever they lie
MODELS = {"FC": "fc", "D-FC": "D-fc", "CONV": "conv", "D-CONV": "D-conv", "LWTA": "LWTA", "EWC": "EWC"}
IMM = "wtIMM"
RUN: dict[Scale, tuple[str, ...]] = {
    "smoke": ("MNIST",),
    "laptop": ("MNIST", "FashionMNIST"),
    "full": ("CIFAR10", "FashionMNIST", "MNIST", "SVHN"),
}
NEEDS: dict[Scale, tuple[str, ...]] = {
    "smoke": ("digits",),
    "laptop": ("mnist", "fashion-mnist"),
    "full": ("cifar-10", "fashion-mnist", "mnist", "svhn"),
}
FEW: dict[str, dict[str, tuple[str, ...]]] = {
    "CONV": {"MNIST": common.NINE, "FashionMNIST": ()},
    "D-CONV": {"MNIST": (), "FashionMNIST": ()},
}  # at laptop
SAID: dict[Scale, str] = {
    "smoke": "In place of MNIST: digits, one task of each type in tables, a hidden layer of 20, 60 steps. Data sets "
    "got by hand stand for themselves.",
    "laptop": "MNIST, Fashion-MNIST and those got by hand; 6 topologies (2 or 3 hidden layers of 200, 400 or 800); "
    "1,500 steps per part (EWC 2,500) as in paper 004, in place of 10 epochs; ε₁ = 0.001 (IMM 0.01 or 0.001). CONV "
    "runs on D9-1 of MNIST, D-CONV on nothing. CIFAR-10 and SVHN are here only reduced and are not run.",
    "full": "The paper's grid, 10 epochs per part, on all data sets that are here.",
}
LISTED = (
    f"{', '.join(BY_HAND)} are got by hand (`holdfast data fetch NAME` says where) and run if they are here. Data sets "
    "that are not are listed last, without a measured number."
)
CHOSEN = (
    "Models and ε₂ are chosen on test rows, as the paper has it, which the card holds against every run. The authors "
    "retrain the final weights of D1, not the best ones, as their Algorithm 1 has it; that is emulated for EWC and "
    "IMM. Pixels of data sets other than MNIST go from −1 to 1, as in their code."
)


def training(model: common.Model, scale: Scale) -> dict[str, Any]:
    if scale == "full":
        return {}
    rates = (0.01, 0.001) if model.method == "imm" else (0.001,)
    return {"lr": rates, "steps": 2500 if model.long else 1500}


def entries(scale: Scale, wanted: Iterable[tuple[str, str, str]], *, shared: bool = False) -> list[Entry]:
    """Runs of (data set, task, model); data sets and tasks that the scale leaves out are left out.

    `shared`: at laptop, MNIST's are the runs of still/table4. The protocols `application` and `realistic` train the
    same trials there and differ in where they stop, so that `best` and `last` can be read from either.
    """
    made, here = [], runs(scale)
    for data, slt, column in wanted:
        if data not in here or slt not in tasks(scale, data, column):
            continue
        name = MODELS.get(column, column)
        place, source = (f"{data}, {slt}", column), DATA[data]
        variants = [(common.MODELS[name], False)]
        if name in common.EMULATED or slt == common.PERMUTED:
            variants.append((common.EMULATED.get(name, common.MODELS[name]), True))
        for model, emulated in variants:
            settings, permute = training(model, scale), not (emulated and slt == common.PERMUTED)
            protocol = "realistic" if shared and permute and (scale, data) == ("laptop", "MNIST") else "application"
            made.append(
                common.entry(
                    place, slt, model, scale, protocol, settings, data=source, emulated=emulated, permute=permute
                )
            )
    return made


def runs(scale: Scale) -> tuple[str, ...]:
    """The data sets that are run: of those of the scale and those got by hand the ones that are here.

    Where none of them is, those of the scale; to read them then says how to get them.
    """
    wanted = [data for data in DATA if data in RUN[scale] or data in BY_HAND]
    return tuple(data for data in wanted if _stands_in(scale, data) or hf.at_hand(DATA[data])) or RUN[scale]


def _stands_in(scale: Scale, data: str) -> bool:
    """Whether digits are in its place."""
    return scale == "smoke" and data == "MNIST"


def tasks(scale: Scale, data: str, column: str) -> tuple[str, ...]:
    """Of a model at a scale."""
    return FEW[column].get(data, ()) if scale == "laptop" and column in FEW else common.SLTS


def why_not(scale: Scale, here: Sequence[str], data: str, slts: Iterable[str], column: str) -> str:
    """Why a model has no runs on these tasks of a data set; empty where it has. `here`: the data sets that are run."""
    if data in here:
        return "" if set(slts) & set(tasks(scale, data, column)) else f"not run at {scale}"
    return f"not run at {scale}" if hf.at_hand(DATA[data]) else ABSENT


def missing(scale: Scale, places: Iterable[Place], data_in_row: bool = True) -> dict[Place, str]:
    """Why a cell of a table, 'MNIST, D5-5' by model, has no runs."""
    found, here = {}, runs(scale)
    for row, column in places:
        data, slt = (row if data_in_row else column).split(", ")
        model = column if data_in_row else IMM
        if why := why_not(scale, here, data, common.TYPES[slt], model):
            found[row, column] = why
    return found


def of_row(row: str, column: str) -> str:
    """The data set of a cell."""
    return row.split(", ")[0]


def behind(row: str, column: str) -> list[Place]:
    """The runs of a cell: those of every task of its type."""
    data, slt = row.split(", ")
    return [(f"{data}, {each}", column) for each in common.TYPES[slt]]


def records(found: Found, row: str, column: str, emulated: bool) -> list[Sequence[hf.Record]]:
    """Per task of the type, its records; emulated: the authors' runs where there are any."""
    per_task = []
    for place in behind(row, column):
        mine = found.get((*place, True)) if emulated else None
        mine = mine or found.get((*place, False))
        if mine:
            per_task.append(mine)
    return per_task


def lowest(per_task: Sequence[Sequence[hf.Record]], reading: common.Reading) -> list[float] | None:
    """Per seed, the lowest over the tasks: forgetting in any of them is forgetting."""
    values = [[reading(record) for record in each] for each in per_task]
    return [min(seed) for seed in zip(*values, strict=True)] if values else None


def places(cells: Iterable[Mapping[str, Any]]) -> list[Place]:
    return list(dict.fromkeys((cell["row"], cell["column"]) for cell in cells))
