"""What a protocol shows, when it scores, and what the record and card say of it."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast import metrics
from holdfast.methods._base import Learner


class Witness(Learner):
    """Learns plainly and notes what it was shown."""

    def start(self, *args):
        super().start(*args)
        self.log: list = []

    def begin(self, train, plan):
        self.log.append(["begin", train is not None])

    def observe(self, batch):
        self.log.append(["batch", batch.task, sorted(batch.x.flatten(1).sum(1).tolist())])
        return self.descend(self.cross_entropy(batch))

    def finish(self, train):
        self.log.append(["finish", train.task, len(train)])

    def ready(self):
        self.log.append(["ready"])


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", tasks=3, sizes=(2, 2, 2), examples=35)


def session_of(learner, stream, name="online", **settings):
    from holdfast.engine import Net

    torch.manual_seed(0)
    net = Net(hf.net("mlp", hidden=(8,)).build(stream.info))
    return hf.protocol(name, **settings).run(learner, stream, net, seed=0)


def shown(log, task):
    return sorted(v for kind, *rest in log if kind == "batch" and rest[0] == task for v in rest[1])


def test_online_shows_every_example_once_and_gives_no_lease_at_the_beginning(stream):
    log = session_of(Witness(), stream).learner.log
    for task in stream.tasks:
        np.testing.assert_allclose(shown(log, task.t), sorted(task.train.x().flatten(1).sum(1).tolist()))
    assert [e[1] for e in log if e[0] == "begin"] == [False] * 3
    assert [len(e[2]) for e in log if e[0] == "batch"] == [10, 10, 10, 5] * 3
    assert [e[1:] for e in log if e[0] == "finish"] == [[0, 35], [1, 35], [2, 35]]


def test_epochs_shows_every_example_n_times_and_gives_the_lease(stream):
    log = session_of(Witness(), stream, "epochs", epochs=3).learner.log
    expected = sorted(3 * stream.tasks[1].train.x().flatten(1).sum(1).tolist())
    np.testing.assert_allclose(shown(log, 1), expected)
    assert [e[1] for e in log if e[0] == "begin"] == [True] * 3


def test_ready_comes_before_each_scoring_and_after_the_task(stream):
    log = session_of(Witness(), stream).learner.log
    kinds = [e[0] for e in log if e[0] != "batch"]
    assert kinds == ["begin", "finish", "ready"] * 3


def test_r_is_the_accuracy_of_the_learner_as_it_then_was(stream):
    record = hf.run("finetune", stream, seed=3)
    assert record.R.shape == (3, 3) and record.R.dtype == np.float64 and record.baseline.shape == (3,)
    np.testing.assert_allclose(metrics.rescore(record), record.R, atol=1e-12)
    assert record.R[0, 0] > 0.9 and record.R[2, 0] == 0.0  # class scenario: the first task is forgotten whole


def test_the_baseline_is_the_accuracy_at_random_initialisation():
    stream = hf.stream("rotated", tasks=2)

    def build(info):
        torch.manual_seed(5)
        return hf.net("mlp").build(info)

    record = hf.run("finetune", stream, net=build)
    module = build(stream.info)
    by_hand = [(module(t.test.x()).argmax(-1) == t.test.y).double().mean().item() for t in stream.tasks]
    np.testing.assert_allclose(record.baseline, by_hand)


def test_score_every_adds_rows_and_leaves_the_metrics_alone(stream):
    plain = hf.run("finetune", stream)
    finer = hf.run("finetune", stream, protocol=hf.protocol("online", score_every=2))
    rows = [(s["after_task"], s["step"]) for s in finer.scorings]
    assert rows == [(t, step) for t in range(3) for step in (2, 4)] and finer.R.shape == (6, 3)
    np.testing.assert_array_equal(finer.final, plain.R)
    assert finer.acc == plain.acc and finer.bwt == plain.bwt


def test_a_scoring_that_falls_on_the_last_step_is_one_row(stream):
    record = hf.run("finetune", stream, protocol=hf.protocol("online", score_every=4))  # four steps per task
    assert [(s["after_task"], s["step"]) for s in record.scorings] == [(0, 4), (1, 4), (2, 4)]


def test_score_first_gives_the_learning_curve_area(stream):
    record = hf.run("finetune", stream, protocol=hf.protocol("online", score_first=3))
    rows = [r for r in record.curves if r["task"] == r["after_task"] and r["step"] <= 3]
    by_hand = np.mean([r["accuracy"] for r in rows])
    assert metrics.lca(record, 3) == pytest.approx(by_hand)


def test_lower_loss_and_curves_agree_with_r(stream):
    record = hf.run("finetune", stream)
    last = [r for r in record.curves if r["after_task"] == 2]
    assert [r["accuracy"] for r in last] == record.R[2].tolist()
    assert all(np.isfinite(r["loss"]) for r in record.curves)


def test_optimiser_state_persists_unless_reset(stream):
    adam = {"optimiser": "adam", "lr": 0.01}
    kept = session_of(Witness(), stream, **adam).learner.optimiser
    fresh = session_of(Witness(), stream, reset_optimiser=True, **adam).learner.optimiser
    assert kept.steps == 12 and fresh.steps == 4


def test_a_loss_that_explodes_stops_the_run_and_names_task_and_step(stream):
    class Exploding(Learner):
        def start(self, *args):
            super().start(*args)
            self.steps = 0

        def observe(self, batch):
            self.steps += 1
            loss = self.descend(self.cross_entropy(batch))
            return loss / 0 if self.steps == 6 else loss

    with pytest.raises(hf.RunFailed, match="became inf in task 1 at step 2"):
        hf.run(Exploding(), stream)


def test_reading_the_lease_counts_as_another_pass(stream):
    assert hf.run("finetune", stream).card["single_pass"]["value"] == 1.0
    record = hf.run(hf.method("ewc", samples=7), stream)
    assert record.card["single_pass"]["value"] == pytest.approx(1 + 7 / 35)
    assert record.card["single_pass"]["met"] is False


def test_a_run_changes_neither_the_method_nor_the_module_it_was_given(stream):
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    before = [p.detach().clone() for p in module.parameters()]
    method = hf.method("ewc")
    first, second = hf.run(method, stream, net=module), hf.run(method, stream, net=module)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert vars(method) == vars(hf.method("ewc"))
    np.testing.assert_array_equal(first.R, second.R)


def test_the_seed_decides_everything_and_global_dice_nothing(stream):
    net = hf.net("mlp", dropout=0.5)
    torch.manual_seed(1)
    first = hf.run("er", stream, net=net, seed=7)
    torch.manual_seed(2)
    again, other = hf.run("er", stream, net=net, seed=7), hf.run("er", stream, net=net, seed=8)
    np.testing.assert_array_equal(first.R, again.R)
    assert [r["loss"] for r in first.curves] == [r["loss"] for r in again.curves]
    assert [r["loss"] for r in first.curves] != [r["loss"] for r in other.curves]


def test_a_learner_that_needs_the_task_is_refused_in_one_line(stream):
    with pytest.raises(hf.BadInput, match="'independent' needs the task label, which the 'class' scenario hides"):
        hf.run("independent", stream)


@pytest.mark.parametrize(
    "mistake",
    [
        lambda stream: hf.protocol("online", lr=-1),
        lambda stream: hf.protocol("online", batch=0),
        lambda stream: hf.run("gme", stream),
        lambda stream: hf.run("finetune", stream, net=nn.Sequential(nn.Flatten(), nn.Linear(64, 3))),
    ],
    ids=["lr", "batch", "method", "net output"],
)
def test_bad_input_is_one_sentence(stream, mistake):
    with pytest.raises(hf.BadInput) as caught:
        mistake(stream)
    assert len(caught.value.faults) == 1 and "\n" not in caught.value.faults[0]


def test_flops_of_a_plain_run_follow_the_formula():
    # 784-like MLP 64-100-100-10: forward 2·P_w, backward twice that but for the first layer's input gradient.
    stream = hf.stream("split", tasks=2, sizes=(2, 2), examples=40)
    record = hf.run("finetune", stream)
    layers = [64 * 100, 100 * 100, 100 * 10]
    per_example = 2 * (3 * sum(layers) - layers[0])
    assert record.resources["flops"] == [40 * per_example] * 2


def test_record_has_every_resource_per_task(stream):
    resources = hf.run("gem", stream).resources
    assert all(len(resources[k]) == 3 for k in ("bytes", "flops", "train_seconds", "updates"))
    assert resources["eval_seconds"] > 0 and sorted(resources["flops"]) == resources["flops"]


class Paced(Learner):
    """Notes the learning rate of every step, and what the optimiser is said to have."""

    def start(self, *args):
        super().start(*args)
        self.rates: list = []

    def begin(self, train, plan):
        self.rates.append([self.optimiser.rate])

    def observe(self, batch):
        self.rates[-1].append(self.optimiser.rate)
        assert self.optimiser.lr == 0.4
        return self.descend(self.cross_entropy(batch))

    def finish(self, train):
        self.rates[-1].append(self.optimiser.rate)


class PacedMix(Paced):
    mixes = True


@pytest.mark.parametrize(("name", "steps"), [("online", 4), ("epochs", 8)])
def test_a_schedule_begins_anew_with_every_task(stream, name, steps):
    passes = {"epochs": 2} if name == "epochs" else {}
    rates = session_of(Paced(), stream, name, lr=0.4, schedule="cosine", **passes).learner.rates
    cosine = [0.4 * (1 + np.cos(np.pi * step / steps)) / 2 for step in range(steps)]
    assert len(rates) == 3
    for task in rates:
        np.testing.assert_allclose(task, [0.4, *cosine, 0.4])


def test_a_learner_that_mixes_has_one_schedule(stream):
    (rates,) = session_of(PacedMix(), stream, lr=0.4, schedule="step", schedule_every=5).learner.rates
    np.testing.assert_allclose(rates, [0.4, *[0.4] * 5, *[0.04] * 5, 0.004, 0.4])


def test_a_study_has_schedules_too():
    seen = []

    class Telling(Paced):
        def observe(self, batch):
            seen.append((batch.task, self.optimiser.rate))
            return super().observe(batch)

    stream = hf.stream("split", tasks=2, examples=35, test_examples=15, val=0.2)
    words = {"steps": 6, "score_every": 3, "lr": (0.4,), "later_lr": (0.4, 0.4), "schedule": "step"}
    learner = session_of(Telling(), stream, "realistic", **words, schedule_every=3).learner
    rates = [0.4] * 3 + [0.04] * 3
    assert [task for task, _ in seen] == [0] * 6 + [1] * 12
    np.testing.assert_allclose([rate for _, rate in seen], rates * 3)
    assert [(task[0], task[-1]) for task in learner.rates] == [(0.4, 0.4)] * 2  # in begin and finish


def test_a_schedule_and_clipping_change_what_is_learned_and_stand_in_the_record(stream):
    plain = hf.run("finetune", stream)
    for words in ({"schedule": "cosine"}, {"clip": 0.1}, {"optimiser": "adamw", "decay": 0.1}):
        record = hf.run("finetune", stream, protocol=hf.protocol("online", **words))
        assert record.curves != plain.curves
        for name, value in words.items():
            assert record.settings[f"protocol.{name}"] == {"value": value, "chosen_by": "given"}
    assert plain.settings["protocol.schedule"] == {"value": "constant", "chosen_by": "default"}


@pytest.mark.parametrize("setting", ["schedule_every", "schedule_factor"])
def test_settings_of_a_schedule_that_would_be_ignored_are_refused(stream, setting):
    with pytest.raises(hf.BadInput, match=f"{setting} of protocol 'online' would be ignored: .*schedule=step"):
        hf.run("finetune", stream, protocol=hf.protocol("online", schedule="cosine", **{setting: 3}))


def test_ewc_pulls_with_the_rate_that_was_given(stream, monkeypatch):
    """strength=1/lr is a constant of the method; a schedule does not change it."""
    from holdfast.methods import ewc

    strengths = []
    monkeypatch.setattr(ewc, "pull", lambda net, a, b, strength: strengths.append(strength))
    hf.run(hf.method("ewc", strength="1/lr"), stream, protocol=hf.protocol("online", lr=0.5, schedule="cosine"))
    assert set(strengths) == {2.0}
