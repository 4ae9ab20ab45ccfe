"""Pure functions of records: the papers' numbers, their statistics over seeds, and the summary."""

from holdfast.metrics import desiderata, panels, study
from holdfast.metrics.diagnosis import Diagnosis
from holdfast.metrics.examples import Examples, compare_examples, rescore
from holdfast.metrics.fronts import front
from holdfast.metrics.gaps import Gap, gaps
from holdfast.metrics.groups import Asked, Group, arenas, group
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
    summary,
    transfer,
)
from holdfast.metrics.statistics import Interval, interval, paired, standings, summarise, verdict
from holdfast.metrics.tables import frame, runs, scores

__all__ = [
    "METRICS",
    "Asked",
    "Diagnosis",
    "Examples",
    "Gap",
    "Group",
    "Interval",
    "Metric",
    "acc",
    "arenas",
    "bwt",
    "compare_examples",
    "desiderata",
    "forgetting",
    "forgetting_ctrl",
    "frame",
    "front",
    "fwt",
    "gaps",
    "group",
    "interval",
    "lca",
    "learning_curve",
    "paired",
    "panels",
    "rescore",
    "runs",
    "scores",
    "standings",
    "study",
    "summarise",
    "summary",
    "transfer",
    "verdict",
]
