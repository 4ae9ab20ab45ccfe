"""Selection: a task is learned several times over, under other settings or in other shapes, and the best is taken.

The one engine behind every protocol that chooses. What it has tried so far lives in the session (`own`, `study`), so
that an interrupted run goes on after the last trial, or in the middle of one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import groupby, islice
from statistics import fmean
from typing import Any, NamedTuple

import torch

from holdfast.audit import Lease
from holdfast.engine import Score, State, observed
from holdfast.errors import RunFailed
from holdfast.methods import Learner, Option, Rung
from holdfast.protocols._session import Session, joined, name_of
from holdfast.protocols._showing import Clock, Showing
from holdfast.protocols._stops import Kept, Stop
from holdfast.seeds import dice, generator, seed_for, seeded, set_dice
from holdfast.types import Gone, Part, Stream, Task

Quality = Callable[[list[float]], float]  # of the accuracies that a look at the learner gives
RATES = {"protocol.lr": "lr", "protocol.later_lr": "lr", "protocol.decay": "decay"}  # settings of the optimiser


@dataclass(frozen=True)
class Looks:
    """When a trial is looked at, and at what: what the task is judged by, and the tests of all tasks so far."""

    every: int | None = None  # steps between two looks; none: those of one pass
    early: tuple[int, ...] = (0,)  # also after so many steps
    on_val: bool = True  # a task is judged by its validation rows; else by its test rows
    tests: bool = False  # also look at the tests of all tasks so far, each and together, and note what is found
    test_batch: int | None = None  # at one random batch of test rows; none: at all
    score_first: int = 0  # also score the tests after so many first batches of the trial that is taken

    def due(self, step: int, showing: Showing) -> bool:
        every = showing.per_pass if self.every is None else self.every
        return step in self.early or step <= self.score_first or step % every == 0 or step == showing.full


class Candidate(NamedTuple):
    """What is tried: settings of protocol, method or network, and a structural option of the learner's."""

    settings: Mapping[str, Any]
    option: Option = None
    steps: int | float | None = None  # of a rung: so many in all, or a share; none: those of the protocol

    @property
    def goes_on(self) -> bool:
        """Whether it is a rung that ends before its time: it is never taken, and compared by the best look so far."""
        return isinstance(self.steps, float) and self.steps < 1

    @property
    def may_go_on(self) -> bool:
        """Whether a later rung of the same may be asked for."""
        return self.goes_on or isinstance(self.steps, int)

    @property
    def key(self) -> str:
        """The same for all rungs of one option."""
        return json.dumps([self.settings, self.option], sort_keys=True)


@dataclass(frozen=True)
class Tried:
    """A finished trial: its number, and the learner at the step where it was stopped."""

    trial: int
    settings: Mapping[str, Any]
    kept: Kept
    looks: list[tuple[int, list[float]]]  # step, accuracies
    start: State = None  # the learner before its first step, where its learning curve is asked for
    steps: int | float | None = None  # of its first rung
    option: Option = None
    failed: str | None = None  # why it ended early: it is never chosen

    def at_stop(self) -> list[float]:
        """What the look at the step where it was stopped gave."""
        return next(found for step, found in self.looks if step == self.kept.step)

    def highest(self) -> float:
        """The best that the task was ever judged by."""
        return max(found[0] for _, found in self.looks)

    def quality(self) -> float:
        """That of the step where it was stopped."""
        return self.kept.quality

    def later(self) -> float:
        """The mean of what the looks in the later half of its steps gave."""
        half = self.looks[-1][0] / 2
        return fmean(found[0] for step, found in self.looks if step >= half)

    def packed(self) -> dict[str, State]:
        return {**vars(self), "kept": vars(self.kept)}

    @classmethod
    def unpacked(cls, state: dict[str, State]) -> Tried:
        return cls(**{**state, "kept": Kept(**state["kept"])})


