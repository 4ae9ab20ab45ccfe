"""What `prescient`, `realistic` and `application` share: models are chosen on the first task, then retrained."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, ClassVar, Literal

from holdfast.engine import Net, Optimiser, OptimiserName, State
from holdfast.errors import RunFailed
from holdfast.methods import Learner, Merging, methods
from holdfast.protocols.base import Job, Protocol, fresh
from holdfast.protocols.session import Session, name_of
from holdfast.protocols.trials import Best, Last, Stop, Trials, Tried
from holdfast.seeds import generator
from holdfast.settings import BelowOne, Count, Positive, Whole, provenance
from holdfast.types import Stream, Task

HIDDEN, LR, LATER = "net.hidden", "protocol.lr", "protocol.later_lr"


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
    baseline: bool = False  # also train the chosen network on all tasks at once
    alphas: Whole = 0  # of a method that merges networks: also try so many steps of α from 0 to 1

    @abstractmethod
    def carry_out(self, desk: Desk) -> None:
        """Learn all tasks of the stream."""

    def descent(self, lr: float | None = None) -> Optimiser:
        return self.optimiser_of(self.lr[0] if lr is None else lr)

    def show(self, job: Job) -> Session:
        desk = Desk(self, job)
        self.carry_out(desk)
        return desk.closed()

    def retrain(self, desk: Desk) -> None:
        """The first task chooses the model; each later one is learned with its own data alone."""
        for task in desk.remaining():
            candidates = desk.grid() if task.t == 0 else [{LATER: lr} for lr in self.later_lr]
            for settings in desk.not_tried(candidates):
                tried = desk.tried(task, settings, own, self.first_stop() if task.t == 0 else self.later_stop())
                desk.offer(tried, tried.highest() if task.t == 0 else self.worth(tried))
            desk.settle(task)

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
        found = []
        if learner.mixes:
            found.append(f"method {name_of(learner)!r} sees all tasks at once; protocol {name!r} shows them in order")
        empty = [grid for grid in ("lr", "later_lr", "layers", "sizes") if not getattr(self, grid)]
        found += [f"{grid} of protocol {name!r} must list at least one value" for grid in empty]
        if self.steps is not None and provenance(self)["epochs"]["chosen_by"] == "given":
            found.append(f"epochs of protocol {name!r} would be ignored: it has {self.steps} steps; try steps=none")
        return found + self.faults_of_choice(stream)

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
        return [
            f"protocol {type(self).__name__.lower()!r} chooses on validation rows, and stream {stream.name!r} keeps "
            "none; cut it with val=0.1, or choose_on=test as the papers do"
        ]


def own(accuracies: list[float]) -> float:
    """Quality: what the task itself is judged by."""
    return accuracies[0]


def of_union(accuracies: list[float]) -> float:
    """Quality: the test accuracy on all tasks so far, which needs the data of earlier ones."""
    return accuracies[-1]


class Desk:
    """One study in progress: the best trial of the task at hand, what was chosen before. Saved after every trial."""

    def __init__(self, spec: Study, job: Job) -> None:
        self.spec, self.keep, self.reshape = spec, job.keep, job.reshape
        self.pattern, self.net = fresh(job.learner), job.net
        self.session = Session(job.learner, job.stream, job.net, spec.descent(), job.seed, job.watch)
        looks = spec.score_every, spec.test_batch, spec.choose_on == "val"
        self.trials = Trials(self.session, spec.batch, spec.steps, spec.epochs, *looks)
        self.done = 0  # candidates of the task at hand
        self.candidates = 1
        self.best: Tried | None = None
        self.worth = float("-inf")  # of the best
        self.settings: dict[str, Any] = {}  # chosen on the first task
        self._begun: State = None  # the learner when the task at hand began
        self.first: tuple[Tried, State] | None = None  # of two tasks tried together: the first one's, and its learner
        self._last: int | None = None  # the trial whose weights the task at hand begins with
        self._go_on()

    def remaining(self) -> Iterator[Task]:
        """The tasks still to be learned, met but not shown."""
        session = self.session
        for task in session.stream.tasks[self._next :]:
            if task.t > len(session.measured.entropies):
                session.meet(task)
            self._begun = session.learner.state()
            yield task

    @property
    def _next(self) -> int:
        return len(self.session.measured.bytes)

    def grid(self) -> list[dict[str, Any]]:
        """The models tried on the first task."""
        shapes: Sequence[tuple[int, ...] | None] = self.spec.topologies() if self.reshape is not None else [None]
        each = product(shapes, self.spec.lr)
        return [{**({} if shape is None else {HIDDEN: list(shape)}), LR: lr} for shape, lr in each]

    def not_tried(self, candidates: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The candidates that were not tried before an interruption."""
        self.candidates = len(candidates)
        yield from candidates[self.done :]

    def candidate(self, settings: Mapping[str, Any], pattern: Learner | None = None) -> tuple[Learner, Net]:
        """A new learner with a new network of this shape."""
        shape = settings.get(HIDDEN)
        net = self.net.copy() if shape is None or self.reshape is None else self.reshape(tuple(shape))
        learner, session = fresh(pattern or self.pattern), self.session
        learner.start(net, self.spec.descent(settings[LR]), session.stream.info, generator(session.seed, "learner"))
        return learner, net

    def tried(self, task: Task, settings: dict[str, Any], quality: Any, stop: Stop) -> Tried:
        """One trial: a new model on the first task, the chosen one on a later task."""
        progress = self.done, self.candidates
        if task.t == 0:
            learner, net = self.candidate(settings)
            return self.trials.train(learner, net, task, settings, quality, stop, None, progress)
        learner, net = self.session.learner, self.session.net
        self.begin_again(learner, self._begun, settings[LATER])
        tried = self.trials.train(learner, net, task, settings, quality, stop, self._last, progress)
        learner.load(self._begun)
        return tried

    def begin_again(self, learner: Learner, state: State, lr: float) -> None:
        learner.load(state)
        learner.optimiser.lr = lr
        if self.spec.reset_optimiser:
            learner.optimiser.reset()

    def offer(self, tried: Tried, worth: float) -> None:
        """Keep the trial if it is the best of its task, and save everything."""
        if worth > self.worth and tried.failed is None:
            self.best, self.worth = tried, worth
        self.tick()

    def tick(self) -> None:
        """One more candidate is tried."""
        self.done += 1
        self.save()

    def settle(self, task: Task) -> None:
        """All candidates of the task are tried: the best one's learner goes on."""
        best = self.best_of(task)
        if task.t == 0:
            self.adopt(best.settings)
        self.trials.finish(self.session.learner, task, best)
        self.take(task, best)
        self.best, self.worth, self.done = None, float("-inf"), 0
        if self._next < len(self.session.stream):
            self.save()

    def best_of(self, task: Task) -> Tried:
        """The best trial of a task; a run ends where all have failed."""
        if self.best is None:
            reasons = [row["failed"] for row in self.trials.rows if "failed" in row and row["task"] in (0, task.t)]
            spent = [sum(row[name] for row in self.trials.rows) for name in ("seconds", "flops")]
            raise RunFailed(f"every trial of task {task.t} failed, the last because {reasons[-1]}", *spent)
        return self.best

    def adopt(self, settings: Mapping[str, Any]) -> None:
        """The model that the first task chose is the session's from now on, and its baseline that of the run."""
        self.settings = dict(settings)
        self.session.adopt(*self.candidate(self.settings))
        self.session.score_untrained()

    def take(self, task: Task, tried: Tried) -> None:
        """The task is over, and the learner is what this trial made it: close the books and score it."""
        self.trials.choose(tried)
        self.note(task, tried, self.spec.chosen_by(task))
        self.session.close(task)
        self.session.score(task.t, tried.kept.step)
        self._blend(task)
        self._last = tried.trial

    def note(self, task: Task, tried: Tried, chosen_by: str) -> None:
        """Who chose what."""
        spec, chosen = self.spec, self.session.chosen
        given = provenance(spec)
        for name, value in tried.settings.items():
            field = name.partition(".")[2]
            tested = len(spec.topologies()) if name == HIDDEN else len(getattr(spec, field))
            who = chosen_by if tested > 1 else given.get(field, given["layers"])["chosen_by"]
            if name == LATER:
                value = [*chosen.get(name, {"value": []})["value"], value]
            chosen[name] = {"value": value, "chosen_by": who}
        stops = [*chosen.get("protocol.stop", {"value": []})["value"], tried.kept.step]
        chosen["protocol.stop"] = {"value": stops, "chosen_by": chosen_by}

    def closed(self) -> Session:
        """The session, when all tasks are learned."""
        if self.spec.baseline:
            self.trials.baseline(*self.candidate(self.settings, methods.make("finetune", {})), self.settings)
        self.session.trials = self.trials.costs()
        return self.session

    def save(self) -> None:
        if self.keep is None:
            return
        self.keep.write(
            {
                "session": self.session.packed(),
                "trials": self.trials.state(),
                "blends": self.session.study.get("blends", []),
                "chosen": self.session.chosen,
                "settings": self.settings,
                "done": self.done,
                "best": None if self.best is None else self.best.packed(),
                "worth": self.worth if self.best is not None else None,
                "first": None if self.first is None else {"tried": self.first[0].packed(), "state": self.first[1]},
                "last": self._last,
            }
        )

    def _go_on(self) -> None:
        saved = None if self.keep is None else self.keep.read()
        if saved is None:
            return
        self.settings = saved["settings"]
        if self.settings:
            self.adopt(self.settings)
        self.session.take_up(saved["session"])
        self.session.chosen = saved["chosen"]
        self.trials.load(saved["trials"])
        if saved["blends"]:
            self.session.study["blends"] = saved["blends"]
        self.done, self._last = saved["done"], saved["last"]
        if saved["best"] is not None:
            self.best, self.worth = Tried.unpacked(saved["best"]), saved["worth"]
        if saved["first"] is not None:
            self.first = Tried.unpacked(saved["first"]["tried"]), saved["first"]["state"]
        if self.keep is not None:
            self.keep.say(f"goes on with task {self._next} after {self.done} trials, where it was interrupted")

    def _blend(self, task: Task) -> None:
        """Accuracies over α of a method that merges networks; the learner stays as it is."""
        learner = self.session.learner
        if not self.spec.alphas or task.t == 0 or not isinstance(learner, Merging):
            return
        rows = self.session.study.setdefault("blends", [])
        before, tests = learner.state(), [(t, t.test) for t in self.session.stream.tasks[: task.t + 1]]
        for merge in learner.merges():
            for i in range(self.spec.alphas + 1):
                alpha = i / self.spec.alphas
                learner.blend(alpha, merge)
                found = self.session.look(tests)
                rows += [
                    {"after_task": task.t, "merge": merge, "alpha": alpha, "task": t.t, "accuracy": accuracy}
                    for (t, _), accuracy in zip(tests, found, strict=True)
                ]
        learner.load(before)
