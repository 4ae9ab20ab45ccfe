"""One run in progress: a learner, its stream, and the measurements. Protocols are short programs over it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from holdfast import types
from holdfast.audit import Lease, Retention, Walked, footprint, generators, glance
from holdfast.engine import (
    CHECK_EVERY,
    Keeper,
    Log,
    Net,
    Optimiser,
    Score,
    Shuffled,
    State,
    counting,
    entropy,
    observed,
    score,
    score_together,
)
from holdfast.errors import BadInput, RunFailed
from holdfast.methods import Learner
from holdfast.protocols._boundaries import Detector
from holdfast.protocols._showing import Clock, Showing
from holdfast.protocols._slips import slips_at_start
from holdfast.seeds import dice, generator, set_dice
from holdfast.types import Gone, Lesson, Part, Segment, Settling, Stream, Task

TABLES = ("predictions", "uncertainties")  # what is measured of every row
PATIENCE = 1.0  # seconds after which whoever watches hears of a slow step
DECOYS = 8  # other tasks whose rows are asked about beside those of one, at most: all would cost T² in T scorings
ENTROPY_ROWS = 500  # of a new task, to measure how confident predictions on it are before it is learned


@dataclass(frozen=True)
class Progress:
    """Where a run is."""

    task: int
    tasks: int
    step: int
    steps: int
    doing: str = ""  # work beside the steps, which has steps of its own; empty: the protocol's
    scored: Mapping[int, float] = field(default_factory=dict)  # accuracies of tasks, where it was just scored
    updates: int = 0  # until then


Watch = Callable[[Progress], None]
Scored = Literal["all", "seen", "ends"]
Maker = Callable[[Mapping[str, Any]], tuple[Learner, Net]]  # a model with these settings, started


@dataclass
class _Spent:
    """Costs since the last task was closed, trials included."""

    flops: float = 0.0
    seconds: float = 0.0
    updates: int = 0


@dataclass
class Measured:
    """What a session has measured so far; per-task lists are in the order of learning."""

    baseline: list[float] = field(default_factory=list)
    R: list[list[float]] = field(default_factory=list)
    scorings: list[dict[str, int]] = field(default_factory=list)
    predictions: list[list[np.ndarray]] = field(default_factory=list)  # per scoring, per task asked about
    uncertainties: list[list[np.ndarray]] = field(default_factory=list)  # the same where they are samples, else nothing
    curves: list[dict[str, Any]] = field(default_factory=list)
    entropies: list[float] = field(default_factory=list)
    old_rows: list[tuple[int, ...]] = field(default_factory=list)
    generators: list[tuple[int, int]] = field(default_factory=list)  # networks and their bytes
    bytes: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)  # kept, as paper 000 counts them
    flops: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    updates: list[float] = field(default_factory=list)
    eval_seconds: float = 0.0
    looks: dict[int, tuple[float, int, float]] = field(default_factory=dict)  # per task: see `Session.note_looks`


class Session:
    """Shows tasks to a learner, scores it, and measures; what it measured is in `measured`.

    `scored`: which tasks a scoring asks about: all, those so far and the next one, or each when it is learned and all
    at the end. `make`: of protocols that choose among models, how one is made.
    """

    def __init__(
        self,
        learner: Learner,
        stream: Stream,
        net: Net,
        optimiser: Optimiser,
        seed: int,
        watch: Watch | None = None,
        keep: Keeper | None = None,
        *,
        scored: Scored = "all",
        make: Maker | None = None,
    ) -> None:
        self.learner, self.net, self.stream, self.seed = learner, net, stream, seed
        self.watch, self.keep, self.scored, self.make = watch, keep, scored, make
        self.measured = Measured()
        self.chosen: dict[str, dict[str, Any]] = {}  # settings chosen in the run: name -> {"value", "chosen_by"}
        self.trials: dict[str, float] = {}  # what choosing them cost: runs, seconds, flops
        self.study: dict[str, list[dict[str, Any]]] = {}  # what a protocol that selects has tried
        self.model: dict[str, Any] | None = None  # the settings that the learner was made with; None: as it was given
        self._spent = _Spent()
        self.steps = 0  # of the showing under way
        self.showing: Showing | None = None  # the one under way
        self.detector: Detector | None = None  # finds where tasks end, where that is hidden
        self.own: dict[str, State] = {}  # what a protocol wants to find again when an interrupted run goes on
        self.next = 0  # the task to be learned next
        self._halfway: dict[str, State] | None = None  # a state from the middle of a task, to be taken up there
        allowed = stream.info.allowed()
        self._allowed = None if allowed is None else allowed.to(net.device)
        self._retention = Retention(stream.info.shape)
        self._shuffled: dict[str, Shuffled] = {}  # what was scored last, by what for
        learner.start(net, optimiser, stream.info, generator(seed, "learner"))
        if slips := slips_at_start(learner):
            raise BadInput(*slips)
        saved = None if keep is None else keep.read()
        if saved is None:
            self.score_untrained()
        else:
            self._go_on(saved)

    def remaining(self) -> Iterator[Task]:
        """The tasks still to be learned. When the work on one is done, its scoring included, the state is saved."""
        for task in self.stream.tasks[self.next :]:
            yield task
            if self.next < len(self.stream):
                self.save()

    def save(self, showing: Showing | None = None) -> None:
        """Save everything that is needed to go on from here, perhaps in the middle of a showing."""
        if self.keep is not None:
            self.keep.write(self.packed(showing))

    def packed(self, showing: Showing | None = None) -> dict[str, State]:
        """All of it as state; `take_up` puts it back. What only gets longer is logs, which are not saved twice."""
        m = self.measured
        logs: dict[str, State] = {name: Log(found) for name, found in vars(m).items() if isinstance(found, list)}
        logs |= {name: Log([torch.from_numpy(c) for c in row] for row in vars(m)[name]) for name in TABLES}
        logs["R"] = Log({j: a for j, a in enumerate(row) if not math.isnan(a)} for row in m.R)
        logs["looks"] = Log(m.looks.items())
        return {
            "next": self.next,
            "own": self.own,
            "study": {name: Log(rows) for name, rows in self.study.items()},
            "chosen": self.chosen,
            "model": self.model,
            "learner": self.learner.state(),
            "measured": {**vars(m), **logs},
            "spent": vars(self._spent),
            "dice": dice(),
            "showing": None if showing is None else showing.state(),
        }

    def adopt(self, model: Mapping[str, Any]) -> None:
        """Go on with a model of these settings, one among several, as it is before it learns."""
        assert self.make is not None, "a session that makes models is given the maker"
        self.model = dict(model)
        self.learner, self.net = self.make(self.model)

    def left(self) -> dict[str, State]:
        """What a run that is over leaves behind, so that it can go on with more tasks without the rows of these."""
        return {**self.packed(), "retained": self._retention.state()}

    def score_untrained(self) -> None:
        """Score every task with the learner as it is: the baseline of forward transfer."""
        self.measured.baseline = self._baseline([])

    def _baseline(self, known: Sequence[float]) -> list[float]:
        """What is known of it, and of tasks that came since the accuracies of the learner as it is."""
        whole = [*known, *[math.nan] * (len(self.stream) - len(known))]
        new = [task for task in self.stream.tasks if math.isnan(whole[task.t]) and _scorable(task)]
        with self._unchanged():
            for task, found in zip(new, self._scores(_tests(new), "tests"), strict=True):
                whole[task.t] = found.accuracy
        return whole

    def learn(self, task: Task, passes: int, batch: int, *, lease_at_begin: bool) -> Iterator[int]:
        """Show one task and close its books. Yields the number of steps done: 0 before the first, then after each."""
        if self.learner.mixes:
            raise RunFailed(
                f"method {name_of(self.learner)!r} sees all tasks at once, and this protocol shows them in order; "
                "a protocol shows them at once with session.learn_mixed"
            )
        self.meet(task)
        segment = self.stream.segments[task.t]
        part, hidden = segment.train, self.stream.info.hidden
        lease = Lease(task.t, part, segment.val, segment.task if isinstance(segment.task, Tensor) else None)
        showing = self._showing(lease, part, segment.task, passes, batch, segment.ordered)
        if hidden:  # a learner that is told of no boundary is told once, when the first segment begins
            showing.begun, showing.lesson = task.t > 0, self._whole_lesson(passes, batch)
            showing.detector = self.detector
        over = self.detector is not None and task.t == len(self.stream) - 1  # of the last one's end everybody knows
        yield from self._train(showing, [segment], lease_at_begin and not hidden, finish=not hidden or over)
        self.close(task)

    def detect_boundaries(self, window: int, rise: float, rows: int) -> None:
        """From now on, where the stream hides where tasks end, the learner is told what can be found out of it."""
        segments = self.stream.segments
        self.detector = Detector(segments, self.own, self.note_looks, window=window, rise=rise, rows=rows)

    def _whole_lesson(self, passes: int, batch: int) -> Lesson:
        """Of the stream: that of a segment would tell where it ends."""
        steps = sum(passes * -(-len(segment.train) // batch) for segment in self.stream.segments)
        return Lesson(steps, passes, batch)

    def meet(self, task: Task) -> None:
        """Before a task is learned: how confident are predictions on its data?"""
        if task.t > 0:
            given, allowed = self.head(task.t - 1)
            with self._unchanged():
                found = entropy(self._predict, task.train, given, allowed, ENTROPY_ROWS)
            self.measured.entropies.append(found)

    def note_looks(self, tasks: Sequence[Task | Segment], looks: Tensor) -> None:
        """Book how often each row of these tasks was seen: training rows of all of them, then validation rows.

        Kept per task: looks in all, rows seen at all, and looks at the row seen most. Where a task is shown several
        times the last two are bounds: the rows that one showing saw, and the sum of each showing's most.
        """
        train = [len(task.train) for task in tasks]
        parts = looks.split([*train, *(len(task.val) for task in tasks)])
        for i, task in enumerate(tasks):
            mine = torch.cat([parts[i], parts[len(tasks) + i]])
            shown, seen, most = self.measured.looks.get(task.t, (0.0, 0, 0.0))
            now = int((mine > 0).sum())
            self.measured.looks[task.t] = (shown + float(mine.sum()), max(seen, now), most + float(mine.max()))

    def spend(self, flops: float, seconds: float, updates: int) -> None:
        """Book costs of the task being learned."""
        self._spent.flops += flops
        self._spent.seconds += seconds
        self._spent.updates += updates

    def close(self, task: Task) -> None:
        """The task is over: measure what the learner keeps, and book what was spent since the last task."""
        m = self.measured
        self.next = task.t + 1
        self._remember(task.t)
        self._settle()
        kept = Walked(self.learner)
        m.bytes.append(footprint(kept))
        m.numbers.append(self.learner.numbers_kept(task.t + 1))
        for name, rows in self.learner.journal().items():
            self.study.setdefault(name, []).extend({"task": task.t, **row} for row in rows)
        m.old_rows.append((*self._retention.scan(kept), self._retention.by_chance))
        m.generators.append(self._generators(kept))
        m.flops.append(self._spent.flops)
        m.seconds.append(self._spent.seconds)
        m.updates.append(self._spent.updates)
        self._spent = _Spent()

    def _settle(self) -> None:
        """Tell the layers that want to know that a task is over, unless that is hidden."""
        for layer in self.learner.net.module.modules():
            if isinstance(layer, Settling) and not self.stream.info.hidden:
                layer.settle()

    def learn_mixed(self, passes: int, batch: int, *, lease_at_begin: bool) -> Iterator[int]:
        """Show all that the stream shows at once, mixed. Costs are shared out evenly between the tasks."""
        segments = self.stream.segments
        whole, val, which = joined(segments)
        showing = self._showing(Lease(0, whole, val, which), whole, which, passes, batch)
        yield from self._train(showing, segments, lease_at_begin)
        m, n, spent = self.measured, len(segments), self._spent
        m.flops, m.seconds, m.updates = [spent.flops / n] * n, [spent.seconds / n] * n, [spent.updates / n] * n
        kept = Walked(self.learner)
        m.bytes, m.old_rows, m.generators = [footprint(kept)] * n, [(0, 0, 0)] * n, [self._generators(kept)] * n
        m.numbers = [self.learner.numbers_kept(n)] * n
        self._spent, self.next = _Spent(), n

    def _generators(self, kept: Walked) -> tuple[int, int]:
        """Kept by the learner beside its network: how many, and their bytes."""
        return generators(kept, self.learner.net.module, self.stream.info.shape)

    def val_accuracy(self, task: Task) -> float:
        """Accuracy on the task's validation part, for protocols that select."""
        return self.look([(task, task.val)])[0].accuracy

    def look(self, parts: Sequence[tuple[Task, Part]], *, watched: bool = True) -> list[Score]:
        """Scores on parts of tasks, for protocols that select; nothing is recorded. `watched`: that it changes nothing;
        of many looks at one learner the first is enough."""
        return self._ready_scores(parts, "look", watched=watched)

    def score(self, after_task: int, step: int) -> None:
        """Score every task, or those that `scored` says: one more row of R, with NaN for the others and for those whose
        test rows were not kept."""
        tasks = tuple(task for task in self._asked(after_task) if _scorable(task))
        if len(tasks) == 1 < len(self.stream):
            purpose, parts = f"task {after_task}", [*_tests(tasks), *self._decoys(tasks[0])]
        else:
            purpose, parts = "tests" if len(tasks) == len(self.stream) else "seen", _tests(tasks)
        scores = dict(zip((task.t for task in tasks), self._ready_scores(parts, purpose), strict=False))
        m = self.measured
        m.R.append([scores[task.t].accuracy if task.t in scores else math.nan for task in self.stream.tasks])
        m.scorings.append({"after_task": after_task, "step": step})
        m.predictions.append([s.predicted for s in scores.values()])
        sampled = [s.uncertainty for s in scores.values() if s.uncertainty is not None]
        m.uncertainties.append(sampled if len(sampled) == len(scores) else [])
        for task in tasks:
            m.curves.append(self.curve_row(after_task, step, task, scores[task.t]))
        if self.watch is not None:
            before = 0 if self.learner.mixes else round(sum(m.updates[:after_task]))
            found, total = {t: score.accuracy for t, score in scores.items()}, max(step, self.steps)
            self.watch(Progress(after_task, len(self.stream), step, total, scored=found, updates=before + step))

    def _asked(self, after_task: int) -> tuple[Task, ...]:
        """The tasks that a scoring asks about. Where tasks are mixed, all are seen from the start."""
        tasks, mixes = self.stream.tasks, self.learner.mixes
        over = after_task == len(tasks) - 1 if mixes else self.next == len(tasks)
        if self.scored == "all" or over or (self.scored == "seen" and mixes):
            return tasks
        return tasks[: after_task + 2] if self.scored == "seen" else tasks[after_task : after_task + 1]

    def score_current(self, task: Task, step: int) -> None:
        """Score only the task being learned: one more point of its learning curve.

        Where the task is hidden, as many rows of other tasks are asked about, or the learner would know.
        """
        if not _scorable(task):
            return
        parts = [(task, task.test), *self._decoys(task)]
        found = self._ready_scores(parts, f"task {task.t}")[0]
        self.measured.curves.append(self.curve_row(task.t, step, task, found))

    def _showing(
        self, lease: Lease, part: Part, task: int | Tensor | None, passes: int, batch: int, ordered: bool = False
    ) -> Showing:
        rng = generator(self.seed, "batches", task=lease.task)
        return Showing(self.learner, lease, part, task, passes, batch, rng, ordered=ordered)

    def _train(
        self, showing: Showing, shown: Sequence[Task | Segment], lease_at_begin: bool, *, finish: bool = True
    ) -> Iterator[int]:
        try:
            yield from self.shown(showing, lease_at_begin, finish=finish)
        except RunFailed as error:
            raise self.failed(str(error), showing) from error
        self.note_looks(shown, showing.looks)
        self.spend(showing.flops, showing.seconds, showing.total)

    def shown(
        self,
        showing: Showing,
        lease_at_begin: bool,
        *,
        finish: bool = True,
        trials: tuple[int, int] = (0, 1),
        saves: bool = True,
    ) -> Generator[int, None, None]:
        """A showing, or what is left of it where it was interrupted. Yields 0 and then the number of steps done.

        `trials`: how many showings of this task are done, and how many there are. `saves`: also in its middle.
        """
        if self._halfway is not None:  # whatever was done on the way here was done before, and is overwritten
            halfway, self._halfway = self._halfway, None
            self._restore(halfway)
            showing.learner = self.learner
            showing.load(halfway["showing"])
        self.showing = showing
        try:
            with observed(self._observer(showing.lease.task), f" in task {showing.lease.task}"):
                told = time.monotonic()
                for done in showing.whole(lease=lease_at_begin, finish=finish):
                    self.steps = showing.total
                    due = done % CHECK_EVERY == 0 or done == showing.total or time.monotonic() - told > PATIENCE
                    if done and self.watch is not None and due:
                        steps = trials[0] * showing.total + done, trials[1] * showing.total
                        self.watch(Progress(showing.lease.task, len(self.stream), *steps))
                        told = time.monotonic()
                    yield done
                    if done and saves and self.keep is not None and self._due(self.keep.every, showing):
                        showing.check()
                        self.save(showing)
        finally:
            self.showing = None

    def _observer(self, task: int) -> Callable[[str, int, int], None] | None:
        """Hears of work beside the steps."""
        watch = self.watch
        if watch is None:
            return None
        return lambda what, done, steps: watch(Progress(task, len(self.stream), done, steps, what))

    def failed(self, reason: str, showing: Showing | None = None) -> RunFailed:
        """The end of this run, with what it has cost until then: a trial that fails is not free."""
        m, spent = self.measured, self._spent
        last = (0.0, 0) if showing is None else (showing.seconds, showing.flops)
        return RunFailed(reason, sum(m.seconds) + spent.seconds + last[0], sum(m.flops) + spent.flops + last[1])

    def _due(self, every: int | None, showing: Showing) -> bool:
        """Whether to save in the middle of a task; where tasks are mixed, scorings stand for their ends."""
        if showing.done == showing.total:
            return False
        scored = self.measured.scorings[-1]["step"] if self.measured.scorings else 0
        if self.learner.mixes and scored == showing.done:
            return True
        return every is not None and showing.done % every == 0

    def _go_on(self, saved: dict[str, State]) -> None:
        """Take up a saved run: between two tasks at once, in the middle of one when its showing comes."""
        if saved["showing"] is None:
            self.take_up(saved)
            where = f"with task {self.next}"
        else:
            self._find_place(saved)
            self._halfway = saved
            where = f"in task {self.next} after step {saved['showing']['done']}"
        if self.keep is not None:
            self.keep.say(f"goes on {where}, where it was interrupted")

    def take_up(self, saved: dict[str, State]) -> None:
        """Put back what `packed` gave between two tasks."""
        self._find_place(saved)
        self._restore(saved)

    def _find_place(self, saved: dict[str, State]) -> None:
        self.next, self.own, self.study, self.chosen = (saved[name] for name in ("next", "own", "study", "chosen"))
        for t in range(self.next):
            self._remember(t)
        if "retained" in saved:
            self._retention.load(saved["retained"])

    def _remember(self, t: int) -> None:
        """Rows that are over: a learner that still has them keeps old data."""
        segment = self.stream.segments[t]
        self._retention.remember(segment.train, segment.val)

    def _restore(self, saved: dict[str, State]) -> None:
        if saved["model"] is not None:
            self.adopt(saved["model"])
        found = saved["measured"]
        baseline = self._baseline(found["baseline"])  # while the learner is as it was at the start
        self.learner.load(saved["learner"])
        longer = self._told(len(self.stream)) - self._told(len(found["baseline"]))
        tables = {name: [[column.numpy() for column in row] for row in found[name]] for name in TABLES}
        R = [[row.get(j, math.nan) for j in range(len(self.stream))] for row in found["R"]]
        lists = {name: list(rows) for name, rows in found.items() if isinstance(rows, list)}
        lists |= {"R": R, "baseline": baseline, "bytes": [size + longer for size in found["bytes"]]}
        self.measured = Measured(**{**found, **lists, **tables, "looks": dict(found["looks"])})
        self._spent = _Spent(**saved["spent"])
        set_dice(saved["dice"])

    def _told(self, tasks: int) -> int:
        """Bytes of what a learner has of the stream's first tasks before it sees them: it counts among what it keeps,
        and of a stream that became longer it would have had more from the start."""
        info = replace(self.stream.info, task_classes=self.stream.info.task_classes[:tasks])
        return footprint([info, info.allowed()])

    def _ready_scores(self, parts: Sequence[tuple[Task, Part]], purpose: str, *, watched: bool = True) -> list[Score]:
        """The scores of parts of tasks, after the learner was told; what it does then counts as training."""
        self._make_ready()
        clock = Clock()
        with clock, self._unchanged() if watched else nullcontext():
            found = self._scores(parts, purpose)
        self.measured.eval_seconds += clock.seconds
        return found

    def _make_ready(self) -> None:
        """Its cost is the showing's that is under way, or that of the last task."""
        if type(self.learner).ready is Learner.ready:
            return
        try:
            if self.showing is not None:
                with self.showing.beside():
                    self.learner.ready()
            else:
                self._make_ready_between(max(self.next - 1, 0))
        except RunFailed as error:
            raise self.failed(str(error), self.showing) from error

    def _make_ready_between(self, task: int) -> None:
        """No showing is under way; `task` was the last."""
        clock, m = Clock(), self.measured
        with counting() as counter:
            try:
                with clock, observed(self._observer(task), f" after task {task}"):
                    self.learner.ready()
            finally:
                if m.seconds and self._spent == _Spent():
                    m.seconds[-1] += clock.seconds
                    m.flops[-1] += counter.total
                else:
                    self.spend(counter.total, clock.seconds, 0)

    def _scores(self, parts: Sequence[tuple[Task, Part]], purpose: str) -> list[Score]:
        """Where the task is hidden, the rows of all parts are mixed, so that a call of `predict` does not tell it."""
        if not parts:
            return []
        if self.stream.info.task_given:
            chunk = self.learner.net.chunk
            return [score(self._predict, part, *self.head(task.t), chunk) for task, part in parts]
        rows = self._shuffled.get(purpose)
        if rows is None or [id(part) for _, part in parts] != [id(part) for part in rows.parts]:
            rows = Shuffled([part for _, part in parts], generator(self.seed, "scoring", purpose))
            self._shuffled = {"tests": self._shuffled.get("tests", rows), purpose: rows}
        return score_together(self._predict, rows, self.learner.net.chunk)

    def _decoys(self, task: Task) -> list[tuple[Task, Part]]:
        """Rows of other tasks, where the task is hidden."""
        if self.stream.info.task_given:
            return []
        others = [other for other in self.stream.tasks if other.t != task.t and _scorable(other)]
        others = others[:: -(-len(others) // DECOYS) or 1]
        each = -(-len(task.test) // max(len(others), 1))
        return [(other, other.test.take(torch.arange(min(each, len(other.test))))) for other in others]

    @contextmanager
    def _unchanged(self) -> Iterator[None]:
        """Scoring must leave the learner and all random numbers as they were."""
        before = glance(self.learner)
        yield
        if glance(self.learner) != before:
            raise self.failed(
                f"{type(self.learner).__name__}.predict changed the learner (its weights, memory, counters or random "
                "numbers); predicting must change nothing"
            )

    def head(self, task: int) -> tuple[int | None, Tensor | None]:
        """The task index to predict with, None when hidden, and the outputs it may use."""
        given = task if self.stream.info.task_given else None
        return given, None if self._allowed is None else self._allowed[task]

    def _predict(self, x: Tensor, task: int | None) -> Tensor:
        logits = self.learner.predict(x, task)
        wanted = (len(x), self.stream.info.classes)
        sound = isinstance(logits, Tensor) and logits.is_floating_point() and logits.dim() in (2, 3)
        if not sound or tuple(logits.shape[-2:]) != wanted or not len(logits):
            got = f"{tuple(logits.shape)} {logits.dtype}" if isinstance(logits, Tensor) else type(logits).__name__
            name = type(self.learner).__name__
            raise TypeError(
                f"{name}.predict must return float logits of shape {wanted} (rows, classes), or samples of them, "
                f"not {got}"
            )
        return logits

    def curve_row(self, after_task: int, step: int, task: Task, s: Score) -> dict[str, Any]:
        """A point of a learning curve."""
        if math.isnan(s.loss):
            raise self.failed(
                f"the predictions on task {task.t} became NaN in task {after_task} by step {step}; "
                "try a smaller learning rate or strength"
            )
        loss = s.loss if math.isfinite(s.loss) else None
        row = {"after_task": after_task, "step": step, "task": task.t, "accuracy": s.accuracy, "loss": loss}
        row |= {"entropy": s.entropy, "calibration": s.calibration}
        return row | ({} if s.information is None else {"information": s.information})


def _scorable(task: Task) -> bool:
    """Whether its test rows are at hand."""
    return len(task.test) > 0 and not isinstance(task.test, Gone)


def _tests(tasks: Sequence[Task]) -> list[tuple[Task, Part]]:
    return [(task, task.test) for task in tasks]


def faults_of_hiding(learner: Learner, stream: Stream, boundaries: str | None = None) -> list[str]:
    """A learner cannot run where what it needs is hidden: the task label by the scenario, boundaries by the stream.

    `boundaries`: 'detected', 'told', or None where the protocol has no choice.
    """
    name, found = name_of(learner), []
    if learner.needs_task and not stream.info.task_given:
        found.append(
            f"method {name!r} needs the task label, which the {stream.scenario!r} scenario hides; use scenario 'task'"
        )
    detected, hidden = boundaries == "detected", stream.info.hidden
    if learner.needs_boundaries and not learner.mixes and (hides := _hides(stream)) and not (hidden and detected):
        way = " or protocol.boundaries=detected" if hidden and boundaries else ""
        found.append(f"method {name!r} needs to know where tasks end, {hides}; try 'finetune' or 'er'{way}")
    return found


def _hides(stream: Stream) -> str:
    """How a stream hides where tasks end; empty where it does not."""
    if stream.info.hidden:
        return f"which stream {stream.name!r} hides"
    mixed = any(isinstance(segment.task, Tensor) for segment in stream.mixtures)
    return f"but stream {stream.name!r} shows them mixed" if mixed else ""


def name_of(thing: object) -> str:
    """The file name of a method, protocol or stream of ours, the class name of a user's."""
    module = type(thing).__module__
    ours = ("holdfast.methods.", "holdfast.protocols.", "holdfast.streams.")
    return module.rpartition(".")[2] if module.startswith(ours) else type(thing).__name__


def joined(shown: Sequence[Task | Segment]) -> tuple[Part, Part, Tensor | None]:
    """The training and validation rows of all of them, and the task of each training row; None where it is hidden."""
    try:
        whole, val = types.joined([each.train for each in shown]), types.joined([each.val for each in shown])
    except ValueError as error:
        said = "the tasks of this stream are augmented in different ways, and cannot be shown at once"
        raise RunFailed(said) from error
    which = [_tasks(each) for each in shown]
    told = [each for each in which if each is not None]
    return whole, val, torch.cat(told).to(whole.y.device) if len(told) == len(which) else None


def _tasks(shown: Task | Segment) -> Tensor | None:
    """Of each training row."""
    task = shown.t if isinstance(shown, Task) else shown.task
    return torch.full((len(shown.train),), task) if isinstance(task, int) else task
