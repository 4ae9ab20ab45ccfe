"""The protocols of papers 003 and 004: what they choose, from which data, and where they stop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.checks.learner import _equal as equal
from holdfast.methods.finetune import Finetune
from holdfast.protocols import Session
from holdfast.protocols._stops import Best, Last, Reach
from holdfast.sweeps import Cell

NAMES = ("prescient", "realistic", "application")
SMALL = {
    "layers": (1, 2), "sizes": (8, 16), "lr": (0.01, 0.001), "later_lr": (0.02, 0.002),
    "steps": 30, "score_every": 10, "batch": 20, "momentum": 0.9,
}  # fmt: skip


def small(name: str, **changes):
    return hf.protocol(name, **{**SMALL, "choose_on": "test", **changes})


@pytest.fixture(scope="module")
def stream():
    return hf.stream("slt", parts="D5-5a", val=0.2)


def pooled(record, row: int) -> float:
    """Accuracy on all test sets together, from a row of R."""
    n = np.array([task["n_test"] for task in record.tasks])
    return float(record.R[row] @ n / n.sum())


def replaced_by_noise(stream, task: int) -> hf.Stream:
    """The stream with random pixels in place of one task's, training, validation and test."""
    drawn = torch.Generator().manual_seed(1)
    t = stream.tasks[task]
    for part in (t.train, t.val, t.test):
        noise = torch.rand(len(part), *part.pixels.shape[1:], generator=drawn)
        part.pixels[part.rows] = (noise * part.pixels.max()).to(part.pixels.dtype)
        part._cache = None
    return stream


def own(parts: str = "D5-5a") -> hf.Stream:
    """A stream whose pixels are its own, so that they may be spoiled."""
    data = hf.stream("slt").tasks[0].train.pixels, hf.stream("slt").tasks[0].test.pixels
    y = [_labels(part) for part in ("train", "test")]
    return hf.stream("slt", data=(data[0].clone().numpy(), y[0], data[1].clone().numpy(), y[1]), parts=parts, val=0.2)


def _labels(part: str) -> np.ndarray:
    tasks = hf.stream("slt").tasks
    rows = [(getattr(t, part).rows, getattr(t, part).y) for t in tasks]
    y = torch.zeros(sum(len(r) for r, _ in rows), dtype=torch.long)
    for index, labels in rows:
        y[index] = labels
    return y.numpy()


def spoil_the_first_part_when_it_is_over(monkeypatch) -> None:
    close = Session.close

    def spoil(session: Session, task) -> None:
        close(session, task)
        if task.t == 0:
            replaced_by_noise(session.stream, 0)

    monkeypatch.setattr(Session, "close", spoil)


# Where a trial is stopped, against its definition.


@pytest.mark.parametrize("share", [0.5, 0.9, 0.99, 1.0])
def test_reach_stops_at_the_first_step_that_reaches_the_share_of_the_highest(share):
    rng = np.random.default_rng(0)
    for _ in range(200):
        q = rng.random(rng.integers(1, 30)).round(2) ** rng.uniform(0.05, 1)
        stop = Reach(share)
        for step, quality in enumerate(q):
            stop.offer(step, quality, lambda step=step: step)
        expected = int(np.argmax(q >= share * q.max()))
        assert stop.kept[0].step == expected == stop.kept[0].state


def test_best_takes_the_first_of_equals_and_last_the_last():
    best, last = Best(), Last()
    for step, quality in enumerate([0.1, 0.7, 0.3, 0.7]):
        best.offer(step, quality, lambda: None)
        last.offer(step, quality, lambda: None)
    assert best.kept[0].step == 1 and last.kept[0].step == 3


# What the protocols make of their trials.


@pytest.mark.parametrize("name", ["realistic", "application"])
def test_the_model_is_the_one_that_was_best_on_the_first_task(name, stream):
    record = hf.run("finetune", stream, protocol=small(name))
    first = [row for row in record.study["trials"] if row["task"] == 0]
    highest = [max(q for _, q in hf.study.course(record, row["trial"], 0)) for row in first]
    chosen = first[int(np.argmax(highest))]
    assert len(first) == 8 and chosen["chosen"] and sum(row["chosen"] for row in first) == 1
    assert record.settings["net.hidden"]["value"] == chosen["settings"]["net.hidden"] == record.net["hidden"]
    assert record.settings["protocol.lr"]["value"] == chosen["settings"]["protocol.lr"]
    assert record.R[0, 0] == max(highest)  # its weights at its best step
    later = [row for row in record.study["trials"] if row["task"] == 1]
    assert [row["settings"]["protocol.later_lr"] for row in later] == [0.02, 0.002]
    assert {row["began_from"] for row in later} == {chosen["trial"]}


