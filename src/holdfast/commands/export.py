"""What `holdfast export` does."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.api import Comparison
from holdfast.commands.experiment import collected
from holdfast.disk import unwritable
from holdfast.errors import BadInput
from holdfast.report import Reproduction, export
from holdfast.sweeps import model_folder
from holdfast.sweeps.store import write_bytes


@dataclass(frozen=True)
class Wanted:
    """The options of `export`."""

    formats: Sequence[str]
    scores: bool
    out: str | None
    into: str | None  # the folder of those formats that are many files


def perform_export(folder: Path, wanted: Wanted) -> None:
    """Everything from the options to the file; nothing is written unless all of it can be done."""
    faults = _faults(wanted)
    if wanted.formats == ["onnx"]:
        _write_network(folder, wanted.out, faults)
        return
    found = Comparison(())
    with collected(faults):
        found = Comparison.read(folder)
    if faults:
        raise BadInput(*faults)
    if wanted.into is not None:
        write = export.tensorboard if wanted.formats == ["tensorboard"] else export.svg
        _write_folder(lambda part: write(found.records, part), Path(wanted.into))
        return
    content = _content(found, wanted, Reproduction.of(folder))
    if wanted.out is None:
        print(content.decode(), end="")
    else:
        write_bytes(Path(wanted.out), content)


def _write_network(folder: Path, out: str | None, faults: list[str]) -> None:
    """That of a model."""
    with collected(faults):
        model = model_folder.load(folder)
        if not faults:
            model.export(out or "")
    if faults:
        raise BadInput(*faults)


def _faults(wanted: Wanted) -> list[str]:
    found = []
    if len(wanted.formats) != 1:
        said = f", not {' and '.join(f'--{name}' for name in wanted.formats)}" if wanted.formats else ""
        found.append(f"choose one of --csv, --parquet, --latex, --tensorboard LOGDIR, --svg FOLDER and --onnx{said}")
    if wanted.formats in (["parquet"], ["onnx"]) and wanted.out is None:
        found.append(f"--{wanted.formats[0]} is not for terminals; name a file with --out")
    if wanted.scores and wanted.formats not in (["csv"], ["parquet"]):
        found.append("--scores goes with --csv or --parquet")
    if wanted.out is not None:
        if wanted.into is not None:
            found.append(f"--out does not go with --{wanted.formats[-1]}, which names its own folder")
        if Path(wanted.out).is_dir():
            found.append(f"{wanted.out} is a folder; --out needs the name of a file")
        found += unwritable(Path(wanted.out).parent)
    if wanted.into is not None:
        found += unwritable(Path(wanted.into))
        if Path(wanted.into).is_dir() and any(Path(wanted.into).iterdir()):
            found.append(f"{wanted.into} is not empty; --{wanted.formats[-1]} needs a new folder")
    return found


def _content(found: Comparison, wanted: Wanted, reproduction: Reproduction | None) -> bytes:
    rows: export.Rows = "scores" if wanted.scores else "runs"
    if wanted.formats == ["parquet"]:
        return export.parquet(found.records, rows, found.titles)
    return (
        found.latex(reproduction) if wanted.formats == ["latex"] else export.csv(found.records, rows, found.titles)
    ).encode()


def _write_folder(write: Callable[[Path], None], folder: Path) -> None:
    """Whole or not at all, as everything that is written."""
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.absolute().parent, prefix=f".{folder.name}.") as part:
        write(Path(part) / "whole")
        os.replace(Path(part) / "whole", folder)
