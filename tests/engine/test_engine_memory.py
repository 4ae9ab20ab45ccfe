"""Episodic memories against deques and against the statistics of uniform sampling."""

from collections import defaultdict, deque

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from holdfast.engine import ClassRing, Reservoir, TaskRing
from holdfast.engine.memory import earlier_alike
from holdfast.types import Batch

RNG = torch.Generator()


def numbered(first, n, task, classes=3):
    """Examples whose single pixel is their number; the class is number % classes."""
    number = torch.arange(first, first + n)
    return Batch(number.float()[:, None], number % classes, task)


def feed(memory, sizes_and_tasks, rng=RNG):
    """Batches of consecutive numbers; returns them as (number, task)."""
    seen = []
    for n, task in sizes_and_tasks:
        memory.add(numbered(len(seen), n, task), rng)
        seen += [(i, task) for i in range(len(seen), len(seen) + n)]
    return seen


def numbers(batch):
    return batch.x.flatten().int().tolist()


in_order = st.lists(st.integers(1, 9), min_size=1, max_size=12).flatmap(
    lambda sizes: st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)).map(
        lambda tasks: list(zip(sizes, sorted(tasks), strict=True))
    )
)


@settings(deadline=None, max_examples=150)
@given(in_order, st.integers(1, 12))
def test_task_ring_holds_exactly_the_last_of_each_task(batches, size):
    ring, oracle = TaskRing(size), defaultdict(lambda: deque(maxlen=size))
    for number, task in feed(ring, batches):
        oracle[task].append(number)
    assert ring.tasks() == sorted(oracle)
    for task, kept in oracle.items():
        held = ring.of_task(task)
        assert sorted(numbers(held)) == list(kept)
        assert torch.equal(held.y, held.x.flatten().long() % 3)
        assert (held.task == task).all()
    assert len(ring) == sum(map(len, oracle.values()))


@settings(deadline=None, max_examples=150)
@given(in_order, st.integers(4, 20))
def test_a_fixed_total_keeps_the_newest_of_each_shrinking_share(batches, total):
    ring = TaskRing(0, total=total)
    kept: dict[int, deque] = {}
    for number, task in feed(ring, batches):
        if task not in kept:  # all shares shrink when a task begins
            share = total // (len(kept) + 1)
            kept = {k: deque(v, maxlen=share) for k, v in kept.items()} | {task: deque(maxlen=share)}
        kept[task].append(number)
    assert {k: sorted(numbers(ring.of_task(k))) for k in ring.tasks()} == {k: list(v) for k, v in kept.items()}
    assert len(ring) <= total


@settings(deadline=None, max_examples=150)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.integers(1, 5))
def test_class_ring_holds_exactly_the_last_of_each_class(sizes, size):
    ring, oracle = ClassRing(size), defaultdict(lambda: deque(maxlen=size))
    for number, _ in feed(ring, [(n, None) for n in sizes]):
        oracle[number % 3].append(number)
    for label, kept in oracle.items():
        assert ring.x[ring.y == label].flatten().int().tolist() == list(kept)
    assert len(ring) == sum(map(len, oracle.values()))


def test_past_is_the_earlier_tasks_side_by_side():
    ring = TaskRing(3)
    assert ring.past() == []
    feed(ring, [(5, 0)])
    assert ring.past() == []
    feed(ring, [(4, 2), (2, 5)])
    ((x, y, tasks),) = ring.past()
    assert (x.shape, y.shape, tasks.tolist()) == ((2, 3, 1), (2, 3), [0, 2])
    assert [sorted(row) for row in x.flatten(1).int().tolist()] == [[2, 3, 4], [1, 2, 3]]
    assert torch.equal(y, x[..., 0].long() % 3)


def test_past_keeps_tasks_that_saw_too_few_apart():
    ring = TaskRing(4)
    feed(ring, [(4, 0), (3, 1), (1, 2), (1, 3), (1, 4)])
    found = [(x.flatten(1).int().tolist(), tasks.tolist()) for x, _, tasks in ring.past()]
    assert found == [([[0, 1, 2, 3]], [0]), ([[4, 5, 6]], [1]), ([[7], [8]], [2, 3])]


