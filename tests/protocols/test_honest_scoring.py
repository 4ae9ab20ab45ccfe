"""Scoring cannot be gamed by counting, and predicting changes nothing."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.engine import Net
from holdfast.methods._base import Learner


class Plain(Learner):
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))


class Counting(Plain):
    """Guesses the hidden task from the order of the calls."""

    def ready(self):
        self.calls = 0

    def predict(self, x, task):
        logits = super().predict(x, task)
        calls = vars(self).get("calls", 0)
        mask = torch.zeros(self.info.classes, dtype=torch.bool)
        mask[list(self.info.task_classes[calls % self.info.tasks])] = True
        self.calls = calls + 1
        return logits.masked_fill(~mask, -1e9)


def test_a_learner_that_counts_its_calls_is_stopped():
    with pytest.raises(hf.RunFailed, match="predict changed the learner"):
        hf.run(Counting(), hf.stream("split"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda logits: None, "not NoneType"),
        (lambda logits: logits.argmax(-1), "torch.int64"),
        (lambda logits: logits[:, :3], r"\(\d+, 3\)"),
        (lambda logits: torch.cat([logits, logits], 1), r"\(\d+, 20\)"),
        (lambda logits: logits[:1], r"\(1, 10\)"),
    ],
)
def test_a_wrong_answer_is_told_by_its_shape(answer, words):
    class Wrong(Plain):
        def predict(self, x, task):
            return answer(super().predict(x, task))

    with pytest.raises(TypeError, match=words):
        hf.run(Wrong(), hf.stream("split"))


def test_settings_of_a_class_without_fields_tell_runs_apart(tmp_path):
    class Scaled(Plain):
        def __init__(self, k):
            self.k = k

        def observe(self, batch):
            return self.descend(self.k * self.cross_entropy(batch))

    stream = hf.stream("split", tasks=2, examples=40)
    found = hf.compare([Scaled(1.0), Scaled(0.0)], stream, seeds=1, out=tmp_path / "out")
    assert [r.settings["k"]["value"] for r in found.records] == [1.0, 0.0]
    assert found.records[0].acc != found.records[1].acc


def test_a_copied_network_has_its_own_vector():
    net = Net(nn.Linear(2, 1))
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        twin.set(torch.zeros(3))
        assert twin(torch.ones(1, 2)).item() == 0 and net.theta.abs().sum() > 0
        twin(torch.ones(1, 2)).sum().backward()
        np.testing.assert_array_equal(twin.grad, [1, 1, 1])


def test_a_module_given_in_eval_mode_is_trained_in_train_mode():
    class Modes(Plain):
        def observe(self, batch):
            assert all(m.training for m in self.net.module.modules())
            return super().observe(batch)

    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 10), nn.Dropout(0.5)).eval()
    hf.run(Modes(), hf.stream("split", tasks=2, examples=20), net=module)


def test_seconds_are_not_scaled_by_what_happens_once(monkeypatch):
    """With a clock that only begin, observe and finish move, the sum is exact whatever the number of steps."""
    from holdfast.protocols import _showing

    now = [0.0]
    monkeypatch.setattr(_showing.time, "perf_counter", lambda: now[0])

    class Slow(Plain):
        def begin(self, train, plan):
            now[0] += 2

        def observe(self, batch):
            now[0] += 1
            return super().observe(batch)

        def finish(self, train):
            now[0] += 4

    for examples, steps in ((10, 1), (20, 2), (30, 3), (50, 5)):
        record = hf.run(Slow(), hf.stream("split", tasks=2, examples=examples))
        assert record.resources["train_seconds"] == [6 + steps] * 2


def test_stream_settings_say_who_chose_them():
    settings = hf.run("finetune", hf.stream("split", tasks=2, examples=30)).settings
    assert settings["stream.examples"]["chosen_by"] == "given"
    assert settings["stream.val"]["chosen_by"] == "default"


def test_growing_memory_is_seen_over_many_tasks_and_constant_replay_is_not():
    stream = hf.stream("permuted", tasks=20, examples=40, test_examples=20)
    assert hf.run(hf.method("gem", memories=20), stream).card["memory"]["met"] is False
    agem = hf.run(hf.method("agem", memories=20, replay=20), stream)
    assert agem.card["update_flops"]["met"] is True
