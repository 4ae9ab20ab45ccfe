"""A scikit-learn estimator around any method: `partial_fit` is one more task."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from holdfast.api import as_method, as_net, as_protocol
from holdfast.audit import Lease
from holdfast.data import as_dataset
from holdfast.engine import pooled
from holdfast.errors import BadInput
from holdfast.protocols import Passing, Showing, fresh
from holdfast.seeds import dice, generator, seed_for, seeded, set_dice
from holdfast.sweeps.cell import make_net, one_thread, pick_device
from holdfast.types import Part, StreamInfo, Task, as_float


class ContinualClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns new classes or new data without the old ones, by any method of Holdfast.

    Every `partial_fit` is a task, after which its data are gone. Classes may come later: outputs are reserved for
    `max_classes` of them in the order in which they come, and predictions are among those seen. The same tasks shown by
    `hf.run` in the class scenario, with as many outputs in that order, give the same network.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = ContinualClassifier("er", max_classes=10)
    >>> for low in (0, 5):
    ...     now = (y >= low) & (y < low + 5)
    ...     model = model.partial_fit(X[now] / 16, y[now])
    >>> model.score(X / 16, y) > 0.8
    True
    """

    classes_: np.ndarray  # seen so far, sorted
    index_: list[int]  # the output of each of them
    task_: int

    def __init__(
        self,
        method: Any = "er",
        net: Any = "mlp",
        protocol: Any = "epochs",
        max_classes: int = 100,
        seed: int = 0,
        device: str = "auto",
    ) -> None:
        self.method = method
        self.net = net
        self.protocol = protocol
        self.max_classes = max_classes
        self.seed = seed
        self.device = device

    def fit(self, X: Any, y: Any) -> Self:
        """Start anew and learn one task."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        return self.partial_fit(X, y)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, task: int | None = None) -> Self:
        """Learn one more task. `classes` may announce later classes; `task` is its descriptor (default: the next)."""
        data = as_dataset((X, y, X, y), self.seed)
        names = np.asarray(y).reshape(-1)
        if "learner_" not in vars(self):
            self._start(data.shape)
        self._check_shape(data.shape)
        self._meet(names if classes is None else np.concatenate([np.asarray(classes), names]))
        if task is not None and task < self.task_:
            raise BadInput(f"task {task} is over: the model is at task {self.task_}; its data are gone")
        self.task_ = self.task_ + 1 if task is None else task
        labels = torch.tensor(self.index_)[np.searchsorted(self.classes_, names)]
        self._learn(Part(data.x, torch.arange(len(labels)), labels))
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Logits of the classes seen, in the order of `classes_`; of sampled predictions, log-probabilities."""
        check_is_fitted(self, "learner_")
        x = as_float(as_dataset((X, np.zeros(len(X), int), X, np.zeros(len(X), int)), self.seed).x)
        self._check_shape(tuple(x.shape[1:]))
        with torch.inference_mode(), one_thread():
            said = [self.learner_.predict(part.to(self.device_), None) for part in x.split(1000)]
        logits = torch.cat([each if each.dim() == 2 else pooled(each) for each in said]).cpu()
        return logits[:, self.index_].numpy()

    def predict_proba(self, X: Any) -> np.ndarray:
        logits = torch.from_numpy(self.decision_function(X))
        return logits.softmax(-1).numpy()

    def predict(self, X: Any) -> np.ndarray:
        best = self.decision_function(X).argmax(1)
        return self.classes_[best]

    def _check_shape(self, shape: tuple[int, ...]) -> None:
        if shape != self.info_.shape:
            raise BadInput(f"X has examples of shape {shape}, but the model was fitted with {self.info_.shape}")

    def _start(self, shape: tuple[int, ...]) -> None:
        if self.max_classes < 1:
            raise BadInput(f"max_classes must be a whole number >= 1, not {self.max_classes}")
        device, learner = pick_device(self.device), fresh(as_method(self.method))
        info = StreamInfo("partial_fit", "class", shape, self.max_classes, ())  # which tasks will come is not known
        protocol = as_protocol(self.protocol)
        if not isinstance(protocol, Passing) or type(protocol).show is not Passing.show:
            raise BadInput(f"protocol {self.protocol!r} needs whole streams to choose on; use 'epochs' or 'online'")
        if learner.needs_task or learner.mixes:
            raise BadInput(f"method {self.method!r} cannot be used here: it needs the task label or all tasks at once")
        with seeded(seed_for(self.seed, "training")):
            net = make_net(as_net(self.net), info, device, self.seed)
            learner.start(net, protocol.descent(), info, generator(self.seed, "learner"))
            self.dice_ = dice()
        self.device_, self.info_, self.protocol_, self.learner_ = device, info, protocol, learner
        self.classes_, self.index_, self.task_ = np.array([]), [], -1

    def _meet(self, names: np.ndarray) -> None:
        """Give classes that are new the next free outputs; `classes_` stays sorted, as scikit-learn wants."""
        known = dict(zip(self.classes_.tolist(), self.index_, strict=True))
        for name in np.unique(names).tolist():
            known.setdefault(name, len(known))
        if len(known) > self.max_classes:
            raise BadInput(f"{len(known)} classes were seen, but outputs are reserved for {self.max_classes}")
        ordered = sorted(known)
        self.classes_ = np.array(ordered)
        self.index_ = [known[name] for name in ordered]

    def _learn(self, part: Part) -> None:
        """What a protocol does with a task, but for the measurements."""
        learner, protocol = self.learner_, self.protocol_
        part = part.to(self.device_, {})
        rng = generator(self.seed, "batches", task=self.task_)
        nothing = part.take(torch.zeros(0, dtype=torch.long))
        task = Task(self.task_, f"partial_fit {self.task_}", tuple(part.y.unique().tolist()), part, nothing, nothing)
        lease = Lease(task.t, task.train, task.val)
        showing = Showing(learner, lease, part, task.t, protocol.passes_over(task), protocol.batch, rng)
        with one_thread(), seeded(0):
            set_dice(self.dice_)
            if protocol.reset_optimiser:
                learner.optimiser.reset()
            for _ in showing.whole(lease=not protocol.single_pass):
                pass
            learner.ready()
            self.dice_ = dice()
