"""A model that stays: `learn` on one more task is what a longer stream would have been, and it is kept whole or not."""

from __future__ import annotations

import json
import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.audit import Retention
from holdfast.checks.learner import _equal as equal
from holdfast.methods import methods
from holdfast.sweeps.store import to_json

NET = hf.net("mlp", hidden=(12,))
DROPOUT = hf.net("mlp", hidden=(12,), dropout=0.2)  # which draws from torch's own generator
QUICK = {
    "dgr": {"hidden": (8,), "latent": 2},
    "rcl": {"trials": 2},
    "vcl": {"test_samples": 5},
    "vgr": {"classifier": "dropout", "generator_steps": 2, "width": 2, "latent": 3, "test_samples": 5},
}
EPOCHS = hf.protocol("epochs", epochs=2, batch=20)
CROSSVAL = hf.protocol("crossval", epochs=2, batch=20, lr=(0.01,), decay=(0.0,))
ALONE = [name for name in methods.names() if methods.find(name)().needs_length]  # cannot learn a task more
OTHERS = [  # other ways of methods and protocols
    ("er", {"rule": "class ring"}, EPOCHS, {}),
    ("er", {"rule": "task ring"}, EPOCHS, {}),
    ("gem", {"total": 40}, hf.protocol("online"), {}),
    ("imm", {"merge": "mode"}, EPOCHS, {}),
    ("vcl", {"coreset": 20, "test_samples": 5}, EPOCHS, {}),
    ("mntdp", {}, CROSSVAL, {"val": 0.3, "scenario": "task"}),
    ("rcl", {"trials": 2}, CROSSVAL, {"val": 0.3, "scenario": "task"}),
    ("ewc", {}, hf.protocol("realistic", steps=10, lr=(0.01,), later_lr=(0.01, 0.001)), {"val": 0.3}),
    ("er", {}, hf.protocol("online", optimiser="adam", lr=1e-3, schedule="cosine", score_first=2), {"room": 5}),
    ("dgr", {"hidden": (8,), "latent": 2}, hf.protocol("epochs", epochs=2, optimiser="adam", lr=1e-3), {}),
    ("hat", {}, EPOCHS, {"scenario": "task", "head": "task", "scale": "task"}),
    ("er", {}, EPOCHS, {"augment": True, "scale": "centred"}),
    ("icarl", {}, hf.protocol("epochs", epochs=2, score="seen"), {"order": "random"}),
]


def rows(task, part):
    """Rows as a user has them: pixels and names."""
    names = dict(zip(task.classes, task.names, strict=True))
    return part.raw().numpy(), np.array([names[c] for c in part.y.tolist()])


def taught(model, stream, t):
    """One more task, from its rows alone; the tests of earlier ones are at hand to be scored."""
    task = stream.tasks[t]
    val = rows(task, task.val) if len(task.val) else 0.0
    old = [rows(earlier, earlier.test) for earlier in stream.tasks[:t]]
    return model.learn(*rows(task, task.train), test=rows(task, task.test), val=val, old_tests=old, name=task.name)


def said(record):
    """All that a record says but seconds, what it never asked about, and where the data came from."""
    found = json.loads(json.dumps(to_json(replace(record, images=()))))
    found["card"].pop("update_seconds")
    for part in (found["resources"], found["metrics"], found["resources"].get("trials", {})):
        for name in [name for name in part if "seconds" in name]:
            del part[name]
    for name in ("fwt", "forgetting", "unseen_auc", "lca"):  # which ask how a task did before it came
        found["metrics"].pop(name, None)
    for row in found["study"].get("trials", []):
        row.pop("seconds")
    asked = [row for row in found["curves"] if row["after_task"] >= row["task"]]
    last = len(found["tasks"]) - 1  # rows scored together with others are rounded otherwise: accuracies are the same
    known = [row if row["after_task"] == last else (row["after_task"], row["task"], row["accuracy"]) for row in asked]
    triangle = np.tril(np.array(found.pop("R"), dtype=float)).tolist()
    settings = {k: v for k, v in found["settings"].items() if k != "stream.data"}
    return {**found, "curves": known, "R": triangle, "settings": settings, "stream": None}


