"""Selection per task: what is chosen and kept, options and rungs of a learner's, interruptions, books, mistakes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.checks.learner import _equal as equal
from holdfast.methods import Rung
from holdfast.methods.finetune import Finetune
from holdfast.metrics import lca
from holdfast.metrics.scores import learning_curve
from holdfast.sweeps import Cell

SMALL = {"lr": (0.01, 0.001), "decay": (0.0, 1e-3), "epochs": 4, "batch": 20}


def small(**changes):
    return hf.protocol("crossval", **{**SMALL, **changes})


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", tasks=3, examples=60, val=0.2, test_examples=60)


@dataclass
class Scripted(Finetune):
    """Right on so many of every ten validation rows as its script says for the number of steps it has seen."""

    script: tuple[int, ...] = ()

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.steps = 0

    def begin(self, train, plan):
        self.steps = 0
        self.answers = train.val_y

    def observe(self, batch):
        self.steps += 1
        return torch.zeros(())

    def predict(self, x, task):
        if "answers" not in vars(self) or len(x) != len(self.answers):
            return torch.zeros(len(x), self.info.classes)
        right = torch.arange(len(x)) % 10 < self.script[min(self.steps, len(self.script) - 1)]
        y = torch.where(right, self.answers, (self.answers + 1) % self.info.classes)
        return torch.nn.functional.one_hot(y, self.info.classes).float()


def trials(record, task=0):
    return [row for row in record.study["trials"] if row["task"] == task]


SCRIPT = (1, 2, 5, 5, 4, 3, 3, 3, 6, 6, 9, 9)


@pytest.mark.parametrize(
    ("patience", "steps", "stop"),
    [(None, 20, 10), (3, 5, 2), (6, 16, 10), (5, 7, 2)],  # better again after 6 steps, at step 8
)
def test_a_trial_ends_when_patience_does_and_the_first_of_the_best_is_kept(patience, steps, stop):
    data = hf.stream("split", tasks=2, examples=300, val=0.5, test_examples=50, scenario="task")
    protocol = small(lr=(0.1,), decay=(0.0,), epochs=20, batch=400, patience=patience)
    record = hf.run(Scripted(script=SCRIPT), data, protocol=protocol)
    (row,) = trials(record)
    assert (row["updates"], row["stop"]) == (steps, stop)
    assert record.settings["protocol.stop"] == {"value": [stop, stop], "chosen_by": "val:task"}


def by_hand(stream, protocol, task, begun, lr, decay):
    """Plain torch on the same batches: (accuracy on the validation rows, θ) after every pass."""
    from holdfast.engine import batches
    from holdfast.seeds import generator

    net = begun.copy()
    parameters = list(net.module.parameters())
    adam = torch.optim.Adam(parameters, lr, weight_decay=decay)
    rng = generator(0, "batches", task=task.t)
    found = []

    def look():
        with torch.no_grad():
            right = net.module(task.val.x()).argmax(1) == task.val.y
        found.append((right.double().mean().item(), net.theta.detach().clone()))

    look()
    done = 0
    for _ in range(protocol.epochs):
        for batch in batches(task.train, protocol.batch, rng, task.t):
            adam.zero_grad(set_to_none=False)
            torch.nn.functional.cross_entropy(net.module(batch.x), batch.y).backward()
            adam.step()
            done += 1
            if done <= 5 or done == 10 or done % 3 == 0:
                look()
    return found


def watched(stream, protocol):
    """The record of finetune, the networks it began with, and θ at the end of each task."""
    nets, kept = [], []

    class Watched(Finetune):
        def finish(self, train):
            kept.append(self.net.theta.detach().clone())

        def start(self, net, optimiser, info, rng):
            super().start(net, optimiser, info, rng)
            nets.append(net.copy())

    return hf.run(Watched(), stream, protocol=protocol, seed=0), nets, kept


def test_every_task_takes_the_best_of_all_it_tried_and_begins_where_the_one_before_ended(stream):
    """Sixty rows in batches of 20 are three steps a pass. Adam begins anew with every task."""
    protocol = small()
    record, nets, kept = watched(stream, protocol)
    begun = nets[-1]
    for task in stream.tasks:
        tried = {
            (lr, decay): by_hand(stream, protocol, task, begun, lr, decay)
            for lr in protocol.lr
            for decay in protocol.decay
        }
        best = max(tried, key=lambda point: max(q for q, _ in tried[point]))
        highest = max(q for q, _ in tried[best])
        theta = next(theta for q, theta in tried[best] if q == highest)
        chosen = tuple(record.settings[f"protocol.{name}"]["value"][task.t] for name in ("lr", "decay"))
        assert chosen == best
        torch.testing.assert_close(kept[task.t], theta, rtol=1e-4, atol=1e-5)
        begun.set(kept[task.t])
    assert record.settings["protocol.lr"]["chosen_by"] == record.settings["protocol.decay"]["chosen_by"] == "val:task"
    assert record.card["causal_selection"]["met"]
    assert [len(trials(record, t)) for t in range(3)] == [4, 4, 4]


def test_trials_may_be_compared_by_their_later_looks_and_still_take_their_best_step(stream):
    """Twelve steps, looked at after 0 to 5, 6, 9, 10 and 12: from step 6 on they are later."""
    protocol = small(judged_by="later looks", lr=(0.1, 0.01))
    record, nets, kept = watched(stream, protocol)
    begun = nets[-1]
    for task in stream.tasks:
        tried = {
            (lr, decay): by_hand(stream, protocol, task, begun, lr, decay)
            for lr in protocol.lr
            for decay in protocol.decay
        }
        later = {point: np.mean([q for q, _ in course[-4:]]) for point, course in tried.items()}
        best = max(later, key=later.get)
        theta = max(tried[best], key=lambda look: look[0])[1]
        assert tuple(record.settings[f"protocol.{name}"]["value"][task.t] for name in ("lr", "decay")) == best
        torch.testing.assert_close(kept[task.t], theta, rtol=1e-4, atol=1e-5)
        begun.set(kept[task.t])


@pytest.mark.parametrize(("rule", "taken", "worth"), [("best look", "peak", 0.9), ("later looks", "steady", 0.5)])
def test_a_single_high_look_does_not_make_a_trial_the_best_of_its_later_looks(rule, taken, worth):
    """Ten steps, one a pass: 3 right of ten but at step 7, or 5 of ten."""

    class Either(Scripted):
        def options(self, train):
            return ["steady", "peak"]

        def choose(self, option):
            self.script = (5,) if option == "steady" else (3, 3, 3, 3, 3, 3, 3, 9, 3)

    data = hf.stream("split", tasks=2, examples=300, val=0.5, test_examples=50, scenario="task")
    protocol = small(lr=(0.1,), decay=(0.0,), epochs=10, batch=400, patience=None, judged_by=rule)
    record = hf.run(Either(), data, protocol=protocol)
    (row,) = [row for row in trials(record) if row["chosen"]]
    assert (row["option"], row["quality"]) == (taken, pytest.approx(worth, abs=0.01))
    assert row["stop"] == (7 if taken == "peak" else 0)


def test_what_was_not_chosen_counts_in_the_cost_and_one_value_is_no_choice(stream):
    record = hf.run("ewc", stream, protocol=small(decay=(0.0,)))
    assert record.resources["trials"]["runs"] == 3
    total = sum(row["flops"] for row in record.study["trials"])
    assert record.metrics["flops"] == pytest.approx(total)
    assert record.settings["protocol.decay"] == {"value": (0.0,), "chosen_by": "given"}
    assert len(record.settings["protocol.lr"]["value"]) == 3
    assert record.card["single_pass"]["met"] is False


def test_the_first_batches_of_the_chosen_trial_make_the_learning_curve(stream):
    record = hf.run("finetune", stream, protocol=small(score_first=3))
    for t in range(3):
        rows = [row for row in record.curves if row["task"] == row["after_task"] == t and row["step"] <= 3]
        assert [row["step"] for row in rows][:4] == [0, 1, 2, 3]
    assert 0 < lca(record, 3) < 1 and lca(record, 4) is None
    assert record.R.tolist() == hf.run("finetune", stream, protocol=small()).R.tolist()


# Options


def test_the_learning_curve_of_an_option_that_asked_for_few_steps_goes_on_level(stream):
    class Brief(Finetune):
        def options(self, train):
            return [Rung("brief", 2)]

    record = hf.run(Brief(), stream, protocol=small(score_first=5))
    for t in range(3):
        curve = dict(learning_curve(record, t))
        assert list(curve)[:6] == [0, 1, 2, 3, 4, 5] and curve[2] == curve[3] == curve[4] == curve[5]
    assert lca(record) is not None


@dataclass
class Optional(Finetune):
    """Scales its loss by one of three factors, and asks for rungs of the best two, then of the best one."""

    rungs: bool = False

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.factor, self.asked = 1.0, 0

    def options(self, train):
        assert len(train) == len(train.y)
        names = ["1.0", "1e-6", "3.0"]
        return [Rung(name, 4) for name in names] if self.rungs else names

    def more_options(self, train, tried):
        self.asked += 1  # stays
        if not self.rungs or len(tried) >= 6:
            return []
        steps = {3: 8, 5: 12}[len(tried)]
        last = sorted(tried[-(3 if steps == 8 else 2) :], key=lambda each: -each[1])[: 2 if steps == 8 else 1]
        return [Rung(rung.option, steps) for rung, _ in last]

    def choose(self, option):
        self.factor = float(option)

    def observe(self, batch):
        return self.descend(self.factor * self.cross_entropy(batch))


def test_options_are_tried_like_a_grid_and_the_choice_is_told(stream):
    record = hf.run(Optional(), stream, protocol=small(optimiser="sgd", lr=(0.1, 0.3), decay=(0.0,)))
    rows = trials(record)
    assert [(row["option"], row["settings"]["protocol.lr"]) for row in rows] == [
        (option, lr) for option in ("1.0", "1e-6", "3.0") for lr in (0.1, 0.3)
    ]
    assert record.settings["option"]["chosen_by"] == "val:task" and len(record.settings["option"]["value"]) == 3
    assert all(option != "1e-6" for option in record.settings["option"]["value"])


def test_a_later_rung_goes_on_where_the_earlier_one_ended(stream):
    """The winner's weights are those of the same option learned in one go; nothing is paid twice."""
    words = {"optimiser": "momentum", "lr": (0.1,), "decay": (0.0,), "patience": None}
    net = hf.net("mlp", dropout=0.3)
    halved = hf.run(Optional(rungs=True), stream, net=net, protocol=small(**words))
    whole = hf.run(Optional(), stream, net=net, protocol=small(**words))
    for t in range(3):
        rows = {row["option"]: row for row in trials(halved, t)}
        assert sorted(row["updates"] for row in rows.values()) == [4, 8, 12]
        (best,) = (row for row in rows.values() if row["updates"] == 12)
        same = next(row for row in trials(whole, t) if row["option"] == best["option"])
        assert best["flops"] == same["flops"] and best["updates"] == same["updates"]
        if t == 0 and best["trial"] == same["trial"] and best["chosen"] and same["chosen"]:
            assert np.array_equal(halved.R[0], whole.R[0])
    first = next(row for row in trials(halved) if row["chosen"])
    assert first["trial"] < 3 and len(trials(halved)) == 3


