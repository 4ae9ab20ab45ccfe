"""Scenarios side by side: the gap between them in a sentence."""

from __future__ import annotations

from holdfast.metrics import Gap, Group
from holdfast.report import words


def sentence(gap: Gap) -> str:
    """'ewc: ACC is 0.780 higher in the task scenario (task label given) than in the class scenario (task label hidden);
    95% interval 0.611 to 0.949, paired over 3 seeds.'"""
    first, second = gap.easier, gap.harder
    if not gap.seeds:
        return f"{gap.label}: no seed finished in both the {first.scenario} and the {second.scenario} scenario."
    if gap.acc.mean is None:
        return f"{gap.label}: ACC was not scored in both the {first.scenario} and the {second.scenario} scenario."
    if gap.acc.mean < 0:
        first, second = second, first
    apart = words.number(abs(gap.acc.mean), "acc")
    told = f"{gap.label}: ACC is {apart} higher in {_told(first)} than in {_told(second)}; {_sure(gap)}"
    return f"{told}{'' if gap.whole else ', which not all seeds finished'}."


def _told(group: Group) -> str:
    return f"the {group.scenario} scenario (task label {words.label_given(group)})"


def _sure(gap: Gap) -> str:
    """The interval of the gap, whichever way it is said."""
    mean, low, high = gap.acc
    over = f"paired over {len(gap.seeds)} seeds"
    if low is None or high is None or mean is None:
        return "one seed has no interval" if len(gap.seeds) == 1 else f"{over}, which all agree: there is no interval"
    if mean < 0:
        low, high = -high, -low
    told = f"95% interval {words.number(low, 'acc')} to {words.number(high, 'acc')}"
    return f"{told}, {over}" if low > 0 else f"{told}, {over}: it includes 0, so this is a tie"