def test_realistic_ends_where_its_reading_says(stream):
    record = hf.run("finetune", stream, protocol=small("realistic", threshold=0.9))
    assert pooled(record, -1) == pytest.approx(hf.study.realistic(record, 0.9, "d2"))
    assert record.settings["protocol.later_lr"]["chosen_by"] == "test:task"
    printed = hf.run("finetune", stream, protocol=small("realistic", threshold=0.9, emulate="alg2"))
    assert pooled(printed, -1) == pytest.approx(hf.study.realistic(printed, 0.9, "union"))
    assert hf.study.realistic(record, 0.9, "union") == hf.study.realistic(printed, 0.9, "union")
    assert printed.settings["protocol.later_lr"]["chosen_by"] == "test:stream"


def test_application_ends_at_the_last_step_and_knows_what_all_at_once_reach(stream):
    record = hf.run("finetune", stream, protocol=small("application", sizes=(32,), lr=(0.03,), steps=80))
    assert pooled(record, -1) == pytest.approx(hf.study.last(record))
    assert hf.study.best(record) >= hf.study.last(record)
    assert hf.study.at_once(record) > 0.9  # both parts at once are learned
    assert hf.study.omega_all(record) == pytest.approx(hf.study.best(record) / hf.study.at_once(record))


def test_prescient_takes_the_best_of_everything(stream):
    record = hf.run("finetune", stream, protocol=small("prescient"))
    every = [row["accuracy"] for row in record.study["curves"] if row["task"] is None]
    later = {row["trial"] for row in record.study["trials"] if row["task"] == 1}
    unions = [row["accuracy"] for row in record.study["curves"] if row["task"] is None and row["trial"] in later]
    assert len(record.study["trials"]) == 8 * 3 and len(every) > len(unions)
    assert pooled(record, -1) == pytest.approx(max(unions)) == hf.study.prescient(record)
    assert hf.study.prescient(record) >= hf.study.realistic(record)  # it knows more


def test_weights_of_the_last_step_can_be_retrained_instead_of_the_best(stream):
    best, last = (hf.run("finetune", stream, protocol=small("realistic", weights_from=w)) for w in ("best", "last"))
    assert last.settings["protocol.stop"]["value"][0] == 30
    assert best.R[0, 0] >= last.R[0, 0]


def test_a_network_without_a_list_of_layers_keeps_its_shape(stream):
    rates = {name: value for name, value in SMALL.items() if name not in ("layers", "sizes")}
    protocol = hf.protocol("realistic", choose_on="test", **rates)
    record = hf.run("finetune", stream, net=hf.net("conv", hidden=20), protocol=protocol)
    assert [row["settings"] for row in record.study["trials"] if row["task"] == 0] == [
        {"protocol.lr": 0.01}, {"protocol.lr": 0.001},
    ]  # fmt: skip
    assert record.net["hidden"] == 20
    given = hf.run("finetune", stream, net=hf.net("mlp", hidden=(9, 7)), protocol=protocol)
    assert given.net["hidden"] == (9, 7) and not any("net.hidden" in row["settings"] for row in given.study["trials"])


