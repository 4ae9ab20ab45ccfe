"""holdfast metrics: the same results by other libraries' formulas."""

import json

import pytest

from holdfast.metrics import SOURCES

MANY = "--tasks 3 --examples 20 --jobs 1 --quiet"


@pytest.fixture
def results(holdfast):
    """finetune and er in two scenarios."""
    assert holdfast(f"compare finetune,er {MANY} --scenario class,task --seeds 0,1 --out out").code == 0


def test_all_sources_stand_side_by_side_and_ours_is_marked(holdfast, results):
    done = holdfast("metrics out")
    lines = [line.split() for line in done.out.splitlines() if line.startswith(("finetune/", "er/"))]
    assert done.code == 0 and done.err == "" and len(lines) == 4 * len(SOURCES)
    for label, scenario, given, seeds, source, *_ in lines:
        assert label.endswith(scenario) and given == ("given" if scenario == "task" else "hidden")
        assert seeds == "2/2" and source in SOURCES
    assert done.out.count("papers (ours)") == 4 and done.out.count("(ours)") == 4


def test_one_source_has_its_metrics_alone(holdfast, results):
    done = holdfast("metrics out --as gem")
    head, *lines = done.out.split("\n\n")[0].splitlines()
    assert head.split()[-3:] == ["ACC", "BWT", "FWT"] and "AIA" not in head
    assert len(lines) == 4 and all(" gem " in line for line in lines)


def test_ours_are_the_numbers_of_the_summary(holdfast, results, here):
    found = json.loads(holdfast("metrics out --json").out)
    summary = json.loads((here / "out" / "summary.json").read_text())["methods"]
    assert found["ours"] == "papers" and set(found["methods"]) == set(summary)
    for label, entry in found["methods"].items():
        assert set(entry["formulas"]) == set(SOURCES)
        for name, told in entry["formulas"]["papers"].items():
            assert name == "aia" or told == summary[label][name]
        for name in ("scenario", "task_label_given", "net", "seeds", "asked", "failed"):
            assert entry[name] == summary[label][name]


def test_the_authors_of_gem_divide_by_one_more(holdfast, results):
    entry = json.loads(holdfast("metrics out --json").out)["methods"]["finetune/class"]["formulas"]
    for ours, theirs in zip(entry["papers"]["bwt"]["values"], entry["gem"]["bwt"]["values"], strict=True):
        assert theirs == pytest.approx(ours * 2 / 3)


def test_what_needs_a_hole_is_null(holdfast):
    holdfast(f"run er {MANY} --set protocol.score=ends --out out")
    entry = json.loads(holdfast("metrics out --json").out)["methods"]["er"]["formulas"]
    assert entry["avalanche"]["forgetting"]["mean"] is not None
    for source, name in (("papers", "forgetting"), ("pycil", "forgetting"), ("continuum", "fwt"), ("gem", "fwt")):
        assert entry[source][name] == {"mean": None, "low": None, "high": None, "values": [None]}
    assert " – " in holdfast("metrics out --as mammoth").out


def test_mistakes_are_told_a_line_each(holdfast, results):
    done = holdfast("metrics out --as avalanch")
    assert done.code == 2 and done.out == ""
    assert done.complaints == ["unknown source 'avalanch'; did you mean 'avalanche'?"]
    done = holdfast("metrics nowhere --as Mammoth")
    assert done.code == 2 and len(done.complaints) == 2
    assert done.complaints[0] == "unknown source 'Mammoth'; did you mean 'mammoth'?" and "nowhere" in done.complaints[1]


def test_help_names_every_source(holdfast):
    text = holdfast("metrics --help").out
    assert all(source in text for source in SOURCES)


def test_runs_that_failed_are_said(holdfast, here):
    (here / "mine.py").write_text(
        "import holdfast as hf\n"
        "class Bad(hf.Learner):\n"
        "    def observe(self, batch):\n"
        '        return self.fit(batch) * float("nan")\n'
    )
    assert holdfast(f"compare finetune,mine.py:Bad {MANY} --out out").code == 1
    done = holdfast("metrics out --as papers")
    assert done.code == 0 and "Bad: 0 of 1 seed finished, so there are no metrics." in done.out
    assert json.loads(holdfast("metrics out --json").out)["unfinished"][0]["label"] == "Bad"
