"""Every line of the card: met, not met, not applicable, in cases made by hand."""

import json
import math

import numpy as np
import pytest
from scipy.stats import chi2_contingency

from holdfast.audit import Shown, card
from holdfast.audit.card import chance_of
from holdfast.types import StreamInfo


def info(scenario="class", tasks=3, classes=6, hidden=False):
    each = classes // tasks
    return StreamInfo(
        "split", scenario, (4,), classes, tuple(tuple(range(t * each, (t + 1) * each)) for t in range(tasks)), hidden
    )


def show(counts=({0: 5, 1: 5}, {2: 5, 3: 5}, {4: 5, 5: 5}), of_others=0.0):
    """Segments with so many rows of each class; tasks have the same classes."""
    return Shown(tuple(frozenset(each) for each in counts), tuple(counts), of_others)


def lines(**changes):
    usual = {
        "info": info(),
        "entropies": [0.1, 0.2],
        "old_rows": [(0, 0), (0, 0), (0, 0)],
        "settings": {"lr": {"value": 0.1, "chosen_by": "given"}},
        "bytes_per_task": [100, 100, 100],
        "seconds_per_update": [0.1, 0.1, 0.1],
        "flops_per_update": [5.0, 5.0, 5.0],
        "passes": 1.0,
        "most_looks": 1.0,
        "mixed": False,
        "shown": show(),
        "generators": [(0, 0), (0, 0), (0, 0)],
        "informations": [],
    }
    return card(**{**usual, **changes})


def chosen(by):
    return {"lr": {"value": 0.1, "chosen_by": by}, "batch": {"value": 10, "chosen_by": "default"}}


HALF = 0.5 * math.log(6)  # half the entropy of a uniform guess among six classes

CASES = [
    ("resemblance", {"entropies": [HALF - 0.01]}, True),
    ("resemblance", {"entropies": [HALF + 0.01]}, False),
    ("resemblance", {"entropies": [HALF - 0.2, HALF + 0.1]}, True),  # the mean decides
    ("resemblance", {"entropies": []}, None),
    ("resemblance", {"info": info("task"), "entropies": [0.5 * math.log(2) + 0.01]}, False),  # two outputs each
    ("resemblance", {"info": info("task", tasks=6), "entropies": [0.0]}, None),  # one output: nothing to be unsure of
    ("shared_head", {"info": info("class")}, True),
    ("shared_head", {"info": info("domain")}, True),
    ("shared_head", {"info": info("task")}, False),
    ("no_task_label", {"info": info("class")}, True),
    ("no_task_label", {"info": info("domain")}, True),
    ("no_task_label", {"info": info("task")}, False),
    ("no_boundaries", {}, False),  # told: the stream leaves this challenge out
    ("no_boundaries", {"info": info(hidden=True)}, True),
    ("no_boundaries", {"info": info(hidden=True), "mixed": True}, None),
    ("no_old_data", {}, True),
    ("no_old_data", {"old_rows": [(0, 0, 0), (2, 128, 2), (0, 0, 0)]}, None),  # all may be there by chance
    ("no_old_data", {"old_rows": [(2, 128, 2), (2, 128, 1)]}, False),
    ("no_old_data", {"old_rows": [(0, 0), (1, 64), (0, 0)]}, False),  # also when it is gone at the end
    ("no_old_data", {"mixed": True}, False),
    ("no_old_data", {"generators": [(0, 0), (1, 400)]}, True),  # what it generates are no old rows
    ("no_generator", {}, True),
    ("no_generator", {"generators": [(0, 0), (1, 400), (0, 0)]}, False),  # also when it is gone at the end
    ("continuous_tasks", {}, False),
    ("continuous_tasks", {"shown": show(of_others=0.1)}, True),
    ("continuous_tasks", {"shown": show(of_others=0.1), "mixed": True}, None),
    ("continuous_tasks", {"shown": show([{0: 5, 1: 5}])}, None),
    ("overlapping_tasks", {}, False),
    ("overlapping_tasks", {"shown": show([{0: 5, 1: 5}, {1: 5, 2: 5}])}, True),
    ("overlapping_tasks", {"shown": show([{0: 5, 1: 5}])}, None),
    ("class_frequencies", {}, None),  # no class comes twice
    ("class_frequencies", {"shown": show([{0: 100, 1: 10}, {0: 10, 1: 100}])}, True),
    ("class_frequencies", {"shown": show([{0: 100, 1: 100}, {0: 108, 1: 92}])}, False),  # chance makes as much
    ("class_frequencies", {"shown": show([{0: 9, 1: 1}, {0: 9, 1: 1}]), "mixed": True}, None),
    ("class_frequencies", {"shown": show([{0: 50}, {0: 90}])}, False),  # all rows there and there
    ("long_sequence", {}, False),
    ("long_sequence", {"info": info(tasks=20, classes=40)}, False),
    ("long_sequence", {"info": info(tasks=21, classes=42)}, True),
    ("more_than_two_tasks", {}, True),
    ("more_than_two_tasks", {"info": info(tasks=2)}, False),
    ("causal_selection", {}, True),
    ("causal_selection", {"settings": chosen("val:task")}, True),
    ("causal_selection", {"settings": chosen("val:first-task")}, True),
    ("causal_selection", {"settings": chosen("test:task")}, False),
    ("causal_selection", {"settings": chosen("test:stream")}, False),
    ("causal_selection", {"mixed": True}, False),
    ("memory", {}, True),
    ("memory", {"bytes_per_task": [100, 105, 110]}, True),  # 5% of the mean per task
    ("memory", {"bytes_per_task": [100, 120, 140]}, False),  # 17%
    ("memory", {"bytes_per_task": [140, 120, 100]}, True),
    ("memory", {"bytes_per_task": [100]}, None),
    ("memory", {"bytes_per_task": [0, 0, 0]}, True),
    ("update_seconds", {"seconds_per_update": [0.1, 0.2, 0.4]}, None),  # noise would decide
    ("update_seconds", {"seconds_per_update": []}, None),
    ("update_flops", {"flops_per_update": [5.0, 10.0, 15.0]}, False),
    ("update_flops", {}, True),
    ("update_flops", {"flops_per_update": [5.0]}, None),
    ("single_pass", {}, True),
    ("single_pass", {"passes": 0.9, "most_looks": 0.9}, True),  # a part of a pass
    ("single_pass", {"passes": 1.01, "most_looks": 2.0}, False),
    ("single_pass", {"passes": 1.0, "most_looks": 2.0}, False),  # others were not seen at all
    ("uncertainty", {}, None),
    ("uncertainty", {"informations": [0.2, 0.4]}, True),
]


