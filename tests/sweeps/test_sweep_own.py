"""Protocols and streams of a user's own are named, set, hashed and refused as those of ours are."""

import json
import pickle
import re
import runpy
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

import holdfast as hf
from holdfast.checks import check_stream
from holdfast.cli import main
from holdfast.protocols import protocols
from holdfast.streams import streams
from holdfast.sweeps import Cell, own, read_sweep
from holdfast.sweeps.on_node import recipe
from holdfast.sweeps.on_ray import _modules

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"tasks": 2, "examples": 40, "test_examples": 20}


@dataclass(frozen=True)
class Twice(hf.Passing):
    """Two passes."""

    passes = 2
    much: int = 1


@dataclass(frozen=True)
class Halves(hf.StreamSpec):
    """Two tasks of two classes."""

    swapped: bool = False

    def plan(self, data, seed):
        plans = [hf.Plan("low", (0, 1), (0, 1)), hf.Plan("high", (2, 3), (2, 3))]
        return "class", 4, plans[::-1] if self.swapped else plans


@dataclass(frozen=True, kw_only=True)
class Needy(hf.Passing):
    passes = 1
    much: int


@dataclass(frozen=True)
class Picky(hf.Passing):
    passes = 1

    def __post_init__(self):
        raise KeyError("never")


@pytest.fixture(scope="module")
def stream():
    return hf.stream("split", **SMALL)


def cell(protocol=None, stream=None):
    usual = hf.stream("split", **SMALL)
    return Cell(hf.method("finetune"), stream or usual, hf.net("mlp"), protocol or hf.protocol("online"), 0)


@pytest.mark.parametrize("given", [Twice, Twice(), Twice(much=1), hf.protocol(Twice)])
def test_a_protocol_may_be_a_class_or_made_from_one(stream, given):
    record = hf.run("finetune", stream, protocol=given)
    assert record.protocol["name"] == "Twice" and record.protocol["much"] == 1
    assert record.card["single_pass"]["value"] == 2
    (compared,) = hf.compare("finetune", stream, seeds=1, protocol=given, jobs=1).records
    assert compared.protocol == record.protocol


@pytest.mark.parametrize("given", [Halves, Halves(), hf.stream(Halves)])
def test_a_stream_may_be_a_class_or_made_from_one(given):
    record = hf.run("finetune", given)
    assert record.stream["name"] == "Halves" and [task["name"] for task in record.tasks] == ["low", "high"]
    found = hf.compare("finetune", given, seeds=2, jobs=1)
    assert [r.stream["seed"] for r in found.records] == [0, 1]
    assert len(hf.compare("finetune", [given, "split"], seeds=1, jobs=1).records) == 2


def test_settings_are_those_of_ours_and_its_own():
    made = hf.protocol(Twice, much="3", lr=0.5, schedule="cosine")
    assert (made.much, made.lr, made.schedule) == (3, 0.5, "cosine")
    cut = hf.stream(Halves, data="digits", seed=4, swapped=True, examples=10, val=0.2)
    check_stream(cut)
    assert cut.settings["swapped"] is True and cut.seed == 4 and len(cut.tasks[0].train) == 10
    record = hf.run("finetune", cut, protocol=made)
    assert record.settings["protocol.much"] == {"value": 3, "chosen_by": "given"}
    assert record.settings["stream.swapped"] == {"value": True, "chosen_by": "given"}
    assert record.settings["stream.scale"] == {"value": "unit", "chosen_by": "default"}
    assert hf.method(Leash, strength="0.5").strength == 0.5


