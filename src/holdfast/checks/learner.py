"""Contracts that every learner must pass; users run them on their own with `check_learner(MyLearner)`."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.audit import Lease, footprint
from holdfast.engine import Net, optimiser
from holdfast.engine.state import read, save
from holdfast.errors import BadInput, PastDataError, RunFailed, said_of
from holdfast.methods import Learner
from holdfast.nets import nets
from holdfast.protocols import Session, Showing, protocols
from holdfast.seeds import generator, seed_for, seeded
from holdfast.settings import undecorated
from holdfast.streams import streams
from holdfast.types import Batch, Scenario, Segment, Stream


def check_learner(given: Learner | type[Learner]) -> None:
    """Run every contract on a tiny stream; raises an AssertionError that says what is wrong and how to mend it.

    >>> from holdfast.methods.finetune import Finetune
    >>> check_learner(Finetune)
    """
    learner = given() if isinstance(given, type) else given
    for check in CHECKS:
        check(learner)


def check_settings_are_fields(learner: Learner) -> None:
    """What looks like a setting is one: the class is a dataclass."""
    forgotten = undecorated(type(learner), Learner)
    _require(
        not forgotten,
        f"{', '.join(forgotten)} would be no setting: the class is no dataclass; write @dataclass above it",
    )


def check_same_seed_same_result(learner: Learner) -> None:
    """Two runs with one seed agree bit for bit; so a learner draws only from `self.rng`."""
    first, second = _run(learner), _run(learner)
    _require(
        np.array_equal(first.measured.R, second.measured.R) and _equal(first.learner.state(), second.learner.state()),
        "two runs with the same seed differ: draw random numbers from self.rng only, and keep nothing on the class",
    )


def check_predict_changes_nothing(learner: Learner) -> None:
    """`predict` leaves weights, buffers, memories and random numbers as they were."""
    session = _run(learner)
    before, dice = session.learner.state(), torch.get_rng_state()
    task = session.stream.tasks[0]
    x, t = task.test.x(), task.t if session.stream.info.task_given else None
    first, again = session.learner.predict(x, t), session.learner.predict(x, t)
    _require(
        _equal(before, session.learner.state()) and torch.equal(dice, torch.get_rng_state()),
        "predict changed the learner's state or drew random numbers: it must leave everything as it was",
    )
    _require(torch.equal(first, again), "predict gave two answers to one question: fix its randomness from a seed")


def check_hidden_task_is_not_needed(learner: Learner) -> None:
    """Where the scenario hides the task, a learner predicts without it, or says `needs_task` and is refused."""
    for scenario in ("class", "domain"):
        stream = _stream(scenario)
        if learner.needs_task:
            try:
                _run(learner, stream)
            except BadInput:
                continue
            _require(False, f"a learner that needs the task was not refused in the {scenario} scenario")
        seen: list[Any] = []
        _run(_spying(learner, seen), stream)
        _require(seen != [] and set(seen) == {None}, f"predict was given the task in the {scenario} scenario")


def check_given_tasks_are_kept_with_rows(learner: Learner) -> None:
    """Where outputs are masked to a row's task, a batch that rows of other tasks were put into says whose each is."""
    stream = _stream("task")
    try:
        protocols.make("epochs", {}).run(copy.deepcopy(learner), stream, _net(stream), seed=0)
    except BadInput:
        return
    except RunFailed as error:
        raise AssertionError(
            f"in the task scenario {error}; a row whose class is not of its task has an infinite loss: where rows of "
            "several tasks are in a batch, batch.task is a tensor with the task of each"
        ) from error


def check_hidden_boundaries_are_not_needed(learner: Learner) -> None:
    """Where the stream hides where tasks end, a learner does without, or says `needs_boundaries` and is refused."""
    if learner.needs_task:  # refused already: the task scenario tells
        return
    try:
        _run(learner, _hidden_stream())
    except BadInput:
        _require(learner.needs_boundaries, "a learner that needs no boundaries was refused where they are hidden")
        return
    except (TypeError, ValueError, IndexError, KeyError, AttributeError) as error:
        said = f"{type(error).__name__}: {error}"
        raise AssertionError(
            f"where batch.task is None, the learner fails with {said}; say needs_boundaries = True, or do without it"
        ) from error
    _require(learner.mixes or not learner.needs_boundaries, "a learner that needs boundaries ran where they are hidden")


def check_single_pass_gives_no_lease(learner: Learner) -> None:
    """Where every row is shown once, `begin` gets None in place of a lease."""
    stream = _stream("task" if learner.needs_task else "class")
    try:
        protocols.make("online", {}).run(copy.deepcopy(learner), stream, _net(stream), seed=0)
    except (BadInput, RunFailed):
        return
    except (TypeError, AttributeError) as error:
        raise AssertionError(
            f"under a protocol of one pass begin gets None in place of a lease, and fails with {said_of(error)}; look "
            "at the data in observe or in finish, or raise holdfast.BadInput"
        ) from error


def check_lease_ends_with_the_task(learner: Learner) -> None:
    """A learner may hold on to its lease, but not read it after the task."""
    session = _run(learner)
    for value in _leases(vars(session.learner)):
        try:
            _ = value.x
        except PastDataError:
            continue
        _require(False, "a lease kept by the learner can still be read after its task")


