"""The first task, and the first batches of the second: does it look like the first to the learner?"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, final

import torch
from torch import Tensor

from holdfast.audit import Lease
from holdfast.engine import Optimiser, OptimiserName, batches, entropy
from holdfast.methods import Learner, Weighing
from holdfast.protocols._base import Job, Protocol
from holdfast.protocols._selecting import faults_of_order
from holdfast.protocols._session import ENTROPY_ROWS, Session, name_of
from holdfast.protocols._showing import Showing
from holdfast.seeds import generator
from holdfast.settings import Count, Positive
from holdfast.types import Batch, Lesson, Mixture, Part, Segment, Stream, Task, Transform

TASK, PERMUTED = "task B", "permuted pixels"


@final
@dataclass(frozen=True)
class Early(Protocol):
    """A look at the first batches of a second task (Farquhar & Gal, 2018, paper 001 §6.1 and B.1).

        |∂ log p(y | x, w)/∂w|,   |∂ log p(w)/∂w|,   H[p(y | x)]

    The first task, A, is learned for so many steps. Before each of the first batches of the second, B, the learner is
    looked at: the entropy of its predictions on test rows of B (in the task scenario by the head of A), and the mean
    size of the gradients of its loss's two terms in the output layer. The same is done from the same weights with
    pixels of A in a random order and A's labels: rows that resemble nothing. It is in `record.study["early"]`.

    >>> import holdfast as hf
    >>> record = hf.run("finetune", hf.stream("split", tasks=2), protocol=hf.protocol("early", batches=2, steps=50))
    >>> [(row["of"], row["batch"]) for row in record.study["early"]]
    [('permuted pixels', 1), ('permuted pixels', 2), ('task B', 1), ('task B', 2)]
    """

    batch: Count = 64  # examples per mini-batch of A
    optimiser: OptimiserName = "adam"  # sgd, momentum, adam or adamw
    lr: Positive = 0.001  # learning rate
    reset_optimiser: bool = True  # forget the optimiser's state between tasks
    steps: Count = 500  # on A, or a few more: its passes are whole
    batches: Count = 15  # of B
    rows: Count = 16  # of B in a batch
    prior_rows: Count | None = None  # N, by which a prior is divided; none: the rows of B

    def faults(self, learner: Learner, stream: Stream) -> list[str]:
        found = faults_of_order("early", learner, stream)
        if len(stream) != 2:
            help = "; `holdfast diagnose` takes the first two" if len(stream) > 2 else ""
            found.append(f"protocol 'early' needs two tasks, and stream {stream.name!r} has {len(stream)}{help}")
        if self.score_every:
            found.append("score_every of protocol 'early' would be ignored: it scores after each task")
        if not isinstance(learner, Weighing):
            name = name_of(learner)
            found.append(f"protocol 'early' needs a method whose loss's terms are known, not {name!r}; try 'vcl'")
        return found

    def descent(self) -> Optimiser:
        return self.optimiser_of(self.lr, 0.0)

    def show(self, job: Job) -> Session:
        session = job.session(self.descent())
        for task in session.remaining():
            if self.reset_optimiser:
                session.learner.optimiser.reset()
            if task.t == 0:
                passes = -(-self.steps // -(-len(task.train) // self.batch))
                *_, step = session.learn(task, passes, self.batch, lease_at_begin=True)
            else:
                step = self._look(session, task)
            session.score(task.t, step)
        return session

    def _look(self, session: Session, task: Task) -> int:
        """Learn the first batches of B, after a copy of the learner has learned those of A with permuted pixels.

        Gives their number.
        """
        old, new = session.stream.segments
        tests = [each.test for each in session.stream.tasks]
        order = torch.randperm(math.prod(old.train.shape), generator=generator(session.seed, "early"))
        scrambled = replace(old, train=_permuted(old.train, order))
        session.meet(task)
        rows = session.study.setdefault("early", [])
        rows += self._rows(session, PERMUTED, copy.deepcopy(session.learner), scrambled, _permuted(tests[0], order))
        rows += self._rows(session, TASK, session.learner, new, tests[1])
        session.close(task)
        return self.batches

    def _rows(
        self, session: Session, what: str, learner: Learner, shown: Segment, test: Part
    ) -> Iterator[dict[str, Any]]:
        """What is found before each batch. The prior weighs the same whatever is shown: N is that of B."""
        assert isinstance(learner, Weighing)
        given, allowed = session.head(0)
        rng = [generator(session.seed, "batches", task=1) for _ in range(2)]
        cut = list(islice(_batches(shown, self.rows, rng[0]), self.batches))
        some = test.take(torch.randperm(len(test), generator=rng[0])[:ENTROPY_ROWS])
        lease = Lease(shown.t, shown.train, shown.val)
        showing = Showing(learner, lease, shown.train, shown.task, 1, self.rows, rng[1], self.batches)
        n = self.prior_rows or len(session.stream.segments[1].train)
        showing.lesson = Lesson(-(-n // self.rows), 1, self.rows)
        for done in showing.whole(lease=False):
            if done < self.batches:
                likelihood, prior = learner.terms(cut[done])
                yield {
                    "of": what,
                    "batch": done + 1,
                    "entropy": entropy(learner.predict, some, given, allowed, len(some)),
                    "most": math.log(session.stream.info.classes if allowed is None else int(allowed.sum())),
                    "likelihood": likelihood.abs().mean().item(),
                    "prior": None if prior is None else prior.abs().mean().item(),
                }
        if learner is session.learner:  # what the copy sees and costs is not the method's
            session.note_looks([shown], showing.looks)
            session.spend(showing.flops, showing.seconds, showing.total)


def _batches(shown: Segment, size: int, rng: torch.Generator) -> Iterator[Batch]:
    """What a showing of it will show."""
    while True:
        yield from batches(shown.train, size, rng, shown.task, ordered=shown.ordered)


def _permuted(part: Part, order: Tensor) -> Part:
    """The rows of a part with their pixels in another order."""
    if isinstance(part, Mixture):
        return replace(part, parts=tuple(_permuted(each, order) for each in part.parts), augment=None, _cache=None)
    return replace(part, transform=_Permuted(part.transform, order), augment=None, _cache=None)


class _Permuted:
    """Pixels as a task shows them, in another order."""

    def __init__(self, before: Transform | None, order: Tensor) -> None:
        self.before, self.order = before, order

    def __call__(self, pixels: Tensor) -> Tensor:
        seen = pixels if self.before is None else self.before(pixels)
        flat = seen.flatten(1)
        return flat.gather(1, self.order.to(flat.device).expand_as(flat)).view(seen.shape)