@pytest.mark.parametrize(("line", "changes", "met"), CASES)
def test_lines(line, changes, met):
    assert lines(**changes)[line]["met"] is met


def test_all_lines_are_there_and_tested_and_json():
    made = lines()
    assert set(made) == {line for line, _, _ in CASES}
    assert json.loads(json.dumps(made, allow_nan=False)) == made
    assert all(set(line) == {"label", "value", "unit", "met", "note"} for line in made.values())


def test_values_are_what_was_measured():
    made = lines(bytes_per_task=[100, 130, 160], old_rows=[(3, 48), (9, 144), (5, 80)], passes=2.5)
    assert made["memory"]["value"] == {"last": 160, "slope": pytest.approx(30.0)}
    assert made["no_old_data"]["value"] == 9
    assert "144 bytes" in made["no_old_data"]["note"]
    assert made["single_pass"]["value"] == 2.5
    assert made["resemblance"]["value"] == pytest.approx(0.15)
    assert made["more_than_two_tasks"]["value"] == 3


def test_what_the_harder_lines_measure():
    apart = show([{0: 90, 1: 10}, {1: 50, 2: 50}, {0: 10, 2: 10, 3: 80}], of_others=0.25)
    made = lines(shown=apart, informations=[0.2, 0.4])
    assert made["continuous_tasks"]["value"] == 0.25
    assert made["overlapping_tasks"]["value"] == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert made["class_frequencies"]["value"] == pytest.approx(0.9 / 0.1)  # class 0
    assert made["uncertainty"]["value"] == pytest.approx(0.3)
    assert made["long_sequence"]["value"] == 3


def test_a_generator_is_called_generative_rehearsal():
    made = lines(generators=[(1, 400), (2, 800)])
    assert made["no_generator"]["value"] == 2 and "800 bytes" in made["no_generator"]["note"]
    assert (
        "generative rehearsal" in made["no_generator"]["note"] and "generative rehearsal" in made["no_old_data"]["note"]
    )
    assert "generative" not in str(lines())


def test_seconds_are_shown_without_a_verdict():
    line = lines(seconds_per_update=[0.1, 0.2, 0.4])["update_seconds"]
    assert line["value"] == {"last": 0.4, "slope": pytest.approx(0.2)}
    assert "+100%" in line["note"] and "not judged" in line["note"]


def test_choices_on_test_data_are_named():
    line = lines(settings=chosen("test:stream"))["causal_selection"]
    assert (line["value"], line["note"]) == (1, "lr from test:stream")


@pytest.mark.parametrize("table", [[[5, 7], [9, 2]], [[3, 3], [4, 4]], [[5, 70], [9, 20], [1, 90]]])
def test_how_probable_a_difference_of_shares_is(table):
    assert chance_of(np.array(table)) == pytest.approx(chi2_contingency(table).pvalue)
