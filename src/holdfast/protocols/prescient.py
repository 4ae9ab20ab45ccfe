"""Everything is chosen with all data at hand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, final

from holdfast.protocols._selecting import Candidate, Selection, Tried, of_union, own
from holdfast.protocols._stops import Best
from holdfast.protocols._study import LATER, Study
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

    def select(self, selection: Selection, models: list[dict[str, Any]]) -> None:
        """Every model learns the first task, and then the second with every ε₂."""
        session, mine = selection.session, selection.own
        first, second = session.stream.tasks
        if session.next > second.t:  # interrupted when both were learned
            return
        rates = (None, *self.later_lr)  # none: the first task
        pairs = [(model, lr) for model in models for lr in rates]
        for model, lr in pairs[mine["done"] :]:
            if lr is None:
                self._learn_first(selection, first, model, len(pairs))
            elif mine["first"] is not None:
                self._learn_second(selection, second, lr, len(pairs))
            selection.tick()
        two = selection.best_of(second)
        mine.pop("first")
        of_best = mine.pop("of_best")
        one, begun = Tried.unpacked(of_best["first"]), of_best["begun"]
        self.adopt(selection, one.settings)
        session.learner.load(begun)
        self.take(selection, first, one)
        session.meet(second)
        selection.finish(second, two)
        self.take(selection, second, two)

    def _learn_first(self, selection: Selection, task: Task, model: dict[str, Any], of: int) -> None:
        one = selection.trial(task, Candidate(model), own, self.first_stop(), of=of, model=True)
        selection.own |= {"first": None, "begun": None}
        if one.failed is None:
            selection.finish(task, one)
            selection.own |= {"first": one.packed(), "begun": selection.session.learner.state()}

    def _learn_second(self, selection: Selection, task: Task, lr: float, of: int) -> None:
        mine = selection.own
        began_from = mine["first"]["trial"]
        two = selection.trial(task, Candidate({LATER: lr}), of_union, Best(), of=of, began_from=began_from)
        if two.failed is None and (not mine["best"] or two.kept.quality > mine["best"][0][1]):
            of_best = {"first": mine["first"], "begun": mine["begun"]}
            mine |= {"best": [(two.packed(), two.kept.quality)], "of_best": of_best}

    def faults_of_choice(self, stream: Stream) -> list[str]:
        found = []
        if len(stream) != 2:
            found.append(f"protocol 'prescient' takes two tasks, not {len(stream)}; try 'realistic'")
        if self.choose_on != "test":
            found.append("protocol 'prescient' chooses on test rows, choose_on=test; try 'realistic'")
        return found

    def chosen_by(self, task: Task) -> str:
        return "test:stream"
