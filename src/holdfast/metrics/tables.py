"""Records as tidy tables: plain rows here, a pandas frame when asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from holdfast.errors import BadInput, unknown
from holdfast.metrics.groups import group
from holdfast.metrics.scores import METRICS, summary
from holdfast.types import Record

if TYPE_CHECKING:
    import pandas

Rows = Literal["runs", "scores"]
PLACES = ("stream", "net", "protocol")
WHO = ("label", "method", "seed", "scenario", "task_label_given", *PLACES, "data", "tasks")


def frame(records: Sequence[Record], rows: Rows = "runs", names: Sequence[str] = ()) -> pandas.DataFrame:
    """`runs` or `scores` as a DataFrame; `names`: labels of the records' own."""
    import pandas  # takes half a second, and few commands need it

    makers = {"runs": runs, "scores": scores}
    if rows not in makers:
        raise BadInput(unknown("table", str(rows), makers))
    return pandas.DataFrame(makers[rows](records, names))


def runs(records: Sequence[Record], names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per run: who it was, every setting, every metric.

    A method's settings have their own names where these are free (strength), and method.strength where not; the
    others are dotted (protocol.lr). Settings that a run does not have are None.
    """
    found = [_who(label, record) | summary(record) | _settings(record) for label, record in _labelled(records, names)]
    columns = sorted(dict.fromkeys(name for row in found for name in row), key=_kind)
    return [{name: row.get(name) for name in columns} for row in found]


def scores(records: Sequence[Record], names: Sequence[str] = ()) -> list[dict[str, Any]]:
    """One row per run, scoring and task: an entry of R, None where it was not scored, and the test rows behind it."""
    return [
        {
            **_who(label, record),
            "after_task": scoring["after_task"],
            "step": scoring["step"],
            "task": t,
            "task_name": task["name"],
            "n_test": task["n_test"],
            "accuracy": None if np.isnan(record.R[i, t]) else float(record.R[i, t]),
        }
        for label, record in _labelled(records, names)
        for i, scoring in enumerate(record.scorings)
        for t, task in enumerate(record.tasks)
    ]


def _labelled(records: Sequence[Record], names: Sequence[str]) -> list[tuple[str, Record]]:
    return [(each.label, record) for each in group(records, names) for record in each.records]


def _who(label: str, record: Record) -> dict[str, Any]:
    names = [getattr(record, place).get("name") for place in PLACES]
    values = (label, record.method, record.seed, record.scenario, record.scenario == "task", *names)
    return dict(zip(WHO, (*values, record.stream.get("data"), len(record.tasks)), strict=True))


def _settings(record: Record) -> dict[str, Any]:
    found = {
        f"method.{name}" if name in (*WHO, *METRICS) else name: _plain(setting["value"])
        for name, setting in record.settings.items()
    }
    for place in PLACES:
        mapping: Mapping[str, Any] = getattr(record, place)
        found |= {f"{place}.{name}": _plain(value) for name, value in mapping.items() if name not in ("name", "seed")}
    return found


def _kind(name: str) -> int:
    """Who first, then the metrics, the methods' settings, and the rest."""
    return 0 if name in WHO else 1 if name in METRICS else 3 if name.partition(".")[0] in PLACES else 2


def _plain(value: Any) -> Any:
    """Lists as one word, so that a column can be grouped by: (100, 100) is '100,100'."""
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else value
