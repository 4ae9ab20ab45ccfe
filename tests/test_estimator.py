"""The scikit-learn face of Holdfast."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

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


BOTH = [name for name in methods.names() if not (methods.find(name).needs_task or methods.find(name).mixes)]


FOR_VECTORS = {
    "vcl": {"test_samples": 5},
    "vgr": {"generator": "dense", "generator_steps": 5, "classifier": "dropout", "test_samples": 5},
}
ADAM = hf.protocol("epochs", epochs=3, optimiser="adam", lr=1e-3)


@pytest.mark.parametrize("protocol", [hf.protocol("online"), ADAM])
@pytest.mark.parametrize("name", BOTH)
def test_it_is_the_method_that_a_run_evaluates(name, protocol, digits):
    """The same tasks, shown by `hf.run`: equal accuracies per task, bit for bit."""
    X, y = digits
    stream = hf.stream("split", data=(X, y), tasks=5, examples=150)
    net = hf.net("mlp", hidden=(50,), dropout=0.0 if name == "vcl" else 0.2)  # which draws from torch's own generator
    method = hf.method(name, **FOR_VECTORS.get(name, {}))
    run = hf.run(method, stream, net=net, protocol=protocol, seed=3)
    model = hf.ContinualClassifier(method, net=net, protocol=protocol, max_classes=10, seed=3)
    for task in stream.tasks:
        model.partial_fit(task.train.x().numpy(), task.train.y.numpy())
    scores = [model.score(task.test.x().numpy(), task.test.y.numpy()) for task in stream.tasks]
    assert scores == run.R[-1].tolist()


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
    for call in (lambda: model.partial_fit(X[:, :10], y), lambda: model.predict(X[:, :10])):
        with pytest.raises(hf.BadInput, match="shape"):
            call()
    with pytest.raises(hf.BadInput, match="max_classes"):
        hf.ContinualClassifier(max_classes=0).fit(X, y)
    with pytest.raises(hf.BadInput, match="task 0 is over"):
        model.partial_fit(X[:50], y[:50]).partial_fit(X[:50], y[:50], task=0)
