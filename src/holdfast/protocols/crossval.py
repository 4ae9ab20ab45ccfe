"""Each task chooses its learning rate and weight decay by its own validation rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any, Literal, final

from holdfast.engine import Optimiser, OptimiserName
from holdfast.methods import Learner
from holdfast.protocols._base import Job, Protocol
from holdfast.protocols._selecting import Budget, Looks, Selection, Tried, faults_of_order, no_validation, own
from holdfast.protocols._session import Session
from holdfast.protocols._stops import Best
from holdfast.settings import Count, NonNegative, Positive, Whole, provenance
from holdfast.types import Stream


@final
@dataclass(frozen=True)
class Crossval(Protocol):
    """Cross-validation per task (Veniat, Denoyer & Ranzato, 2021, paper 000 §5.2).

        (ε, ω, o)_t = argmax max_s q(V_t; θ_t(s; ε, ω, o));   θ_t at the first s of the highest q

    q(V_t) is the accuracy on the task's validation rows at step s of learning it with learning rate ε, weight decay ω
    and the learner's structural option o. Every combination begins where the task before ended; the first of equals is
    taken. A trial is over when no look has been better for `patience` steps. With `judged_by=later looks` trials are
    compared by the mean of q over the later half of their steps, for the highest of many looks at few rows says too
    much, and the more so the more a trial learns; θ_t is still that of the highest.

    >>> import holdfast as hf
    >>> stream = hf.stream("split", tasks=2, examples=100, val=0.2)
    >>> record = hf.run("finetune", stream, protocol=hf.protocol("crossval", lr=(0.01, 1e-9), decay=(0,), epochs=5))
    >>> record.settings["protocol.lr"]
    {'value': [0.01, 0.01], 'chosen_by': 'val:task'}
    """

    batch: Count = 256  # examples per mini-batch
    optimiser: OptimiserName = "adam"  # sgd, momentum, adam or adamw
    lr: tuple[Positive, ...] = (1e-2, 1e-3)  # ε: learning rates tried on each task
    decay: tuple[NonNegative, ...] = (0.0, 1e-5, 1e-4)  # ω: weight decays tried on each task
    epochs: Count = 300  # passes over each task, at most
    steps: Count | None = None  # steps on each task, at most; none: as many as its passes have
    least: Whole = 0  # steps on each task, at least: few rows are passed over more often
    patience: Count | None = 300  # steps without improvement after which a trial is over; none: it has all its epochs
    judged_by: Literal["best look", "later looks"] = "best look"  # how a trial is compared with others
    reset_optimiser: bool = True  # forget the optimiser's state between tasks
    score_every: Whole = 0  # steps between looks at the validation rows; 0: one pass
    score_first: Whole = 0  # also score the current task after each of its first batches (LCA)

    def faults(self, learner: Learner, stream: Stream) -> list[str]:
        found = [f"{name} of protocol 'crossval' must list at least one value" for name in ("lr", "decay")
                 if not getattr(self, name)]  # fmt: skip
        if self.steps is not None and self.least > self.steps:
            found.append(f"least of protocol 'crossval' is {self.least} steps, more than the {self.steps} there may be")
        found += faults_of_order("crossval", learner, stream)
        if not all(len(task.val) for task in stream.tasks):
            found.append(no_validation("crossval", stream))
        return found

    def descent(self) -> Optimiser:
        return self.optimiser_of(self.lr[0], self.decay[0])

    def show(self, job: Job) -> Session:
        looks = Looks(self.score_every or None, (0, 1, 2, 3, 4, 5, 10), score_first=self.score_first)
        session, budget = (
            job.session(self.descent()),
            Budget(self.batch, self.epochs, most=self.steps, least=self.least),
        )
        selection = Selection(session, budget, looks, reset_optimiser=self.reset_optimiser)
        grid = [{"protocol.lr": lr, "protocol.decay": decay} for lr, decay in product(self.lr, self.decay)]
        worth = Tried.later if self.judged_by == "later looks" else Tried.quality
        for task in selection.tasks():
            best = selection.best(task, grid, own, partial(Best, self.patience), worth)
            selection.finish(task, best)
            self._note(session.chosen, best)
            selection.take(task, best)
        session.trials = selection.costs()
        return session

    def _note(self, chosen: dict[str, dict[str, Any]], tried: Tried) -> None:
        """Who chose what, task by task."""
        given = provenance(self)
        values: Mapping[str, Any] = {**tried.settings, "protocol.stop": tried.kept.step}
        for name, value in {**values, **({} if tried.option is None else {"option": tried.option})}.items():
            field = name.partition(".")[2]
            if field in given and len(given[field]["value"]) == 1:  # nobody chose it
                continue
            chosen[name] = {"value": [*chosen.get(name, {"value": []})["value"], value], "chosen_by": "val:task"}