@dataclass
class Leash(hf.Learner):
    strength: float = 1.0

    def observe(self, batch):
        return self.descend(self.strength * self.cross_entropy(batch))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: hf.protocol(Twice, muhc=1), "unknown setting 'muhc' of protocol 'Twice'; did you mean 'much'?"),
        (lambda: hf.protocol(Twice, much="x"), "much of protocol 'Twice' must be a whole number, not 'x'"),
        (lambda: hf.protocol(Needy), "protocol 'Needy' needs a value for much"),
        (lambda: hf.protocol(Picky), "protocol 'Picky' cannot be made: KeyError: 'never'"),
        (lambda: hf.protocol(hf.Passing), "Passing is not a whole Protocol: it does not define passes"),
        (lambda: hf.protocol(dict), "dict is not a Protocol; write `class dict(holdfast.Protocol)`"),
        (lambda: hf.protocol(3), "a protocol must be a name or a Protocol class, not a int"),
        (lambda: hf.run("er", "split", protocol=Twice(much=1.5)), "much of protocol 'Twice' must be a whole number"),
        (lambda: hf.run("er", "split", protocol=Halves), "Halves is not a Protocol"),
        (lambda: hf.stream(Halves, swaped=1), "unknown setting 'swaped' of stream 'Halves'; did you mean 'swapped'?"),
        (lambda: hf.stream(hf.StreamSpec), "StreamSpec is not a whole StreamSpec: it does not define plan"),
        (lambda: hf.run("er", Halves(val=3)), "val of stream 'Halves' must be a number from 0 to 1, not 3"),
        (lambda: hf.run("er", Twice), "Twice is not a StreamSpec"),
        (lambda: hf.sweep("er", Twice), "Twice is not a StreamSpec"),
        (lambda: hf.sweep("er", protocols=hf.Passing), "not a whole Protocol"),
        (lambda: hf.sweep("er", protocols=Twice(much=1.5)), "much of protocol 'Twice' must be a whole number"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(make, sentence):
    with pytest.raises(hf.BadInput) as caught:
        make()
    assert len(caught.value.faults) == 1 and sentence in caught.value.faults[0], caught.value.faults


@pytest.mark.parametrize(
    ("plan", "sentence"),
    [
        (
            ("clas", 2, [hf.Plan("x", (0, 1), (0, 1))]),
            "scenario of stream 'Wrong' must be one of class, domain, task, not",
        ),
        (("class", 2, []), "stream 'Wrong' plans no task"),
        (("class", 2, [hf.Plan("x", (), ())]), "task 0 (x) of stream 'Wrong' has no classes"),
        (("class", 2, [hf.Plan("x", (0, 1), (0,))]), "has 2 classes of the data set, but 1 of the stream"),
        (("class", 2, [hf.Plan("x", (0, 99), (0, 1))]), "needs class 99, but data set 'digits' has 10 classes"),
        (("class", 2, [hf.Plan("x", (0, 1), (0, 7))]), "has class 7, but the stream has 2 outputs, counted from 0"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(plan, sentence):
    class Wrong(hf.StreamSpec):
        def plan(self, data, seed):
            return plan

    with pytest.raises(hf.BadInput) as caught:
        hf.stream(Wrong)
    assert len(caught.value.faults) == 1 and sentence in caught.value.faults[0]


@pytest.mark.parametrize("name", ["seed", "data"])
def test_a_stream_cannot_have_a_setting_that_all_streams_have_otherwise(name):
    taken = dataclass(frozen=True)(type("Taken", (Halves,), {"__annotations__": {name: int}, name: 0}))
    with pytest.raises(hf.BadInput, match=f"Taken cannot have a setting called {name}"):
        hf.stream(taken)


def test_sweeps_from_python(stream):
    found = hf.sweep(
        "finetune", [Halves, Halves(swapped=True)], protocols=[Twice, "online"], grid={"stream.examples": [20]}, jobs=1
    )
    assert [(r.stream["name"], r.stream["swapped"], r.protocol["name"]) for r in found.records] == [
        ("Halves", False, "Twice"), ("Halves", False, "online"), ("Halves", True, "Twice"), ("Halves", True, "online"),
    ]  # fmt: skip
    assert {r.stream["examples"] for r in found.records} == {20}


OWN = """
from dataclasses import dataclass
import holdfast as hf

@dataclass(frozen=True)
class Mine(hf.Passing):
    passes = 1
    much: int = 1

@dataclass(frozen=True)
class Ours(hf.StreamSpec):
    swapped: bool = False

    def plan(self, data, seed):
        return "class", 4, [hf.Plan("low", (0, 1), (0, 1)), hf.Plan("high", (2, 3), (2, 3))]

@dataclass
class Learns(hf.Learner):
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))
"""


def test_sweep_files_name_files_beside_them(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    (tmp_path / "some.toml").write_text(
        'method = "finetune"\nprotocol = ["online", {name = "mine.py:Mine", much = [1, 2]}]\n'
        'stream = {name = "mine.py:Ours", swapped = [true, false], seed = 3}\n'
        '[[cell]]\nwhere.protocol = {name = "Mine", much = 2}\nwhere.stream.swapped = false\nset.protocol.lr = 0.5\n'
    )
    cells = read_sweep(tmp_path / "some.toml").cells
    words = [(c.stream.settings["swapped"], getattr(c.protocol, "much", None), c.protocol.lr) for c in cells]
    assert words == [(swap, much, 0.5 if much == 2 and not swap else 0.1) for swap in (1, 0) for much in (None, 1, 2)]
    assert {c.stream.name for c in cells} == {"Ours"}
    assert {c.stream.seed for c in cells} == {3}


def test_the_hash_covers_the_users_source(tmp_path):
    def hashes(text):
        (tmp_path / "mine.py").write_text(text)
        (_, mine), (_, ours) = own.find(protocols, word("Mine")), own.find(streams, word("Ours"))
        return [cell(hf.protocol(mine)).hash, cell(stream=hf.stream(ours)).hash]

    def word(name):
        return f"{tmp_path / 'mine.py'}:{name}"

    before, again, after = hashes(OWN), hashes(OWN), hashes(OWN + "\nSOMETHING = 1\n")
    assert before == again
    assert before[0] != after[0] and before[1] != after[1]
    assert "source" not in cell().settings()["protocol"] and "source" not in cell().settings()["stream"]


def test_what_decides_no_result_leaves_the_hash_as_it_is(tmp_path):
    file = tmp_path / "mine.py"

    def hash_of(text):
        file.write_text(text)
        return cell(hf.protocol(own.find(protocols, f"{file}:Said")[1])).hash

    head = "import holdfast as hf\nfrom dataclasses import dataclass\n@dataclass(frozen=True)\n"
    plain = head + "class Said(hf.Passing):\n    passes = 2\n"
    told = head + 'class Said(hf.Passing):\n\n    """Two."""\n\n    passes = (2)  # so many\n'
    assert hash_of(plain) == hash_of('"""Mine."""\n' + told)
    assert hash_of(plain) != hash_of(plain.replace("2", "3"))
    assert hash_of(plain) != hash_of(plain + '    text = """\n    """\n')


def test_a_refusal_names_the_class_and_every_file_it_is_made_of(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "beside_mine.py").write_text("def much():\n    return 1\n")
    (tmp_path / "mine.py").write_text("from beside_mine import much\n" + OWN)
    mine = cell(hf.protocol(own.find(protocols, f"{tmp_path / 'mine.py'}:Mine")[1]))
    settings = mine.settings()
    assert mine.code() == {
        settings["code"]: "Holdfast",
        settings["protocol"]["source"]: "Mine in mine.py or beside_mine.py",
    }


def test_a_fixed_or_held_out_stream_keeps_its_source():
    cut = hf.stream(Halves, val=0.2)
    source = cell(stream=cut).settings()["stream"]["source"]
    for other in (cut.fixed(3), cut.held_out(), cut.reseed(2)):
        assert cell(stream=other).settings()["stream"]["source"] == source


def test_a_file_is_loaded_once_and_files_of_one_name_are_kept_apart(tmp_path):
    for folder, number in (("a", 1), ("b", 2)):
        (tmp_path / folder).mkdir()
        text = OWN.replace("much: int = 1", f"much: 'Much' = {number}") + f"\nMuch = int\nprint('loaded {folder}')\n"
        (tmp_path / folder / "mine.py").write_text(text)
    a, b = (own.find(protocols, f"{tmp_path / folder / 'mine.py'}:Mine")[1] for folder in "ab")
    again = own.find(protocols, f"{tmp_path / 'a' / 'mine.py'}:Mine")[1]
    assert again is a and a is not b
    assert (hf.protocol(a).much, hf.protocol(b).much) == (1, 2)
    assert (
        cell(hf.protocol(a)).settings()["protocol"]["source"] != cell(hf.protocol(b)).settings()["protocol"]["source"]
    )


def test_own_code_travels_to_a_node():
    mine = cell(hf.protocol(Twice), hf.stream(Halves))
    assert sys.modules[__name__] in _modules(mine)
    assert pickle.loads(pickle.dumps(recipe(mine.stream))).cut().name == "Halves"


@dataclass(frozen=True)
class Silent(hf.Passing):
    passes = 1

    def show(self, job):
        job.session(self.descent())


@dataclass(frozen=True)
class Unscored(hf.Passing):
    passes = 1

    def show(self, job):
        session = job.session(self.descent())
        for task in session.remaining():
            for _ in session.learn(task, 1, self.batch, lease_at_begin=True):
                pass
        return session


@dataclass(frozen=True)
class FirstOnly(hf.Passing):
    passes = 1

    def show(self, job):
        session = job.session(self.descent())
        *_, step = session.learn(session.stream.tasks[0], 1, self.batch, lease_at_begin=True)
        session.score(0, step)
        return session


@pytest.mark.parametrize(
    ("protocol", "sentence"),
    [
        (Silent, "Silent.show returned a NoneType; it must return the session"),
        (Unscored, "protocol 'Unscored' has not scored the learner after task 0; call session.score(task.t, step)"),
        (FirstOnly, "protocol 'FirstOnly' has learned 1 of 2 tasks"),
    ],
)
def test_a_protocol_that_leaves_something_out_is_told_what(stream, protocol, sentence):
    with pytest.raises(hf.RunFailed) as caught:
        hf.run("finetune", stream, protocol=protocol)
    assert str(caught.value) == sentence


@dataclass(frozen=True)
class ByHand(hf.Passing):
    """What the example does, as a program over a session."""

    passes = 1
    first: int = 5

    def show(self, job):
        session = job.session(self.descent())
        for task in session.remaining():
            passes = self.passes if task.t else self.first
            *_, step = session.learn(task, passes, self.batch, lease_at_begin=True)
            session.score(task.t, step)
        return session


def example(name):
    return own._module(str(EXAMPLES / name))[2]


def test_a_protocol_that_shows_tasks_in_order_does_not_claim_to_have_mixed_them(stream):
    with pytest.raises(hf.RunFailed, match=r"'joint' sees all tasks at once, .*session\.learn_mixed"):
        hf.run("joint", stream, protocol=ByHand)
    assert hf.run("joint", stream, protocol=example("own_protocol.py").HeadStart).mixed


@pytest.mark.parametrize("cls", [ByHand, example("own_protocol.py").HeadStart])
def test_own_protocols_do_what_they_say_and_survive_an_interruption(cls, stream, tmp_path):
    protocol = hf.protocol(cls, first=3)
    record = hf.run("finetune", stream, protocol=protocol)
    assert record.resources["updates"] == [3 * 4, 4]
    assert record.R.shape == (2, 2)

    def stop(event):
        if event.progress is not None and event.progress.task == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        hf.compare("er", stream, seeds=1, protocol=protocol, out=tmp_path, watch=stop, jobs=1)
    notes = []
    (pieced,) = hf.compare(
        "er", stream, seeds=1, protocol=protocol, out=tmp_path, watch=lambda e: notes.append(e.note), jobs=1
    ).records
    assert "goes on with task 1, where it was interrupted" in notes
    (whole,) = hf.compare("er", stream, seeds=1, protocol=protocol, jobs=1).records
    assert (pieced.R == whole.R).all() and pieced.curves == whole.curves


def test_the_examples_stream_does_what_it_says():
    cut = hf.stream(example("own_stream.py").Fading, tasks=3, least=0.5)
    check_stream(cut)
    bright = [task.train.x().max().item() for task in cut.tasks]
    assert bright[0] > bright[1] > bright[2]
    torch.testing.assert_close(bright[2], bright[0] / 2, rtol=0.05, atol=0)


@pytest.mark.parametrize("name", ["own_protocol.py", "own_stream.py"])
def test_the_examples_run(name, capsys):
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert "finetune" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["own_protocol.py", "own_stream.py"])
def test_the_commands_of_the_examples_run(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = textwrap.dedent((EXAMPLES / line).read_text().split('"""')[1]).strip().splitlines()[-1]
    words = command.removeprefix("holdfast ").replace("examples/", f"{EXAMPLES}/").split()
    assert main([*words, "--tasks", "2", "--examples", "30", "--json", "--quiet"]) == 0
    assert len(json.loads(capsys.readouterr().out)["methods"]) == 2


def test_a_slip_in_a_file_is_told_with_its_line(tmp_path, capsys):
    file = tmp_path / "thawed.py"
    file.write_text(
        "from dataclasses import dataclass\nimport holdfast as hf\n\n\n@dataclass\n"
        "class Thawed(hf.StreamSpec):\n    def plan(self, data, seed): ...\n"
    )
    assert main(["run", "finetune", "--stream", f"{file}:Thawed"]) == 2
    told = capsys.readouterr().err
    assert "(thawed.py, line 5); streams and protocols are @dataclass(frozen=True)" in told and told.count("\n") == 1
    assert main(["run", "mine:Leash"]) == 2
    assert "your own code is named as path/to/file.py:Name" in capsys.readouterr().err


def test_things_of_ones_own_are_listed_with_their_settings(capsys):
    assert main(["list", "methods", f"{EXAMPLES}/own_method.py:Leash"]) == 0
    assert re.search(r"strength +0\.1 +a number +λ", capsys.readouterr().out)
    assert main(["list", "nets", f"{EXAMPLES}/own_method.py:Wide"]) == 2
    assert "a net of your own, which has no settings" in capsys.readouterr().err


def test_a_transform_that_draws_anew_is_refused_as_is_a_plan_of_other_tasks_than_were_asked_for():
    @dataclass(frozen=True)
    class Noise(hf.StreamSpec):
        def plan(self, data, seed):
            noisy = hf.Plan("noise", (0, 1), (0, 1), lambda x: x.float() + torch.rand(x.shape))
            return "domain", 2, [noisy] * self.tasks

    with pytest.raises(hf.BadInput, match=r"task 0 \(noise\) of stream 'Noise' shows a row otherwise each time"):
        hf.stream(Noise)
    with pytest.raises(hf.BadInput, match="stream 'Halves' plans 2 of the 3 tasks asked for; leave tasks out"):
        hf.stream(Halves, tasks=3)
    assert len(hf.stream(Halves)) == 2
