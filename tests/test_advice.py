"""An advice keeps to its limits, tries the cheapest first, ends in time, and says what a whole comparison would say."""

from __future__ import annotations

import itertools
import json
import multiprocessing
import shlex
import time
from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import holdfast as hf
from holdfast import advice, report
from holdfast.advice import _rehearsals, rehearsal
from holdfast.cli import main
from holdfast.report.advice import section

SHORT = hf.protocol("realistic", steps=80, score_every=40, batch=20, lr=(0.02,), later_lr=(0.02,))
CHEAP = ["finetune", "er", "ewc"]


@dataclass
class Slow(hf.Learner):
    """It takes so many seconds over each batch."""

    pause: float = 0.01

    def observe(self, batch):
        time.sleep(self.pause)
        return self.fit(batch)


@dataclass
class Hoarder(hf.Learner):
    """It keeps every batch, and uses none."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.hoard = []

    def observe(self, batch):
        self.hoard.append(batch.x)
        return self.fit(batch)


@dataclass
class Late(hf.Learner):
    """It answers nothing until its first task is over."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.known = False

    def observe(self, batch):
        return self.fit(batch)

    def finish(self, train):
        self.known = True

    def predict(self, x, task):
        return super().predict(x, task) * self.known


@dataclass
class Broken(hf.Learner):
    """It goes wrong where there is more than a glance."""

    def observe(self, batch):
        if self.steps > 5:
            raise RuntimeError("<b>cannot</b> go on")
        self.steps += 1
        return self.fit(batch)

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.steps = 0


@pytest.fixture(scope="module")
def digits():
    return hf.stream("slt", examples=200, test_examples=100, val=0.1)


@pytest.fixture
def clock(monkeypatch):
    """A second passes whenever somebody looks."""
    seconds = itertools.count()
    for module in (advice, _rehearsals):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: next(seconds)))


def asked(stream, candidates, **limits):
    """A short advice in this process, and what it said meanwhile."""
    said = []
    usual = {"protocol": SHORT, "seeds": 1, "jobs": 1}
    return hf.advise(stream, candidates, **{**usual, **limits}, watch=said.append), said


def rehearsed(said):
    """The methods in the order in which they were begun."""
    first = next(line for line in said if line.startswith("rehearsing "))
    return first.removeprefix("rehearsing ").partition(" (seed")[0].split(", ")


# Limits


def test_the_best_is_that_of_a_whole_comparison_under_the_same_limits(digits):
    named = ["finetune", "ewc", "imm", "er"]
    way = rehearsal(SHORT)
    whole = hf.compare(named, digits, seeds=2, protocol=way, jobs=1)
    means = {name: np.mean([hf.study.pooled(r) for r in whole.records if r.method == name]) for name in named}
    left = {record.method: max(record.resources["bytes"]) for record in whole.records}
    rows = {record.method: record.card["no_old_data"]["value"] for record in whole.records}
    limits = [
        ({}, named),
        ({"memory": 10**6, "keep_data": False}, [name for name in named if left[name] <= 10**6 and not rows[name]]),
    ]
    assert [len(allowed) for _, allowed in limits] == [4, 2]
    for given, allowed in limits:
        found, _ = asked(digits, named, seeds=2, **given)
        assert {tried.method for tried in found.tried} == set(allowed)
        assert found.best.method == max(allowed, key=lambda name: means[name])
        assert found.best.accuracy.mean == pytest.approx(means[found.best.method])


def test_no_more_is_left_behind_than_is_allowed(digits):
    found, _ = asked(digits, [*CHEAP, "gem"], memory=480_000)
    assert found.tried and all(tried.bytes <= 480_000 for tried in found.tried)
    assert found.ruled_out["ewc"].endswith("480,000 are allowed") and "bytes behind" in found.ruled_out["ewc"]
    sizes = {tried.method: tried.settings["memories"] for tried in found.tried if tried.settings}
    assert sizes.keys() == {"er", "gem"} and max(sizes.values()) < 256  # fewer than they usually keep
    left = {tried.method: tried.bytes for tried in found.tried}
    assert left["er"] > 0.95 * 480_000 and left["gem"] > 0.95 * 480_000  # and no fewer than fit


