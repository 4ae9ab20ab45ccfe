from __future__ import annotations

import json
import math

import pytest

from holdfast import metrics
from holdfast.errors import BadInput
from holdfast.metrics import interval, paired, verdict


def test_the_interval_is_students():
    found = interval([0.5, 0.6, 0.7])  # s = 0.1, t(0.975, 2) = 4.3027
    assert found.mean == pytest.approx(0.6)
    assert found.half == pytest.approx(4.302653 * 0.1 / math.sqrt(3), rel=1e-6)
    assert found.high - found.mean == pytest.approx(found.mean - found.low)


def test_one_seed_has_no_interval_and_a_missing_value_no_mean():
    assert interval([0.5]) == (0.5, None, None)
    assert interval([]) == interval([None]) == interval([0.5, None, 0.6]) == (None, None, None)
    assert interval([0.5]).half is None


def test_values_that_do_not_vary_have_no_interval():
    assert interval([0.0, 0.0, 0.0]) == (0.0, None, None)
    assert interval([0.7, 0.7]) == (0.7, None, None)
    dust = interval([0.1 + 0.2, 0.3, 0.3])  # 0.30000000000000004
    assert dust.mean == pytest.approx(0.3) and dust.half is None
    assert interval([2e12 / 3, 2e12 - 4e12 / 3]).half is None  # FLOPs
    assert interval([0.5, 0.5 + 1e-6]).half > 0  # one row of a million


def test_equal_differences_make_no_winner():
    a, b = [0.9, 0.7], [0.8, 0.6]  # 0.09999999999999998 and 0.09999999999999998
    assert paired(a, b).mean == pytest.approx(0.1) and paired(a, b).low is None
    assert verdict(a, b) == verdict(b, a) == "tie"
    assert verdict([0.9, 0.4, 0.7], [0.8, 0.3, 0.6]) == "tie"  # they differ by dust


def test_pairing_removes_what_seeds_share():
    hard_and_easy = [0.2, 0.5, 0.8]
    better = [x + d for x, d in zip(hard_and_easy, (0.04, 0.05, 0.06), strict=True)]
    found = paired(better, hard_and_easy)
    assert found.mean == pytest.approx(0.05) and found.low > 0
    assert verdict(better, hard_and_easy) == "a"
    assert verdict(hard_and_easy, better) == "b"
    assert verdict(better, hard_and_easy, larger_is_better=False) == "b"


def test_a_difference_that_may_be_zero_is_a_tie():
    assert verdict([0.5, 0.7, 0.6], [0.6, 0.5, 0.6]) == "tie"
    assert verdict([0.9], [0.1]) == "tie"
    assert verdict([0.9, None], [0.1, 0.1]) == "tie"
    assert verdict([0.5, 0.5], [0.5, 0.5]) == "tie"


def test_pairs_need_the_same_seeds():
    with pytest.raises(BadInput, match="same seeds, not 2 and 1"):
        paired([0.1, 0.2], [0.1])


def matrix(acc):
    return [[0.9, 0.0], [acc, acc]]


@pytest.fixture
def runs(record):
    """Records of one condition over seeds, with these final accuracies."""
    return lambda accs, **fields: [record(matrix(a), seed=s, **fields) for s, a in enumerate(accs)]


def given(**settings):
    return {name: {"value": value, "chosen_by": "given"} for name, value in settings.items()}


def labels(records):
    return [g.label for g in metrics.group(records)]


def test_records_that_differ_only_in_seed_are_one_entry(runs):
    found = metrics.summarise(reversed(runs([0.6, 0.5, 0.7])))
    assert found["schema"] == 1
    entry = found["methods"]["gem"]
    assert entry["acc"] == {
        "mean": pytest.approx(0.6),
        "low": pytest.approx(0.6 - 0.2484, abs=1e-4),
        "high": pytest.approx(0.6 + 0.2484, abs=1e-4),
        "values": [0.6, 0.5, 0.7],
    }
    assert {k: v for k, v in entry.items() if not isinstance(v, dict)} == {
        "label": "gem",
        "method": "gem",
        "scenario": "class",
        "task_label_given": False,
        "net": "mlp",
        "seeds": [0, 1, 2],
        "asked": 3,
        "failed": [],
    }
    assert {"acc", "bwt", "fwt", "forgetting", "bytes", "flops", "train_seconds"} <= set(entry)