def compared(tmp_path, method, protocol, words):
    plain = type(method).__name__ in ("VCL", "DEN", "RCL")  # which take no dropout
    given = {"tasks": 4, "examples": 40, "test_examples": 20, "sizes": (2, 2, 3, 3), **words}
    stream, net = hf.stream("split", seed=1, **given), NET if plain else DROPOUT
    whole = hf.run(method, stream, net=net, protocol=protocol, seed=3, keep_model=tmp_path / "whole")
    hf.run(method, stream.first(3), net=net, protocol=protocol, seed=3, keep_model=tmp_path / "model")
    model = hf.load_model(tmp_path / "model")
    torch.manual_seed(int(whole.R.size))  # of a process that has drawn other numbers since
    record = taught(model, stream, 3)
    hf.save(model, tmp_path / "model")
    return whole, record, hf.load_model(tmp_path / "whole"), hf.load_model(tmp_path / "model")


@pytest.mark.parametrize("name", [name for name in methods.names() if name not in ALONE])
def test_one_task_more_is_a_longer_stream(name, tmp_path):
    """R's last row, the card, bytes and all else that was measured, and the learner itself: bit for bit."""
    scenario = "task" if methods.find(name).needs_task else "class"
    method = hf.method(name, **QUICK.get(name, {}))
    whole, record, one, other = compared(tmp_path, method, EPOCHS, {"scenario": scenario})
    assert said(record) == said(whole)
    np.testing.assert_array_equal(record.R[-1], whole.R[-1])
    assert equal(one.learner.state(), other.learner.state())


@pytest.mark.parametrize(("name", "settings", "protocol", "words"), OTHERS)
def test_so_it_is_in_other_ways_of_learning(name, settings, protocol, words, tmp_path):
    whole, record, one, other = compared(tmp_path, hf.method(name, **settings), protocol, words)
    assert said(record) == said(whole)
    assert equal(one.learner.state(), other.learner.state())


def test_methods_that_need_all_tasks_at_the_start_say_so():
    assert ALONE == ["joint"]
    x, y = rows_of_digits(range(4))
    for method in ("joint", hf.method("er", rule="task class ring")):
        model = hf.model(method, net=NET, classes=10)
        model.learn(x, y)
        with pytest.raises(hf.BadInput, match=r"cannot learn another task: (it sees|rule=)"):
            model.learn(x, y)
        assert model.tasks == 1


def rows_of_digits(digits, n=15):
    data = hf.stream("split", tasks=1).tasks[0].train
    each = [(data.y == digit).nonzero().flatten()[:n] for digit in digits]
    picked = torch.cat(each)
    return data.raw(picked).numpy(), data.y[picked].numpy()


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """A model of two tasks, and its folder."""
    folder = tmp_path_factory.mktemp("kept") / "model"
    stream = hf.stream("split", tasks=5, examples=40, test_examples=20).first(2)
    record = hf.run("er", stream, net=NET, protocol=EPOCHS, keep_model=folder)
    return folder, stream, record


@pytest.fixture
def folder(kept, tmp_path):
    return shutil.copytree(kept[0], tmp_path / "model")


def test_it_answers_as_it_was_scored(kept):
    folder, stream, record = kept
    model = hf.load_model(folder)
    assert model.classes == ("0", "1", "2", "3") and model.tasks == 2
    for t, task in enumerate(stream.tasks):
        x, y = rows(task, task.test)
        predicted = model.predict(x)
        assert predicted.tolist() == [str(c) for c in record.predictions[t][-1]]
        assert (predicted == y).mean() == record.R[-1, t]
        known = model.score(x, y)
        assert known.accuracy == record.R[-1, t] and sum(known.rows.values()) == len(y)
        assert f"{y[0]}    {known.classes[y[0]]:.3f}  {known.rows[y[0]]} rows" in str(known)
    np.testing.assert_allclose(model.predict_proba(x).sum(1), 1, rtol=1e-6)
    assert model.logits(x).shape == (len(x), 4)
    assert model.card == record.card and model.bytes == record.resources["bytes"][-1]
    np.testing.assert_array_equal(model.record.R, record.R)


def test_classes_that_it_never_learned_are_told():
    x, y = rows_of_digits((0, 1, 7))
    model = hf.model("er", net=NET, classes=10)
    model.learn(x[y < 7], y[y < 7])
    known = model.score(x, y)
    assert known.never == ("7",) and known.classes["7"] == 0 and "never learned" in str(known)


def test_it_keeps_no_rows_but_those_that_its_card_says(tmp_path):
    stream = hf.stream("split", tasks=3, examples=40, test_examples=20)
    for name in ("finetune", "er"):
        hf.run(hf.method(name), stream, net=NET, keep_model=tmp_path / name)
        model = hf.load_model(tmp_path / name)
        found = Retention(stream.info.shape)
        found.remember(*(task.train for task in stream.tasks), *(task.test for task in stream.tasks))
        assert found.scan([model.state, model.record, model.stream])[0] == model.card["no_old_data"]["value"]
        assert not (tmp_path / name / "1" / "images.npz").exists()