def test_a_task_that_comes_back_starts_anew_and_is_not_past():
    ring = TaskRing(3)
    feed(ring, [(3, 0), (3, 1)])
    ring.add(numbered(50, 1, 0), RNG)
    assert numbers(ring.of_task(0)) == [50]
    assert ring.past()[0][2].tolist() == [1]


def test_draw_past_leaves_the_current_task_out():
    ring = TaskRing(5)
    assert ring.draw_past(3, RNG) is None
    feed(ring, [(5, 0), (5, 1), (5, 2)])
    drawn = ring.draw_past(4, RNG)
    assert len(drawn) == len(set(numbers(drawn))) == 4
    assert sorted(numbers(ring.draw_past(100, RNG))) == list(range(10))


def test_a_task_fills_a_block_that_was_reserved_when_it_began():
    ring = TaskRing(6)
    feed(ring, [(6, 0), (6, 1), (2, 2)])
    places = [column.data_ptr() for column in ring.room]
    feed(ring, [(2, 2), (1, 2), (9, 2)])
    assert [column.data_ptr() for column in ring.room] == places
    assert len(ring) == len(ring.x) == 18
    feed(ring, [(1, 3)])
    assert [len(column) for column in ring.room] == [24] * 3  # its bound, though 19 rows are kept


def test_reserved_rows_are_never_read():
    ring = TaskRing(8)
    feed(ring, [(3, 0), (2, 1)])
    ring.add(numbered(70, 4, 2), RNG)
    ring.load(ring.state())
    shown = [ring.all(), ring.draw(50, RNG), ring.draw_past(50, RNG), *map(ring.of_task, ring.tasks())]
    assert ring.tasks() == [0, 1, 2]
    assert all((batch.x >= 0).all() and (batch.y >= 0).all() and (batch.task >= 0).all() for batch in shown)
    assert [x.shape[:2] for x, _, _ in ring.past()] == [(1, 3), (1, 2)]


@pytest.mark.parametrize("task", [None, torch.zeros(4, dtype=torch.long)])
def test_a_ring_per_task_needs_to_know_the_task(task):
    with pytest.raises(TypeError, match="use a reservoir"):
        TaskRing(3).add(numbered(0, 4, task), RNG)


def test_a_reservoir_holds_every_example_with_equal_probability():
    """Each of 40 positions is held with probability 8/40: Pearson's statistic over 4,000 replicas."""
    total, stream, replicas, rng = 8, 40, 4000, torch.Generator().manual_seed(0)
    counts = torch.zeros(stream)
    for _ in range(replicas):
        memory = Reservoir(total)
        memory.add(numbered(0, stream, 0), rng)
        counts[numbers(memory.all())] += 1
    p = total / stream
    spread = replicas * p * (1 - p) * stream / (stream - 1)  # the counts of one replica always sum to 8
    statistic = ((counts - replicas * p) ** 2).sum().item() / spread
    assert chi2.sf(statistic, stream - 1) > 0.01  # measured 0.94


@settings(deadline=None, max_examples=100)
@given(st.lists(st.integers(1, 30), min_size=1, max_size=8), st.integers(1, 20), st.integers(0, 99))
def test_a_reservoir_is_vitters_algorithm_one_example_at_a_time(sizes, total, seed):
    """The batched form makes the same decisions from the same draws, whatever the batch sizes."""
    memory, rng = Reservoir(total), torch.Generator().manual_seed(seed)
    slots: list[int] = []
    for number, _ in feed(memory, [(n, 0) for n in sizes], torch.Generator().manual_seed(seed)):
        if len(slots) < total:
            slots.append(number)
            continue
        place = int(torch.rand(1, generator=rng, dtype=torch.float64).item() * (number + 1))
        if place < total:
            slots[place] = number
    assert numbers(memory.all()) == slots
    assert memory.seen == sum(sizes)
    assert torch.equal(memory.y, memory.x.flatten().long() % 3)


def test_a_reservoir_mixes_tasks_and_remembers_each_rows_own():
    memory = Reservoir(10)
    memory.add(numbered(0, 4, torch.tensor([0, 1, 0, 1])), RNG)
    memory.add(numbered(4, 2, 2), RNG)
    memory.add(numbered(6, 1, None), RNG)
    assert memory.task.tolist() == [0, 1, 0, 1, 2, 2, -1]
    assert memory.tasks() == [-1, 0, 1, 2]


