"""A run that was interrupted, wherever it was, ends bit for bit as the undisturbed one."""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.checks.learner import _equal as equal
from holdfast.data import data_folder
from holdfast.engine import Checkpoint, Net
from holdfast.methods import Learner, methods
from holdfast.protocols import Session
from holdfast.protocols._session import TABLES, Measured
from holdfast.seeds import dice, seeded


class Interrupted(Exception):
    pass


class Fragile(Checkpoint):
    """The run is interrupted when a state was written."""

    def write(self, state):
        super().write(state)
        raise Interrupted


def show(learner, stream, keep=None, net=None, protocol=None, watch=None) -> Session:
    with seeded(5):
        build = partial(net or hf.net("mlp", hidden=(8,)).build, stream.info)
        mine = Net(build(), build)
        used = protocol or hf.protocol("epochs", epochs=2)
        session = used.run(learner, stream, mine, 3, watch, keep)
        session.own["dice"] = dice()
        return session


def measurements(session) -> dict:
    m = session.measured
    assert isinstance(m, Measured) and m.eval_seconds > 0 and all(s > 0 for s in m.seconds)
    return {k: v for k, v in vars(m).items() if "seconds" not in k and k not in TABLES}


def same(a: Session, b: Session) -> bool:
    rows = [pair for name in TABLES for pair in zip(getattr(a.measured, name), getattr(b.measured, name), strict=True)]
    assert all(np.array_equal(p, q) and p.dtype == q.dtype for one, two in rows for p, q in zip(one, two, strict=True))
    assert measurements(a) == measurements(b)
    return equal(a.learner.state(), b.learner.state()) and equal(a.own["dice"], b.own["dice"])


def in_pieces(make, stream, folder, every, **words) -> tuple[Session, int]:
    """Run it, interrupted after every state that is saved; and how often that was."""
    for pieces in range(1000):
        try:
            return show(make(), stream, Fragile(folder, "mine", every), **words), pieces
        except Interrupted:
            continue
    raise AssertionError("it does not end")


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", tasks=3, sizes=(2, 2, 2), examples=35, test_examples=15, scenario="task")


@pytest.mark.parametrize("words", [{"schedule": "cosine"}, {"schedule": "step", "schedule_every": 4}])
def test_a_schedule_goes_on_where_it_was(words, stream, tmp_path):
    protocol = hf.protocol("epochs", epochs=2, optimiser="adamw", clip=0.5, decay=0.1, **words)
    whole = show(hf.method("er"), stream, protocol=protocol)
    pieced, pieces = in_pieces(lambda: hf.method("er"), stream, tmp_path, every=3, protocol=protocol)
    assert pieces == 8 and same(whole, pieced)


@pytest.mark.parametrize("name", methods.names())
def test_every_method_goes_on_as_if_nothing_had_happened(name, stream, tmp_path, quick):
    """Interrupted at every task boundary and at steps 3 and 6 of the eight steps (two passes) of every task."""
    whole = show(quick(name), stream)
    pieced, pieces = in_pieces(lambda: quick(name), stream, tmp_path, every=3)
    assert pieces == 8  # joint: at 3, 6, ... 21 of its 22 steps and, scored, at step 8
    assert same(whole, pieced)


CASES = {
    "online": {"protocol": hf.protocol("online")},
    "adam": {"protocol": hf.protocol("epochs", epochs=3, optimiser="adam", lr=0.01)},
    "reset": {"protocol": hf.protocol("epochs", epochs=3, optimiser="momentum", lr=0.02, reset_optimiser=True)},
    "scored often": {"protocol": hf.protocol("epochs", epochs=2, score_every=2, score_first=3)},
    "dropout": {"net": lambda info: hf.net("mlp", hidden=(8,), dropout=0.5).build(info)},
    "batch norm": {
        "net": lambda info: nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.Linear(8, info.classes))
    },
}


@pytest.mark.parametrize("every", [1, 4, None])
@pytest.mark.parametrize("case", CASES)
def test_so_does_every_kind_of_run(case, every, stream, tmp_path):
    make = lambda: hf.method("er", memories=30)  # noqa: E731
    pieced, pieces = in_pieces(make, stream, tmp_path, every, **CASES[case])
    assert pieces >= 2
    assert same(show(make(), stream, **CASES[case]), pieced)


