"""Records for other programs: CSV, Parquet, TensorBoard events, pictures of paths."""

from __future__ import annotations

import csv as csv_module
import io
import math
import re
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from holdfast.errors import BadInput
from holdfast.metrics import METRICS, frame, group, runs, scores
from holdfast.metrics.tables import Rows
from holdfast.report import strands
from holdfast.report.paths import graph_of
from holdfast.types import Record


def csv(records: Sequence[Record], rows: Rows = "runs", names: Sequence[str] = ()) -> str:
    """A line per run, or per scoring and task; what is undefined is empty."""
    found = runs(records, names) if rows == "runs" else scores(records, names)
    text = io.StringIO()
    writer = csv_module.DictWriter(text, list(found[0]) if found else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(found)
    return text.getvalue()


def parquet(records: Sequence[Record], rows: Rows = "runs", names: Sequence[str] = ()) -> bytes:
    """The same table as a Parquet file."""
    try:
        import pyarrow  # noqa: F401  pandas would say so in many lines
    except ImportError as error:
        raise BadInput("Parquet needs pyarrow; install it with: pip install 'holdfast[parquet]'") from error
    table = frame(records, rows, names)
    for name in table.columns:
        kinds = {type(value) for value in table[name] if value is not None}
        if table[name].dtype == object and len(kinds) > 1:  # a setting that is a number here and a word there
            table[name] = table[name].map(lambda value: None if value is None or value != value else str(value))
    packed = io.BytesIO()
    table.to_parquet(packed, index=False)
    return packed.getvalue()


def tensorboard(records: Sequence[Record], folder: Path) -> None:
    """Event files, a folder per run: accuracies and losses over updates, and the metrics after the last one."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise BadInput("event files need tensorboard; install it with: pip install 'holdfast[tensorboard]'") from error
    for each in group(records):
        for record in each.records:
            with SummaryWriter(str(folder / _file_word(each.label) / f"seed{record.seed}")) as writer:  # type: ignore[no-untyped-call]
                for tag, value, step in _scalars(record):
                    writer.add_scalar(tag, value, step)  # type: ignore[no-untyped-call]


def svg(records: Sequence[Record], folder: Path) -> None:
    """A picture of the paths of each label, with its first seed, as in the report."""
    drawn = {each.label: graph for each in group(records) if (graph := graph_of(each.first))}
    if not drawn:
        raise BadInput(
            "no run here has paths to draw: they are of methods with a library of modules, mntdp and mntdp_s"
        )
    folder.mkdir()
    for label, graph in drawn.items():
        (folder / f"{_file_word(label)}.svg").write_text(strands.draw(graph, background="#ffffff"), encoding="utf-8")


def _file_word(label: str) -> str:
    return re.sub(r"[^\w=.,+\[\]-]", "_", label)


def _scalars(record: Record) -> list[tuple[str, float, int]]:
    """(tag, value, updates so far)."""
    updates = [round(n) for n in accumulate(record.resources["updates"])]
    before = [0] * len(updates) if record.mixed else [0, *updates[:-1]]
    found = []
    for row in record.curves:
        step = before[row["after_task"]] + row["step"]
        found += [(f"{what}/task{row['task']}", row[what], step) for what in ("accuracy", "loss")]
    for scoring, accuracies in zip(record.scorings, record.R, strict=True):
        mean = float(accuracies.mean())  # NaN where it is not one of all tasks
        found.append(("accuracy/mean", mean, before[scoring["after_task"]] + scoring["step"]))
    found += [(f"metrics/{name}", METRICS[name].of(record), updates[-1]) for name in METRICS]
    return [(tag, value, step) for tag, value, step in found if value is not None and not math.isnan(value)]