def test_a_summary_is_strict_json(record):
    text = json.dumps(metrics.summarise([record([[0.5]])]), allow_nan=False)
    assert json.loads(text)["methods"]["gem"]["bwt"] == {"mean": None, "low": None, "high": None, "values": [None]}


def test_labels_say_only_what_is_needed(runs):
    assert labels(runs([0.5, 0.6]) + runs([0.5], method="ewc", scenario="task")) == ["gem", "ewc"]
    both = runs([0.5, 0.6]) + runs([0.5], scenario="task") + runs([0.4], method="ewc")
    assert labels(both) == ["gem/class", "gem/task", "ewc"]
    assert labels(runs([0.5]) + runs([0.5], net={"name": "conv"})) == ["gem/mlp/class", "gem/conv/class"]


def test_settings_tell_otherwise_equal_groups_apart(runs):
    small, large = given(memories=256, margin=0.5), given(memories=512, margin=0.5)
    assert labels(runs([0.5], settings=small) + runs([0.5], settings=large)) == [
        "gem[memories=256]",
        "gem[memories=512]",
    ]
    mixed = runs([0.5], settings=small) + runs([0.5], settings=large) + runs([0.5], settings=small, scenario="task")
    assert labels(mixed) == ["gem/class[memories=256]", "gem/class[memories=512]", "gem/task"]
    nets = [runs([0.5], net={"name": "mlp", "hidden": h}) for h in ([100, 100], [400])]
    assert labels(nets[0] + nets[1]) == ["gem[net.hidden=100x100]", "gem[net.hidden=400]"]
    rotated = runs([0.5], stream={"name": "rotated", "angles": [0, 90]})
    assert labels(runs([0.5]) + rotated) == ["gem[stream.name=split]", "gem[stream.name=rotated]"]


def test_a_default_and_the_same_value_given_are_one_condition(runs):
    usual = {"memories": {"value": 256, "chosen_by": "default"}}
    first, second = runs([0.5, 0.6], settings=usual)[0], runs([0.5, 0.6], settings=given(memories=256))[1]
    assert labels([first, second]) == ["gem"]


def test_values_chosen_during_a_run_do_not_split_its_seeds(record):
    chosen = [
        record(
            matrix(0.5),
            seed=s,
            protocol={"name": "realistic", "lr": lr},
            settings={"protocol.lr": {"value": lr, "chosen_by": "val:task"}},
        )
        for s, lr in enumerate([0.1, 0.01])
    ]
    assert labels(chosen) == ["gem"]
    fixed = record(matrix(0.5), protocol={"name": "realistic", "lr": 0.1}, settings=given(**{"protocol.lr": 0.1}))
    assert labels([*chosen, fixed]) == ["gem[protocol.lr=by val:task]", "gem[protocol.lr=0.1]"]


def test_a_network_that_grew_differently_with_each_seed_is_one_condition(record):
    grown = [record(matrix(0.5), seed=s, net={"name": "mlp", "parameters": 100 + s}) for s in range(3)]
    assert labels(grown) == ["gem"]


def test_a_seed_never_counts_twice(runs):
    assert labels(runs([0.5, 0.6]) + runs([0.7])) == ["gem", "gem[run=2]"]


def test_a_winner_beats_every_other(runs):
    groups = metrics.group(
        runs([0.80, 0.82, 0.81], method="gem")
        + runs([0.50, 0.53, 0.52], method="ewc")
        + runs([0.20, 0.22, 0.20], method="finetune")
    )
    assert metrics.standings(groups, "acc") == {"gem": "best"}
    assert metrics.standings(groups, "forgetting") == {"gem": "best"}
    assert set(metrics.standings(groups, "bytes").values()) == {"tie"}


def test_those_that_cannot_be_told_from_the_leader_tie_with_it(runs):
    groups = metrics.group(
        runs([0.80, 0.82, 0.81], method="gem")
        + runs([0.81, 0.80, 0.81], method="er")
        + runs([0.20, 0.22, 0.20], method="finetune")
    )
    assert metrics.standings(groups, "acc") == {"gem": "tie", "er": "tie"}


