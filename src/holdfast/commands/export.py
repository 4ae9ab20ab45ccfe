"""What `holdfast export` does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import Comparison
from holdfast.commands.experiment import collected
from holdfast.commands.folder import unwritable
from holdfast.errors import BadInput
from holdfast.report import export
from holdfast.sweeps.store import write_bytes
from holdfast.types import Record


@dataclass(frozen=True)
class Wanted:
    """The options of `export`."""

    formats: Sequence[str]
    scores: bool
    out: str | None
    logdir: str | None


def perform_export(folder: Path, wanted: Wanted) -> None:
    """Everything from the options to the file; nothing is written unless all of it can be done."""
    faults = _faults(wanted)
    found = Comparison(())
    with collected(faults):
        found = Comparison.read(folder)
    if faults:
        raise BadInput(*faults)
    if wanted.logdir is not None:
        _write_events(found.records, Path(wanted.logdir))
        return
    content = _content(found, wanted)
    if wanted.out is None:
        print(content.decode(), end="")
    else:
        write_bytes(Path(wanted.out), content)


def _faults(wanted: Wanted) -> list[str]:
    found = []
    if len(wanted.formats) != 1:
        said = f", not {' and '.join(f'--{name}' for name in wanted.formats)}" if wanted.formats else ""
        found.append(f"choose one of --csv, --parquet, --latex and --tensorboard LOGDIR{said}")
    if wanted.formats == ["parquet"] and wanted.out is None:
        found.append("--parquet is not for terminals; name a file with --out")
    if wanted.scores and wanted.formats not in (["csv"], ["parquet"]):
        found.append("--scores goes with --csv or --parquet")
    if wanted.out is not None:
        if wanted.logdir is not None:
            found.append("--out does not go with --tensorboard, which names its own folder")
        if Path(wanted.out).is_dir():
            found.append(f"{wanted.out} is a folder; --out needs the name of a file")
        found += unwritable(Path(wanted.out).parent)
    if wanted.logdir is not None:
        found += unwritable(Path(wanted.logdir))
        if Path(wanted.logdir).is_dir() and any(Path(wanted.logdir).iterdir()):
            found.append(f"{wanted.logdir} is not empty; --tensorboard needs a new folder")
    return found


def _content(found: Comparison, wanted: Wanted) -> bytes:
    rows: export.Rows = "scores" if wanted.scores else "runs"
    if wanted.formats == ["parquet"]:
        return export.parquet(found.records, rows)
    return (found.latex() if wanted.formats == ["latex"] else export.csv(found.records, rows)).encode()


def _write_events(records: Sequence[Record], logdir: Path) -> None:
    """Whole or not at all, as everything that is written."""
    logdir.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=logdir.absolute().parent, prefix=f".{logdir.name}.") as part:
        export.tensorboard(records, Path(part) / "events")
        os.replace(Path(part) / "events", logdir)
