"""The audit card: the conditions of an honest evaluation, measured in the run; met, not met or not applicable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.special import chdtrc

from holdfast.audit.shown import Shown
from holdfast.types import StreamInfo

Line = dict[str, Any]  # label, value, unit, met, note

CONFIDENT = 0.5  # of the largest possible entropy: below it predictions on unseen tasks count as confident
FLAT = 0.1  # a cost is constant when it grows by less than this share over the whole stream
LONG = 20  # tasks: as many as the longest stream of papers 001 to 004 has; the paper gives no number
CHANCE = 0.001  # class frequencies vary when equal ones would differ as much with a smaller probability than this
AT_ONCE = "all tasks were shown at once"
PEEKING = ("test:", "val:stream")  # choices made on these data, tests or later tasks, could not be made in practice


def card(
    *,
    info: StreamInfo,
    entropies: Sequence[float],
    old_rows: Sequence[tuple[int, ...]],
    settings: Mapping[str, Mapping[str, Any]],
    bytes_per_task: Sequence[int],
    seconds_per_update: Sequence[float],
    flops_per_update: Sequence[float],
    passes: float,
    most_looks: float,
    mixed: bool,
    shown: Shown,
    generators: Sequence[tuple[int, int]],
    informations: Sequence[float],
    boundaries: Mapping[str, Any] | None = None,
) -> dict[str, Line]:
    """All lines of the card. Per-task sequences are in the order of learning.

    `passes`: how often a row was seen, of those that were seen at all; `most_looks`: how often the one seen most was.
    `old_rows`: found after each task, their bytes, and how many of them may stand there by chance.
    `generators`: those kept after each task, and their bytes. `informations`: of the last scoring, between predictions
    and weights; empty where predictions are no samples.
    `boundaries`: hits, misses, false alarms and delay of those that were detected; None where none were looked for.
    """
    lines = {
        "resemblance": _resemblance(entropies, info),
        "shared_head": _line(
            "One output vector for all tasks", info.scenario, None, info.scenario != "task",
            f"the {info.classes} outputs were masked to each task's classes" if info.scenario == "task"
            else f"all tasks share {info.classes} outputs, and none was masked",
        ),
        "no_task_label": _line(
            "No task label at test", "given" if info.task_given else "hidden", None, not info.task_given,
            "the task label was given to predict" if info.task_given else "predict was called without it",
        ),
        "no_boundaries": _boundaries(info, mixed, boundaries),
        "no_old_data": _old_data(old_rows, generators, mixed),
        "no_generator": _generator(generators),
        "more_than_two_tasks": _line("More than two tasks", info.tasks, "tasks", info.tasks > 2, "paper 001 §5"),
        "continuous_tasks": _continuous(shown, mixed),
        "overlapping_tasks": _overlapping(shown),
        "class_frequencies": _frequencies(shown, mixed),
        "long_sequence": _line(
            f"More than {LONG} tasks", info.tasks, "tasks", info.tasks > LONG,
            f"the paper asks for extremely long sequences and gives no number; {LONG} is ours",
        ),
        "causal_selection": _causal(settings, mixed),
        "memory": _growth("Memory does not grow", bytes_per_task, "bytes"),
        "update_seconds": _unjudged(_growth("Seconds per update do not grow", seconds_per_update, "s")),
        "update_flops": _growth("FLOPs per update do not grow", flops_per_update, "FLOPs"),
        "single_pass": _line(
            "Every example seen once", round(passes, 3), "passes", most_looks <= 1 + 1e-6,
            f"in training batches and through the lease, per row seen; the row seen most: {most_looks:.3g} times",
        ),
        "uncertainty": _uncertainty(informations),
    }  # fmt: skip
    return lines


def _line(label: str, value: Any, unit: str | None, met: bool | None, note: str) -> Line:
    return {"label": label, "value": value, "unit": unit, "met": met, "note": note}


def _old_data(found: Sequence[tuple[int, ...]], generators: Sequence[tuple[int, int]], mixed: bool) -> Line:
    """Without a verdict where all that was found may be no row: then it is not known whether rows are kept."""
    label = "No old data kept"
    kept, size, *rest = max(found, default=(0, 0))
    if mixed:
        return _line(label, kept, "rows", False, AT_ONCE)
    sure = any(rows > (rest[0] if rest else 0) for rows, _, *rest in found)
    note = f"{size} bytes; rows of past tasks found in the learner's state, a lower bound"
    if kept and any(rest):
        note += f"; {rest[0]} of them tell so little that they may stand there by chance"
    if max(generators, default=(0, 0))[0]:
        note += "; generative rehearsal: a generator stands for them"
    return _line(label, kept, "rows", None if kept and not sure else kept == 0, note)


def _boundaries(info: StreamInfo, mixed: bool, found: Mapping[str, Any] | None) -> Line:
    """Not judged where they were told: most streams tell them, and an evaluation is no less honest for it."""
    label = "No task boundaries told"
    if mixed:
        return _line(label, None, None, None, AT_ONCE)
    if found is not None:
        value = {name: found[name] for name in ("hits", "misses", "false_alarms", "delay")}
        note = "boundaries hidden, and detected from the loss; the rows seen since the last one were the task's lease"
        return _line(label, value, "; delay in steps", True, note)
    if info.hidden:
        return _line(
            label, "hidden", None, True, "boundaries hidden: batches did not say their task, nor where it ended"
        )
    return _line(label, "told", None, False, "the learner was told where each task begins and ends")


def _continuous(shown: Shown, mixed: bool) -> Line:
    label, unit = "Tasks pass over into one another", "of the rows"
    if mixed:
        return _line(label, None, unit, None, AT_ONCE)
    if len(shown.classes) < 2:
        return _line(label, None, unit, None, "one task passes over into none")
    note = "share of the training rows that were shown with a task and belong to another one"
    return _line(label, shown.of_others, unit, shown.of_others > 0, note)


def _overlapping(shown: Shown) -> Line:
    label, unit, overlap = "Tasks share classes", "of the classes", shown.overlap
    if overlap is None:
        return _line(label, None, unit, None, "one task shares them with none")
    note = "share of a later task's classes that an earlier one has, mean over later tasks; counted in training rows"
    return _line(label, overlap, unit, overlap > 0, note)


def _frequencies(shown: Shown, mixed: bool) -> Line:
    """Of classes that are shown more than once: one that comes and goes says nothing about how frequent it is."""
    label, unit = "Class frequencies vary", "times"
    sizes = [sum(counts.values()) for counts in shown.counts]
    tables = []  # per class: its rows in each segment that has it, and all others there
    for c in sorted({c for counts in shown.counts for c in counts}):
        found = [(counts[c], size - counts[c]) for counts, size in zip(shown.counts, sizes, strict=True) if c in counts]
        tables += [np.array(found)] if len(found) > 1 else []
    if mixed or not tables:
        return _line(label, None, unit, None, AT_ONCE if mixed else "no class is shown with more than one task")
    shares = [table[:, 0] / table.sum(1) for table in tables]
    most = float(max(share.max() / share.min() for share in shares))
    odds = [chance_of(table) for table in tables if table[:, 1].any()]
    varies = bool(odds and min(odds) * len(odds) < CHANCE)
    note = f"the most that a class's share of the rows shown with one task is larger than with another; {len(tables)} "
    note += f"classes are shown with several; {'more' if varies else 'no more'} than chance would make it"
    return _line(label, most, unit, varies, note)


def chance_of(table: np.ndarray) -> float:
    """How probable shares that differ this much are where they are equal: Pearson's χ² on (segments, 2) counts, with
    Yates' correction for two segments.
    """
    expected = np.outer(table.sum(1), table.sum(0)) / table.sum()
    apart = np.abs(table - expected)
    if len(table) == 2:
        apart = np.maximum(apart - 0.5, 0)
    return float(chdtrc(len(table) - 1, (apart**2 / expected).sum()))


def _generator(generators: Sequence[tuple[int, int]]) -> Line:
    number, size = max(generators, default=(0, 0))
    note = "networks in the learner's state, beside its own, whose last layer puts out an example; a lower bound"
    if number:
        note = f"generative rehearsal: {size} bytes of {note}"
    return _line("No generator kept", number, "networks", number == 0, note)


def _uncertainty(informations: Sequence[float]) -> Line:
    label, unit = "Predictions tell how sure the model is", "nats"
    if not informations:
        why = "predictions are no samples, so what the weights leave open is not known; their entropy and calibration "
        return _line(label, None, unit, None, f"{why}error are in the curves")
    note = "mean mutual information between predictions and weights after the last task, from samples of predictions"
    return _line(label, float(np.mean(informations)), unit, True, note)


def _resemblance(entropies: Sequence[float], info: StreamInfo) -> Line:
    label, unit = "The network is confident on a new task before learning it", "nats"
    if not entropies:
        return _line(label, None, unit, None, "no task was met after another")
    outputs = [len(c) if info.task_given else info.classes for c in info.task_classes[:-1]]
    mean, top = float(np.mean(entropies)), float(np.mean(np.log(outputs)))
    whose = "the last task's classes" if info.task_given else "all classes"
    note = f"mean entropy over {whose} on a task's data before it is learned; a uniform guess has {top:.3g}"
    return _line(label, mean, unit, None if top == 0 else mean < CONFIDENT * top, note)


def _causal(settings: Mapping[str, Mapping[str, Any]], mixed: bool) -> Line:
    peeked = sorted(name for name, s in settings.items() if s["chosen_by"].startswith(PEEKING))
    label = "No choice of the run used future or test data"
    if mixed:
        return _line(label, "all tasks at once", None, False, "the learner saw later tasks' data from the start")
    if peeked:
        sources = ", ".join(f"{name} from {settings[name]['chosen_by']}" for name in peeked)
        return _line(label, len(peeked), "settings", False, sources)
    given = sum(s["chosen_by"] == "given" for s in settings.values())
    note = f"{given} settings came from outside: how they were chosen is not known; no other was chosen on such data"
    return _line(label, 0, "settings", True, note)


def _unjudged(line: Line) -> Line:
    """Seconds have no verdict: on a busy machine they grow by a half, or shrink, whatever the method does."""
    return {**line, "met": None, "note": f"{line['note']}; seconds are noisy and not judged, FLOPs are"}


def _growth(label: str, per_task: Sequence[float], unit: str) -> Line:
    """The last value, the slope, and the growth from the second task to the last along a fitted line.

    The first task is left out where there are others: many methods have nothing to keep or replay yet.
    """
    if len(per_task) < 2:
        return _line(label, None, unit, None, "one task has no slope")
    later = np.asarray(per_task[1:] if len(per_task) > 2 else per_task, dtype=float)
    slope, start = (float(v) for v in np.polyfit(np.arange(len(later)), later, 1))
    growth = slope * (len(later) - 1) / start if start > 0 else 0.0
    value = {"last": per_task[-1], "slope": slope}
    begin = "second" if len(per_task) > 2 else "first"
    told = f"{round(growth, 2) + 0.0:+.0%}"  # +0%, never -0%
    note = f"{told} from the {begin} task to the last; per task: {', '.join(f'{v:.3g}' for v in per_task)}"
    return _line(label, value, f"{unit}; slope per task", growth < FLAT, note)