def test_nobody_wins_with_one_seed_or_alone_or_against_an_upper_bound(runs):
    one_seed = runs([0.9], method="gem") + runs([0.1], method="ewc")
    assert metrics.standings(metrics.group(one_seed), "acc") == {}
    assert metrics.standings(metrics.group(runs([0.9, 0.8])), "acc") == {}
    bound = runs([0.9, 0.9], method="iid", mixed=True) + runs([0.1, 0.1], method="ewc")
    assert metrics.standings(metrics.group(bound), "acc") == {}


def test_pairs_are_formed_over_common_seeds(runs):
    groups = metrics.group(runs([0.9, 0.8, 0.85], method="gem") + runs([0.1, 0.1, 0.12], method="ewc")[:1])
    assert metrics.standings(groups, "acc") == {"gem": "tie", "ewc": "tie"}


@pytest.fixture
def asked(runs):
    """What was asked for with three seeds, of which only these finished; the others failed."""

    def make(accs, **fields):
        made = [r for r, acc in zip(runs([acc or 0.0 for acc in accs], **fields), accs, strict=True) if acc is not None]
        failed = tuple(seed for seed, acc in enumerate(accs) if acc is None)
        return metrics.Asked(fields["method"], tuple(range(len(accs))), failed, tuple(made))

    return make


def grouped(*asked):
    return metrics.group([r for each in asked for r in each.records], asked=asked)


def test_a_group_knows_which_seeds_it_lacks(asked):
    whole, lacking = grouped(asked([0.5, 0.6], method="er"), asked([None, 0.6, 0.7], method="gem"))
    assert (whole.asked, whole.failed, whole.complete) == ((0, 1), (), True)
    assert (lacking.asked, lacking.failed, lacking.complete, lacking.seeds) == ((0, 1, 2), (0,), False, [1, 2])


@pytest.mark.parametrize("left", [[None, None, 0.1], [None, 0.1, 0.1], [0.95, None, 0.99]])
def test_a_method_that_lost_seeds_neither_leads_nor_ties_nor_stops_another_from_winning(left, asked):
    er, finetune = asked([0.80, 0.82, 0.81], method="er"), asked([0.50, 0.53, 0.52], method="finetune")
    assert metrics.standings(grouped(er, finetune, asked(left, method="gem")), "acc") == {"er": "best"}
    assert metrics.standings(grouped(er, asked(left, method="gem")), "acc") == {}


def test_seeds_that_were_asked_for_together_stay_together(asked):
    """The same settings under another version of the code: another run, not a stand-in for seeds that failed."""
    before, after = asked([0.5, None, 0.7], method="gem"), asked([0.6, 0.6, 0.8], method="gem")
    first, second = grouped(before, after)
    assert (first.label, first.records) == ("gem", before.records) and not first.complete
    assert (second.label, second.records) == ("gem[run=2]", after.records) and second.complete


def test_more_seeds_of_the_same_settings_are_one_group(runs):
    made = runs([0.5, 0.6, 0.7])
    parts = [metrics.Asked("gem", (0, 1), (), tuple(made[:2])), metrics.Asked("gem", (2,), (), tuple(made[2:]))]
    (found,) = metrics.group(made, asked=parts)
    assert found.asked == (0, 1, 2) and found.complete


def test_what_has_no_record_at_all_is_unfinished_in_the_summary(asked):
    er, gem = asked([0.8, 0.9, 0.7], method="er"), asked([None, None], method="gem")
    found = metrics.summarise(er.records, [er, gem])
    assert list(found["methods"]) == ["er"]
    assert found["unfinished"] == [{"label": "gem", "asked": 2, "failed": [0, 1]}]


def test_scenarios_and_streams_are_arenas_of_their_own(runs, record):
    records = runs([0.5, 0.6]) + runs([0.5], scenario="task") + runs([0.7], method="ewc")
    records.append(record(matrix(0.5), stream={"name": "permuted", "seed": 0}))
    found = [[g.label for g in arena] for arena in metrics.arenas(metrics.group(records))]
    assert sorted(map(len, found)) == [1, 1, 2]
