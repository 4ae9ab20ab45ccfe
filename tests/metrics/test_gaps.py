"""The gap between scenarios: the same runs, paired over seeds."""

import pytest

from holdfast import metrics
from holdfast.report.scenarios import sentence


def level(accuracy):
    return [[accuracy, accuracy], [accuracy, accuracy]]


@pytest.fixture
def twins(record):
    """twins({"class": [0.1, 0.2], "task": [0.8, 0.7]}, method="ewc") -> a record per scenario and seed."""

    def make(accuracies, **fields):
        return [
            record(level(a), scenario=scenario, seed=seed, **fields)
            for scenario, each in accuracies.items()
            for seed, a in enumerate(each)
        ]

    return make


def test_differences_are_paired_over_seeds(twins):
    (gap,) = metrics.gaps(metrics.group(twins({"class": [0.1, 0.3, 0.2], "task": [0.7, 0.8, 0.75]})))
    assert (gap.label, gap.easier.label, gap.harder.label) == ("gem", "gem/task", "gem/class")
    assert gap.differences == pytest.approx([0.6, 0.5, 0.55]) and gap.seeds == (0, 1, 2)
    assert gap.acc == metrics.paired([0.7, 0.8, 0.75], [0.1, 0.3, 0.2])
    low, high = 0.55 - 4.302653 * 0.05 / 3**0.5, 0.55 + 4.302653 * 0.05 / 3**0.5  # t(0.975, 2) · s/√3
    assert (gap.acc.low, gap.acc.high) == (pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6))
    assert sentence(gap) == (
        "gem: ACC is 0.550 higher in the task scenario (task label given) than in the class scenario (task label "
        "hidden); 95% interval 0.426 to 0.674, paired over 3 seeds."
    )


def test_an_interval_around_0_is_a_tie_and_the_larger_is_named_first(twins):
    (gap,) = metrics.gaps(metrics.group(twins({"class": [0.5, 0.3, 0.4], "task": [0.3, 0.4, 0.3]})))
    assert gap.acc.mean == pytest.approx(-0.2 / 3)
    told = sentence(gap)
    assert "ACC is 0.067 higher in the class scenario" in told and "95% interval −0.313 to 0.446" in told
    assert "includes 0, so this is a tie" in told


def test_only_what_differs_in_the_scenario_alone_is_compared(twins):
    records = [
        *twins({"class": [0.1], "task": [0.7]}, settings={"strength": {"value": 1.0, "chosen_by": "given"}}),
        *twins({"class": [0.2], "task": [0.9]}, settings={"strength": {"value": 9.0, "chosen_by": "given"}}),
        *twins({"domain": [0.2]}, method="er"),
    ]
    found = metrics.gaps(metrics.group(records))
    assert [gap.label for gap in found] == ["gem[strength=1]", "gem[strength=9]"]
    assert [gap.acc.mean for gap in found] == pytest.approx([0.6, 0.7])
    assert all("one seed has no interval" in sentence(gap) for gap in found)


def test_three_scenarios_make_three_pairs(twins):
    found = metrics.gaps(metrics.group(twins({"class": [0.1], "task": [0.9], "domain": [0.6]})))
    pairs = [(gap.easier.scenario, gap.harder.scenario) for gap in found]
    assert pairs == [("task", "class"), ("domain", "class"), ("task", "domain")]


def test_seeds_that_one_of_them_lacks_are_left_out_and_told(twins):
    records = twins({"class": [0.1, 0.2, 0.3], "task": [0.7, 0.9]})
    asked = [metrics.Asked("gem", (0, 1, 2), (), tuple(records))]
    (gap,) = metrics.gaps(metrics.group(records, asked=asked))
    assert gap.seeds == (0, 1) and not gap.whole
    assert "paired over 2 seeds" in sentence(gap) and "not all seeds finished" in sentence(gap)
    (none,) = metrics.gaps(metrics.group([*twins({"class": [0.1]}), *twins({"task": [0.1, 0.9]})[1:]]))
    assert sentence(none) == "gem: no seed finished in both the task and the class scenario."
