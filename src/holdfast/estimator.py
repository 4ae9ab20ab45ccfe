"""A model behind scikit-learn's API: `partial_fit` is one more task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from holdfast.api import load_model, save
from holdfast.api import model as new_model
from holdfast.errors import BadInput
from holdfast.methods import Learner
from holdfast.protocols import Protocol
from holdfast.sweeps import Model, NetLike
from holdfast.sweeps.model import Share
from holdfast.types import Record, Scenario

NOTES = "estimator"  # what it keeps with its model


class ContinualClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns new classes or new data without the old ones, by any method of Holdfast: an `hf.Model` for scikit-learn.

    Every `partial_fit` is a task, after which its data are gone. Classes may come later: outputs are reserved for
    `max_classes` of them in the order in which they come, and predictions are among those seen. The same tasks shown by
    `hf.run`, with as many outputs in that order, give the same network. In the task scenario `predict` takes the task.

    After each task `record_` is the record of all of them, `card_` its audit card, `bytes_` what the learner keeps, and
    `model_` the model itself.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ContinualClassifier("er", max_classes=10)
    >>> for low in (0, 5):
    ...     now = (y >= low) & (y < low + 5)
    ...     model = model.partial_fit(X[now] / 16, y[now])
    >>> model.score(X / 16, y) > 0.8, model.card_["no_old_data"]["value"]
    (True, 457)
    """

    classes_: np.ndarray  # seen so far, sorted
    model_: Model
    record_: Record
    card_: Mapping[str, Any]
    bytes_: int

    def __init__(
        self,
        method: Any = "er",
        net: Any = "mlp",
        protocol: Any = "epochs",
        max_classes: int = 100,
        seed: int = 0,
        device: str = "auto",
        scenario: Scenario = "class",
        known: Sequence[Any] = (),
    ) -> None:
        self.method = method
        self.net = net
        self.protocol = protocol
        self.max_classes = max_classes
        self.seed = seed
        self.device = device
        self.scenario = scenario
        self.known = known

    def fit(self, X: Any, y: Any, val: Share = 0.0) -> Self:
        """Start anew and learn one task."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return self.partial_fit(X, y, val=val)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, task: int | None = None, val: Share = 0.0) -> Self:
        """Learn one more task. `classes` may announce later classes, which get the next outputs; `task` may say which
        one it is, and must be the next. `val`: a share of each class's rows for protocols that choose, or rows of their
        own, `(X, y)`. Where anything goes wrong, all stays as it was."""
        begun = "model_" in vars(self)
        X, y = validate_data(self, _array(X), _array(y), reset=not begun, allow_nd=True)
        check_classification_targets(y)
        tasks = self.model_.tasks if begun else 0
        if task is not None and task != tasks:
            gone = f"task {task} is over, and its data are gone" if task < tasks else f"task {task} cannot come yet"
            raise BadInput(f"{gone}: the next task is {tasks}")
        labels = {**self._labels} if begun else {_name(label): label for label in self.known}
        announced = [] if classes is None else np.unique(_array(classes)).tolist()
        new = {name: label for label in (*announced, *np.unique(y).tolist()) if (name := _name(label)) not in labels}
        self._check_room(len(labels) + len(new))
        model = self.model_ if begun else self._begin()
        model = model.with_names(_name(label) for label in announced)
        apart = (_array(val[0]), _names(_array(val[1]))) if isinstance(val, tuple) else val
        model.learn(X, _names(y), val=apart)
        self._take(model, {**labels, **new})
        return self

    def decision_function(self, X: Any, task: Any = None) -> np.ndarray:
        """Logits of the classes seen, in the order of `classes_` (of two, what the second has more); of sampled
        predictions, log-probabilities."""
        logits = self._logits(X, task)
        return logits[:, 1] - logits[:, 0] if logits.shape[1] == 2 else logits

    def predict_proba(self, X: Any, task: Any = None) -> np.ndarray:
        return torch.from_numpy(self._logits(X, task)).softmax(-1).numpy()

    def predict(self, X: Any, task: Any = None) -> np.ndarray:
        """In the task scenario `task` is that of all rows, or of each."""
        best = self._logits(X, task).argmax(1)
        return self.classes_[best]

    def score(self, X: Any, y: Any, sample_weight: Any = None, task: Any = None) -> float:
        """Accuracy."""
        right = self.predict(X, task) == _array(y)
        return float(np.average(right, weights=sample_weight))

    def save(self, folder: str | Path) -> None:
        """Keep it in a folder, as JSON and safetensors; `hf.load_model` reads it, too."""
        check_is_fitted(self, "model_")
        said: dict[str, Any] = {"labels": list(self._labels.values()), "max_classes": self.max_classes}
        said["features"] = self.n_features_in_
        if "feature_names_in_" in vars(self):
            said["names"] = self.feature_names_in_.tolist()
        self.model_.notes[NOTES] = said
        save(self.model_, folder)

    @classmethod
    def load(
        cls,
        folder: str | Path,
        method: Learner | None = None,
        net: NetLike | None = None,
        protocol: Protocol | None = None,
    ) -> Self:
        """What `save` kept, or the model that a run has left; code of your own must be given."""
        model = load_model(folder, method, net, protocol)
        cell, stream = model.cell, model.stream
        said = model.notes.get(NOTES, {"labels": list(model.classes), "max_classes": stream.info.classes})
        found = cls(cell.method, cell.net, cell.protocol, said["max_classes"], cell.seed, cell.device, stream.scenario)
        if "features" in said:
            found.n_features_in_ = said["features"]
        if "names" in said:
            found.feature_names_in_ = np.array(said["names"], dtype=object)
        found._take(model, {_name(label): label for label in said["labels"]})
        return found

    def _take(self, model: Model, labels: dict[str, Any]) -> None:
        """What a task has left."""
        assert model.record is not None
        self.model_, self._labels, self.record_ = model, labels, model.record
        self.card_, self.bytes_ = model.card, model.bytes
        self.classes_ = np.array(sorted(labels.values()))

    def _begin(self) -> Model:
        words = self.scenario, self.max_classes, [_name(label) for label in self.known]
        return new_model(self.method, self.net, self.protocol, *words, seed=self.seed, device=self.device)

    def _check_room(self, classes: int) -> None:
        if self.max_classes < 1:
            raise BadInput(f"max_classes must be a whole number >= 1, not {self.max_classes}")
        if classes > self.max_classes:
            raise BadInput(f"{classes} classes were seen, but outputs are reserved for {self.max_classes}")

    def _logits(self, X: Any, task: Any) -> np.ndarray:
        """(n, C) in the order of `classes_`; −∞ of those that are not the task's."""
        check_is_fitted(self, "model_")
        X = validate_data(self, _array(X), reset=False, allow_nd=True)
        found = np.full((len(X), len(self.classes_)), -np.inf, np.float32)
        given = np.broadcast_to(np.array(task), len(X))
        for t in dict.fromkeys(given.tolist()):
            mine = given == t
            outputs = self.model_.outputs(X[mine], t).numpy()
            for column, label in enumerate(self.classes_.tolist()):
                place = self.model_.place(_name(label), t)
                if place is not None:
                    found[mine, column] = outputs[:, place]
        return found


def _array(given: Any) -> Any:
    """Tensors become arrays; whatever else scikit-learn may know better."""
    return given.detach().cpu().numpy() if isinstance(given, torch.Tensor) else given


def _names(y: np.ndarray) -> np.ndarray:
    """Labels as a model takes them."""
    return y if y.dtype.kind in "iuU" else np.array([_name(label) for label in y.tolist()])


def _name(label: Any) -> str:
    """What a model calls a class that has this label."""
    return str(int(label)) if isinstance(label, bool | np.bool_) else str(label)