def test_replay_near_the_best_is_also_tried_with_all_that_fits(digits):
    found, _ = asked(digits, ["finetune", "gem"], memory=10**8)
    assert {tried.called for tried in found.tried} == {"finetune", "gem"}  # 256 are more than a task has
    large = hf.stream("slt", val=0.1)
    found, _ = asked(large, ["finetune", "gem"], memory=700_000)
    assert {tried.called for tried in found.tried} > {"finetune", "gem"}
    more = next(tried for tried in found.tried if tried.settings)
    assert more.settings["memories"] > 1.5 * 256 and 0.95 * 700_000 < more.bytes <= 700_000


def test_a_number_of_rows_that_was_given_stays(digits):
    found, _ = asked(digits, ["finetune", hf.method("er", memories=150)], memory=460_000)
    assert [tried.called for tried in found.tried] == ["finetune"] and "er (memories=150)" in found.ruled_out


def test_nothing_that_keeps_rows_is_tried_where_none_may_be_kept(digits):
    found, said = asked(digits, [*CHEAP, "gem", "agem", "icarl", Hoarder(), "joint"], keep_data=False)
    assert rehearsed(said) and set(rehearsed(said)) == {"finetune", "ewc"}  # the others saw a few rows only
    assert all(tried.rows == 0 for tried in found.tried)
    assert {found.ruled_out[name] for name in ("er", "gem", "agem", "icarl", "Hoarder")} == {"keeps rows of past tasks"}
    assert "sees all tasks at once" in found.ruled_out["joint"]


def test_methods_that_need_the_task_are_tried_where_it_is_given(digits):
    found, _ = asked(digits, ["finetune", "independent"])
    assert list(found.ruled_out) == ["independent"] and "needs the task label" in found.ruled_out["independent"]
    given = hf.stream("split", tasks=2, examples=100, scenario="task")
    found, _ = asked(given, ["finetune", "independent"])
    assert {tried.method for tried in found.tried} == {"finetune", "independent"} and found.scenario == "task"
    assert "task label given" in str(found)


def test_what_was_never_trained_is_told(digits):
    """Who answers nothing before a task is over: no look is better than the first, and there it is stopped."""
    found, _ = asked(digits, ["finetune", "icarl", Late()])
    assert {tried.method: tried.trained for tried in found.tried} == {"finetune": True, "icarl": True, "Late": False}
    assert str(found).count("was never trained") == 1 and "Late was never trained" in str(found)


def test_what_fails_is_ruled_out_and_says_why(digits):
    found, _ = asked(digits, ["finetune", Broken()])
    assert [*found.ruled_out] == ["Broken"]
    assert found.ruled_out["Broken"].startswith("failed with seed 0: RuntimeError: <b>cannot</b> go on (test_advice.py")
    page = report.html(found.comparison.records, advice=found.summary())
    assert "&lt;b&gt;cannot&lt;/b&gt;" in page and "<b>cannot" not in page


# Time


