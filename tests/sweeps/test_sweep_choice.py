"""Settings chosen on validation data: what is tried, what is chosen, and what it costs."""

from __future__ import annotations

import dataclasses

import pytest
import torch

import holdfast as hf
from holdfast.sweeps import Failure
from holdfast.sweeps.choice import Choice, Trial, choose, set_in, trial_cells

STREAM = {"tasks": 2, "examples": 60, "val": 0.2}


def cell(**changes) -> hf.Cell:
    made = hf.Cell(hf.method("ewc"), hf.stream("rotated", **STREAM), hf.net("mlp"), hf.protocol("online"), 0)
    return dataclasses.replace(made, **changes)


def test_trials_are_scored_on_validation_rows_and_never_see_the_tests():
    mine = cell()
    tried = trial_cells(mine, {"strength": [1.0, 5.0], "protocol.lr": [0.1, 0.01]})
    assert [(c.method.strength, c.protocol.lr) for c in tried] == [(1.0, 0.1), (1.0, 0.01), (5.0, 0.1), (5.0, 0.01)]
    for seed in (0, 3):
        stream, plain = tried[0].stream.reseed(seed), mine.stream.reseed(seed)
        for trial, task in zip(stream.tasks, plain.tasks, strict=True):
            assert trial.test.pixels is task.train.pixels and torch.equal(trial.test.rows, task.val.rows)
            assert not set(trial.test.rows.tolist()) & set(trial.train.rows.tolist())
    assert len({c.name for c in [mine, *tried]}) == 5 and "scored_on" not in mine.stream.settings


@pytest.mark.parametrize("name", ["rotated", "split"])
def test_rows_kept_for_validation_give_way_in_a_capped_training_part_and_leave_the_test_alone(name):
    """They are the same in all tasks, so a capped training part that has some of them takes the next rows instead."""
    order, plain, kept = (
        hf.stream(name, tasks=2, examples=n, test_examples=50, val=val)
        for n, val in ((None, 0.0), (60, 0.0), (60, 0.2))
    )
    for whole, one, other in zip(order.tasks, plain.tasks, kept.tasks, strict=True):
        free = whole.train.rows[~torch.isin(whole.train.rows, other.val.rows)]
        assert torch.equal(one.train.rows, whole.train.rows[:60]) and torch.equal(other.train.rows, free[:60])
        assert torch.equal(one.test.rows, other.test.rows) and len(one.val) == 0 < len(other.val)


def test_the_highest_accuracy_is_chosen_and_a_failed_run_is_the_worst():
    record = hf.run("finetune", hf.stream("rotated", **STREAM))
    found = [dataclasses.replace(record, metrics={**record.metrics, "acc": acc}) for acc in (0.3, 0.6, 0.6)]
    choice = choose({"strength": [1, 2, 3, 4]}, [Failure("ewc-s0", "it diverged", seconds=3.0, flops=30.0), *found])
    assert choice.settings == {"strength": 3} and [t.acc for t in choice.trials] == [None, 0.3, 0.6, 0.6]
    spent = sum(record.resources["train_seconds"])
    assert choice.cost["runs"] == 4 and choice.cost["seconds"] == pytest.approx(3 * spent + 3)
    with pytest.raises(hf.RunFailed, match="all 2 trials failed"):
        choose({"strength": [1, 2]}, [Failure("ewc-s0", "it diverged")] * 2)


def test_a_trial_that_diverges_costs_what_it_took():
    tuned = hf.tune("finetune", hf.stream("rotated", **STREAM), {"protocol.lr": [0.1, 1e30]}, jobs=2)
    fine, diverged = tuned.choice.trials
    assert diverged.acc is None and 0 < diverged.flops < fine.flops and diverged.seconds > 0
    assert tuned.run().resources["trials"]["flops"] == fine.flops + diverged.flops


@pytest.mark.parametrize(("protocol", "lent"), [("crossval", True), ("epochs", False)])
def test_a_protocol_that_chooses_on_validation_rows_is_lent_those_that_score_a_trial(protocol, lent):
    """As paper 000 chooses λ over a stream whose tasks choose their learning rates; the tests stay unseen."""
    mine = cell(protocol=hf.protocol(protocol))
    (trial,) = trial_cells(mine, {"strength": [1.0]})
    for tried, task in zip(trial.stream.tasks, mine.stream.tasks, strict=True):
        assert torch.equal(tried.test.rows, task.val.rows) and tried.test.pixels is task.train.pixels
        assert torch.equal(tried.val.rows, task.val.rows) if lent else len(tried.val) == 0


def test_a_result_says_how_its_settings_were_chosen_and_counts_what_that_cost():
    choice = Choice({"strength": 2.0, "protocol.lr": 0.05}, (Trial({}, 0.5, 100.0, 1e15), Trial({}, None, 0.0, 0.0)))
    record = choice.applied(cell()).run()
    plain = set_in(cell(), choice.settings, "given").run()
    assert record.settings["strength"] == {"value": 2.0, "chosen_by": "val:stream"}
    assert record.settings["protocol.lr"] == {"value": 0.05, "chosen_by": "val:stream"}
    assert record.settings["samples"]["chosen_by"] == "default"
    assert record.resources["trials"] == {"runs": 2, "seconds": 100.0, "flops": 1e15}
    assert record.metrics["train_seconds"] == pytest.approx(100 + sum(record.resources["train_seconds"]))
    assert record.metrics["flops"] == pytest.approx(1e15 + plain.metrics["flops"])
    causal = record.card["causal_selection"]
    assert causal["met"] is False and "strength from val:stream" in causal["note"]
    assert plain.card["causal_selection"]["met"] is True and (record.R == plain.R).all()


def test_tune_keeps_its_trials_and_runs_the_best(tmp_path):
    stream = hf.stream("rotated", **STREAM)
    tuned = hf.tune("finetune", stream, {"protocol.lr": [1e-6, 0.1]}, jobs=1, out=tmp_path / "t")
    assert tuned.choice.settings == {"protocol.lr": 0.1}
    assert len(list((tmp_path / "t" / "cells").glob("*/record.json"))) == 2
    record = tuned.run()
    same = hf.run("finetune", stream, protocol=hf.protocol("online", lr=0.1))
    assert (record.R == same.R).all() and record.stream.get("scored_on") is None


@pytest.mark.parametrize(
    ("changes", "grid", "word"),
    [
        ({}, {}, "at least one setting"),
        ({}, {"strength": []}, "at least one value"),
        ({}, {"strenght": [1]}, "strength"),
        ({}, {"stream.tasks": [1]}, "not 'stream.tasks'"),
        ({}, {"protocol.lr": [-1]}, "lr of the protocol must be"),
        ({"net": torch.nn.Linear(64, 10)}, {"net.hidden": [(5,)]}, "given by name"),
        ({"stream": hf.stream("rotated", tasks=2)}, {"strength": [1]}, "val=0.1"),
    ],
)
def test_grids_that_cannot_be_tried_are_bad_input(changes, grid, word):
    with pytest.raises(hf.BadInput, match=word):
        trial_cells(cell(**changes), grid)
