"""What is measured, told to other programs while it is measured: TensorBoard, Weights & Biases, MLflow.

A place is asked for as `NAME` or `NAME:FOLDER`. All of them write files there and call nobody.
"""

from __future__ import annotations

import math
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, final

from holdfast.disk import unwritable
from holdfast.errors import BadInput, unknown
from holdfast.metrics import METRICS
from holdfast.metrics.groups import canonical
from holdfast.sweeps.board import titles
from holdfast.sweeps.cell import Cell
from holdfast.sweeps.events import Event, Watcher
from holdfast.types import Record

PROJECT = "holdfast"
USUAL = "runs"  # the folder, where none is named
EXTRAS = {"tensorboard": "tensorboard", "wandb": "wandb", "mlflow": "mlflow"}  # name -> the package behind it


class Tracker(ABC):
    """A run as another program keeps it, from its first scoring on."""

    @abstractmethod
    def __init__(self, folder: Path, title: str, settings: Mapping[str, str]) -> None: ...

    @abstractmethod
    def log(self, values: Mapping[str, float], updates: int) -> None:
        """What is known after so many updates."""

    @abstractmethod
    def close(self, done: bool) -> None:
        """The run is over."""


@final
class TensorBoard(Tracker):
    """Event files, a folder per run."""

    def __init__(self, folder: Path, title: str, settings: Mapping[str, str]) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self.writer: Any = SummaryWriter(str(folder / re.sub(r"[^\w=.,+\[\]-]", "_", title)))  # type: ignore[no-untyped-call]
        self.writer.add_text("settings", "\n".join(f"    {name}: {value}" for name, value in settings.items()))

    def log(self, values: Mapping[str, float], updates: int) -> None:
        for name, value in values.items():
            self.writer.add_scalar(name, value, updates)
        self.writer.flush()

    def close(self, done: bool) -> None:
        self.writer.close()


@final
class WandB(Tracker):
    """Offline: `wandb sync FOLDER/wandb/offline-run-...` sends it later. WANDB_MODE=online sends it at once."""

    def __init__(self, folder: Path, title: str, settings: Mapping[str, str]) -> None:
        import wandb

        folder.mkdir(parents=True, exist_ok=True)
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        quiet = wandb.Settings(silent=True)
        self.run: Any = wandb.init(
            project=PROJECT, name=title, config=dict(settings), dir=str(folder), mode=mode, reinit="create_new",
            settings=quiet,
        )  # fmt: skip

    def log(self, values: Mapping[str, float], updates: int) -> None:
        self.run.log({**values, "updates": updates})

    def close(self, done: bool) -> None:
        self.run.finish(exit_code=0 if done else 1)


@final
class MLflow(Tracker):
    """A SQLite file in the folder, which `mlflow ui --backend-store-uri sqlite:///FOLDER/mlflow.db` shows."""

    def __init__(self, folder: Path, title: str, settings: Mapping[str, str]) -> None:
        from mlflow import MlflowClient

        folder.mkdir(parents=True, exist_ok=True)
        self.client: Any = MlflowClient(tracking_uri=f"sqlite:///{(folder / 'mlflow.db').resolve()}")
        known = self.client.get_experiment_by_name(PROJECT)
        home = (folder / "mlflow").resolve().as_uri()
        experiment = self.client.create_experiment(PROJECT, home) if known is None else known.experiment_id
        self.id = self.client.create_run(experiment, run_name=title).info.run_id
        for name, value in settings.items():
            self.client.log_param(self.id, name, value)

    def log(self, values: Mapping[str, float], updates: int) -> None:
        for name, value in values.items():
            self.client.log_metric(self.id, name, value, step=updates)

    def close(self, done: bool) -> None:
        self.client.set_terminated(self.id, "FINISHED" if done else "FAILED")


TRACKERS: Mapping[str, type[Tracker]] = {"tensorboard": TensorBoard, "wandb": WandB, "mlflow": MLflow}


def faults(asked: Sequence[str]) -> list[str]:
    """Trackers that do not exist, or whose package is missing, or that cannot write to their folder."""
    names = [text.partition(":")[0] for text in asked]
    missing = [name for name in names if name in TRACKERS and find_spec(EXTRAS[name]) is None]
    return [
        *(unknown("tracker", name, TRACKERS) for name in names if name not in TRACKERS),
        *(f"tracker {name!r} needs a package; install it with: pip install 'holdfast[{name}]'" for name in missing),
        *(fault for text in asked for fault in unwritable(Path(text.partition(":")[2] or USUAL), "folder for --track")),
    ]


@contextmanager
def tracked(cells: Sequence[Cell], asked: Sequence[str], watch: Watcher | None = None) -> Iterator[Watcher | None]:
    """A watcher that tells `watch`, and each tracker that is asked for, what it hears of these cells."""
    if found := faults(asked):
        raise BadInput(*found)
    if not asked:
        yield watch
        return
    relay = _Relay(cells, asked, watch)
    try:
        yield relay
    finally:
        relay.close()


class _Relay:
    """The runs that are under way, each with its trackers."""

    def __init__(self, cells: Sequence[Cell], asked: Sequence[str], watch: Watcher | None) -> None:
        self.cells, self.titles, self.watch = cells, titles(cells), watch
        self.kinds = [(TRACKERS[name], Path(folder or USUAL)) for name, _, folder in (a.partition(":") for a in asked)]
        self.open: dict[int, list[Tracker]] = {}

    def __call__(self, event: Event) -> None:
        if self.watch is not None:
            self.watch(event)
        if event.before:  # it was told when it ran
            return
        if event.progress is not None and event.progress.scored:
            self._log(event.cell, _accuracies(event.progress.scored), event.progress.updates)
        if isinstance(event.outcome, Record):
            self._log(event.cell, _metrics(event.outcome), round(sum(event.outcome.resources["updates"])))
        if event.outcome is not None:
            for tracker in self.open.pop(event.cell, ()):
                tracker.close(isinstance(event.outcome, Record))

    def _log(self, cell: int, values: Mapping[str, float], updates: int) -> None:
        if cell not in self.open:
            said = _flat(self.cells[cell].settings())
            self.open[cell] = [kind(folder, self.titles[cell], said) for kind, folder in self.kinds]
        for tracker in self.open[cell]:
            tracker.log(values, updates)

    def close(self) -> None:
        """Those that were interrupted."""
        for tracker in (tracker for mine in self.open.values() for tracker in mine):
            tracker.close(done=False)
        self.open.clear()


def _accuracies(scored: Mapping[int, float]) -> dict[str, float]:
    each = {f"accuracy/task{t}": accuracy for t, accuracy in scored.items()}
    return {**each, "accuracy/mean": sum(scored.values()) / len(scored)}


def _metrics(record: Record) -> dict[str, float]:
    found = {f"metrics/{name}": metric.of(record) for name, metric in METRICS.items()}
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def _flat(settings: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """'protocol.lr': '0.1'."""
    found: dict[str, str] = {}
    for name, value in settings.items():
        found |= _flat(value, f"{above}{name}.") if isinstance(value, Mapping) else {f"{above}{name}": canonical(value)}
    return found
