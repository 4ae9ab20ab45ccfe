"""The experiment of paper 003: every model on every task of every data set, in the sizes that each scale can afford."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import holdfast as hf
from holdfast.papers import study
from holdfast.papers.base import Entry, Found, Place, Scale

DATA = {
    "CIFAR10": "cifar-10",
    "Devanagari": None,
    "EMNIST": None,
    "FashionMNIST": "fashion-mnist",
    "Fruits 360": None,
    "MADBase": None,
    "MNIST": "mnist",
    "NotMNIST": None,
    "SVHN": "svhn",
}  # the paper's name -> Holdfast's; None: it cannot be read here
ABSENT = tuple(name for name, here in DATA.items() if here is None)
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
    "CONV": {"MNIST": study.NINE, "FashionMNIST": ()},
    "D-CONV": {"MNIST": (), "FashionMNIST": ()},
}  # at laptop
SAID: dict[Scale, str] = {
    "smoke": "In place of all data sets: digits, one task of each type in tables, a hidden layer of 20, 60 steps.",
    "laptop": "MNIST and Fashion-MNIST; 6 topologies (2 or 3 hidden layers of 200, 400 or 800); 1,500 steps per part "
    "(EWC 2,500) as in paper 004, in place of 10 epochs; ε₁ = 0.001 (IMM 0.01 or 0.001). CONV runs on D9-1 of MNIST, "
    "D-CONV on nothing. CIFAR-10 and SVHN are here only reduced and are not run.",
    "full": "The paper's grid, 10 epochs per part, on the four data sets that can be read here.",
}
LISTED = "Not at hand, so listed without a measured number: " + ", ".join(ABSENT) + "."
CHOSEN = (
    "Models and ε₂ are chosen on test rows, as the paper has it, which the card holds against every run. The authors "
    "retrain the final weights of D1, not the best ones, as their Algorithm 1 has it; that is emulated for EWC and "
    "IMM. Pixels of data sets other than MNIST go from −1 to 1, as in their code."
)


def training(model: study.Model, scale: Scale) -> dict[str, Any]:
    if scale == "full":
        return {}
    rates = (0.01, 0.001) if model.method == "imm" else (0.001,)
    return {"lr": rates, "steps": 2500 if model.long else 1500}


def entries(scale: Scale, wanted: Iterable[tuple[str, str, str]], *, shared: bool = False) -> list[Entry]:
    """Runs of (data set, task, model); data sets and tasks that the scale leaves out are left out.

    `shared`: at laptop, MNIST's are the runs of still/table4. The protocols `application` and `realistic` train the
    same trials there and differ in where they stop, so that `best` and `last` can be read from either.
    """
    made = []
    for data, slt, column in wanted:
        if data not in RUN[scale] or slt not in tasks(scale, data, column):
            continue
        name = MODELS.get(column, column)
        place, source = (f"{data}, {slt}", column), DATA[data] or ""
        variants = [(study.MODELS[name], False)]
        if name in study.EMULATED or slt == study.PERMUTED:
            variants.append((study.EMULATED.get(name, study.MODELS[name]), True))
        for model, emulated in variants:
            settings, permute = training(model, scale), not (emulated and slt == study.PERMUTED)
            protocol = "realistic" if shared and permute and (scale, data) == ("laptop", "MNIST") else "application"
            made.append(
                study.entry(
                    place, slt, model, scale, protocol, settings, data=source, emulated=emulated, permute=permute
                )
            )
    return made


def tasks(scale: Scale, data: str, column: str) -> tuple[str, ...]:
    """Of a model at a scale."""
    return FEW[column][data] if scale == "laptop" and column in FEW else study.SLTS


def missing(scale: Scale, places: Iterable[Place], data_in_row: bool = True) -> dict[Place, str]:
    """Why a cell of a table, 'MNIST, D5-5' by model, has no runs."""
    found = {}
    for row, column in places:
        data, slt = (row if data_in_row else column).split(", ")
        model = column if data_in_row else IMM
        if DATA[data] is None:
            found[row, column] = "data set absent"
        elif data not in RUN[scale] or not set(study.TYPES[slt]) & set(tasks(scale, data, model)):
            found[row, column] = f"not run at {scale}"
    return found


def behind(row: str, column: str) -> list[Place]:
    """The runs of a cell: those of every task of its type."""
    data, slt = row.split(", ")
    return [(f"{data}, {each}", column) for each in study.TYPES[slt]]


def records(found: Found, row: str, column: str, emulated: bool) -> list[Sequence[hf.Record]]:
    """Per task of the type, its records; emulated: the authors' runs where there are any."""
    per_task = []
    for place in behind(row, column):
        mine = found.get((*place, True)) if emulated else None
        mine = mine or found.get((*place, False))
        if mine:
            per_task.append(mine)
    return per_task


def lowest(per_task: Sequence[Sequence[hf.Record]], reading: study.Reading) -> list[float] | None:
    """Per seed, the lowest over the tasks: forgetting in any of them is forgetting."""
    values = [[reading(record) for record in each] for each in per_task]
    return [min(seed) for seed in zip(*values, strict=True)] if values else None


def places(cells: Iterable[Mapping[str, Any]]) -> list[Place]:
    return list(dict.fromkeys((cell["row"], cell["column"]) for cell in cells))