@dataclass
class Racing(Scripted):
    """Two options, of which all go on: the first falls after its first rung, the second rises."""

    scripts: ClassVar = {"falls": (9,) * 12 + (2,) * 9, "rises": (1,) * 6 + (5,) * 15}
    told: ClassVar = {}
    last: ClassVar = 1.0

    def options(self, train):
        return [Rung(name, 0.25) for name in self.scripts]

    def more_options(self, train, tried):
        if tried[-1][0].steps >= self.last:
            return []
        type(self).told = {rung.option: worth for rung, worth in tried}
        return [Rung(rung.option, self.last) for rung, _ in tried]

    def choose(self, option):
        self.script = self.scripts[option]


def test_only_what_was_learned_to_the_end_is_taken_and_rungs_are_compared_by_their_best_look():
    data = hf.stream("split", tasks=2, examples=300, val=0.5, test_examples=50, scenario="task")
    words = {"lr": (0.1,), "decay": (0.0,), "epochs": 20, "batch": 400, "patience": None}
    record = hf.run(Racing(), data, protocol=small(judged_by="later looks", **words))
    assert record.settings["option"]["value"] == ["rises", "rises"]
    assert Racing.told == pytest.approx({"falls": 0.9, "rises": 0.1}, abs=0.01)  # after 5 of 20 steps
    quality = {row["option"]: row["quality"] for row in trials(record)}
    assert quality == pytest.approx({"falls": (2 * 0.9 + 9 * 0.2) / 11, "rises": 0.5}, abs=0.01)
    assert hf.run(Racing(), data, protocol=small(**words)).settings["option"]["value"] == ["falls", "falls"]