def test_the_cheapest_come_first(digits):
    _, said = asked(digits, [Slow(), "finetune"])
    assert rehearsed(said) == ["finetune", "Slow"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_it_ends_in_time_and_says_what_it_left_out(digits, jobs):
    """Fifty steps of the slow one take 20 s."""
    found, _ = asked(digits, [Slow(pause=0.4), "finetune"], seconds=6.0, jobs=jobs)
    assert found.best.method == "finetune" and found.seconds < 9 and not multiprocessing.active_children()
    assert found.left_out == {"Slow (pause=0.4)": "was begun and not finished in time"}
    assert "Slow (pause=0.4): was begun and not finished in time" in str(found)
    assert "For 1 other there was no time" in str(found)


def test_where_nothing_is_finished_there_is_no_advice(digits):
    with pytest.raises(hf.RunFailed, match=r"Slow \(pause=0.4\): was begun and not finished in time"):
        asked(digits, [Slow(pause=0.4)], seconds=1.5)


def test_the_more_time_the_more_seeds_and_the_others_are_told(digits, clock):
    counts = []
    for seconds in (30, 50, 90):
        found, said = asked(digits, ["finetune"], seeds=5, seconds=seconds)
        left = found.left_out.get("finetune", "").partition("for seed ")[2]
        assert len(found.best.values) + len(left.split(", ") if left else []) == 5
        assert said.count("rehearsing finetune (seed 0)") == 1  # nothing is begun, stopped and begun again
        counts.append(len(found.best.values))
    assert counts == sorted(counts) and counts[0] < counts[-1]


def test_those_near_the_best_have_more_seeds_than_others(digits):
    found, _ = asked(digits, ["finetune", "er"], seeds=3)
    assert [(tried.method, len(tried.values)) for tried in found.tried] == [("er", 3), ("finetune", 1)]
    assert found.best.accuracy.low is not None and found.tried[1].behind.mean > 0.2 and found.alike == ()


# What is said


def test_what_is_forgotten_is_what_the_records_say():
    names = np.array(["ant", "bee", "cat", "dog"])
    rng = np.random.default_rng(0)
    y = np.arange(400) % 4
    x = (rng.normal(size=(400, 6)) + 3 * np.eye(4, 6)[y]).astype("float32")
    found, _ = asked(hf.stream("split", data=(x, names[y]), tasks=2), ["finetune"])
    (record,) = found.comparison.records
    last = {c: (record.predictions[0][-1][record.labels[0] == c] == c).mean() for c in (0, 1)}
    first = {c: (record.predictions[0][0][record.labels[0] == c] == c).mean() for c in (0, 1)}
    assert found.best.classes["ant"] == (pytest.approx(first[0]), pytest.approx(last[0]))
    assert found.best.classes["dog"][0] is None and list(found.best.classes) == list(names)
    assert f"bee ({first[1]:.2f} → {last[1]:.2f})" in str(found) and "Train it" not in str(found)
    assert found.command is None  # arrays have no name
    assert "classes ant bee; classes cat dog" in str(found)


def test_classes_that_come_again_are_told_apart():
    found, _ = asked(hf.stream("permuted", tasks=2, examples=60, test_examples=60), ["finetune"])
    assert {"0 of task 1", "0 of task 2"} <= found.best.classes.keys()


def test_the_command_trains_the_winner_and_keeps_its_model(digits, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found, _ = asked(digits, ["finetune", hf.method("er", memories=30)])
    words = shlex.split(found.command)
    assert words[:3] == ["holdfast", "run", "er"] and main([*words[1:], "--quiet"]) == 0
    (home,) = tmp_path.glob("runs/*/cells/*")
    assert home.name == found.winner.name
    (again,) = hf.Comparison.read(home.parents[1]).records
    assert again.R.tolist() == next(r for r in found.comparison.records if r.method == "er").R.tolist()
    model = hf.load_model(home / "model")
    assert model.score(digits.tasks[0].test.raw(), digits.tasks[0].test.y).accuracy == again.R[-1, 0]
    assert found.train(tmp_path / "mine").R.tolist() == again.R.tolist() and hf.load_model(tmp_path / "mine").tasks == 2


def test_json_has_all_of_it(digits):
    found, _ = asked(digits, CHEAP, seeds=2, keep_data=False, memory=10**6)
    said = json.loads(json.dumps(found.summary(), allow_nan=False))
    assert said["recommended"] == found.best.called and said["command"].startswith("holdfast run ")
    assert said["limits"] == {"memory": 10**6, "keep_data": False, "seconds": None}
    assert [tried["called"] for tried in said["tried"]] == [tried.called for tried in found.tried]
    assert said["ruled_out"] == {"er": "keeps rows of past tasks"} and said["left_out"] == {}


# The folder and the report


def test_a_folder_has_the_advice_on_its_report_and_the_next_one_goes_on(digits, tmp_path):
    out = tmp_path / "out"
    found, _ = asked(digits, ["finetune", "er"], out=out)
    page = (out / "report.html").read_text()
    assert page.index('<section id="advice">') < page.index('<section id="summary">')
    assert found.command in page and "Which method to go on with" in page
    assert json.loads((out / "advice.json").read_text()) == json.loads(json.dumps(found.summary()))
    written = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/record.json")}
    again, _ = asked(digits, ["finetune", "er", "ewc"], out=out)
    assert len(written) == 2 and all(path.stat().st_mtime_ns == at for path, at in written.items())
    assert len(list(out.glob("cells/*/record.json"))) == 3 and again.best.values == found.best.values
    assert hf.Comparison.read(out).advice["recommended"] == "er"
    assert main(["report", str(out), "--out", str(tmp_path / "again.html")]) == 0
    assert '<section id="advice">' in (tmp_path / "again.html").read_text()


def test_a_folder_of_another_command_is_left_alone(digits, tmp_path):
    hf.compare("finetune", digits, seeds=1, jobs=1, out=tmp_path / "theirs")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(hf.BadInput, match="holds results of another command"):
        asked(digits, ["finetune"], out=tmp_path / "theirs")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"tried": []}', '{"schema": 1, "tried": [{}]}'])
def test_a_spoiled_advice_is_told_in_a_line(tmp_path, content):
    (tmp_path / "advice.json").write_text(content)
    with pytest.raises(hf.BadInput, match="is not one of Holdfast's"):
        report.advice_in(tmp_path)


def test_the_page_says_names_and_shows_no_markup_of_theirs(digits):
    found, _ = asked(digits, ["finetune"])
    evil = "<script>alert(1)</script>"
    said = {**found.summary(), "tasks": [evil], "command": evil, "left_out": {evil: evil}, "ruled_out": {evil: evil}}
    said["tried"] = [{**said["tried"][0], "called": evil, "classes": {evil: (1.0, 0.0)}}]
    assert "<script" not in section(said) and section(said).count("&lt;script") >= 7


# Bad input


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"memory": 0}, "memory must be a whole number >= 1 or none, not 0"),
        ({"memory": "5MB"}, "memory must be a whole number >= 1 or none, not '5MB'"),
        ({"seconds": -1}, "seconds must be a number > 0 or none, not -1"),
        ({"seeds": 0}, "seeds must be a whole number >= 1, not 0"),
        ({"protocol": hf.protocol("online")}, "an advice is rehearsed under protocol 'realistic', not under 'online'"),
        ({"candidates": []}, "there is no candidate; name at least one method"),
        ({"candidates": ["er", "er"]}, "er is among the candidates twice; name it once"),
        ({"candidates": ["gme"]}, "unknown method 'gme'; did you mean 'gem'?"),
        ({"candidates": ["joint"]}, "joint: cannot run here: it sees all tasks at once"),
    ],
)
def test_bad_input_is_a_sentence(digits, tmp_path, given, line):
    with pytest.raises(hf.BadInput) as error:
        asked(digits, **{"candidates": ["finetune"], "out": tmp_path / "out", **given})
    assert error.value.faults[0].startswith(line) and not (tmp_path / "out").exists()


