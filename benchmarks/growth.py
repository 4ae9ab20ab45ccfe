"""What frozen parts and past tasks cost: seconds per step, bytes per state, seconds and bytes written per run.

    OMP_NUM_THREADS=1 python benchmarks/growth.py                      everything, about five minutes
    OMP_NUM_THREADS=1 python benchmarks/growth.py steps multimodal     some sections: steps, multimodal, tasks, paths

Everything runs in one process with one thread; contestants take turns, and who begins changes from round to round.
Seconds are the process's own, medians over the rounds. Needs HOLDFAST_DATA with MNIST; `--data digits` does without.
README.md says what is measured.
"""

from __future__ import annotations

import argparse
import itertools
import math
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}

import torch
from torch import Tensor

import holdfast as hf
from holdfast.engine import Checkpoint, counting, state
from holdfast.methods.mntdp import MNTDP
from holdfast.protocols import Session, _showing
from holdfast.protocols._session import Scored
from holdfast.seeds import generator, seeded

SECTIONS = ("steps", "multimodal", "tasks", "paths")
FROZEN = (1, 10, 100)  # parts
STEPS = 100  # of a round
TASKS = (10, 25, 50, 100)
STEP_TARGET, MULTIMODAL_TARGET = 1.15, 2.0  # of 100 frozen parts to one; of `multimodal` to `finetune`, at 20 tasks
PATH_TARGET = 1.15  # of a task of `mntdp` among the last tasks to one among the first, without its k-NN pass
UNITS = (
    ("seconds", 1.0, "learning, s"),
    ("flops", 1e6, "learning, MFLOPs"),
    ("knn_seconds", 1.0, "k-NN pass, s"),
    ("knn_flops", 1e6, "k-NN pass, MFLOPs"),
    ("laid_seconds", 1.0, "new modules to the library, s"),
    ("whole", 1.0, "everything, s"),
)
AMONG = 20  # tasks at either end, but for the first, which has no past


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}; all unless named")
    ask.add_argument("--rounds", type=int, default=15)
    ask.add_argument("--data", default="mnist")
    ask.add_argument(
        "--plot", type=Path, metavar="FILE.svg", help="draw what grows over the tasks; paths: FILE-paths.svg"
    )
    ask.add_argument("--scored", choices=("ends", "all"), default="ends", help="tasks, by the section of that name")
    given = ask.parse_args()
    if unknown := sorted(set(given.sections) - set(SECTIONS)):
        ask.error(f"sections are {', '.join(SECTIONS)}, not {', '.join(unknown)}")
    torch.set_num_threads(1)
    asked = given.sections or SECTIONS
    if "steps" in asked:
        for method in ("multimodal", "independent"):
            for optimiser in ("sgd", "adam"):
                steps(method, optimiser, given.data, given.rounds)
    if "multimodal" in asked:
        multimodal(given.data, max(given.rounds // 3, 3))
    if "tasks" in asked:
        found = {method: tasks(method, given.data, given.scored) for method in ("finetune", "multimodal")}
        if given.plot:
            given.plot.write_text(drawn(found))
    if "paths" in asked:
        searched = {search: paths(search, given.data) for search in ("all", "halving")}
        if given.plot:
            given.plot.with_stem(f"{given.plot.stem}-paths").write_text(drawn_paths(searched))


def steps(method: str, optimiser: str, data: str, rounds: int) -> None:
    """A step of a learner with so many frozen parts, and one more state of it."""
    learners = {frozen: grown(method, optimiser, data, frozen) for frozen in FROZEN}
    seconds = interleaved({frozen: partial(many, *learners[frozen]) for frozen in FROZEN}, rounds)
    sizes = {frozen: one_more(*learners[frozen]) for frozen in FROZEN}
    took = {frozen: statistics.median(times) / STEPS for frozen, times in seconds.items()}
    found = ", ".join(f"{n} frozen {1e6 * took[n]:.0f} µs, {sizes[n] / 1e3:.1f} kB" for n in FROZEN)
    print(f"a step and a state, {method}, {optimiser}: {found}")
    for what, ratio in (("steps", took[100] / took[1]), ("states", sizes[100] / sizes[1])):
        print(f"  {what}, 100 frozen ÷ 1: {ratio:.3f} ({judged(ratio, STEP_TARGET)})")


def grown(method: str, optimiser: str, data: str, frozen: int) -> tuple[Any, hf.Batch]:
    """A learner that has seen a batch of each of so many tasks, and is at the next; and a batch of that."""
    stream = hf.stream("permuted", data=data, tasks=2, examples=20, scenario="task", seed=0)
    build = partial(hf.net("mlp", hidden=(100, 100)).build, stream.info)
    learner, part = hf.method(method), stream.tasks[0].train
    with seeded(0):
        net = hf.Net(build(), build)
    descent = hf.protocol("epochs", optimiser=optimiser, lr=0.001).descent()
    learner.start(net, descent, stream.info, generator(0, "growth"))
    learner._allowed = None  # there are more tasks here than in the stream
    for t in range(frozen + 1):
        batch = hf.Batch(part.x()[:10], part.y[:10], t)
        learner.observe(batch)
    return learner, batch


def many(learner: Any, batch: hf.Batch) -> None:
    for _ in range(STEPS):
        learner.observe(batch)


def one_more(learner: Any, batch: hf.Batch) -> int:
    """Bytes that a state has and the one before it has not."""
    first = learner.state()
    learner.observe(batch)
    second = learner.state()
    known = storages(first)
    return sum(size for place, size in storages(second).items() if place not in known)


def storages(found: Any) -> dict[int, int]:
    """Bytes of a state's tensors, by where they are."""
    if isinstance(found, Tensor):
        return {found.untyped_storage().data_ptr(): found.untyped_storage().nbytes()}
    inside = found.values() if isinstance(found, dict) else found if isinstance(found, list | tuple) else ()
    return {place: size for item in inside for place, size in storages(item).items()}


def multimodal(data: str, rounds: int) -> None:
    """The training of 20 rotated tasks, 1,000 examples each: an input layer per task against one network."""
    stream = hf.stream("rotated", data=data, tasks=20, examples=1000, scenario="task", seed=0)
    for task in stream.tasks:
        task.train.raw()
    alone: dict[str, list[float]] = {name: [] for name in ("multimodal", "finetune")}
    contestants = {name: partial(trained, name, stream, alone[name]) for name in alone}
    whole = interleaved(contestants, rounds)
    for what, seconds in (("training of 20 tasks", whole), ("  its steps alone", alone)):
        ours, single = (statistics.median(times) for times in seconds.values())
        print(f"{what}: multimodal {ours:.2f} s, finetune {single:.2f} s")
        print(f"  multimodal ÷ finetune: {ours / single:.2f} ({judged(ours / single, MULTIMODAL_TARGET)})")


def trained(method: str, stream: Any, alone: list[float]) -> None:
    """`alone` gets the seconds of the steps, without the audit and what else a session does."""
    session = begun(method, stream)
    for task in stream.tasks:
        for _ in session.learn(task, 1, 10, lease_at_begin=False):
            pass
    alone.append(sum(session.measured.seconds))


def tasks(method: str, data: str, scored: Scored) -> list[tuple[int, float, int]]:
    """Whole runs over permuted tasks of 200 examples: seconds, and bytes of states that were written."""
    print(f"permuted tasks of 200 examples, 2,000 test rows each, {method}, scored {scored}: in all and per task")
    found = []
    for T in TASKS:
        stream = hf.stream("permuted", data=data, tasks=T, examples=200, test_examples=2000, scenario="task", seed=0)
        with tempfile.TemporaryDirectory() as folder, written() as sizes:
            at = time.process_time()
            session = begun(method, stream, Checkpoint(Path(folder) / "checkpoint", "growth"), scored)
            for task in session.remaining():
                (*_, step) = session.learn(task, 1, 10, lease_at_begin=False)
                session.score(task.t, step)
            seconds = time.process_time() - at
        size = sum(sizes)
        print(f"  T = {T:3}: {seconds:6.2f} s, {seconds / T:.3f} s; {size / 1e6:6.2f} MB, {size / T / 1e3:.1f} kB")
        found.append((T, seconds, size))
    for what, place in (("seconds", 1), ("bytes written", 2)):
        print(f"  {what} grow as T to the power {exponent([(row[0], row[place]) for row in found]):.2f}")
    return found


class Searched(NamedTuple):
    """What one task of `mntdp` cost; learning is trials and all else that the protocol books, without what follows."""

    seconds: float
    flops: float
    knn_seconds: float
    knn_flops: float
    laid_seconds: float  # the task's new modules go to the library, whose θ is laid out anew
    whole: float  # seconds of everything: audit, looks at validation rows and saving included


def paths(search: str, data: str) -> list[Searched]:
    """A search per task over 100 permuted tasks, whose past networks have hardly a module in common: each has to be
    asked for its features, and the library grows as fast as it can."""
    passes: list[tuple[float, int]] = []
    begun_at: list[float] = []
    laid: list[float] = []

    class Clocked(MNTDP):
        def options(self, train: Any) -> Any:
            begun_at.append(time.process_time())
            return super().options(train)

        def nearest(self, train: Any, k: int | None) -> Any:
            at = time.process_time()
            with counting() as counter:
                found = super().nearest(train, k)
            passes.append((time.process_time() - at, counter.total))
            return found

        def close(self) -> None:
            at = time.process_time()
            super().close()
            laid.append(time.process_time() - at)

    stream = hf.stream(
        "permuted", data=data, tasks=TASKS[-1], examples=200, test_examples=100, val=0.3, scenario="task", seed=0
    )
    protocol = hf.protocol("crossval", lr=(0.003,), decay=(0.0,), epochs=4, batch=20, patience=None, score="ends")
    cell = hf.Cell(Clocked(search=search), stream, hf.net("mlp", hidden=(100, 100)), protocol, seed=0)
    with tempfile.TemporaryDirectory() as folder, by_own_seconds():
        record = cell.run(keep=Checkpoint(Path(folder) / "checkpoint", "growth"))
    seconds, flops = (list(record.resources[name]) for name in ("train_seconds", "flops"))
    for row in record.study["trials"]:
        if not row["chosen"]:
            seconds[row["task"]] += row["seconds"]
            flops[row["task"]] += row["flops"]
    passes.insert(0, (0.0, 0))  # the first task has no past
    whole = [b - a for a, b in itertools.pairwise(begun_at)]
    found = [
        Searched(s - ks - ls, f - kf, ks, float(kf), ls, w)
        for s, f, (ks, kf), ls, w in zip(seconds[:-1], flops[:-1], passes[:-1], laid[:-1], whole, strict=True)
    ]
    print(
        f"permuted tasks of 200 examples, mntdp, search={search}: a task among the first {AMONG} and the last {AMONG}"
    )
    for name, unit, said in UNITS:
        costs = [getattr(task, name) / unit for task in found]
        first, last = statistics.mean(costs[1 : AMONG + 1]), statistics.mean(costs[-AMONG:])
        verdict = f", {judged(last / first, PATH_TARGET)}" if name in ("seconds", "flops") else ""
        power = exponent([(t, cost) for t, cost in enumerate(costs) if t >= AMONG // 2])
        print(f"  {said}: {first:.3f} → {last:.3f}, {last / first:.2f} times{verdict}; as T to the power {power:.2f}")
    return found


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of a line through the points in logarithms: 1 is linear growth."""
    return statistics.linear_regression(*zip(*((math.log(x), math.log(y)) for x, y in points), strict=True)).slope


def drawn(found: dict[str, list[tuple[int, float, int]]]) -> str:
    """Seconds and megabytes over the number of tasks, a panel each; dashed: a line through 0 and the first point."""
    panels = []
    for i, (title, place, unit) in enumerate((("seconds", 1, 1.0), ("MB written", 2, 1e6))):
        left, top = 60 + 380 * i, max(row[place] / unit for rows in found.values() for row in rows)
        at = lambda T, y, left=left, top=top: f"{left + 280 * T / TASKS[-1]:.1f},{230 - 190 * y / top:.1f}"  # noqa: E731
        panels.append(f'<text x="{left}" y="20">{title}, up to {top:.2f}</text>'
                      f'<path d="M{left},40V230H{left + 280}" fill="none" stroke="#888"/>')  # fmt: skip
        panels += [f'<text x="{left + 280 * T / TASKS[-1]:.0f}" y="248" text-anchor="middle">{T}</text>' for T in TASKS]
        for (method, rows), colour in zip(found.items(), ("#0072b2", "#d55e00"), strict=True):
            points = " ".join(at(row[0], row[place] / unit) for row in rows)
            each = rows[0][place] / unit / rows[0][0]
            straight = f"{at(0, 0)} {at(min(TASKS[-1], top / each), min(each * TASKS[-1], top))}"
            panels.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
                          f'<polyline points="{straight}" fill="none" stroke="{colour}" stroke-dasharray="3"/>'
                          f'<text x="{left + 290}" y="{_height(at, rows, place, unit)}" fill="{colour}">'
                          f"{method}</text>")  # fmt: skip
    inside = "\n".join(panels)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="260" font-family="sans-serif" ' \
           f'font-size="12"><rect width="800" height="260" fill="#fff"/>\n{inside}\n</svg>\n'  # fmt: skip


def drawn_paths(found: dict[str, list[Searched]]) -> str:
    """Seconds and FLOPs of each task, a panel each; dashed: its k-NN pass."""
    panels = []
    for i, (title, place, unit) in enumerate((("seconds per task", "seconds", 1.0), ("MFLOPs per task", "flops", 1e6))):
        left = 60 + 380 * i
        lines = [
            (search, dashed, [getattr(task, f"{'knn_' if dashed else ''}{place}") / unit for task in tasks])
            for search, tasks in found.items()
            for dashed in (False, True)
        ]
        top = max(max(costs) for _, _, costs in lines)
        panels.append(f'<text x="{left}" y="20">{title}, up to {top:.2f}; dashed: the k-NN pass</text>'
                      f'<path d="M{left},40V230H{left + 280}" fill="none" stroke="#888"/>')  # fmt: skip
        panels += [f'<text x="{left + 280 * T / TASKS[-1]:.0f}" y="248" text-anchor="middle">{T}</text>' for T in TASKS]
        for search, dashed, costs in lines:
            points = [(left + 280 * t / TASKS[-1], 230 - 190 * cost / top) for t, cost in enumerate(costs, 1)]
            colour = {"all": "#0072b2", "halving": "#d55e00"}[search]
            dashes = ' stroke-dasharray="3"' if dashed else ""
            panels.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}" fill="none" '
                          f'stroke="{colour}"{dashes}/>')  # fmt: skip
            if not dashed:
                panels.append(f'<text x="{left + 285}" y="{points[-1][1]:.0f}" fill="{colour}">{search}</text>')
    inside = "\n".join(panels)
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="260" font-family="sans-serif" ' \
           f'font-size="12"><rect width="800" height="260" fill="#fff"/>\n{inside}\n</svg>\n'  # fmt: skip


def _height(at: Callable[[int, float], str], rows: list[tuple[int, float, int]], place: int, unit: float) -> str:
    """Where a line ends."""
    return at(rows[-1][0], rows[-1][place] / unit).partition(",")[2]


@contextmanager
def by_own_seconds() -> Iterator[None]:
    """What a session books are the process's seconds in here, not those of the wall."""
    wall, _showing.time = _showing.time, SimpleNamespace(perf_counter=time.process_time)
    try:
        yield
    finally:
        _showing.time = wall


@contextmanager
def written() -> Iterator[list[int]]:
    """Bytes of every file of a state that is written in here."""
    fill, sizes = state.fill, []

    def noted(path: Path, content: bytes) -> None:
        sizes.append(len(content))
        fill(path, content)

    state.fill = noted
    try:
        yield sizes
    finally:
        state.fill = fill


def begun(method: str, stream: Any, keep: Checkpoint | None = None, scored: Scored = "ends") -> Session:
    build = partial(hf.net("mlp", hidden=(100, 100)).build, stream.info)
    with seeded(0):
        net = hf.Net(build(), build)
    return Session(hf.method(method), stream, net, hf.protocol("online").descent(), 0, keep=keep, scored=scored)


def interleaved(contestants: dict[Any, Callable[[], None]], rounds: int) -> dict[Any, list[float]]:
    """The process's seconds, per contestant and round; the first round is not counted."""
    seconds: dict[Any, list[float]] = {name: [] for name in contestants}
    names = list(contestants)
    for i in range(rounds + 1):
        for name in names[i % len(names) :] + names[: i % len(names)]:
            begun_at = time.process_time()
            contestants[name]()
            seconds[name].append(time.process_time() - begun_at)
    return {name: times[1:] for name, times in seconds.items()}


def judged(ratio: float, target: float) -> str:
    return f"at most {target}: {'met' if ratio <= target else 'MISSED'}"


if __name__ == "__main__":
    main()
