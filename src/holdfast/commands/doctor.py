"""What `holdfast doctor` does."""

from __future__ import annotations

import os
import platform
import re
import tempfile
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import numpy as np
import torch

from holdfast import api, data
from holdfast.commands.terminal import FAILED, print_json, print_table
from holdfast.errors import BadInput, NotKept, RunFailed
from holdfast.report.words import in_seconds
from holdfast.sweeps.cell import code_version, pick_device, touched

NEEDED = ("torch", "numpy", "scipy", "scikit-learn", "safetensors", "rich", "typer", "plotly", "pandas")
WORKSHOP = ("dev", "docs", "browser")  # extras for work on Holdfast itself
MARGIN = 0.1  # of er's ACC over finetune's in the test; it is 0.29


@dataclass(frozen=True)
class Finding:
    """A line of the examination."""

    what: str
    found: str
    wrong: bool = False


def examine(as_json: bool) -> int:
    """Everything, and the exit code."""
    findings = [*_software(), *_machine(), *_data(), _self_test()]
    if as_json:
        print_json([asdict(finding) for finding in findings])
    else:
        print_table(None, [[each.what, each.found, "✕" if each.wrong else ""] for each in findings])
    return FAILED if any(finding.wrong for finding in findings) else 0


def _software() -> list[Finding]:
    lacking = [name for name in NEEDED if not _version(name)]
    needed = ", ".join(f"{name} {_version(name)}" for name in NEEDED if name not in lacking)
    wanted = extras_of(_requirements())
    extras = [f"{name} {_version(name)}" for name in wanted.values() if _version(name)]
    absent = [f"holdfast[{extra}]" for extra, name in wanted.items() if not _version(name)]
    return [
        Finding("holdfast", f"{_version('holdfast') or 'not installed, run from its source'}, code {code_version()}"),
        Finding("Python", f"{platform.python_version()} on {platform.platform()}"),
        Finding("packages", needed + "".join(f"; {name} is missing" for name in lacking), bool(lacking)),
        Finding("extras", (", ".join(extras) or "none") + (f"; not here: {', '.join(absent)}" if absent else "")),
    ]


def extras_of(requirements: Iterable[str]) -> dict[str, str]:
    """What a user can have besides, and the first package behind each, from what the installed package says of itself.

    >>> extras_of(["torch>=2", 'ray[client]; extra == "ray"', "a>=1; extra == 'b'", 'c; extra == "b"'])
    {'ray': 'ray', 'b': 'a'}
    """
    found: dict[str, str] = {}
    for text in requirements:
        package, extra = re.match(r"[\w.-]+", text), re.search(r"""extra\s*==\s*["']([\w.-]+)["']""", text)
        if package and extra and extra[1] not in WORKSHOP:
            found.setdefault(extra[1], package[0])
    return found


def _requirements() -> list[str]:
    try:
        return requires("holdfast") or []
    except PackageNotFoundError:
        return []


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _machine() -> list[Finding]:
    device, wrong = pick_device("auto"), False
    try:
        found = f"{touched(device)}, which is used unless --device says otherwise"
    except BadInput as error:
        found, wrong = f"{error}; use --device cpu", True
    set_by = [
        f"{name}={os.environ[name]}" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS") if name in os.environ
    ]
    threads = f"{os.cpu_count()} cores; {torch.get_num_threads()} per process unless --threads says otherwise"
    return [
        Finding("device", found, wrong),
        Finding("threads", threads + "".join(f", {each}" for each in set_by)),
    ]


def _data() -> list[Finding]:
    where = data.data_folder()
    rows = [row for row in data.status() if row.present]
    named = "HOLDFAST_DATA" if "HOLDFAST_DATA" in os.environ else "the default; HOLDFAST_DATA names another"
    broken = [f"{row.name} cannot be read: {row.note}" for row in rows if row.train is None]
    there = ", ".join(row.name for row in rows if not row.embedded and row.train is not None)
    return [
        Finding("data folder", f"{where} ({named}){'' if where.is_dir() else ', which is not there'}"),
        Finding("data sets", f"{there or 'none'}; embedded: {', '.join(row.name for row in rows if row.embedded)}"),
        *(Finding("data set", each, wrong=True) for each in broken),
    ]


def _self_test() -> Finding:
    """Two methods in processes, kept on disk; then one of them here."""
    begun = time.perf_counter()
    stream = api.stream("split", tasks=3, examples=300)
    try:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            made = api.compare(["finetune", "er"], stream, seeds=1, device="cpu", out=out, jobs=2)
            if made.failures:
                raise RunFailed(made.failures[0].reason)
            kept = {record.method: record for record in api.Comparison.read(out).records}
        again = api.run("er", stream, device="cpu")
    except (RunFailed, NotKept, BadInput) as error:
        return Finding("self-test", str(error), wrong=True)
    finetune, er = kept["finetune"].acc or 0.0, kept["er"].acc or 0.0
    faults = [
        *(["the same run twice gave different results"] if not np.array_equal(again.R, kept["er"].R) else []),
        *([f"er ends with ACC {er:.3f}, finetune with {finetune:.3f}"] if er - finetune < MARGIN else []),
    ]
    took = in_seconds(time.perf_counter() - begun)
    fine = f"fine: er {er:.3f}, finetune {finetune:.3f} (ACC, class scenario), the same twice bit for bit"
    return Finding("self-test", f"{'; '.join(faults) or fine}, in {took}", bool(faults))