def test_replay_on_a_table_of_one_column_keeps_data():
    y = np.arange(200) % 4
    x = np.random.default_rng(0).normal(y, 0.1)[:, None].astype("float32")
    stream = hf.stream("split", data=(x, y), tasks=2, val=0.1)
    found = hf.advise(stream, ["finetune", "er", "gem"], keep_data=False, protocol=SHORT, seeds=1, jobs=1)
    assert found.best.method == "finetune"
    assert found.ruled_out == dict.fromkeys(["er", "gem"], "keeps rows of past tasks")


@pytest.mark.parametrize("given", ["no", "yes", 0, None])
def test_whether_data_are_kept_is_true_or_false(given):
    with pytest.raises(hf.BadInput, match="keep_data must be True or False, not"):
        hf.advise("split", ["finetune"], keep_data=given)


def test_names_of_classes_may_have_commas():
    from holdfast.commands.advise import _classes

    names, faults = ["iris", "lily", "rose, red", "a"], []
    assert _classes("--new", "rose, red", names, faults) == [2]
    assert _classes("--new", '"rose, red",iris', names, faults) == [2, 0] and not faults


def test_classes_that_neither_option_names_are_told(capsys):
    words = "advise digits --old 0,1 --new 2,3 --methods finetune --seeds 1 --jobs 1 --set protocol.steps=2"
    assert main(shlex.split(f"{words} --set stream.examples=20")) == 0
    assert "classes not looked at, for neither --old nor --new names them: 4, 5, 6, 7, 8, 9" in capsys.readouterr().err


def test_one_task_gives_no_advice():
    with pytest.raises(hf.BadInput, match="stream 'split' has one task; an advice needs what is known first"):
        hf.advise(hf.stream("split", tasks=1), ["finetune"])
