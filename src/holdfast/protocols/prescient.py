"""Everything is chosen with all data at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

from holdfast.protocols.study import LATER, Desk, Study, of_union, own
from holdfast.protocols.trials import Best
from holdfast.types import Stream, Task


@final
@dataclass(frozen=True)
class Prescient(Study):
    """The prescient evaluation (Pfülb et al., 2018, paper 004, Alg. 1), on two tasks.

        q* = max_p max_ε₂ max_t χ(D2, D1 ∪ D2, t)

    Every model is trained on D1 to the end and retrained with every ε₂; the best test accuracy on D1 ∪ D2 at any step
    counts. This is what many papers do, and what no application can: the card says that future and test data were used.
    """

    choose_on: Literal["val", "test"] = "test"  # prescience is of the test rows
    weights_from: Literal["best", "last"] = "last"  # which step's weights of the first task are retrained

    def carry_out(self, desk: Desk) -> None:
        first, second = desk.session.stream.tasks
        for settings in desk.not_tried(desk.grid()):
            self._try(desk, first, second, settings)
            desk.tick()
        two = desk.best_of(second)
        assert desk.first is not None
        one, begun = desk.first
        desk.adopt(one.settings)
        learner = desk.session.learner
        learner.load(begun)
        desk.take(first, one)
        desk.session.meet(second)
        desk.trials.finish(learner, second, two)
        desk.take(second, two)

    def _try(self, desk: Desk, first: Task, second: Task, settings: dict[str, Any]) -> None:
        """One model with every ε₂."""
        learner, net = desk.candidate(settings)
        progress = desk.done, desk.candidates
        one = desk.trials.train(learner, net, first, settings, own, self.first_stop(), None, progress)
        if one.failed:
            return
        desk.trials.finish(learner, first, one)
        begun = learner.state()
        for lr in self.later_lr:
            desk.begin_again(learner, begun, lr)
            two = desk.trials.train(learner, net, second, {LATER: lr}, of_union, Best(), one.trial, progress)
            if two.kept.quality > desk.worth and two.failed is None:
                desk.best, desk.worth, desk.first = two, two.kept.quality, (one, begun)

    def faults_of_choice(self, stream: Stream) -> list[str]:
        found = []
        if len(stream) != 2:
            found.append(f"protocol 'prescient' takes two tasks, not {len(stream)}; try 'realistic'")
        if self.choose_on != "test":
            found.append("protocol 'prescient' chooses on test rows, choose_on=test; try 'realistic'")
        return found

    def chosen_by(self, task: Task) -> str:
        return "test:stream"