def test_learning_without_tests_learns_the_same(kept):
    """What is not scored is null in the record, and what is learned does not depend on it."""
    folder, stream, _ = kept
    x, y = rows_of_digits((4, 5))
    silent, scored = hf.load_model(folder), hf.load_model(folder)
    record = silent.learn(x, y)
    scored.learn(x, y, test=(x, y), old_tests={1: rows(stream.tasks[1], stream.tasks[1].test)})
    assert equal(silent.learner.state(), scored.learner.state())
    assert np.isnan(record.R[-1]).all() and record.metrics["acc"] is None and record.tasks[2]["n_test"] == 0
    assert np.isnan(scored.record.R[-1, 0]) and not np.isnan(scored.record.R[-1, 1:]).any()
    later = silent.learn(*rows_of_digits((6, 7)), test=0.2)
    assert later.tasks[3]["n_test"] == 6 and later.tasks[3]["n_train"] == 24 and not np.isnan(later.R[-1, 3])
    assert to_json(later)["baseline"][2] is None


def test_new_classes_get_the_outputs_that_were_reserved_for_them(kept, tmp_path):
    x, y = rows_of_digits(range(6))
    names = np.array(["fox", "cat", "dog", "eel", "ant", "bee"])[y]
    model = hf.model("er", net=NET, classes=5)
    model.learn(x[y < 3], names[y < 3])
    assert model.classes == ("cat", "dog", "fox")
    model.learn(x[(y > 1) & (y < 5)], names[(y > 1) & (y < 5)])  # one is known, and keeps its output
    assert model.classes == ("cat", "dog", "fox", "ant", "eel")
    with pytest.raises(hf.BadInput, match=r"1 classes are new \('bee'\), and of the 5 outputs 0 are free"):
        model.learn(x[y == 5], names[y == 5])
    assert model.tasks == 2
    named = hf.model("er", net=NET, classes=["eel", "dog", "cat"])
    named.learn(x[(y == 1) | (y == 2)], names[(y == 1) | (y == 2)])
    assert named.classes == ("dog", "cat") and named.stream.tasks[0].classes == (1, 2)
    stream = hf.stream("split", data=(x[y < 4], names[y < 4]), tasks=2, room=2)
    hf.run("er", stream, net=NET, keep_model=tmp_path / "room")
    model = hf.load_model(tmp_path / "room")
    model.learn(x[y > 3], names[y > 3])
    assert model.classes[-2:] == ("ant", "bee")


def test_the_task_scenario_gives_the_task(tmp_path):
    x, y = rows_of_digits(range(4))
    model = hf.model("independent", net=NET, scenario="task", classes=4)
    for old in (0, 2):
        now = (y >= old) & (y < old + 2)
        model.learn(x[now], y[now])
    assert set(model.predict(x, task=0)) <= {"0", "1"} and set(model.predict(x, task=1)) <= {"2", "3"}
    assert model.score(x[y < 2], y[y < 2], task=0).accuracy > 0.5
    for task in (None, 2):
        with pytest.raises(hf.BadInput, match="task must be a number from 0 to 1"):
            model.predict(x, task)
    hiding = hf.model("er", net=NET)
    hiding.learn(x, y)
    with pytest.raises(hf.BadInput, match="hides the task"):
        hiding.predict(x, task=0)
    with pytest.raises(hf.BadInput, match="needs the task label"):
        hf.model("independent", net=NET).learn(x, y)


def test_the_domain_scenario_has_the_same_classes_in_every_task():
    x, y = rows_of_digits(range(4))
    model = hf.model("er", net=NET, scenario="domain")
    model.learn(x[y < 2], y[y < 2])
    assert model.stream.info.classes == 2
    model.learn(x[y > 1], y[y > 1])
    assert model.classes == ("0/2", "1/3") and model.score(x[y < 2], y[y < 2]).never == ()
    with pytest.raises(hf.BadInput, match="every task has 2 classes"):
        model.learn(x, y)


def test_data_sets_bring_their_own_tests():
    model = hf.model("finetune", net=NET, classes=10, protocol=EPOCHS)
    x, y = rows_of_digits(range(3))
    model.learn((x, y, x[::2], y[::2]))
    assert model.record.tasks[0]["n_test"] == len(y[::2])
    model.learn(torch.utils.data.TensorDataset(torch.from_numpy(x), torch.from_numpy(y)))
    assert model.record.tasks[1]["n_train"] == 36 and model.record.tasks[1]["n_test"] == 9
    assert len(model.score((x, y, x[::2], y[::2])).rows) == 3


