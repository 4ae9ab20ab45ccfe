"""`protocol.score`: which tasks a scoring asks about. The others are NaN in R, and blank everywhere else."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast import metrics, report
from holdfast.engine import Checkpoint
from holdfast.methods import Learner
from holdfast.protocols import Session
from holdfast.protocols._base import Job
from holdfast.report import export, plots
from holdfast.sweeps.store import read_record, write_record

TASKS = 4
SCENARIOS = ("class", "domain", "task")


def make(score, method="er", scenario="class", **words):
    stream = hf.stream("split", tasks=TASKS, sizes=(2,) * TASKS, examples=60, scenario=scenario)
    return hf.run(method, stream, net=hf.net("mlp", hidden=(16,)), protocol=hf.protocol("epochs", score=score, **words))


def asked(score, mixed=False):
    """(T, T): whether the scoring after task i asks about task j."""
    i, j = np.indices((TASKS, TASKS))
    last = i == TASKS - 1
    return {"all": i >= 0, "seen": (j <= i + 1) | last | mixed, "ends": (i == j) | last}[score]


@pytest.mark.parametrize("score", ["seen", "ends"])
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_what_is_scored_is_what_scoring_everything_finds(score, scenario):
    whole, part = make("all", scenario=scenario), make(score, scenario=scenario)
    known = asked(score)
    assert (~np.isnan(part.R) == known).all() and not np.isnan(whole.R).any()
    assert (part.R[known] == whole.R[known]).all()
    assert (part.baseline == whole.baseline).all()
    assert len(part.curves) == known.sum() and len(whole.curves) == TASKS**2


@pytest.mark.parametrize("score", ["seen", "ends"])
def test_so_is_a_run_scored_often(score):
    words = {"score_every": 4, "score_first": 2, "epochs": 2}
    whole, part = make("all", **words), make(score, **words)
    assert whole.scorings == part.scorings and len(part.R) > TASKS
    known = ~np.isnan(part.R)
    for i, row in enumerate(part.scorings):
        t, end = row["after_task"], i == len(part.R) - 1
        wanted = range(TASKS) if end else range(min(t + 2, TASKS)) if score == "seen" else [t]
        assert known[i].nonzero()[0].tolist() == list(wanted)
    assert (part.R[known] == whole.R[known]).all()
    assert metrics.lca(part, 2) == metrics.lca(whole, 2) is not None


@pytest.mark.parametrize("score", ["seen", "ends"])
def test_a_learner_that_sees_all_tasks_at_once_is_scored_at_the_same_points(score):
    whole, part = make("all", "joint"), make(score, "joint")
    known = asked(score, mixed=True)
    assert (~np.isnan(part.R) == known).all() and (part.R[known] == whole.R[known]).all()
    assert part.acc == whole.acc and part.bwt is None


def test_scoring_the_ends_is_linear_in_the_number_of_tasks(monkeypatch):
    """Rows predicted after training began: each task once, beside as many others, and all tasks at the end."""
    rows = [0]
    predict = Session._predict

    def counted(session, x, task):
        rows[0] += len(x)
        return predict(session, x, task)

    monkeypatch.setattr(Session, "_predict", counted)
    for tasks, decoys in ((4, 3 * 7), (8, 7 * 3), (20, 7 * 3)):  # of at most eight other tasks
        rows[0] = 0
        stream = hf.stream("permuted", tasks=tasks, examples=30, test_examples=20)
        hf.run("finetune", stream, protocol=hf.protocol("online", score="ends"))
        untrained, met = 20 * tasks, 30 * (tasks - 1)  # the baseline, and rows of each later task before it is learned
        assert rows[0] - untrained - met == (tasks - 1) * (20 + decoys) + 20 * tasks


METRICS = ("acc", "bwt", "fwt", "forgetting", "forgetting_ctrl")


def test_metrics_are_defined_where_what_they_need_was_scored():
    whole, seen, ends = make("all"), make("seen"), make("ends")
    assert all(whole.metrics[name] is not None for name in METRICS)
    assert {name: seen.metrics[name] for name in METRICS} == {name: whole.metrics[name] for name in METRICS}
    assert [ends.metrics[name] for name in METRICS] == [whole.acc, whole.bwt, None, None, whole.bwt]
    assert metrics.transfer(ends, whole) == 0


def test_forgetting_needs_every_row_from_when_a_task_was_learned():
    record = make("all")
    blank = np.array(record.R)
    blank[0, 2:] = np.nan  # before these tasks were learned
    assert metrics.forgetting(replace(record, R=blank)) == record.forgetting
    blank[2, 1] = np.nan  # the best of task 1 might have been there
    assert metrics.forgetting(replace(record, R=blank)) is None


@pytest.mark.parametrize("score", ["all", "seen", "ends"])
def test_a_record_and_its_predictions_are_read_back(score, tmp_path):
    made = make(score)
    write_record(made, tmp_path)
    read = read_record(tmp_path)
    assert np.array_equal(read.R, made.R, equal_nan=True) and dict(read.metrics) == made.metrics
    content = json.loads((tmp_path / "record.json").read_text(), parse_constant=pytest.fail)
    assert [[value is not None for value in row] for row in content["R"]] == asked(score).tolist()
    assert [len(p) for p in read.predictions] == asked(score).sum(0).tolist()
    assert np.array_equal(metrics.rescore(read), made.R, equal_nan=True)
    assert metrics.compare_examples(read, made, 1).p_value == 1


def test_what_the_last_scoring_left_out_is_not_compared():
    record = make("all")
    R = np.array(record.R)
    R[-1, 1] = np.nan
    with pytest.raises(hf.BadInput, match=r"the last scoring of er \(seed 0\) did not ask about task 1"):
        metrics.compare_examples(record, replace(record, R=R), 1)


class Sampled(Learner):
    """Two samples of every prediction."""

    def observe(self, batch):
        return self.fit(batch)

    def predict(self, x, task):
        logits = super().predict(x, task)
        return torch.stack([logits, logits + 1])


@pytest.mark.parametrize("score", ["all", "seen", "ends"])
def test_uncertainties_are_of_the_same_scorings_as_predictions(score):
    found = make(score, Sampled())
    assert [u.shape[0] for u in found.uncertainties] == [p.shape[0] for p in found.predictions]
    assert make(score, "finetune").uncertainties == ()


class Interrupted(Exception):
    pass


class Fragile(Checkpoint):
    def write(self, state):
        super().write(state)
        raise Interrupted


@pytest.mark.parametrize("every", [3, None])
@pytest.mark.parametrize("score", ["seen", "ends"])
def test_an_interrupted_run_ends_with_the_same_bits(score, every, tmp_path, monkeypatch):
    """Killed whenever a state was written, by way of the session that a protocol is given."""
    plain = make(score, "gem", epochs=2)
    session = Job.session
    keep = Fragile(tmp_path, "mine", every)
    monkeypatch.setattr(Job, "session", lambda job, descent: session(replace(job, keep=keep), descent))
    pieces, found = 0, None
    while found is None:
        try:
            found = make(score, "gem", epochs=2)
        except Interrupted:
            pieces += 1
    assert pieces >= TASKS - 1
    assert found.R.tobytes() == plain.R.tobytes() and found.curves == plain.curves
    assert all(map(np.array_equal, found.predictions, plain.predictions))
    assert found.metrics.keys() == plain.metrics.keys()
    assert [found.metrics[name] for name in METRICS] == [plain.metrics[name] for name in METRICS]


@pytest.mark.parametrize("score", ["seen", "ends"])
def test_reports_and_exports_leave_blank_what_was_not_scored(score):
    stream = hf.stream("split", tasks=TASKS, sizes=(2,) * TASKS, examples=30)
    found = hf.compare(["finetune", "er", "joint"], stream, seeds=2, protocol=hf.protocol("online", score=score))
    page = report.html(found.records)
    assert "Blank: not scored." in page and "Blank: not" not in report.html([make("all")])
    figures = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert len(figures) > 5
    for figure in figures:
        json.loads(figure, parse_constant=pytest.fail)
    for text in (report.text(found.records), report.latex(found.records), export.csv(found.records)):
        assert "nan" not in re.sub("finetune", "", text.lower())
    rows = list(csv.DictReader(io.StringIO(export.csv(found.records, "scores"))))
    assert len(rows) == 6 * TASKS**2
    blank = {(row["after_task"], row["task"]) for row in rows if row["method"] == "er" and row["accuracy"] == ""}
    assert blank == {(str(i), str(j)) for i, j in zip(*np.nonzero(~asked(score)), strict=True)}
    frame = metrics.frame(found.records, "scores")
    assert frame["accuracy"].notna().sum() == sum((~np.isnan(r.R)).sum() for r in found.records)


def test_a_heat_map_has_gaps_and_a_line_stops_where_nothing_was_scored():
    runs = [replace(make("ends"), seed=seed) for seed in range(2)]
    runs[1] = replace(runs[1], R=runs[1].R * 0.9)
    arenas = metrics.arenas(metrics.group(runs))
    (group,) = arenas[0]
    heat, numbers = plots.heat_map(group).data
    assert [[value is not None for value in row] for row in heat.z] == asked("ends").tolist()
    assert [text != "" for text in numbers.text] == asked("ends").flatten().tolist()
    *bands, line = plots.first_task(arenas[0], plots.styles(arenas)).data
    assert [y is not None for y in line.y] == [True, False, False, True]
    assert [list(band.x) for band in bands] == [[1, 1], [4, 4]]


def test_event_files_have_the_mean_over_tasks_only_where_all_were_scored():
    tags = [tag for tag, value, _ in export._scalars(make("ends")) if tag == "accuracy/mean"]
    assert len(tags) == 1
    assert all(np.isfinite(value) for _, value, _ in export._scalars(make("seen")))
