"""Other programs hear what is measured while it is measured, once, and what it came to."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

import holdfast as hf
from holdfast.errors import BadInput
from holdfast.methods.finetune import Finetune
from holdfast.sweeps import execute, tracked, tracking
from holdfast.sweeps.tracking import Tracker


class Heard(Tracker):
    """Keeps what it hears, for all to see."""

    runs: ClassVar[dict] = {}

    def __init__(self, folder, title, settings):
        self.mine = self.runs.setdefault(title, {"folder": str(folder), "settings": settings, "said": [], "done": None})

    def log(self, values, updates):
        self.mine["said"].append((updates, dict(values)))

    def close(self, done):
        self.mine["done"] = done


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(Heard, "runs", {})
    monkeypatch.setitem(tracking.TRACKERS, "heard", Heard)
    monkeypatch.setitem(tracking.EXTRAS, "heard", "holdfast")
    return Heard.runs


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_scoring_is_told_with_the_updates_until_then(heard, cell, jobs):
    cells = [cell("finetune", protocol=hf.protocol("online", score_every=4)), cell("er", seed=1)]
    with tracked(cells, ["heard:there"]) as watch:
        records = execute(cells, jobs=jobs, watch=watch)
    for record, title in zip(records, ("finetune seed 0", "er seed 1"), strict=True):
        mine = heard[title]
        *scored, (updates, metrics) = mine["said"]
        R = [[values[f"accuracy/task{t}"] for t in range(2)] for _, values in scored]
        assert np.array_equal(R, record.R)
        assert [values["accuracy/mean"] for _, values in scored] == pytest.approx(record.R.mean(1))
        before = [0, record.resources["updates"][0]]
        assert [n for n, _ in scored] == [before[row["after_task"]] + row["step"] for row in record.scorings]
        assert updates == sum(record.resources["updates"]) and metrics["metrics/acc"] == record.acc
        assert mine["done"] and mine["folder"] == "there" and mine["settings"]["net.hidden"] == "[8]"


def test_finished_runs_are_not_told_again_and_failed_ones_are_closed_as_failed(heard, cell, tmp_path):
    class FailsLater(Finetune):
        def finish(self, train):
            assert train.task == 0

    cells = [cell("finetune"), cell(FailsLater())]
    for told in (
        ["finetune seed 0", "FailsLater seed 0"],
        [],
    ):  # it goes on after its first task, and fails before it is scored
        heard.clear()
        with tracked(cells, ["heard"]) as watch:
            execute(cells, tmp_path, jobs=1, watch=watch)
        assert [*heard] == told
        assert [mine["done"] for mine in heard.values()] == [title == "finetune seed 0" for title in told]


def test_what_is_interrupted_is_closed(heard, cell):
    def stop(event):
        if event.progress is not None and event.progress.task == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), tracked([cell()], ["heard"], stop) as watch:
        execute([cell()], jobs=1, watch=watch)
    assert [mine["done"] for mine in heard.values()] == [False]


def test_tensorboard_hears_it(stream, tmp_path):
    events = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="needs the tensorboard extra"
    )
    found = hf.compare("finetune", stream, seeds=2, jobs=1, track=f"tensorboard:{tmp_path}")
    for record in found.records:
        read = events.EventAccumulator(str(tmp_path / f"finetune_seed_{record.seed}")).Reload()
        for t in range(2):
            assert np.allclose([s.value for s in read.Scalars(f"accuracy/task{t}")], record.R[:, t])
        assert [s.step for s in read.Scalars("accuracy/mean")] == list(np.cumsum(record.resources["updates"]))


def test_weights_and_biases_hears_it_offline(stream, tmp_path, monkeypatch):
    pytest.importorskip("wandb", reason="needs the wandb extra")
    monkeypatch.delenv("WANDB_MODE", raising=False)
    hf.compare("finetune", stream, seeds=1, jobs=1, track=f"wandb:{tmp_path}")
    assert len(list(tmp_path.glob("wandb/offline-run-*/*.wandb"))) == 1


def test_mlflow_hears_it(stream, tmp_path):
    mlflow = pytest.importorskip("mlflow", reason="needs the mlflow extra")
    found = hf.compare("finetune", stream, seeds=1, jobs=1, track=f"mlflow:{tmp_path}")
    client = mlflow.MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    (run,) = client.search_runs([client.get_experiment_by_name("holdfast").experiment_id])
    history = client.get_metric_history(run.info.run_id, "accuracy/task0")
    assert [point.value for point in history] == list(found.records[0].R[:, 0])
    assert run.data.params["protocol.lr"] == "0.1" and run.info.status == "FINISHED"


def test_trackers_that_do_not_exist_or_are_not_installed_are_told_together(stream, monkeypatch, tmp_path):
    monkeypatch.setitem(tracking.EXTRAS, "mlflow", "no_such_package")
    with pytest.raises(BadInput) as error:
        hf.compare("finetune", stream, seeds=1, track=["tensorbord", "mlflow:there"], out=tmp_path / "out")
    assert error.value.faults == (
        "unknown tracker 'tensorbord'; did you mean 'tensorboard'?",
        "tracker 'mlflow' needs a package; install it with: pip install 'holdfast[mlflow]'",
    )
    assert not (tmp_path / "out").exists()


def test_a_tracker_that_cannot_write_is_told_before_anything_is_written(stream, tmp_path):
    (tmp_path / "file").write_text("mine")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadInput, match="choose another folder for --track"):
            hf.compare("finetune", stream, seeds=1, track=f"tensorboard:{place}", out=tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