def test_bad_rows_are_refused_and_leave_the_model_as_it_was(kept):
    folder, stream, _ = kept
    model = hf.load_model(folder)
    x, y = rows_of_digits((4, 5))
    old = rows(stream.tasks[0], stream.tasks[0].test)
    shuffled = old[0][::-1], old[1][::-1]
    for call, fault in [
        (lambda: model.learn(x[:, :, :5], y), r"shape \(1, 5, 8\), but the model learned examples of \(1, 8, 8\)"),
        (lambda: model.predict(x.astype(float)), "are floats, but the model learned bytes"),
        (lambda: model.learn(x, y[:3]), "x has 30 examples but y has 3 labels"),
        (lambda: model.learn(x, y, old_tests=[shuffled]), r"old_tests\[0\] are not the rows that task 0 was scored on"),
        (lambda: model.learn(x, y, old_tests={0: (x, y)}), r"old_tests\[0\] has classes that task 0 has not"),
        (lambda: model.learn(x, y, old_tests={7: (x, y)}), "rows of task 7, but the model has learned 2 tasks"),
        (lambda: model.learn(x, y, test=2.0), "the share of test rows must be"),
        (lambda: model.learn((x, y), test=0.2), "test is for rows given as x and y"),
        (lambda: hf.model(classes=0), "classes must be how many"),
        (lambda: hf.model(scenario="tasks", scale="big"), "scenario must be one of .*\nscale must be one of"),
        (lambda: hf.model().predict(x), "has learned nothing yet"),
        (lambda: hf.save(hf.model(), folder), "has learned nothing yet"),
    ]:
        with pytest.raises(hf.BadInput, match=fault):
            call()
    with pytest.raises(hf.RunFailed, match="the loss became"):
        hf.model("finetune", protocol=hf.protocol("epochs", lr=1e6)).learn(100.0 * x, y)
    assert model.tasks == 2 and equal(model.state, hf.load_model(folder).state)


def test_streams_that_show_tasks_mixed_leave_a_model_that_only_answers(tmp_path):
    stream = hf.stream("blurred", tasks=2, examples=40)
    record = hf.run("er", stream, net=NET, keep_model=tmp_path)
    model = hf.load_model(tmp_path)
    x, y = rows(stream.tasks[0], stream.tasks[0].test)
    assert model.score(x, y).accuracy == record.R[-1, 0]
    with pytest.raises(hf.BadInput, match="stream 'blurred' shows its tasks mixed"):
        model.learn(x, y)


def test_a_study_keeps_the_model_it_chose(tmp_path):
    small = {"steps": 20, "sizes": (8, 12), "layers": (1,), "lr": (0.01,), "later_lr": (0.001,)}
    stream = hf.stream("slt", examples=100, test_examples=50, val=0.2)
    record = hf.run("finetune", stream, protocol=hf.protocol("realistic", **small), keep_model=tmp_path)
    model = hf.load_model(tmp_path)
    x, y = rows(stream.tasks[1], stream.tasks[1].test)
    assert model.score(x, y).accuracy == record.R[-1, 1]
    with pytest.raises(hf.BadInput, match="looks at the test rows of all tasks so far"):
        model.learn(x, y, val=0.2)


# On disk


def test_a_save_replaces_the_model_at_once(folder):
    model = hf.load_model(folder)
    model.learn(*rows_of_digits((4, 5)), test=0.2)
    hf.save(model, folder)
    assert [path.name for path in folder.iterdir()] == ["2"]
    assert equal(hf.load_model(folder).state, model.state) and hf.load_model(folder).tests == model.tests
    (folder / "3.part").mkdir()  # of a save that was killed
    hf.save(model, folder)
    assert [path.name for path in folder.iterdir()] == ["3"]


def test_a_model_that_is_damaged_is_told_in_one_line_and_left(folder):
    place = folder / "1"
    files = {path.name: path.read_bytes() for path in place.iterdir()}
    dice = random.Random(0)
    for name, content in files.items():
        cut, middle = content[: dice.randrange(len(content))], dice.randrange(len(content))
        flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
        for spoiled in (cut, b"", flipped, None):
            (place / name).unlink(missing_ok=True)
            if spoiled is not None:
                (place / name).write_bytes(spoiled)
            with pytest.raises(
                hf.BadInput, match=rf"^{folder} does not hold a readable model: .*; it is left as it is$"
            ):
                hf.load_model(folder)
            (place / name).write_bytes(content)
    assert hf.load_model(folder).tasks == 2
    words = json.loads(files["model.json"])
    (place / "model.json").write_text(json.dumps({**words, "schema": 2}))
    with pytest.raises(hf.BadInput, match=f"the model in {folder} has schema 2, this version reads 1"):
        hf.load_model(folder)