@dataclass
class Course:
    """A trial under way."""

    candidate: Candidate
    under_way: dict[str, State]  # what is saved of it
    learner: Learner
    showing: Showing
    stop: Stop
    watched: bool = True  # its first look: of trials abreast, which have the learner's past in common, only one's
    failed: str | None = None
    steps: Iterator[int] = field(default_factory=lambda: iter(()))  # of a trial beside others: to go on with
    dice: dict[str, Any] = field(default_factory=dict)  # its random numbers, while another is at work


@dataclass(frozen=True)
class Budget:
    """How much of a task a trial is shown."""

    batch: int
    passes: int
    limit: int | None = None  # steps, in place of whole passes
    most: int | None = None  # steps, at most
    least: int = 0  # steps: few rows are passed over more often

    def steps(self, rows: int) -> int:
        """On a task of so many rows.

        >>> [Budget(64, 40, most=1600, least=200).steps(rows) for rows in (50, 400, 4000)]
        [200, 280, 1600]
        """
        steps = self.limit or max(self.passes * -(-rows // self.batch), self.least)
        return min(steps, self.most or steps)


class Selection:
    """Tries candidates on one task after the other. What it notes is in `session.study`, what it needs to go on in
    `session.own`."""

    def __init__(self, session: Session, budget: Budget, looks: Looks, *, reset_optimiser: bool = False) -> None:
        self.session, self.budget, self.looks, self.reset_optimiser = session, budget, looks, reset_optimiser
        session.study.setdefault("trials", [])
        if looks.tests:
            session.study.setdefault("curves", [])
        self.own = session.own  # nothing yet, or what an interrupted run had
        if not self.own:
            self.own |= {"last": None, **_nothing_tried()}
        self._beside = 0  # trials that ended together with others and are still to be told of

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One for each trial."""
        return self.session.study["trials"]

    def tasks(self) -> Iterator[Task]:
        """The tasks still to be learned, met but not shown."""
        for task in self.session.remaining():
            if task.t > len(self.session.measured.entropies):
                self.session.meet(task)
            yield task

    def best(
        self,
        task: Task,
        grid: Sequence[Mapping[str, Any]],
        quality: Quality,
        stop: Callable[[], Stop],
        worth: Callable[[Tried], float],
        *,
        models: bool = False,
    ) -> Tried:
        """Every point of a grid is tried with every option of the learner's; gives the first of the highest worth, or
        what the learner prefers.

        `models`: each point is a model of its own, in place of a setting of the learner as it is when the task begins.
        """
        own = self.own
        if own["begun"] is None:
            own["options"] = self._proposed(task, lambda learner, lease: learner.options(lease))
            if not own["options"]:
                name = type(self.session.learner).__name__
                raise RunFailed(f"{name}.options gave nothing to try for task {task.t}; [None] is one choice")
            own["begun"] = self.session.learner.state()
        while True:
            candidates = [Candidate(point, *rung) for rung in own["options"] for point in grid]
            untried = candidates[own["done"] :]
            each = self._each(task, untried, quality, stop, of=len(candidates), model=models)
            for candidate, tried in zip(untried, each, strict=True):
                if tried is None:  # it has failed at an earlier rung
                    own["worths"].append(None)
                    self.tick()
                    continue
                found = None if tried.failed else tried.highest() if candidate.goes_on else worth(tried)
                if tried.failed:
                    own["failed"].append(candidate.key)
                if tried.option is not None:
                    self.rows[tried.trial]["quality"] = found
                own["worths"].append(found)
                if found is not None and not candidate.goes_on:
                    known = [*own["best"], (tried.packed(), found)]
                    left = self.session.learner.prefer([(state["option"], quality) for state, quality in known])
                    own["best"] = [known[i] for i in left]
                self.tick()
            more = [] if models else self._more(task, len(grid))
            if not more:
                return self.best_of(task)
            own["options"] += more

    def tick(self) -> None:
        """One more candidate is tried."""
        self.own["done"] += 1
        if not self._beside:
            self.session.save()

    def best_of(self, task: Task) -> Tried:
        """The best trial of a task; a run ends where all have failed."""
        if not self.own["best"]:
            reasons = [row["failed"] for row in self.rows if "failed" in row and row["task"] in (0, task.t)]
            if not reasons:
                name = type(self.session.learner).__name__
                raise RunFailed(f"{name} gave nothing to learn to the end for task {task.t}: all its rungs are shares")
            spent = [sum(row[name] for row in self.rows) for name in ("seconds", "flops")]
            raise RunFailed(f"every trial of task {task.t} failed, the last because {reasons[-1]}", *spent)
        return Tried.unpacked(self.own["best"][0][0])

    def trial(
        self,
        task: Task,
        candidate: Candidate,
        quality: Quality,
        stop: Stop,
        *,
        of: int = 1,
        model: bool = False,
        began_from: int | None = None,
    ) -> Tried:
        """One trial: the task, looked at as the schedule says. The learner is not finished with the task.

        `of`: the candidates of this task; `model`: it is one of its own; `began_from`: the trial whose weights it
        begins with, if not those of the task before.
        """
        own = self.own
        if own["trial"] is None:  # it was not interrupted in the middle
            own["trial"] = under_way = self._taken_up(candidate, len(self.rows))
            self._prepare(candidate, under_way, model)
        course = self._course(task, candidate, own["trial"], stop)
        with seeded(self._seed(course.under_way["number"])):
            for _ in self._steps(course, task, quality, (own["done"], of)):
                pass
        own["trial"] = None
        return self._ended(course, task, began_from)

    def _abreast(self, task: Task, courses: Sequence[Course], quality: Quality) -> None:
        """Trials side by side: each batch is shown to all before the next one is, so that what they have in common of
        it is computed once. Each is what it would be alone, bit for bit; none is saved in its middle.
        """
        session, alone = self.session, self.session.learner
        with seeded(0), observed(None):
            for course in courses:
                with seeded(self._seed(course.under_way["number"])):
                    course.dice = dice()
                course.steps = self._steps(course, task, quality, (0, 1), saves=False)
            going = list(courses)
            while going:
                going = [course for course in going if self._step(course)]
        session.learner, session.showing = alone, None
        for course in courses:  # what they have learned is in what they kept
            course.learner = course.showing.learner = alone

    def _step(self, course: Course) -> bool:
        """One more step of a trial beside others; whether there was one."""
        session = self.session
        session.learner, session.showing = course.learner, course.showing
        set_dice(course.dice)
        went_on = next(course.steps, None) is not None
        course.dice = dice()
        return went_on

    def _each(
        self,
        task: Task,
        candidates: Sequence[Candidate],
        quality: Quality,
        stop: Callable[[], Stop],
        *,
        of: int,
        model: bool,
    ) -> Iterator[Tried | None]:
        """The trials, one after the other or, where the learner says so, all options of a grid's point abreast. None
        stands for one that has failed at an earlier rung: it would fail again."""
        lost = [candidate.key in self.own["failed"] for candidate in candidates]
        if not self.session.learner.abreast or model:
            for candidate, failed in zip(candidates, lost, strict=True):
                yield None if failed else self.trial(task, candidate, quality, stop(), of=of, model=model)
            return
        alone, number, courses = self.session.learner, len(self.rows), []
        for candidate, failed in zip(candidates, lost, strict=True):
            if failed:
                continue
            under_way = self._taken_up(candidate, number)
            number = max(number, under_way["number"] + 1)
            self.session.learner = alone.twin()
            self._prepare(candidate, under_way)
            courses.append(self._course(task, candidate, under_way, stop()))
            courses[-1].watched = len(courses) == 1
        self.session.learner = alone
        for _, mine in groupby(sorted(courses, key=_point), key=_point):
            self._abreast(task, list(mine), quality)
        self._beside, ended = len(courses), iter(courses)
        for failed in lost:
            if failed:
                yield None
                continue
            self._beside -= 1
            yield self._ended(next(ended), task)

    def _taken_up(self, candidate: Candidate, number: int) -> dict[str, State]:
        """A new trial of this number, or the one whose earlier rung ended."""
        paused: dict[str, State] | None = self.own["paused"].pop(candidate.key, None)
        return paused or _fresh_trial(number)

    def _course(self, task: Task, candidate: Candidate, under_way: dict[str, State], stop: Stop) -> Course:
        stop.load(under_way["kept"])
        self._share_again(task)
        return Course(candidate, under_way, self.session.learner, self._showing(task, candidate.steps), stop)

    def _seed(self, trial: int) -> int:
        return seed_for(self.session.seed, "trial", trial=trial)

    def _ended(self, course: Course, task: Task, began_from: int | None = None) -> Tried:
        """Close the books of a trial."""
        session, under_way, candidate, showing = self.session, course.under_way, course.candidate, course.showing
        looks, booked, kept = showing.looks, under_way["booked"], course.stop.kept[0]
        session.note_looks([session.stream.segments[task.t]], looks if booked is None else looks - booked)
        self._note(under_way["number"], task.t, candidate, showing, kept, course.failed, began_from)
        showing.lease.close()
        tried = under_way["looks"], under_way["start"], under_way["steps"]
        return Tried(under_way["number"], dict(candidate.settings), kept, *tried, candidate.option, course.failed)

    def _score_first(self, task: Task, tried: Tried) -> None:
        """The learning curve of the trial that is taken: its first batches once more, as it had them, with a look at
        the task's tests after each. No other trial is looked at so, and what this one takes is scoring.

        The curve of an option which asked for so few steps goes on level: it has learned what it can.
        """
        session, asked = self.session, self.looks.score_first
        if not asked:
            return
        session.learner.load(tried.start)
        self._share_again(task)
        limit = tried.steps if isinstance(tried.steps, int) else None
        showing, curve, before, clock = self._showing(task, limit), [], session.measured.eval_seconds, Clock()
        with clock, seeded(self._seed(tried.trial)):
            shown = session.shown(showing, lease_at_begin=True, finish=False, saves=False)
            with closing(shown) as steps:
                for step in islice(steps, asked + 1):
                    found = session.look([(task, task.test)], watched=False)[0]
                    curve.append(session.curve_row(task.t, step, task, found))
        showing.lease.close()
        if isinstance(tried.steps, int):
            curve += [{**curve[-1], "step": step} for step in range(tried.steps + 1, asked + 1)]
        session.measured.curves += curve
        session.measured.eval_seconds = before + clock.seconds

    def finish(self, task: Task, tried: Tried) -> None:
        """The learner takes the weights where the trial was stopped, and finishes the task."""
        self._score_first(task, tried)
        self.session.learner.load(tried.kept.state)
        self._share_again(task)
        showing = self._showing(task)
        with seeded(seed_for(self.session.seed, "finish", task=task.t)):
            showing.finish()
        self.session.note_looks([self.session.stream.segments[task.t]], showing.lease.looks())
        row = self.rows[tried.trial]
        row["flops"] += showing.flops
        row["seconds"] += showing.seconds

    def take(self, task: Task, tried: Tried) -> None:
        """The task is over, and the learner is what this trial made it: close the books and score it."""
        session, row = self.session, self.rows[tried.trial]
        row["chosen"] = True
        session.spend(row["flops"], row["seconds"], row["updates"])
        session.learner.shared.clear()
        session.close(task)
        session.score(task.t, tried.kept.step)
        self.own |= {"last": tried.trial, **_nothing_tried()}

    def all_at_once(self, model: Mapping[str, Any]) -> None:
        """One more trial, of a model of its own on all tasks mixed, for as many steps as they have in all: what could
        be reached without forgetting. The learner stays as it is."""
        session, own = self.session, self.own
        tasks = session.stream.tasks
        if own["trial"] is None:
            own["stays"] = {"model": session.model, "learner": session.learner.state()}
            own["trial"] = _fresh_trial(len(self.rows))
            session.adopt(model)
        number, failed = own["trial"]["number"], None
        whole, val, which = joined(tasks)
        rng = generator(session.seed, "batches", task=len(tasks))
        limit = None if self.budget.limit is None else self.budget.limit * len(tasks)
        lease = Lease(0, whole, val, which)
        showing = Showing(session.learner, lease, whole, which, self.budget.passes, self.budget.batch, rng, limit)
        try:
            with seeded(seed_for(session.seed, "trial", trial=number)):
                for _ in session.shown(showing, lease_at_begin=True, finish=False):
                    pass
            self._look(number, showing.total, tasks[-1])
        except RunFailed as error:  # it diverged: the study itself is done
            failed = f"all tasks at once: {error}"
        session.note_looks(tasks, showing.looks)
        lease.close()
        settings = {name: value for name, value in model.items() if "." in name}
        self._note(number, None, Candidate(settings), showing, Kept(showing.total, 0.0, None), failed)
        session.adopt(own["stays"]["model"])
        session.learner.load(own.pop("stays")["learner"])
        own["trial"] = None

    def costs(self) -> dict[str, float]:
        """What the trials that were not chosen cost."""
        spent = [row for row in self.rows if not row["chosen"]]
        costs = {name: sum(row[name] for row in spent) for name in ("seconds", "flops")}
        return {"runs": len(spent), **costs} if spent else {}

    def _proposed(self, task: Task, ask: Callable[[Learner, Lease], Sequence[Option | Rung]]) -> list[State]:
        """Options that the learner wants to be tried; finding them counts as learning the task."""
        showing = self._showing(task)
        with seeded(seed_for(self.session.seed, "options", task=task.t)), showing.beside():
            found = ask(self.session.learner, showing.lease)
        self.session.note_looks([self.session.stream.segments[task.t]], showing.lease.looks())
        showing.lease.close()
        self.session.spend(showing.flops, showing.seconds, 0)
        return [tuple(option) if isinstance(option, Rung) else (option, None) for option in found]

    def _more(self, task: Task, points: int) -> list[State]:
        """What the learner wants to be tried besides, now that it knows how good each of its options was."""
        own, learner = self.own, self.session.learner
        if type(learner).more_options is Learner.more_options:
            return []
        learner.load(own["begun"])
        tried = []
        for i, (option, steps) in enumerate(own["options"]):
            worths = [w for w in own["worths"][i * points : (i + 1) * points] if w is not None]
            tried.append((option if steps is None else Rung(option, steps), max(worths, default=float("-inf"))))
        more = self._proposed(task, lambda learner, lease: learner.more_options(lease, tried))
        own["begun"] = learner.state()  # it may have learned from how good they were
        return more

    def _prepare(self, candidate: Candidate, under_way: dict[str, State], model: bool = False) -> None:
        """The learner as it is when the task begins, or where an earlier rung ended, with the candidate's settings."""
        session, paused = self.session, under_way["learner"]
        if paused is not None:
            session.learner.load(paused)
            return
        if model:
            session.adopt(candidate.settings)
        else:
            session.learner.load(self.own["begun"])
        learner = session.learner
        for name, value in candidate.settings.items():
            if name in RATES:
                setattr(learner.optimiser, RATES[name], value)
            elif "." not in name:
                setattr(learner, name, value)
        if self.reset_optimiser:
            learner.optimiser.reset()
        if candidate.option is not None:
            learner.choose(candidate.option)
        if self.looks.score_first:
            under_way |= {"start": learner.state(), "steps": candidate.steps}

    def _share_again(self, task: Task) -> None:
        """What the trials of this task share is made by the first, and again, free of charge, after an interruption."""
        learner = self.session.learner
        if self.own["done"] and not learner.shared:
            segment = self.session.stream.segments[task.t]
            lease = Lease(task.t, segment.train, segment.val)
            learner.share(lease)
            lease.close()

    def _steps(
        self, course: Course, task: Task, quality: Quality, done: tuple[int, int], *, saves: bool = True
    ) -> Iterator[int]:
        """The steps of a trial, looked at as the schedule says."""
        session, under_way, showing, stop = self.session, course.under_way, course.showing, course.stop
        if under_way["showing"] is not None:  # an earlier rung of the same ended here
            showing.load(under_way["showing"])
            set_dice(under_way["dice"])
        looks = under_way["looks"]
        over = bool(looks) and stop.over(looks[-1][0])  # at an earlier rung
        shown = session.shown(showing, lease_at_begin=True, finish=False, trials=done, saves=saves)
        try:
            with closing(shown) as steps:
                for step in () if over else steps:
                    if self.looks.due(step, showing):
                        watched = step == 0 and course.watched
                        found = self._look(under_way["number"], step, task, watched=watched)
                        under_way["looks"].append((step, found))
                        stop.offer(step, quality(found), session.learner.state)
                        under_way["kept"] = stop.state()
                        if stop.over(step):
                            break
                    yield step
            showing.check()
        except RunFailed as error:  # it diverged: the others go on
            if not under_way["looks"]:
                raise
            course.failed = str(error)
        if course.candidate.may_go_on and course.failed is None:
            paused = {**under_way, **self._pause(showing), "booked": showing.looks}
            self.own["paused"][course.candidate.key] = paused

    def _pause(self, showing: Showing) -> dict[str, State]:
        return {"learner": self.session.learner.state(), "showing": showing.state(), "dice": dice()}

    def _showing(self, task: Task, limit: int | float | None = None) -> Showing:
        session, budget = self.session, self.budget
        segment, learner = session.stream.segments[task.t], session.learner
        lease = Lease(task.t, segment.train, segment.val)
        rng = generator(session.seed, "batches", task=task.t)
        full, by_rows = None, type(learner).share is not Learner.share
        if not isinstance(limit, int):
            full = budget.steps(len(segment.train))
            limit = math.ceil((1 if limit is None else limit) * full)
        shown = learner, lease, segment.train, segment.task, budget.passes, budget.batch, rng, limit
        return Showing(*shown, full=full, ordered=segment.ordered, rows=by_rows)

    def _look(self, trial: int, step: int, task: Task, *, watched: bool = False) -> list[float]:
        """Accuracies: on what the task is judged by and, where they are looked at, on each test set so far and on
        their union."""
        looks, session = self.looks, self.session
        judged = [(task, task.val)] if looks.on_val else []
        if not looks.tests:
            return [session.look(judged or [(task, task.test)], watched=watched)[0].accuracy]
        so_far = session.stream.tasks[: task.t + 1]
        tests = [(t, self._drawn(t.test, trial, step, t.t)) for t in so_far]
        whole = self._of_union(so_far, trial, step) if looks.test_batch is not None else []
        found = session.look([*judged, *tests, *whole])
        judge, each, rest = found[: len(judged)], found[len(judged) :][: len(tests)], found[len(judged) + len(tests) :]
        union = _pooled(rest, whole) if whole else _pooled(each, tests)
        for t, accuracy in (*((t.t, s.accuracy) for t, s in zip(so_far, each, strict=True)), (None, union)):
            session.study["curves"].append({"trial": trial, "step": step, "task": t, "accuracy": accuracy})
        return [(judge[0] if judge else each[-1]).accuracy, *(s.accuracy for s in each), union]

    def _drawn(self, part: Part, trial: int, step: int, task: int) -> Part:
        """The whole test set, or one batch of it drawn anew."""
        rows = self.looks.test_batch
        if rows is None or rows >= len(part):
            return part
        rng = generator(self.session.seed, "test batch", trial=trial, step=step, task=task)
        return part.take(torch.randperm(len(part), generator=rng)[:rows])

    def _of_union(self, tasks: tuple[Task, ...], trial: int, step: int) -> list[tuple[Task, Part]]:
        """One batch of all test sets together, as the rows of it that each task has."""
        rng = generator(self.session.seed, "test batch", trial=trial, step=step, task="all")
        sizes = torch.tensor([len(task.test) for task in tasks])
        drawn = torch.randperm(int(sizes.sum()), generator=rng)[: self.looks.test_batch]
        starts = sizes.cumsum(0) - sizes
        mine = [drawn[(drawn >= start) & (drawn < start + n)] - start for start, n in zip(starts, sizes, strict=True)]
        return [(task, task.test.take(rows)) for task, rows in zip(tasks, mine, strict=True) if len(rows)]

    def _note(
        self,
        number: int,
        task: int | None,
        candidate: Candidate,
        showing: Showing,
        kept: Kept,
        failed: str | None,
        began_from: int | None = None,
    ) -> None:
        """A row, also of a trial that failed: it has cost what it took until then. A later rung's replaces it."""
        self.rows[number:] = [
            {
                "trial": number,
                "task": task,
                "began_from": began_from if task is None or began_from is not None else self.own["last"],
                "settings": dict(candidate.settings),
                "chosen": False,
                "stop": kept.step,
                "flops": showing.flops,
                "seconds": showing.seconds,
                "updates": showing.done,
                **({} if candidate.option is None else {"option": candidate.option}),
                **({"failed": failed} if failed else {}),
            },
            *self.rows[number + 1 :],
        ]


def _point(course: Course) -> str:
    """Of the grid."""
    return json.dumps(course.candidate.settings, sort_keys=True)


def no_validation(name: str, stream: Stream, else_: str = "") -> str:
    """Why a protocol cannot choose on this stream, and what helps; `else_`: what else does where a stream is cut."""
    chooses = f"protocol {name!r} chooses on validation rows, and"
    if stream.name == "model" or any(isinstance(task.train, Gone) for task in stream.tasks):  # one that stays
        return f"{chooses} none of the new task's are kept apart: give val=0.1 (--val 0.1)"
    share, lacking = stream.settings.get("val"), next(task for task in stream.tasks if not len(task.val))
    if not share:
        return f"{chooses} stream {stream.name!r} keeps none; cut it with val=0.1{else_}"
    most = int(lacking.train.y.bincount().max())
    few = f"its classes have too few rows, {most} at most, for val={share}"
    return f"{chooses} stream {stream.name!r} keeps none of task {lacking.t}: {few}; give more rows{else_}"


def faults_of_order(name: str, learner: Learner, stream: Stream) -> list[str]:
    """Whoever selects task by task needs them in order, and to know where each ends."""
    found = []
    if learner.mixes:
        found.append(f"method {name_of(learner)!r} sees all tasks at once; protocol {name!r} shows them in order")
    if stream.info.hidden:
        found.append(f"protocol {name!r} chooses for each task, and stream {stream.name!r} hides where they end")
    return found


def own(accuracies: list[float]) -> float:
    """Quality: what the task itself is judged by."""
    return accuracies[0]


def of_union(accuracies: list[float]) -> float:
    """Quality: the test accuracy on all tasks so far, which needs the data of earlier ones."""
    return accuracies[-1]


def _nothing_tried() -> dict[str, State]:
    """Of the task at hand."""
    return {
        "done": 0,  # candidates tried
        "begun": None,  # the learner when the task began
        "options": [],  # as pairs: the option, and the steps of a rung
        "worths": [],  # of each candidate; none: it failed
        "best": [],  # trials that may still be taken, the best first, each with its worth
        "trial": None,  # the one under way, while a state is saved in the middle of it
        "paused": {},  # rungs that may go on, by candidate
        "failed": [],  # candidates that no later rung is tried of
    }


def _fresh_trial(number: int) -> dict[str, State]:
    nothing = dict.fromkeys(("start", "steps", "learner", "showing", "dice", "booked"))
    return {"number": number, "looks": [], "kept": [], **nothing}


def _pooled(scores: Sequence[Score], parts: Sequence[tuple[Task, Part]]) -> float:
    """The accuracy on the rows of all parts."""
    right = sum(s.accuracy * len(part) for s, (_, part) in zip(scores, parts, strict=True))
    return right / sum(len(part) for _, part in parts)
