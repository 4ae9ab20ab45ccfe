"""What `prescient`, `realistic` and `application` share: models are chosen on the first task, then retrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

from holdfast.engine import Net, Optimiser, OptimiserName
from holdfast.methods import Learner, Merging, methods
from holdfast.protocols._base import Job, Protocol, fresh
from holdfast.protocols._selecting import Budget, Looks, Selection, Tried, faults_of_order, no_validation, own
from holdfast.protocols._session import Session
from holdfast.protocols._stops import Best, Last, Stop
from holdfast.seeds import generator
from holdfast.settings import BelowOne, Count, NonNegative, Positive, Whole, provenance
from holdfast.types import Gone, Stream, Task

HIDDEN, LR, LATER = "net.hidden", "protocol.lr", "protocol.later_lr"
METHOD = "method"  # of a model that is not of the run's own


@dataclass(frozen=True)
class Study(Protocol):
    """Every model of a grid learns the first task; what is chosen is retrained on each later task.

    The grid: as many hidden layers, of as many units, and as large a learning rate as listed. A network whose hidden
    layers are given, or that has no list of them to choose from, keeps its shape.
    """

    chooses_shape: ClassVar[bool] = True

    batch: Count = 100  # examples per mini-batch
    optimiser: OptimiserName = "momentum"  # sgd, momentum, adam or adamw
    momentum: BelowOne = 0.99  # of the momentum optimiser
    score_every: Count = 50  # steps between looks at the accuracies
    decay: NonNegative = 0.0  # weight decay: L2, added to the gradient; adamw: taken off the weights
    lr: tuple[Positive, ...] = (0.01, 0.001)  # ε₁: learning rates tried on the first task
    later_lr: tuple[Positive, ...] = (1e-3, 1e-4, 1e-5)  # ε₂: learning rates tried on each later task
    layers: tuple[Count, ...] = (2, 3)  # numbers of hidden layers tried
    sizes: tuple[Count, ...] = (200, 400, 800)  # units per hidden layer tried
    mix_sizes: bool = False  # also layers of different sizes, as in the code of paper 004
    steps: Count | None = 2500  # mini-batches per task; none: as many as the epochs have
    epochs: Count = 10  # passes over each task, where there is no number of steps
    choose_on: Literal["val", "test"] = "val"  # choose on validation rows, or on test rows as papers 003 and 004 do
    weights_from: Literal["best", "last"] = "best"  # which step's weights of the first task are retrained
    test_batch: Count | None = None  # look at one random batch of test rows, as the authors' EWC does; none: at all
    at_once: bool = False  # also train the chosen network on all tasks at once
    alphas: Whole = 0  # of a method that merges networks: also try so many steps of α from 0 to 1

    def descent(self, lr: float | None = None) -> Optimiser:
        return self.optimiser_of(self.lr[0] if lr is None else lr, self.decay)

    def show(self, job: Job) -> Session:
        selection = self.selection(job)
        self.select(selection, self.grid(job))
        if self.at_once and all(row["task"] is not None for row in selection.rows):
            selection.all_at_once({**selection.own["model"], METHOD: "finetune"})
        selection.session.trials = selection.costs()
        return selection.session

    def selection(self, job: Job) -> Selection:
        """Looks at the tests of all tasks so far, so that the record can be read under other rules."""
        pattern, net = fresh(job.learner), job.net.copy()

        def make(model: Mapping[str, Any]) -> tuple[Learner, Net]:
            shape = model.get(HIDDEN)
            mine = net.copy() if shape is None or job.reshape is None else job.reshape(tuple(shape))
            learner = methods.make(model[METHOD], {}) if METHOD in model else fresh(pattern)
            learner.start(mine, self.descent(model[LR]), job.stream.info, generator(job.seed, "learner"))
            return learner, mine

        session = job.session(self.descent(), make)
        looks = Looks(self.score_every, (0,), self.choose_on == "val", tests=True, test_batch=self.test_batch)
        budget = Budget(self.batch, self.epochs, self.steps)
        return Selection(session, budget, looks, reset_optimiser=self.reset_optimiser)

    def grid(self, job: Job) -> list[dict[str, Any]]:
        """The models tried on the first task."""
        shapes: Sequence[tuple[int, ...] | None] = self.topologies() if job.reshape is not None else [None]
        each = product(shapes, self.lr)
        return [{**({} if shape is None else {HIDDEN: list(shape)}), LR: lr} for shape, lr in each]

    def select(self, selection: Selection, models: list[dict[str, Any]]) -> None:
        """The first task chooses the model; each later one is learned with its own data alone."""
        rates = [{LATER: lr} for lr in self.later_lr]
        for task in selection.tasks():
            if task.t == 0:
                best = selection.best(task, models, own, self.first_stop, Tried.highest, models=True)
                self.adopt(selection, best.settings)
            else:
                best = selection.best(task, rates, own, self.later_stop, self.worth)
            selection.finish(task, best)
            self.take(selection, task, best)

    def adopt(self, selection: Selection, model: Mapping[str, Any]) -> None:
        """The model that the first task chose is the run's from now on, and its baseline that of the run."""
        selection.own["model"] = dict(model)
        selection.session.adopt(model)
        selection.session.score_untrained()

    def take(self, selection: Selection, task: Task, tried: Tried) -> None:
        """The task is over: note who chose what, close the books, and score."""
        self._note(selection.session.chosen, tried, self.chosen_by(task))
        selection.take(task, tried)
        self._blend(selection.session, task)

    def first_stop(self) -> Stop:
        return Best() if self.weights_from == "best" else Last()

    def later_stop(self) -> Stop:
        """Where retraining is stopped."""
        return Last()

    def worth(self, tried: Tried) -> float:
        """By what the learning rate of a later task is chosen: the best it did on that task."""
        return tried.highest()

    def chosen_by(self, task: Task) -> str:
        """From which data the choices of a task were made."""
        return f"{self.choose_on}:{'task' if task.t else 'first-task'}"

    def topologies(self) -> list[tuple[int, ...]]:
        """
        >>> from holdfast.protocols import protocols
        >>> protocols.make("realistic", {"layers": (1, 2), "sizes": (20, 30)}).topologies()
        [(20,), (30,), (20, 20), (30, 30)]
        """
        if self.mix_sizes:
            return [shape for n in self.layers for shape in product(self.sizes, repeat=n)]
        return [(size,) * n for n in self.layers for size in self.sizes]

    def faults(self, learner: Learner, stream: Stream) -> list[str]:
        name = type(self).__name__.lower()
        found = faults_of_order(name, learner, stream)
        empty = [grid for grid in ("lr", "later_lr", "layers", "sizes") if not getattr(self, grid)]
        found += [f"{grid} of protocol {name!r} must list at least one value" for grid in empty]
        if self.steps is not None and provenance(self)["epochs"]["chosen_by"] == "given":
            found.append(f"epochs of protocol {name!r} would be ignored: it has {self.steps} steps; try steps=none")
        return found + self.faults_of_choice(stream) + self._faults_of_past(name, stream)

    def _faults_of_past(self, name: str, stream: Stream) -> list[str]:
        """What is impossible about a task that comes to a model: it may lack test rows, and those of earlier ones were
        not kept."""
        found = []
        if any(isinstance(task.test, Gone) or not len(task.test) for task in stream.tasks):
            found.append(
                f"protocol {name!r} looks at the test rows of all tasks so far; give this one's and the others', "
                "in Python: model.learn(..., test=..., old_tests=...)"
            )
        if self.at_once and any(isinstance(task.train, Gone) for task in stream.tasks):
            found.append(
                f"at_once of protocol {name!r} trains on all tasks, and the rows of earlier ones were not kept"
            )
        return found

    def faults_of_shape(self, open_to_choice: bool) -> list[str]:
        given = [name for name in ("layers", "sizes", "mix_sizes") if provenance(self)[name]["chosen_by"] == "given"]
        if open_to_choice or not given:
            return []
        name = type(self).__name__.lower()
        return [f"{', '.join(given)} of protocol {name!r} would be ignored: the network has its own shape"]

    def faults_of_choice(self, stream: Stream) -> list[str]:
        """What is impossible about choosing on this stream."""
        if self.choose_on == "test" or all(len(task.val) for task in stream.tasks):
            return []
        name = type(self).__name__.lower()
        return [no_validation(name, stream, ", or choose_on=test as the papers do")]

    def _note(self, chosen: dict[str, dict[str, Any]], tried: Tried, chosen_by: str) -> None:
        """Who chose what."""
        given = provenance(self)
        for name, value in tried.settings.items():
            field = name.partition(".")[2]
            tested = len(self.topologies()) if name == HIDDEN else len(getattr(self, field))
            who = chosen_by if tested > 1 else given.get(field, given["layers"])["chosen_by"]
            if name == LATER:
                value = [*chosen.get(name, {"value": []})["value"], value]
            chosen[name] = {"value": value, "chosen_by": who}
        stops = [*chosen.get("protocol.stop", {"value": []})["value"], tried.kept.step]
        chosen["protocol.stop"] = {"value": stops, "chosen_by": chosen_by}

    def _blend(self, session: Session, task: Task) -> None:
        """Accuracies over α of a method that merges networks; the learner stays as it is."""
        learner = session.learner
        if not self.alphas or task.t == 0 or not isinstance(learner, Merging):
            return
        rows = session.study.setdefault("blends", [])
        before, tests = learner.state(), [(t, t.test) for t in session.stream.tasks[: task.t + 1]]
        for merge in learner.merges():
            for i in range(self.alphas + 1):
                alpha = i / self.alphas
                learner.blend(alpha, merge)
                rows += [
                    {"after_task": task.t, "merge": merge, "alpha": alpha, "task": t.t, "accuracy": s.accuracy}
                    for (t, _), s in zip(tests, session.look(tests), strict=True)
                ]
        learner.load(before)