def test_folders_that_are_no_models_are_left_alone(folder, tmp_path):
    model = hf.load_model(folder)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, fault in (("mine", "exists and is not a model"), ("file", "is a file")):
        with pytest.raises(hf.BadInput, match=fault):
            hf.save(model, tmp_path / name)
        with pytest.raises(hf.BadInput, match=fault):
            hf.run("er", hf.stream("split", tasks=2, examples=20), keep_model=tmp_path / name)
    with pytest.raises(hf.BadInput, match="holds no model"):
        hf.load_model(tmp_path / "none")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "mine", "model"]


def test_what_is_no_model_or_no_rows_is_a_line(folder, tmp_path):
    model = hf.load_model(folder)
    x, y = np.zeros((100, 8, 8), np.uint8), np.arange(99) % 2
    for call, fault in [
        (lambda: hf.save(3, tmp_path / "mm"), "only a model can be saved"),
        (lambda: model.learn(np.zeros((99, 8, 8), np.uint8), y, old_tests=[1, 2]), r"old_tests\[0\] must be the rows"),
        (lambda: hf.warm("x"), "a warm network is a trained torch.nn.Module, not a str"),
    ]:
        with pytest.raises(hf.BadInput, match=fault):
            call()
    with pytest.raises(hf.BadInput) as error:
        model.learn(x, y)
    assert error.value.faults == ("x has 100 examples but y has 99 labels",)
    model.notes["mine"] = object()
    with pytest.raises(hf.BadInput, match=r"model.notes must be JSON"):
        hf.save(model, tmp_path / "mm")
    assert not (tmp_path / "mm").exists()


def test_a_run_replaces_the_model_it_left_and_no_other(folder):
    stream = hf.load_model(folder).stream
    with pytest.raises(
        hf.BadInput, match=f"{folder} holds another model: er after {len(stream)} tasks; choose another"
    ):
        hf.run("finetune", hf.stream("split", tasks=2, examples=20), keep_model=folder)
    mine = folder.parent / "own"
    for _ in range(2):
        hf.run("er", hf.stream("split", tasks=2, examples=20), NET, keep_model=mine)
    with pytest.raises(hf.BadInput, match="holds another model"):
        hf.run("er", hf.stream("split", tasks=2, examples=20), NET, seed=1, keep_model=mine)
    assert hf.load_model(folder).stream.fingerprint == stream.fingerprint


@dataclass
class Mine(hf.Learner):
    strength: float = 1.0

    def observe(self, batch):
        return self.fit(batch)


def mine(info):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, info.classes))


def test_code_of_your_own_is_given_again(tmp_path):
    x, y = rows_of_digits(range(4))
    model = hf.model(Mine(strength=2.0), net=mine, classes=6)
    model.learn(x, y)
    hf.save(model, tmp_path)
    again = hf.load_model(tmp_path, method=Mine(strength=2.0), net=mine)
    np.testing.assert_array_equal(again.logits(x), model.logits(x))
    again.learn(*rows_of_digits((4, 5)))
    for given, fault in [
        ({}, "the method 'Mine' of the model in .* is code of your own; give it: hf.load_model"),
        ({"method": Mine(strength=2.0)}, "the net 'mine' of the model in .* is code of your own"),
        ({"method": Mine(), "net": mine}, "is 'Mine' with strength=2.0, not 'Mine' with strength=1.0"),
        ({"method": hf.method("er")}, "is 'Mine' with strength=2.0, not 'er'"),
        ({"method": Mine(strength=2.0), "net": other}, "the net of the model in .* is 'mine'"),
    ]:
        with pytest.raises(hf.BadInput, match=fault):
            hf.load_model(tmp_path, **given)


def other(info):
    return mine(info)


def test_it_is_on_the_command_line(tmp_path, capsys):
    from holdfast.cli import main

    words = "run er --tasks 2 --examples 30 --quiet --out".split()
    assert main([*words, str(tmp_path / "out")]) == 0
    assert not list(tmp_path.glob("out/cells/*/model"))
    assert main([*words, str(tmp_path / "out"), "--keep-model"]) == 0  # it had left none
    (place,) = tmp_path.glob("out/cells/*/model")
    model, before = hf.load_model(place), place.stat().st_mtime_ns
    assert model.tasks == 2 and model.record.method == "er"
    assert main([*words, str(tmp_path / "out"), "--keep-model"]) == 0
    assert place.stat().st_mtime_ns == before
    assert Path(place / "1" / "record.json").exists()
