"""The card's lines as paper 001 (§5) asks for them: five conditions of any evaluation, six of harder ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from holdfast.errors import BadInput, unknown
from holdfast.metrics.groups import Group

MINIMAL = {  # line of the card -> what the paper calls it
    "resemblance": "Cross-task resemblances",
    "shared_head": "Shared output head",
    "no_task_label": "No test-time assumed task labels",
    "no_old_data": "No retraining on old tasks",
    "more_than_two_tasks": "More than two tasks",
}
HARDER = {
    "no_boundaries": "Unclear task demarcation",
    "continuous_tasks": "Continuous tasks",
    "overlapping_tasks": "Overlapping tasks",
    "long_sequence": "Long task sequences",
    "update_flops": "Time constraints",
    "memory": "Memory constraints",
}
BESIDES = ("no_generator", "class_frequencies", "causal_selection", "single_pass", "uncertainty")  # other verdicts
SHORT = {  # other words for a line
    "causal": "causal_selection",
    "continuous": "continuous_tasks",
    "hidden-boundaries": "no_boundaries",
    "long": "long_sequence",
    "overlapping": "overlapping_tasks",
    "time": "update_flops",
}


def names() -> dict[str, str]:
    """The words for the lines that have a verdict -> the line.

    >>> names()["shared-head"], names()["causal"]
    ('shared_head', 'causal_selection')
    """
    return {key.replace("_", "-"): key for key in (*MINIMAL, *HARDER, *BESIDES)} | SHORT


def required(words: Iterable[str]) -> list[str]:
    """The lines that are asked for, each once.

    >>> required(["causal", "causal-selection", "memory"])
    ['causal_selection', 'memory']
    """
    known, wanted = names(), list(words)
    wrong = [unknown("condition", word, known) for word in dict.fromkeys(wanted) if word not in known]
    if wrong:
        raise BadInput(*wrong)
    return list(dict.fromkeys(known[word] for word in wanted))


def unmet(groups: Sequence[Group], lines: Iterable[str]) -> list[tuple[Group, str]]:
    """Which results do not meet which of these lines: one that a run did not measure, or that had no verdict, is not
    met, nor is one that some seeds met."""
    wanted = list(lines)
    return [(g, key) for g in groups for key in wanted if not all(_met(record.card.get(key)) for record in g.records)]


def _met(line: object) -> bool:
    return isinstance(line, dict) and line.get("met") is True
