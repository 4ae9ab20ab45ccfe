"""holdfast audit: the desiderata of paper 001 with their evidence, and requirements that fail a build."""

import json
import shutil

import pytest

from holdfast.cli import main
from holdfast.metrics import desiderata

BAD = """
import holdfast as hf
class Bad(hf.Learner):
    def observe(self, batch):
        return self.fit(batch) * float("nan")
"""
MANY = "--tasks 3 --examples 20 --jobs 1 --quiet"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("results") / "out"
    words = f"compare finetune,ewc,er {MANY} --scenario class,task --seeds 0,1 --out".split()
    assert main([*words, str(out)]) == 0
    return out


@pytest.fixture
def results(made, here):
    """finetune, ewc and er in two scenarios, in the folder `out`."""
    shutil.copytree(made, here / "out")


def test_every_desideratum_of_the_paper_has_a_verdict_and_evidence(holdfast, results):
    text = holdfast("audit out").out
    cards = json.loads(holdfast("audit out --json").out)["cards"]
    first = cards["finetune/class"]["desiderata"]
    assert [each["kind"] for each in first] == ["minimal"] * 5 + ["harder"] * 6
    for card in cards.values():
        for each in card["desiderata"]:
            assert each["name"] in text and each["measured"] and each["evidence"]
            assert each["verdict"] in ("met", "not met", "not applicable", "not measured")
            assert each["line"] in card["lines"]
    verdicts = {each["name"]: each["verdict"] for each in cards["er/task"]["desiderata"]}
    assert verdicts["Shared output head"] == verdicts["No test-time assumed task labels"] == "not met"
    assert verdicts["No retraining on old tasks"] == "not met" and verdicts["More than two tasks"] == "met"
    assert verdicts["Overlapping tasks"] == verdicts["Continuous tasks"] == "not met"


def lacking(done):
    """The labels that are complained about."""
    return [line.split(": ")[0] for line in done.complaints]


def test_no_old_data_tells_methods_apart(holdfast, results):
    done = holdfast("audit out --require no-old-data")
    assert done.code == 1 and lacking(done) == ["er/class", "er/task"]
    assert "no-old-data is required and not met (" in done.complaints[0] and "rows" in done.complaints[0]


def test_shared_head_tells_scenarios_apart(holdfast, results):
    done = holdfast("audit out --require shared-head")
    assert done.code == 1 and lacking(done) == ["finetune/task", "ewc/task", "er/task"]
    assert lacking(holdfast("audit out --require no-task-label")) == lacking(done)


def test_what_is_met_by_all_passes(holdfast, results):
    done = holdfast("audit out --require causal,more-than-two-tasks,causal-selection --json")
    found = json.loads(done.out)
    assert done.code == 0 and done.err == ""
    assert found["required"] == ["causal_selection", "more_than_two_tasks"] and found["unmet"] == []


def test_the_json_says_what_is_not_met(holdfast, results):
    done = holdfast("audit out --require causal,no-old-data --json")
    found = json.loads(done.out)
    assert done.code == 1 and found["required"] == ["causal_selection", "no_old_data"]
    assert found["unmet"] == [
        {"label": f"er/{scenario}", "condition": "no_old_data", "verdict": "not met"} for scenario in ("class", "task")
    ]
    assert "required" not in json.loads(holdfast("audit out --json").out)


def test_a_line_without_a_verdict_is_not_met(holdfast, results):
    done = holdfast("audit out --require uncertainty")
    assert done.code == 1 and len(done.complaints) == 6
    assert "uncertainty is required and not applicable" in done.complaints[0]


def test_a_line_that_a_run_did_not_measure_is_not_met(holdfast, here):
    holdfast(f"run finetune {MANY} --out old")
    (path,) = here.glob("old/cells/*/record.json")
    record = json.loads(path.read_text())
    del record["card"]["overlapping_tasks"]
    path.write_text(json.dumps(record))
    done = holdfast("audit old --require overlapping")
    assert done.code == 1 and "overlapping-tasks is required and not measured" in done.complaints[0]
    assert "not measured" in done.out


def test_runs_without_a_card_meet_nothing(holdfast, here):
    (here / "mine.py").write_text(BAD)
    assert holdfast(f"compare finetune,mine.py:Bad {MANY} --out out").code == 1
    assert holdfast("audit out").code == 0
    done = holdfast("audit out --require more-than-two-tasks")
    assert done.code == 1 and done.complaints == ["Bad: has no card, so nothing that is required is met"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-old-dta", "unknown condition 'no-old-dta'; did you mean 'no-old-data'?"),
        ("causal,memry", "unknown condition 'memry'; did you mean 'memory'?"),
        ("Shared-Head", "unknown condition 'Shared-Head'; did you mean 'shared-head'?"),
        ("', '", "--require must name one or more conditions, e.g. no-old-data,causal, not ', '"),
    ],
)
def test_a_name_that_does_not_exist_is_bad_input(holdfast, results, given, said):
    done = holdfast(f"audit out --require {given}")
    assert done.code == 2 and done.complaints == [said] and done.out == ""


def test_help_names_every_condition(holdfast):
    text = " ".join(holdfast("audit --help").out.split()).replace("- ", "-")
    assert all(name in text for name in desiderata.names())


def test_every_condition_is_a_line_of_the_card(holdfast, results):
    card = json.loads(holdfast("audit out --json").out)["cards"]["ewc/class"]["lines"]
    assert set(desiderata.names().values()) == set(card) - {"update_seconds"}  # which has no verdict