@pytest.mark.parametrize("every", [1, 4, None])
@pytest.mark.parametrize("protocol", [hf.protocol("online"), hf.protocol("epochs", epochs=3)])
@pytest.mark.parametrize("method", ["er", "joint"])
def test_augmented_batches_go_on_as_they_would_have_been(method, protocol, every, tmp_path):
    words = {"examples": 35, "test_examples": 15, "scenario": "task", "augment": True, "scale": "task"}
    images = hf.stream("split", tasks=3, sizes=(2, 2, 2), **words)
    plain = hf.stream("split", tasks=3, sizes=(2, 2, 2), **{**words, "augment": False})
    make = lambda: hf.method(method)  # noqa: E731
    pieced, pieces = in_pieces(make, images, tmp_path, every, protocol=protocol)
    whole = show(make(), images, protocol=protocol)
    assert pieces >= 2 and same(whole, pieced)
    assert show(make(), plain, protocol=protocol).measured.curves != whole.measured.curves


@pytest.mark.parametrize(
    "data",
    ["digits,synth", pytest.param("digits,synth,mnist,cifar-10,svhn", marks=pytest.mark.data)],
)
@pytest.mark.parametrize("protocol", [hf.protocol("online"), hf.protocol("epochs", epochs=2, batch=30)])
def test_so_do_five_tasks_from_several_data_sets(data, protocol, tmp_path):
    """At 32×32 RGB, augmented, each task with a scale of its own."""
    if missing := [name for name in data.split(",")[2:] if not (data_folder() / name).is_dir()]:
        pytest.skip(f"HOLDFAST_DATA does not have {', '.join(missing)}")
    words = {"tasks": 5, "per_class": (4, 1, 3), "labels": "random", "head": "task", "augment": True, "scale": "task"}
    several = hf.stream("assorted", data=data, **words)
    make = lambda: hf.method("er", memories=20)  # noqa: E731
    pieced, pieces = in_pieces(make, several, tmp_path, every=3, protocol=protocol)
    assert pieces >= 10 and same(show(make(), several, protocol=protocol), pieced)
    assert several.info.shape == (3, 32, 32) and pieced.measured.old_rows[-1][0] == 20


@dataclass
class Witness(Learner):
    """Withholds rows, draws from every global generator, and notes what happens to it."""

    def start(self, *args):
        super().start(*args)
        self.log: list = []

    def begin(self, train, plan):
        self.log.append(["begin", len(train)])
        train.take(torch.tensor([3, 5]))
        train.withhold(torch.tensor([3, 5]))

    def observe(self, batch):
        self.log.append([float(batch.x.sum()), random.random(), np.random.rand(), np.random.randn()])
        return self.descend(self.cross_entropy(batch))

    def finish(self, train):
        self.log.append(["finish", train.looks().sum().item()])

    def ready(self):
        self.log.append(["ready"])


@pytest.mark.parametrize("every", [1, 2, 5])
def test_begin_and_finish_happen_once_and_all_dice_are_carried_over(every, stream, tmp_path):
    whole = show(Witness(), stream)
    pieced, _ = in_pieces(Witness, stream, tmp_path, every)
    assert same(whole, pieced)
    assert pieced.learner.log == whole.learner.log
    kinds = [entry[0] for entry in pieced.learner.log if isinstance(entry[0], str)]
    assert kinds == ["begin", "finish", "ready"] * 3
    assert pieced.measured.looks == dict.fromkeys(range(3), (2 * 33 + 2, 35, 2.0))


def test_work_after_the_last_state_is_done_again(stream, tmp_path):
    """An interruption between two states: at the end of every task, before it is finished."""
    make = lambda: hf.method("gem", memories=10)  # noqa: E731
    stops = [0, 1, 2]

    def stop(progress):
        if stops and progress.task == stops[0] and progress.step == progress.steps:
            stops.pop(0)
            raise Interrupted

    for _ in range(3):
        with pytest.raises(Interrupted):
            show(make(), stream, Checkpoint(tmp_path, "mine", every=3), watch=stop)
    assert same(show(make(), stream), show(make(), stream, Checkpoint(tmp_path, "mine", every=3), watch=stop))


