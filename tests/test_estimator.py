"""The scikit-learn face of Holdfast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils.estimator_checks import check_estimator
from torch import nn

import holdfast as hf
from holdfast.methods import methods


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X / 16, y


def parts(digits):
    X, y = digits
    for low in (0, 5):
        now = (y >= low) & (y < low + 5)
        yield X[now], y[now]


def test_classes_that_come_later_are_learned_and_the_old_ones_kept(digits):
    scores = {}
    for name in ("finetune", "er"):
        model = hf.ContinualClassifier(name, max_classes=12)
        for X, y in parts(digits):
            model.partial_fit(X, y)
        scores[name] = model.score(*digits)
    assert scores["er"] > 0.8 and scores["finetune"] < 0.6


def test_predictions_are_among_the_classes_seen_whatever_their_names(digits):
    X, y = digits
    names = np.array([f"digit {9 - c}" for c in y])  # sorted differently from the numbers
    now = y < 3
    model = hf.ContinualClassifier("finetune").partial_fit(X[now], names[now])
    assert set(model.predict(X)) <= {"digit 9", "digit 8", "digit 7"}
    assert model.score(X[now], names[now]) > 0.9
    assert model.predict_proba(X[:5]).shape == (5, 3)
    np.testing.assert_allclose(model.predict_proba(X[:5]).sum(1), 1, rtol=1e-5)


def test_clone_params_and_pipeline(digits):
    model = hf.ContinualClassifier(hf.method("ewc", strength=3), seed=4)
    twin = clone(model)
    assert twin.get_params()["seed"] == 4 and twin.get_params()["method"].strength == 3
    X, y = digits
    fitted = make_pipeline(MinMaxScaler(), hf.ContinualClassifier("finetune")).fit(X, y)
    assert fitted.score(X, y) > 0.9


BOTH = [name for name in methods.names() if not methods.find(name).mixes]
FOR_VECTORS = {
    "dgr": {"hidden": (30,), "latent": 8},
    "vcl": {"test_samples": 5},
    "vgr": {"generator": "dense", "generator_steps": 5, "classifier": "dropout", "test_samples": 5},
}
ADAM = hf.protocol("epochs", epochs=3, optimiser="adam", lr=1e-3)
CROSSVAL = hf.protocol("crossval", epochs=2, batch=20, lr=(0.1, 0.01), decay=(0.0,))


def rows(part):
    return part.x().numpy(), part.y.numpy()


def equal_to_a_run(name, protocol, stream, settings):
    """The same tasks, shown by `hf.run`: the accuracy on every task, after every task, and the bytes."""
    scenario = stream.scenario
    plain = name in ("vcl", "den", "rcl")  # which take no dropout
    net = hf.net("mlp", hidden=(50,), dropout=0.0 if plain else 0.2)  # which draws from torch's own generator
    method = hf.method(name, **settings)
    run = hf.run(method, stream, net=net, protocol=protocol, seed=3)
    model = hf.ContinualClassifier(method, net, protocol, max_classes=10, seed=3, scenario=scenario)
    last = len(stream) - 1
    for t, task in enumerate(stream.tasks):
        model.partial_fit(*rows(task.train), val=rows(task.val) if len(task.val) else 0.0)
        if scenario == "class" and t < last:
            continue  # it answers among the classes it has seen, while a run has an answer that no task had yet wrong
        given = [j if scenario == "task" else None for j in range(t + 1)]
        scores = [model.score(*rows(stream.tasks[j].test), task=given[j]) for j in range(t + 1)]
        assert scores == run.R[t, : t + 1].tolist()
    assert model.bytes_ == run.resources["bytes"][-1]


@pytest.mark.parametrize("protocol", [hf.protocol("online"), ADAM])
@pytest.mark.parametrize("name", BOTH)
def test_it_is_the_method_that_a_run_evaluates(name, protocol, digits):
    """Every method on the shelf, bit for bit."""
    scenario = "task" if methods.find(name).needs_task else "class"
    stream = hf.stream("split", data=digits, tasks=5, examples=150, scenario=scenario)
    equal_to_a_run(name, protocol, stream, FOR_VECTORS.get(name, {}))


@pytest.mark.parametrize("name", [name for name in BOTH if not methods.find(name).needs_task])
def test_so_it_is_where_the_task_is_given(name, digits):
    stream = hf.stream("split", data=digits, tasks=3, examples=60, scenario="task")
    equal_to_a_run(name, ADAM, stream, FOR_VECTORS.get(name, {}))


@pytest.mark.parametrize("name", ["ewc", "mntdp", "mntdp_s", "rcl"])
def test_so_it_is_under_a_protocol_that_chooses_on_validation_rows(name, digits):
    stream = hf.stream("split", data=digits, tasks=2, examples=60, val=0.3, scenario="task")
    equal_to_a_run(name, CROSSVAL, stream, {"trials": 2} if name == "rcl" else {})


EXCEPTIONS = {  # protocols that `partial_fit` cannot run
    "prescient": "takes two tasks, not 1",  # and chooses on the second one's test rows
    "early": "needs two tasks, and stream 'model' has 1",
    "realistic": "looks at the test rows of all tasks so far",  # which partial_fit is not given
    "application": "looks at the test rows of all tasks so far",
}


@pytest.mark.parametrize(("name", "fault"), EXCEPTIONS.items())
def test_protocols_that_look_at_more_than_one_task_say_so(name, fault, digits):
    X, y = digits
    small = {"steps": 10, "lr": (0.01,), "later_lr": (0.01,)} if fault.startswith("looks") else {}
    model = hf.ContinualClassifier("ewc", protocol=hf.protocol(name, **small), max_classes=10)
    with pytest.raises(hf.BadInput, match=fault):
        model.fit(X[:200], y[:200], val=0.2).partial_fit(X[:200], y[:200], val=0.2)


def test_what_shows_all_tasks_at_once_is_a_run_of_one_task(digits):
    stream = hf.stream("split", data=digits, tasks=1, examples=200)
    equal_to_a_run("joint", ADAM, stream, {})


def test_what_shows_all_tasks_at_once_learns_one():
    X, y = load_digits(return_X_y=True)
    model = hf.ContinualClassifier("joint", protocol=hf.protocol("epochs", epochs=2)).fit(X / 16, y)
    with pytest.raises(hf.BadInput, match="cannot learn another task: it sees all tasks at once"):
        model.partial_fit(X, y)


UNCHECKED = {"check_array_api_input": "is for estimators that compute with other arrays than NumPy's; ours do not"}


def test_it_passes_the_checks_of_scikit_learn():
    quick = hf.ContinualClassifier("er", hf.net("mlp", hidden=(20,)), max_classes=5)
    found = check_estimator(quick, on_fail=None, on_skip=None)
    assert {check["check_name"] for check in found if check["status"] != "passed"} == set(UNCHECKED)
    assert len(found) > 50


def test_a_pipeline_is_cross_validated(digits):
    X, y = digits
    pipeline = make_pipeline(MinMaxScaler(), hf.ContinualClassifier("finetune", max_classes=10))
    assert cross_val_score(pipeline, X[:600], y[:600], cv=3).mean() > 0.8


def test_it_is_kept_with_its_labels(digits, tmp_path):
    X, y = digits
    labels = y * 10 - 30
    model = hf.ContinualClassifier("er", max_classes=10, seed=2)
    for X_now, y_now in parts(digits):
        model.partial_fit(X_now, y_now * 10 - 30)
    model.save(tmp_path)
    again = hf.ContinualClassifier.load(tmp_path)
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.classes_.tolist() == sorted(set(labels)) and again.classes_.dtype == labels.dtype
    assert again.score(X, labels) == model.score(X, labels) > 0.8
    assert again.card_ == model.card_ and again.bytes_ == model.bytes_ and again.n_features_in_ == 64
    for each in (model, again):
        each.partial_fit(X[:100], labels[:100])
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert set(hf.load_model(tmp_path).predict(X[:50])) <= set(map(str, labels))  # it is a model like others


def test_the_model_of_a_run_is_one(tmp_path):
    stream = hf.stream("split", tasks=2, sizes=(3, 3), examples=60, test_examples=40)
    record = hf.run("er", stream, keep_model=tmp_path)
    model = hf.ContinualClassifier.load(tmp_path)
    task = stream.tasks[1]
    names = np.array([str(c) for c in task.test.y.tolist()])
    assert model.score(task.test.raw().numpy(), names) == record.R[-1, 1]
    assert model.classes_.tolist() == list("012345") and model.max_classes == 10


def test_a_model_that_diverges_stays_as_it_was(digits):
    X, y = digits
    model = hf.ContinualClassifier("finetune", protocol=hf.protocol("epochs", lr=1.0, epochs=2), max_classes=10)
    model.fit(X[y < 5], y[y < 5])
    before = model.decision_function(X)
    with pytest.raises(hf.RunFailed, match="the loss became"):
        model.partial_fit(1e6 * X, y)
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert model.model_.tasks == 1 and model.classes_.tolist() == [0, 1, 2, 3, 4]


def test_each_row_may_be_of_another_task(digits):
    model = hf.ContinualClassifier("independent", max_classes=10, scenario="task")
    for X, y in parts(digits):
        model.partial_fit(X, y)
    X, y = digits
    assert model.score(X, y, task=(y > 4).astype(int)) > 0.9
    assert set(model.predict(X, task=1)) == {5, 6, 7, 8, 9}
    assert model.predict_proba(X[:3], task=1)[:, :5].max() == 0
    with pytest.raises(hf.BadInput, match="task must be a number from 0 to 1"):
        model.predict(X)


def test_a_trained_module_is_a_warm_start(digits, tmp_path):
    """It knows what the module knows, and has outputs for more."""
    X, y = digits
    x, old = torch.from_numpy(X).float(), torch.from_numpy(y)
    known = old < 5
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(64, 50), nn.ReLU(), nn.Linear(50, 5))
    optimiser = torch.optim.Adam(module.parameters(), 0.01)
    for _ in range(60):
        optimiser.zero_grad()
        nn.functional.cross_entropy(module(x[known]), old[known]).backward()
        optimiser.step()
    model = hf.ContinualClassifier("er", hf.warm(module), hf.protocol("epochs", lr=1e-9), 8, known=range(5))
    model.partial_fit(X[y == 5], y[y == 5])  # which hardly moves it
    assert model.classes_.tolist() == [0, 1, 2, 3, 4, 5]
    assert model.score(X[y < 5], y[y < 5]) > 0.9
    logits = model.decision_function(X)[:, :5]
    np.testing.assert_allclose(logits, module(x).detach().numpy(), rtol=1e-3, atol=1e-3)
    model.save(tmp_path)
    again = hf.ContinualClassifier.load(tmp_path, net=hf.warm(module))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for wrong, fault in [
        (nn.Sequential(nn.Conv1d(1, 1, 3)), "last layer of a warm network must be an nn.Linear"),
        (nn.Sequential(nn.Linear(64, 12)), "the warm network has 12 outputs, and the model only 8"),
    ]:
        with pytest.raises(hf.BadInput, match=fault):
            hf.ContinualClassifier("er", hf.warm(wrong), max_classes=8).fit(X, y % 5)


def test_a_protocol_of_a_users_passes_as_often_as_it_says(digits):
    @dataclass(frozen=True)
    class HeadStart(hf.Passing):
        passes = 1

        def passes_over(self, task):
            return 1 if task.t else 6

    X, y = digits
    stream = hf.stream("split", data=(X, y), tasks=3, examples=100)
    model = hf.ContinualClassifier("er", protocol=HeadStart(), max_classes=10)
    for task in stream.tasks:
        model.partial_fit(task.train.x().numpy(), task.train.y.numpy())
    scores = [model.score(task.test.x().numpy(), task.test.y.numpy()) for task in stream.tasks]
    assert scores == hf.run("er", stream, protocol=HeadStart(), seed=0).R[-1].tolist()


def test_a_model_that_diverges_says_so(digits):
    X, y = digits
    with pytest.raises(hf.RunFailed, match="the loss became"):
        hf.ContinualClassifier("finetune", protocol=hf.protocol("epochs", lr=1e6)).fit(X * 100, y)


def test_same_seed_same_model(digits):
    X, y = digits
    first, again = (hf.ContinualClassifier("er", seed=1).fit(X, y).decision_function(X) for _ in range(2))
    np.testing.assert_array_equal(first, again)


def test_schedules_and_clipping_reach_the_model(digits):
    X, y = digits
    plain, *others = (
        hf.ContinualClassifier("finetune", protocol=hf.protocol("epochs", **words)).fit(X, y).decision_function(X)
        for words in ({}, {"schedule": "cosine"}, {"clip": 0.1})
    )
    assert not any(np.allclose(plain, other) for other in others)


def test_fit_starts_anew(digits):
    X, y = digits
    model = hf.ContinualClassifier("finetune").fit(X[y < 2], y[y < 2])
    assert model.fit(X[y > 7], y[y > 7]).classes_.tolist() == [8, 9]


def test_bad_input_is_refused(digits):
    X, y = digits
    with pytest.raises(NotFittedError):
        hf.ContinualClassifier().predict(X)
    with pytest.raises(hf.BadInput, match="reserved for 5"):
        hf.ContinualClassifier(max_classes=5).fit(X, y)
    with pytest.raises(hf.BadInput, match="needs the task label"):
        hf.ContinualClassifier("independent").fit(X, y)
    model = hf.ContinualClassifier("finetune").fit(X[:50], y[:50])
    for call in (
        lambda: model.partial_fit(X[:, :10], y),
        lambda: model.partial_fit(X, y[:9]),
        lambda: model.predict(X[:, :10]),
    ):
        with pytest.raises(ValueError, match=r"expecting 64 features|inconsistent numbers"):
            call()
    with pytest.raises(hf.BadInput, match="max_classes"):
        hf.ContinualClassifier(max_classes=0).fit(X, y)
    with pytest.raises(hf.BadInput, match="task 0 is over, and its data are gone: the next task is 2"):
        model.partial_fit(X[:50], y[:50]).partial_fit(X[:50], y[:50], task=0)