def test_settings_that_would_be_ignored_are_refused(stream):
    for net in (hf.net("conv"), hf.net("mlp", hidden=(9,)), torch.nn.Flatten()):
        with pytest.raises(hf.BadInput, match="layers, sizes of protocol 'realistic' would be ignored: the network"):
            hf.run("finetune", stream, net=net, protocol=small("realistic"))
    with pytest.raises(hf.BadInput, match=r"epochs of protocol 'realistic' would be ignored: it has 30 steps; try"):
        hf.run("finetune", stream, protocol=small("realistic", epochs=3))
    by_epochs = hf.run("finetune", stream, protocol=small("realistic", epochs=1, steps=None))
    assert by_epochs.study["trials"][0]["updates"] == -(-by_epochs.tasks[0]["n_train"] // 20)


def test_all_at_once_that_diverges_is_left_out_and_told(stream, monkeypatch):
    usual = Session.shown

    def breaks(self, showing, *args, **words):
        if isinstance(showing.task, torch.Tensor):  # all tasks at once
            raise hf.RunFailed("the loss became nan")
        return usual(self, showing, *args, **words)

    monkeypatch.setattr(Session, "shown", breaks)
    record = hf.run("finetune", stream, protocol=small("application"))
    assert record.R.shape == (2, 2) and hf.study.at_once(record) is None and hf.study.omega_all(record) is None
    assert record.study["trials"][-1]["failed"].startswith("all tasks at once: ")


def test_mixed_sizes_are_the_authors_36_topologies():
    shapes = hf.protocol("prescient", mix_sizes=True).topologies()
    assert len(shapes) == len(set(shapes)) == 3**2 + 3**3
    assert hf.protocol("prescient").topologies() == [(n,) * k for k in (2, 3) for n in (200, 400, 800)]


def test_one_batch_of_test_rows_is_looked_at_when_asked(stream):
    record = hf.run("finetune", stream, protocol=small("application", test_batch=20))
    looks = [row["accuracy"] * 20 for row in record.study["curves"]]
    assert all(abs(n - round(n)) < 1e-6 for n in looks)  # every accuracy is of 20 rows, that of the union, too
    assert record.labels[0].size > 100 and pooled(record, -1) != hf.study.last(record)  # the result is of all rows


def test_a_method_that_merges_is_scored_merged_and_over_alpha(stream):
    record = hf.run(hf.method("imm", merge="mode", alpha=0.25), stream, protocol=small("application", alphas=4))
    assert [a for a, _ in hf.study.blended(record, "mode")] == [0, 0.25, 0.5, 0.75, 1]
    assert dict(hf.study.blended(record, "mode"))[0.25] == pytest.approx(pooled(record, -1))
    mean = dict(hf.study.blended(record, "mean"))
    assert mean[1] == pytest.approx(hf.study.last(record))  # the network of D2 alone
    plain = hf.run(hf.method("imm", alpha=0.25), stream, protocol=small("application", alphas=4))
    assert dict(hf.study.blended(plain, "mean")) == pytest.approx(mean)  # the same networks


# Nothing leaks.


@pytest.mark.parametrize("name", ["realistic", "application"])
@pytest.mark.parametrize("choose_on", ["val", "test"])
def test_noise_in_place_of_the_second_part_leaves_the_model_chosen_on_the_first_unchanged(name, choose_on):
    protocol = small(name, choose_on=choose_on)
    usual, spoiled = (hf.run("finetune", s, protocol=protocol) for s in (own(), replaced_by_noise(own(), 1)))
    for setting in ("net.hidden", "protocol.lr"):
        assert usual.settings[setting] == spoiled.settings[setting]
    assert usual.settings["protocol.stop"]["value"][0] == spoiled.settings["protocol.stop"]["value"][0]
    assert np.array_equal(usual.predictions[0][0], spoiled.predictions[0][0])
    assert not np.array_equal(usual.predictions[1][1], spoiled.predictions[1][1])  # the noise was there


@pytest.mark.parametrize("name", ["realistic", "application"])
@pytest.mark.parametrize("choose_on", ["val", "test"])
def test_noise_in_place_of_the_first_part_when_it_is_over_leaves_retraining_unchanged(name, choose_on, monkeypatch):
    protocol = small(name, choose_on=choose_on)
    usual = hf.run("ewc", own(), protocol=protocol)
    spoil_the_first_part_when_it_is_over(monkeypatch)
    spoiled = hf.run("ewc", own(), protocol=protocol)
    retrained = hf.study.retrainings(usual)[0]
    was, found = (hf.study.course(record, retrained, 0)[0][1] for record in (usual, spoiled))
    assert was > found + 0.2  # the noise was there when retraining began
    for setting in ("protocol.later_lr", "protocol.stop"):
        assert usual.settings[setting] == spoiled.settings[setting]
    assert np.array_equal(usual.predictions[1][-1], spoiled.predictions[1][-1])


def test_as_printed_the_choice_does_depend_on_the_first_part(monkeypatch):
    """The leak tests could fail: under `alg2` the first part's test rows decide.

    Of seven classes, so that the first part outweighs the second: 0.50 against 0.30, and 0.08 when it is spoiled.
    """
    reached = small("realistic", emulate="alg2", later_lr=(0.05, 1e-6), threshold=1.0, steps=60)
    usual = hf.run("finetune", own("d7-3"), protocol=reached)
    spoil_the_first_part_when_it_is_over(monkeypatch)
    spoiled = hf.run("finetune", own("d7-3"), protocol=reached)
    assert usual.settings["protocol.later_lr"]["value"] != spoiled.settings["protocol.later_lr"]["value"]


def test_the_card_says_what_was_peeked_at(stream):
    met = {
        (name, on): hf.run("finetune", stream, protocol=small(name, choose_on=on)).card["causal_selection"]
        for name, on in (("realistic", "val"), ("application", "val"), ("realistic", "test"), ("prescient", "test"))
    }
    printed = hf.run("finetune", stream, protocol=small("realistic", choose_on="val", emulate="alg2"))
    assert not printed.card["causal_selection"]["met"]
    assert "later_lr from test:stream" in printed.card["causal_selection"]["note"]
    assert met["realistic", "val"]["met"] and met["application", "val"]["met"]
    assert not met["realistic", "test"]["met"] and "net.hidden from test:first-task" in met["realistic", "test"]["note"]
    assert not met["prescient", "test"]["met"] and "net.hidden from test:stream" in met["prescient", "test"]["note"]


# More than two parts, resumption, costs, mistakes.


def test_a_run_that_chose_on_validation_rows_is_read_by_its_own_choice(stream):
    for seed in range(4):
        record = hf.run("finetune", stream, protocol=small("application", choose_on="val"), seed=seed)
        assert hf.study.last(record) == pytest.approx(hf.study.pooled(record)) == pytest.approx(pooled(record, -1))


@pytest.mark.parametrize("name", ["realistic", "application"])
def test_five_parts_are_retrained_one_after_the_other(name):
    stream = hf.stream("slt", parts="d2-2-2-2-2", val=0.2)
    record = hf.run("ewc", stream, protocol=small(name))
    assert record.R.shape == (5, 5) and len(record.settings["protocol.later_lr"]["value"]) == 4
    assert record.settings["protocol.stop"]["chosen_by"] == "test:task"
    assert all(np.diag(record.R) > 0.5)
    rows = record.study["trials"]
    for t in range(1, 5):  # each begins with what the one before it left
        before = next(row["trial"] for row in rows if row["task"] == t - 1 and row["chosen"])
        assert {row["began_from"] for row in rows if row["task"] == t} == {before}


def in_pieces(cell: Cell, folder: Path, fragile: Any) -> tuple[hf.Record, int]:
    """Interrupted after every trial, and in how many pieces."""
    pieces = 0
    while True:
        try:
            return cell.run(keep=fragile(folder, cell.hash)), pieces
        except fragile.Interrupted:
            pieces += 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("method", ["ewc", "imm", "gem"])
def test_a_study_goes_on_after_any_trial_as_if_nothing_had_happened(name, method, stream, tmp_path, fragile):
    protocol = small(name, layers=(1,), steps=20)
    cell = Cell(hf.method(method), stream, hf.net("mlp", dropout=0.2), protocol, 0, reseed=False)
    whole, (pieced, pieces) = cell.run(), in_pieces(cell, tmp_path, fragile)
    assert pieces == 4 * 3 if name == "prescient" else pieces == 4 + 1 + 2
    assert np.array_equal(whole.R, pieced.R) and whole.settings == pieced.settings
    assert whole.study["curves"] == pieced.study["curves"]
    timeless = [
        [{k: v for k, v in row.items() if k != "seconds"} for row in r.study["trials"]] for r in (whole, pieced)
    ]
    assert timeless[0] == timeless[1] and whole.resources["flops"] == pieced.resources["flops"]
    assert equal([torch.from_numpy(p) for p in whole.predictions], [torch.from_numpy(p) for p in pieced.predictions])


def test_accuracies_over_alpha_of_every_part_survive_an_interruption(tmp_path, fragile):
    stream = hf.stream("slt", parts="d4-3-3", val=0.2, examples=40)
    cell = Cell(hf.method("imm"), stream, hf.net("mlp"), small("application", layers=(1,), steps=10, alphas=2), 0)
    whole, (pieced, _) = cell.run(), in_pieces(cell, tmp_path, fragile)
    assert {row["after_task"] for row in whole.study["blends"]} == {1, 2}
    assert whole.study["blends"] == pieced.study["blends"]


class Counting(Finetune):
    """A learner that is changed by being asked."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.asked = 0

    def predict(self, x, task):
        self.asked += 1
        return super().predict(x, task)


@pytest.mark.parametrize("name", NAMES)
def test_a_learner_that_fails_at_the_first_look_is_told_why(name, stream):
    with pytest.raises(hf.RunFailed, match=r"predict changed the learner"):
        hf.run(Counting(), stream, protocol=small(name))


@pytest.mark.parametrize("name", NAMES)
def test_a_trial_that_diverges_is_left_out_and_told(name, stream):
    record = hf.run("finetune", stream, protocol=small(name, later_lr=(1e30, 0.02), sizes=(8,), layers=(1,)))
    failed = [row for row in record.study["trials"] if "failed" in row]
    assert failed and all(row["settings"] == {"protocol.later_lr": 1e30} and not row["chosen"] for row in failed)
    assert "the loss became" in failed[0]["failed"] and record.settings["protocol.later_lr"]["value"] == [0.02]
    assert len(hf.study.retrainings(record)) == 1 and 0 < hf.study.realistic(record) < 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("changes", [{"lr": (1e30,)}, {"later_lr": (1e30,)}])
def test_a_study_of_which_every_trial_diverges_fails(name, changes, stream):
    with pytest.raises(hf.RunFailed, match=r"every trial of task [01] failed, the last because the loss became"):
        hf.run("finetune", stream, protocol=small(name, sizes=(8,), layers=(1,), **changes))


def test_trials_count_in_the_cost(stream):
    record = hf.run("finetune", stream, protocol=small("realistic"))
    trials = record.resources["trials"]
    assert trials["runs"] == 8 + 2 - 2 and trials["flops"] > 0
    total = sum(row["flops"] for row in record.study["trials"])
    assert record.metrics["flops"] == pytest.approx(total)
    assert record.resources["updates"] == [30, 30]


def test_records_of_a_study_are_kept_and_grouped_over_seeds(stream, tmp_path):
    found = hf.compare(["finetune", "ewc"], stream, seeds=2, protocol=small("realistic"), out=tmp_path, jobs=1)
    assert len(found.summary()["methods"]) == 2  # choices may differ between seeds and are no conditions
    again = hf.Comparison.read(tmp_path)
    assert again.records[0].study == found.records[0].study


def test_what_cannot_be_is_told_all_at_once_and_before_anything_runs():
    stream = hf.stream("split", tasks=5)
    protocol = hf.protocol("prescient", choose_on="val", lr=())
    with pytest.raises(hf.BadInput) as caught:
        Cell(hf.method("joint"), stream, hf.net("mlp"), protocol, 0).check()
    assert [fault[:40] for fault in caught.value.faults] == [
        "method 'joint' sees all tasks at once; p",
        "lr of protocol 'prescient' must list at ",
        "protocol 'prescient' takes two tasks, no",
        "protocol 'prescient' chooses on test row",
    ]


def test_validation_rows_are_needed_to_choose_on_them():
    with pytest.raises(hf.BadInput, match=r"keeps none; cut it with val=0.1, or choose_on=test"):
        hf.run("finetune", hf.stream("slt"), protocol=hf.protocol("realistic"))


@pytest.mark.parametrize("name", NAMES)
def test_the_baseline_is_that_of_the_chosen_network_before_it_learns(name, stream):
    record = hf.run("finetune", stream, protocol=small(name, sizes=(8,), layers=(1,)))
    alone = hf.run("finetune", stream, net=hf.net("mlp", hidden=(8,)))
    assert record.baseline.tolist() == alone.baseline.tolist()
    assert record.baseline.tolist() != hf.run("finetune", stream).baseline.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_what_a_failed_trial_took_counts_in_the_cost(name, stream):
    diverging = small(name, lr=(0.01,), later_lr=(0.02, 1e30), steps=60, sizes=(8,), layers=(1,))
    record = hf.run("finetune", stream, protocol=diverging)
    failed = [row for row in record.study["trials"] if "failed" in row]
    assert failed
    for row in failed:
        assert row["flops"] > 0 and row["seconds"] > 0 and row["updates"] > 0
    rest = [row for row in record.study["trials"] if not row["chosen"]]
    assert record.resources["trials"]["flops"] == sum(row["flops"] for row in rest)
