"""Contracts that every learner must pass; users run them on their own with `check_learner(MyLearner)`."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from holdfast.audit import Lease, footprint
from holdfast.engine import Net, batches, optimiser
from holdfast.engine.state import read, save
from holdfast.errors import BadInput, PastDataError, RunFailed
from holdfast.methods import Learner
from holdfast.nets import nets
from holdfast.protocols import Session, protocols
from holdfast.seeds import generator, seed_for, seeded
from holdfast.streams import streams
from holdfast.types import Scenario, Stream


def check_learner(given: Learner | type[Learner]) -> None:
    """Run every contract on a tiny stream; raises an AssertionError that says what is wrong and how to mend it.

    >>> from holdfast.methods.finetune import Finetune
    >>> check_learner(Finetune)
    """
    learner = given() if isinstance(given, type) else given
    for check in CHECKS:
        check(learner)


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
    started, stream = _started(learner)
    task = stream.tasks[0]
    started.begin(Lease(0, task.train, task.val))
    batch = next(batches(task.train, 20, generator(0, "check"), 0))
    losses = [float(torch.as_tensor(started.observe(batch)).detach()) for _ in range(60)]
    _require(all(np.isfinite(losses)), f"observe returned a loss that is not finite: {losses[:5]}")
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
    check_same_seed_same_result,
    check_predict_changes_nothing,
    check_hidden_task_is_not_needed,
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


def _learn(learner: Learner, stream: Stream, t: int) -> None:
    task = stream.tasks[t]
    lease = Lease(t, task.train, task.val)
    learner.begin(lease)
    for batch in batches(task.train, 10, generator(0, "check", task=t), t):
        learner.observe(batch)
    learner.finish(lease)
    lease.close()


def _spying(learner: Learner, seen: list[Any]) -> Learner:
    """A copy of the learner that notes which task labels `predict` is given."""

    class Spy(type(learner)):  # type: ignore[misc]
        def predict(self, x: Tensor, task: int | None) -> Tensor:
            seen.append(task)
            return super().predict(x, task)  # type: ignore[no-any-return]

    spy = copy.deepcopy(learner)
    spy.__class__ = Spy
    return spy


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