def check_loss_falls(learner: Learner) -> None:
    """Observing one batch again and again lowers its loss by a tenth at least."""
    losses: list[float] = []
    started, stream = _started(_noting(learner, losses))
    try:
        _learn(started, stream, 0, passes=60, batch=len(stream.tasks[0].train), finish=False)
    except RunFailed as error:
        raise AssertionError(f"observe returned a loss that is not finite: {losses[:5]}") from error
    first, last = np.mean(losses[:3]), np.mean(losses[-3:])
    _require(
        last < first - 0.1 * abs(first),
        f"sixty steps on one batch moved its loss from {first:.3g} to {last:.3g} only: does observe make a step?",
    )


def check_state_round_trips(learner: Learner) -> None:
    """A started learner that loads a saved state goes on exactly as the one that was saved."""
    original, stream = _started(learner)
    _learn(original, stream, 0)
    with tempfile.TemporaryDirectory() as folder:
        save(original.state(), Path(folder) / "state")
        saved = read(Path(folder) / "state")
    twin, _ = _started(learner)
    twin.load(saved)
    _require(_equal(original.state(), twin.state()), "state() after load() is not the state that was saved")
    for each in (original, twin):
        with seeded(1):
            _learn(each, stream, 1)
    _require(
        _equal(original.state(), twin.state()),
        "after load() the learner goes on differently: something that matters is not in its state",
    )


def check_footprint_covers_the_weights(learner: Learner) -> None:
    """What is reachable from the learner is at least its weights."""
    session = _run(learner)
    weights = 4 * session.learner.net.size
    _require(
        footprint(session.learner) >= weights,
        f"only {footprint(session.learner)} bytes are reachable from the learner, its weights have {weights}",
    )


CHECKS: tuple[Callable[[Learner], None], ...] = (
    check_settings_are_fields,
    check_same_seed_same_result,
    check_predict_changes_nothing,
    check_hidden_task_is_not_needed,
    check_given_tasks_are_kept_with_rows,
    check_hidden_boundaries_are_not_needed,
    check_single_pass_gives_no_lease,
    check_lease_ends_with_the_task,
    check_loss_falls,
    check_state_round_trips,
    check_footprint_covers_the_weights,
)


def _require(fact: bool, otherwise: str) -> None:
    if not fact:
        raise AssertionError(otherwise)


def _stream(scenario: Scenario) -> Stream:
    settings = {"tasks": 3, "sizes": (2, 2, 2), "examples": 40, "scenario": scenario}
    return streams.make("split", settings).cut("split", "digits", 0)


def _hidden_stream() -> Stream:
    """Each segment has half of its task's rows and half of the next one's."""
    stream = _stream("class")
    tasks, half = stream.tasks, torch.arange(20)
    mixtures = tuple(
        Segment.of(t.t, [t.train.take(half), tasks[(t.t + 1) % len(tasks)].train.take(half + 20)], t.val, None)
        for t in tasks
    )
    return replace(stream, info=replace(stream.info, hidden=True), mixtures=mixtures)


def _run(learner: Learner, stream: Stream | None = None) -> Session:
    stream = stream or _stream("task" if learner.needs_task else "class")
    with seeded(0):
        try:
            return protocols.make("epochs", {"epochs": 2}).run(copy.deepcopy(learner), stream, _net(stream), seed=0)
        except RunFailed as error:
            raise AssertionError(str(error)) from error


def _started(learner: Learner) -> tuple[Learner, Stream]:
    stream = _stream("task" if learner.needs_task else "class")
    mine = copy.deepcopy(learner)
    mine.start(_net(stream), optimiser("sgd", lr=0.1), stream.info, generator(0, "check"))
    return mine, stream


def _net(stream: Stream) -> Net:
    def build() -> torch.nn.Module:
        return nets.make("mlp", {"hidden": (16,)}).build(info)

    info = stream.info
    with seeded(seed_for(0, "weights")):
        return Net(build(), build)


def _learn(learner: Learner, stream: Stream, t: int, *, passes: int = 1, batch: int = 10, finish: bool = True) -> None:
    task, rng = stream.tasks[t], generator(0, "check", task=t)
    showing = Showing(learner, Lease(t, task.train, task.val), task.train, t, passes, batch, rng)
    for _ in showing.whole(lease=True, finish=finish):
        pass


def _spying(learner: Learner, seen: list[Any]) -> Learner:
    """A copy of the learner that notes which task labels `predict` is given."""

    class Spy(type(learner)):  # type: ignore[misc]
        def predict(self, x: Tensor, task: int | None) -> Tensor:
            seen.append(task)
            return super().predict(x, task)  # type: ignore[no-any-return]

    return _as(Spy, learner)


def _noting(learner: Learner, losses: list[float]) -> Learner:
    """A copy of the learner that notes the losses it returns."""

    class Noting(type(learner)):  # type: ignore[misc]
        def observe(self, batch: Batch) -> Tensor:
            loss = super().observe(batch)
            losses.append(float(torch.as_tensor(loss).detach()))
            return loss  # type: ignore[no-any-return]

    return _as(Noting, learner)


def _as(kind: type[Learner], learner: Learner) -> Learner:
    mine = copy.deepcopy(learner)
    mine.__class__ = kind
    return mine


def _leases(value: Any) -> Iterator[Lease]:
    if isinstance(value, Lease):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leases(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _leases(item)


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_equal, a, b))
    return bool(a == b)
