"""Which formula is which: metrics of the same name, as each library and paper computes them from the same R.

A file is a source. docs/formulas.md has all of them on one matrix, and which were compared with the source's code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.errors import BadInput, unknown
from holdfast.metrics.formulas import avalanche, continuum, gem, mammoth, papers, pilot, pycil
from holdfast.metrics.matrix import Accuracies

Formula = Callable[[Accuracies], float | None]

OURS = "papers"  # what summary.json, tables and reports have
SOURCES: dict[str, Mapping[str, Formula]] = {
    OURS: papers.FORMULAS,
    "gem": gem.FORMULAS,
    "avalanche": avalanche.FORMULAS,
    "mammoth": mammoth.FORMULAS,
    "pycil": pycil.FORMULAS,
    "pilot": pilot.FORMULAS,
    "continuum": continuum.FORMULAS,
}
NAMES = {  # of the metrics, in the order of tables
    "acc": "ACC",
    "acc_all": "ACC, all rows",
    "aia": "AIA",
    "bwt": "BWT",
    "fwt": "FWT",
    "forgetting": "forgetting",
    "forgetting_ctrl": "forgetting (CTrL)",
}


def formulas(source: str) -> Mapping[str, Formula]:
    """The metrics of a source by name: functions of a record, or of a `Matrix` of your own.

    >>> from holdfast.metrics import Matrix
    >>> found = Matrix.of([[0.75, 0.25], [0.25, 0.75]], baseline=[0.125, 0.125])
    >>> [formulas(source)["bwt"](found) for source in ("papers", "gem")]
    [-0.5, -0.25]
    """
    if source not in SOURCES:
        raise BadInput(unknown("source", source, SOURCES))
    return SOURCES[source]