def test_what_patience_has_ended_at_a_rung_is_not_revived_at_the_next():
    class Impatient(Racing):
        scripts: ClassVar = {"late": (5, 1, 1, 1) + (9,) * 17}

    data = hf.stream("split", tasks=2, examples=300, val=0.5, test_examples=50, scenario="task")
    words = {"lr": (0.1,), "decay": (0.0,), "epochs": 20, "batch": 400, "patience": 3}
    (row,) = trials(hf.run(Impatient(), data, protocol=small(**words)), 0)
    assert (row["stop"], row["updates"]) == (0, 3) and row["quality"] == pytest.approx(0.5, abs=0.01)


def test_who_learns_nothing_to_the_end_is_told(monkeypatch):
    monkeypatch.setattr(Racing, "last", 0.5)
    data = hf.stream("split", tasks=2, examples=300, val=0.5, test_examples=50, scenario="task")
    with pytest.raises(hf.RunFailed, match="Racing gave nothing to learn to the end for task 0: all its rungs are"):
        hf.run(Racing(), data, protocol=small(lr=(0.1,), decay=(0.0,), epochs=20, batch=400))


class Sharing(Finetune):
    """Works on what its trials share: the rows themselves, made once for a task."""

    made = 0

    def share(self, train):
        if "x" not in self.shared:
            type(self).made += 1
            self.shared["x"] = train.x

    def observe(self, batch):
        assert torch.equal(self.shared["x"][batch.rows], batch.x)
        return super().observe(batch)

    def finish(self, train):
        assert "x" in self.shared


