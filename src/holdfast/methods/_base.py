"""The contract of a learner: start, observe, finish, predict."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor

from holdfast.audit.lease import Lease
from holdfast.engine import Growing, Net, Optimiser, Plain, cross_entropy
from holdfast.nets._base import Sampled
from holdfast.types import Batch, Lesson, StreamInfo

Option = str | None  # a structural choice; none: there is nothing to choose


class Rung(NamedTuple):
    """An option tried for so many steps in all, or for a share of the protocol's (0.25, 1.0). A trial of it that ended
    at an earlier rung goes on from there. At a share below 1 its quality is that of the best look so far, and it is not
    taken."""

    option: Option
    steps: int | float


class Learner(Plain):
    """A method at work. Subclasses are dataclasses whose fields are the method's settings.

    What a learner keeps lives on `self`, and nothing else survives. Its state is everything on `self`: tensors,
    numbers, strings, nested dicts and lists of them, and Stateful things (Net, optimiser, memory) made in `start`.
    """

    needs_task: ClassVar[bool] = False  # predicting needs the task label, so class and domain scenarios are refused
    mixes: ClassVar[bool] = False  # wants all tasks at once; the card says so
    abreast: ClassVar[bool] = False  # its options are tried side by side: each batch is shown to all of them at once
    by_rows: ClassVar[bool] = False  # batches say which rows of the lease they have, augmented or not
    not_state: tuple[str, ...] = ("info", "shared", "_allowed", "_chosen_by")

    net: Net
    optimiser: Optimiser
    info: StreamInfo
    rng: torch.Generator
    shared: dict[str, Any]  # what the trials of a task have in common; gone when the task is over

    @property
    def needs_boundaries(self) -> bool:
        """Whether it must be told where tasks end: streams that hide it, where `batch.task` is None, are then refused.

        Unless a method says otherwise, it must if it does something when a task begins or ends. One that need not is
        told of one beginning, without a lease, and of no end.
        """
        mine = type(self)
        return mine.begin is not Learner.begin or mine.finish is not Learner.finish or mine.needs_task

    @property
    def needs_length(self) -> str:
        """Why it must know at the start which tasks will come, so that none can be added later; empty: it need not."""
        return "it sees all tasks at once" if self.mixes else ""

    def start(self, net: Net, optimiser: Optimiser, info: StreamInfo, rng: torch.Generator) -> None:
        """Once, before the first task. `info` has shapes, classes and the head policy, never data."""
        self.net, self.optimiser, self.info, self.rng = net, optimiser, info, rng
        if info.apart and not isinstance(net.module, Growing):
            optimiser.heads = net.rows_of_outputs()
        self.shared = {}
        allowed = info.allowed()
        self._allowed = None if allowed is None else allowed.to(net.device)

    def begin(self, train: Lease | None, plan: Lesson) -> None:
        """A task arrives: a lease on its data, or None under single-pass protocols, and how much of it will come."""

    # Protocols that select try each of a learner's options from where the task began; most learners have none.

    def options(self, train: Lease) -> Sequence[Option | Rung]:
        """Structural choices for this task, tried like a grid."""
        return [None]

    def more_options(self, train: Lease, tried: Sequence[tuple[Option | Rung, float]]) -> Sequence[Option | Rung]:
        """What else to try, now that all before has been tried, with the quality of each. Nothing: it is enough."""
        return []

    def prefer(self, tried: Sequence[tuple[Option, float]]) -> list[int]:
        """Which of these, with the quality of each, may still be taken when others are tried, and first the one that
        would be taken now: the first of the best alone. It goes by options and qualities, not by its weights."""
        qualities = [quality for _, quality in tried]
        return [qualities.index(max(qualities))]

    def choose(self, option: Option) -> None:
        """Take one of the options; called before `begin`."""

    def share(self, train: Lease) -> None:
        """Put what all trials of the task need, a frozen trunk's features, into `self.shared`, where it is not yet.

        Called before `begin`, and when an interrupted trial goes on; `batch.rows` are the rows of the lease.
        """

    def twin(self) -> Self:
        """Another like this one, for a trial beside its own: what trials share is the same."""
        return copy.deepcopy(self, {id(self.shared): self.shared})

    @abstractmethod
    def observe(self, batch: Batch) -> Tensor:
        """Learn from one mini-batch; returns the loss."""

    def finish(self, train: Lease) -> None:
        """The task ends; the lease is readable for the last time."""

    def ready(self) -> None:
        """Before each scoring, e.g. to train a throw-away copy on a coreset. It counts as training."""

    def predict(self, x: Tensor, task: int | None) -> Tensor:
        """Logits (B, C), or S samples of them (S, B, C). `task` is None when the scenario hides it. Changes nothing."""
        module = self.net.module
        with self.net.evaluating():
            return module.predict(x) if isinstance(module, Sampled) else self.net(x)

    def numbers_kept(self, tasks: int) -> int:
        """The numbers it keeps after so many tasks, as paper 000 counts them for Mem.: weights and batch statistics.

        What that paper counts of a method's memory besides is the method's own to say; all that can be reached from
        the learner, whatever it is, is measured elsewhere (`bytes`).
        """
        return self.weight_count() + sum(buffer.numel() for buffer in self.net.module.buffers())

    def journal(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """What the record is to say of the task that is over, as rows by what they are about (`record.study`)."""
        return {}

    # What most methods need, as functions they call.

    def weight_count(self, shared: bool = False) -> int:
        """How many weights the network has; the `shared` ones are without outputs that each task has for itself."""
        classes = [c for task in self.info.task_classes for c in task]
        if not shared or not self.info.task_given or len(set(classes)) < len(classes) or self.info.tasks < 2:
            return self.net.size
        output = next(m for m in reversed([*self.net.module.modules()]) if [*m.parameters(recurse=False)])
        return self.net.size - sum(p.numel() for p in output.parameters())

    def of_shared(self, importance: Tensor) -> Tensor:
        """(P,) nothing for outputs that each task has for itself, which no other task moves."""
        for start, stop, _ in self.optimiser.heads:
            importance[start:stop] = 0
        return importance

    def allowed(self, task: int | Tensor | None) -> Tensor | None:
        """The outputs these tasks may use, (C,) or (B, C); None when all may."""
        return None if self._allowed is None or task is None else self._allowed[task]

    def cross_entropy(self, batch: Batch) -> Tensor:
        """Mean cross-entropy of a batch, masked as the scenario says."""
        return cross_entropy(self.net(batch.x), batch.y, self.allowed(batch.task))

    def gradient(self, batch: Batch) -> Tensor:
        """Put ∂CE/∂θ of a batch into `net.grad`; returns CE, the loss. For plain networks faster than `backward`."""
        return self.net.collect(batch.x, batch.y, self.allowed(batch.task))

    def fit(self, batch: Batch) -> Tensor:
        """One optimiser step on the cross-entropy of a batch; returns the loss."""
        loss = self.gradient(batch)
        self.optimiser.step(self.net)
        return loss

    def backward(self, loss: Tensor) -> Tensor:
        """Put ∂loss/∂θ into `net.grad`; returns the loss."""
        if not isinstance(loss, Tensor):
            word = type(loss).__name__
            raise TypeError(f"a loss must be a tensor with its graph, not a {word}; leave out .item() and float()")
        self.net.zero_grad()
        if loss.requires_grad:  # or all that it depends on is frozen
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def descend(self, loss: Tensor) -> Tensor:
        """Backward and one optimiser step; returns the loss."""
        loss = self.backward(loss)
        self.optimiser.step(self.net)
        return loss

    def sample(self, train: Lease, n: int) -> Batch:
        """n random rows of the lease, or all of them."""
        return train.take(torch.randperm(len(train), generator=self.rng)[:n])


class Terms(NamedTuple):
    """The gradients of a loss's two terms in the output layer, (n,) each."""

    likelihood: Tensor
    prior: Tensor | None  # none: the loss has no such term


class Weighing(Learner):
    """A method whose loss is a likelihood on the batch and a prior on the weights, or the likelihood alone."""

    @abstractmethod
    def terms(self, batch: Batch) -> Terms:
        """What the step on this batch would add up. It changes nothing but `net.grad`."""

    def output_layer(self, vector: Tensor) -> Tensor:
        """The entries of a (P,) vector that are of the last layer: of the last module that has weights of its own."""
        views = self.net.unflatten(vector)
        last = next(reversed(views)).rpartition(".")[0]
        return torch.cat([view.flatten() for name, view in views.items() if name.rpartition(".")[0] == last])


class Merging(Learner):
    """A method that has a network per task and answers with their merge."""

    @abstractmethod
    def merges(self) -> list[str]:
        """The ways in which it can merge the tasks finished so far."""

    @abstractmethod
    def blend(self, alpha: float, merge: str) -> None:
        """θ ← the merge in which the newest task has weight α and all before it 1 − α."""