def test_keeping_states_changes_no_result(stream, tmp_path):
    make = lambda: hf.method("icarl", memories=30)  # noqa: E731
    assert same(show(make(), stream), show(make(), stream, Checkpoint(tmp_path, "mine", every=2)))


@pytest.mark.parametrize(("method", "scenario"), [("finetune", "domain"), ("independent", "task")])
def test_what_is_written_in_all_grows_with_the_number_of_tasks(method, scenario, tmp_path, monkeypatch):
    """Of what was found before, of networks that are frozen, nothing is written twice."""
    from holdfast.engine import state

    monkeypatch.setattr(state, "_PAGE_BYTES", 4096)  # pages of a few tasks each
    monkeypatch.setattr(state, "_PAGE_ITEMS", 16)
    fill, sizes, written = state.fill, [], []
    monkeypatch.setattr(state, "fill", lambda path, content: sizes.append(len(content)) or fill(path, content))
    for tasks in (10, 20, 40):
        sizes.clear()
        stream = hf.stream("permuted", tasks=tasks, examples=10, test_examples=300, scenario=scenario)
        build = partial(hf.net("mlp", hidden=(4,)).build, stream.info)
        keep, descent = Checkpoint(tmp_path / str(tasks), "mine"), hf.protocol("online").descent()
        session = Session(hf.method(method), stream, Net(build(), build), descent, 0, keep=keep, scored="ends")
        for task in session.remaining():
            (*_, step) = session.learn(task, 1, 10, lease_at_begin=False)
            session.score(task.t, step)
        written.append(sum(sizes) / (tasks - 1))  # per state
    assert written[1] < 1.1 * written[0] and written[2] < 1.1 * written[1]


def test_what_a_protocol_notes_is_found_again(stream, tmp_path):
    class Noting(Fragile):
        def write(self, state):
            assert state["own"] == {"trials": list(range(state["next"]))}
            super().write(state)

    class Noted(type(hf.protocol("online"))):
        def show(self, job):
            session = job.session(self.descent())
            for task in session.remaining():
                (*_, step) = session.learn(task, 1, self.batch, lease_at_begin=False)
                session.score(task.t, step)
                session.own.setdefault("trials", []).append(task.t)
            return session

    for _ in range(2):
        with pytest.raises(Interrupted):
            show(hf.method("finetune"), stream, Noting(tmp_path, "mine"), protocol=Noted())
    session = show(hf.method("finetune"), stream, Noting(tmp_path, "mine"), protocol=Noted())
    assert session.own["trials"] == [0, 1, 2]


def test_what_cannot_be_saved_is_named_at_the_first_state(stream, tmp_path):
    class Keeps(Learner):
        def observe(self, batch):
            self.seen = {1, 2}
            return self.descend(self.cross_entropy(batch))

    with pytest.raises(TypeError, match=r"Keeps\.seen is a set, which cannot be saved"):
        show(Keeps(), stream, Checkpoint(tmp_path, "mine"))
    assert show(Keeps(), stream).measured.R


def test_the_number_of_steps_between_states_is_not_part_of_a_cell(stream, tmp_path):
    first = hf.compare(["finetune"], stream, seeds=1, out=tmp_path / "out", checkpoint_every=2)
    again = hf.compare(["finetune"], stream, seeds=1, out=tmp_path / "out", checkpoint_every=3)
    assert first.names == again.names


@pytest.mark.parametrize("wrong", [0, -1, 2.5, "3", True])
def test_so_many_steps_must_be_a_whole_number(wrong, stream, tmp_path):
    with pytest.raises(hf.BadInput, match="checkpoint_every must be a whole number >= 1, not "):
        hf.compare(["finetune"], stream, seeds=1, out=tmp_path / "out", checkpoint_every=wrong)
    assert list(tmp_path.iterdir()) == []