def test_trials_of_a_task_share_what_they_have_in_common_and_nothing_is_left_of_it(stream):
    Sharing.made = 0
    record = hf.run(Sharing(), stream, protocol=small())
    assert Sharing.made == 3  # once a task, not once a trial
    assert record.card["no_old_data"]["value"] == 0
    plain = hf.run("finetune", stream, protocol=small())
    assert record.R.tolist() == plain.R.tolist() and record.resources["bytes"] == plain.resources["bytes"]


# Interruptions


def in_pieces(cell, folder, fragile, every):
    pieces = 0
    while True:
        try:
            return cell.run(keep=fragile(folder, cell.hash, every)), pieces
        except fragile.Interrupted:
            pieces += 1


def timeless(record):
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in record.study["trials"]]
    return rows, {name: found for name, found in record.study.items() if name != "trials"}, record.settings


STUDY = {"layers": (1,), "sizes": (8, 16), "lr": (0.01,), "later_lr": (0.02, 0.002), "steps": 12, "score_every": 4,
         "batch": 20, "momentum": 0.9, "choose_on": "test", "at_once": True}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "name", "words"),
    [
        (hf.method("ewc"), "crossval", SMALL),
        (hf.method("gem"), "crossval", SMALL),
        (hf.method("multimodal"), "crossval", SMALL),
        (Optional(rungs=True), "crossval", {**SMALL, "lr": (0.01,), "decay": (0.0,)}),
        (Sharing(), "crossval", {**SMALL, "lr": (0.01,), "patience": 4}),
        (hf.method("ewc"), "prescient", STUDY),
        (hf.method("ewc"), "realistic", STUDY),
        (hf.method("imm"), "application", STUDY),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_selection_goes_on_after_any_trial_and_in_the_middle_of_one(method, name, words, tmp_path, fragile):
    tasks = 2 if name == "prescient" else 3
    data = hf.stream("split", tasks=tasks, examples=60, val=0.2, test_examples=60, scenario="task")
    cell = Cell(method, data, hf.net("mlp", dropout=0.2), hf.protocol(name, **words), 0, reseed=False)
    whole = cell.run()
    done = len(whole.study["trials"])
    for every in (None, 5):
        pieced, pieces = in_pieces(cell, tmp_path / str(every), fragile, every)
        assert pieces >= done - 1 if every is None else pieces > 2 * done
        assert np.array_equal(whole.R, pieced.R) and timeless(whole) == timeless(pieced)
        assert whole.resources["flops"] == pieced.resources["flops"]
        assert whole.card["single_pass"] == pieced.card["single_pass"]
        predictions = ([torch.from_numpy(p) for p in record.predictions] for record in (whole, pieced))
        assert equal(*predictions)


@pytest.mark.parametrize("settings", [{}, {"search": "halving"}, {"thrift": 0.3}], ids=str)
def test_trials_side_by_side_go_on_after_an_interruption(settings, fragile, tmp_path):
    """They are saved when all of them are done, rung by rung."""
    data = hf.stream("split", tasks=2, examples=60, val=0.3, test_examples=60, scenario="task")
    net = hf.net("mlp", hidden=(8, 8), dropout=0.2)
    cell = Cell(hf.method("mntdp", **settings), data, net, small(lr=(0.01,), decay=(0.0,)), seed=0)
    whole, (pieced, pieces) = cell.run(), in_pieces(cell, tmp_path, fragile, 3)
    assert pieces >= len(data)
    assert np.array_equal(whole.R, pieced.R) and timeless(whole) == timeless(pieced)
    assert whole.resources["flops"] == pieced.resources["flops"]


# Mistakes


def test_what_cannot_be_is_told_all_at_once():
    with pytest.raises(hf.BadInput) as caught:
        hf.run("joint", hf.stream("split"), protocol=small(lr=()))
    assert list(caught.value.faults) == [
        "lr of protocol 'crossval' must list at least one value",
        "method 'joint' sees all tasks at once; protocol 'crossval' shows them in order",
        "protocol 'crossval' chooses on validation rows, and stream 'split' keeps none; cut it with val=0.1",
    ]


def test_a_trial_that_diverges_is_left_out_and_a_task_of_which_all_do_fails(stream):
    record = hf.run("finetune", stream, protocol=small(optimiser="sgd", lr=(1e30, 0.1)))
    assert set(record.settings["protocol.lr"]["value"]) == {0.1}
    assert all(
        "the loss became" in row["failed"] for row in record.study["trials"] if row["settings"]["protocol.lr"] > 1
    )
    with pytest.raises(hf.RunFailed, match="every trial of task 0 failed, the last because the loss became"):
        hf.run("finetune", stream, protocol=small(optimiser="sgd", lr=(1e30,)))


def test_a_learner_without_any_option_is_told(stream):
    class Nothing(Finetune):
        def options(self, train):
            return []

    with pytest.raises(hf.RunFailed, match=r"Nothing\.options gave nothing to try for task 0"):
        hf.run(Nothing(), stream, protocol=small())


@pytest.mark.parametrize(("most", "seen"), [(3, [3, 3]), (5, [4, 4]), (None, [4, 4])])
def test_a_task_has_at_most_so_many_steps(most, seen):
    """Two passes of two batches, and rungs are shares of what there is."""
    stream = hf.stream("split", tasks=2, examples=80, val=0.2, test_examples=20)
    protocol = small(lr=(0.1,), decay=(0.0,), epochs=2, batch=64, patience=None, steps=most)
    record = hf.run("finetune", stream, protocol=protocol)
    assert [row["updates"] for row in record.study["trials"]] == seen


def test_a_task_of_few_rows_has_at_least_so_many_steps_in_whole_epochs_of_its_own():
    """Of 80 and 20 rows: two passes of two batches, and as many of one batch as give five steps."""
    tasks = hf.stream("split", tasks=2, examples=80, val=0.2, test_examples=20).tasks
    few = replace(tasks[1], train=tasks[1].train.take(torch.arange(20)))
    stream = replace(hf.stream("split", tasks=2, examples=80, val=0.2, test_examples=20), tasks=(tasks[0], few))
    protocol = small(lr=(0.1,), decay=(0.0,), epochs=2, batch=64, patience=None, least=5)
    rows = hf.run("finetune", stream, protocol=protocol).study["trials"]
    assert [row["updates"] for row in rows] == [5, 5]
    protocol = small(lr=(0.1,), decay=(0.0,), epochs=2, batch=16, patience=None, least=5)
    rows = hf.run("finetune", stream, protocol=protocol).study["trials"]
    assert [row["updates"] for row in rows] == [10, 5]
