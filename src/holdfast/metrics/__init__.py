"""Pure functions of records: the papers' numbers, their statistics over seeds, and the summary."""

from holdfast.metrics import desiderata, fronts, growth, library, panels, study, uncertainty
from holdfast.metrics.diagnosis import Diagnosis
from holdfast.metrics.examples import Examples, compare_examples, rescore
from holdfast.metrics.formulas import SOURCES, Formula, formulas
from holdfast.metrics.fronts import front
from holdfast.metrics.gaps import Gap, gaps
from holdfast.metrics.groups import Asked, Group, arenas, group
from holdfast.metrics.matrix import Accuracies, Matrix
from holdfast.metrics.scores import (
    METRICS,
    Metric,
    acc,
    bwt,
    forgetting,
    forgetting_ctrl,
    fwt,
    lca,
    learning_curve,
    mem,
    summary,
    transfer,
)
from holdfast.metrics.statistics import (
    Interval,
    interval,
    over_seeds,
    paired,
    standings,
    summarise,
    unfinished,
    verdict,
    who,
)
from holdfast.metrics.tables import frame, runs, scores
from holdfast.metrics.transfers import Transfer, transfers
from holdfast.metrics.uncertainty import (
    Rates,
    area,
    calibration,
    ece,
    information,
    mean_rates,
    rates,
    shares,
    unseen_auc,
)

__all__ = [
    "METRICS",
    "SOURCES",
    "Accuracies",
    "Asked",
    "Diagnosis",
    "Examples",
    "Formula",
    "Gap",
    "Group",
    "Interval",
    "Matrix",
    "Metric",
    "Rates",
    "Transfer",
    "acc",
    "area",
    "arenas",
    "bwt",
    "calibration",
    "compare_examples",
    "desiderata",
    "ece",
    "forgetting",
    "forgetting_ctrl",
    "formulas",
    "frame",
    "front",
    "fronts",
    "fwt",
    "gaps",
    "group",
    "growth",
    "information",
    "interval",
    "lca",
    "learning_curve",
    "library",
    "mean_rates",
    "mem",
    "over_seeds",
    "paired",
    "panels",
    "rates",
    "rescore",
    "runs",
    "scores",
    "shares",
    "standings",
    "study",
    "summarise",
    "summary",
    "transfer",
    "transfers",
    "uncertainty",
    "unfinished",
    "unseen_auc",
    "verdict",
    "who",
]