def test_draw_is_without_replacement_while_there_are_enough():
    memory = Reservoir(10)
    feed(memory, [(10, 0)])
    assert sorted(numbers(memory.draw(10, RNG))) == list(range(10))
    many = memory.draw(500, RNG)
    assert len(many) == 500
    assert set(numbers(many)) == set(range(10))
    first, again = (memory.draw(5, torch.Generator().manual_seed(s)) for s in (4, 4))
    assert numbers(first) == numbers(again)


@pytest.mark.parametrize(
    "make", [lambda: TaskRing(3), lambda: TaskRing(0, total=7), lambda: ClassRing(2), lambda: Reservoir(5)]
)
def test_state_round_trip_continues_the_same(make):
    memory, other = make(), make()
    feed(memory, [(5, 0), (4, 1)])
    state = memory.state()
    kept = memory.x.clone()
    rows = [(20, 4, 1), (24, 6, 2)]
    for each in (memory, other):
        if each is other:
            other.load(state)
            assert torch.equal(other.x, kept)
        rng = torch.Generator().manual_seed(0)
        for first, n, task in rows:
            each.add(numbered(first, n, task), rng)
    assert torch.equal(memory.x, other.x)
    assert torch.equal(memory.task, other.task)
    assert torch.equal(state["room"][0][: len(kept)], kept)


@pytest.mark.parametrize("make", [lambda: TaskRing(4), lambda: ClassRing(4), lambda: Reservoir(4)])
def test_a_memory_is_a_copy_of_what_it_was_given(make):
    memory, batch = make(), numbered(0, 3, 0)
    memory.add(batch, RNG)
    batch.x.fill_(-1)
    batch.y.fill_(-1)
    assert numbers(memory.all()) == [0, 1, 2]
    assert memory.y.tolist() == [0, 1, 2]


def elsewhere(n, task):
    """Rows on a device that is not the CPU, as an accelerator's are: indices from the CPU are refused there."""
    return Batch(torch.empty(n, 2, device="meta"), torch.empty(n, dtype=torch.long, device="meta"), task)


@pytest.mark.parametrize("total", [None, 8])
def test_a_task_ring_past_its_wrap_around_stays_on_the_device_of_its_rows(total):
    ring = TaskRing(4, total)
    for task, n in [(0, 3), (0, 3), (0, 9), (1, 3), (1, 6), (2, 1)]:
        ring.add(elsewhere(n, task), RNG)
    drawn = ring.draw(3, RNG)
    assert all(column.is_meta for column in (*ring.room, drawn.x, drawn.y, drawn.task))
    assert all(column.is_meta for block in ring.past() for column in block)
    drawn = ring.draw_past(5, RNG)
    assert drawn.x.is_meta and len(ring) == {None: 9, 8: 5}[total]


def test_a_full_reservoir_stays_on_the_device_of_its_rows():
    memory = Reservoir(4)
    for _ in range(5):
        memory.add(elsewhere(3, 0), RNG)
    drawn = memory.draw(9, RNG)
    assert all(column.is_meta for column in (*memory.room, drawn.x, drawn.y, drawn.task))


def test_ranks_within_a_class_are_found_on_the_device_of_the_labels():
    """All of a class ring that does not depend on the labels' values, which this device has not."""
    assert earlier_alike(elsewhere(5, 0).y).is_meta


def test_a_fixed_total_holds_for_more_tasks_than_it_has_rows():
    ring = TaskRing(0, total=3)
    feed(ring, [(2, task) for task in range(5)])
    assert ring.tasks() == [2, 3, 4]  # the oldest go
    assert len(ring) == 3
    assert [tasks.tolist() for _, _, tasks in ring.past()] == [[2, 3]]


def test_class_ring_by_task_holds_the_last_of_each_class_of_each_task():
    ring, oracle = ClassRing(2, by_task=True), defaultdict(lambda: deque(maxlen=2))
    for number, task in feed(ring, [(7, 0), (5, 0), (9, 1), (4, 2)]):
        oracle[task, number % 3].append(number)
    for (task, label), kept in oracle.items():
        assert ring.x[(ring.y == label) & (ring.task == task)].flatten().int().tolist() == list(kept)
    assert len(ring) == sum(map(len, oracle.values())) == 16
