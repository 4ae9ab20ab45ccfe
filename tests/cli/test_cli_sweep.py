"""`holdfast sweep`: one store for many sweeps, in which finished cells are never run twice."""

import json

import pytest

import holdfast as hf
from holdfast.sweeps import Cell

TOML = """
name = "strengths"
seeds = 2
stream = {tasks = 2, examples = 20, test_examples = 20}
net = {hidden = [8]}
[[method]]
name = "ewc"
strength = [1, 10]
[[method]]
name = "finetune"
"""
ONE = 'method = "ewc"\nstream = {tasks = 2, examples = 20}'  # the very cell of `run ewc TINY`


@pytest.fixture
def ran(monkeypatch):
    """The names of the cells that were run, in this process."""
    names, run = [], Cell.run

    def counted(self, *told):
        names.append(self.name)
        return run(self, *told)

    monkeypatch.setattr(Cell, "run", counted)
    return names


def test_a_sweep_leaves_an_output_folder(holdfast, here):
    (here / "some.toml").write_text(TOML)
    done = holdfast("sweep some.toml --jobs 1 --json")
    assert done.code == 0
    summary = json.loads(done.out)
    assert list(summary["methods"]) == ["ewc[strength=1]", "ewc[strength=10]", "finetune"]
    out = here / "runs" / "strengths"
    assert sorted(p.name for p in out.iterdir()) == "cells experiment.json report.html summary.json sweeps".split()
    assert json.loads((out / "summary.json").read_text()) == summary
    own = out / "sweeps" / "strengths"
    assert sorted(p.name for p in own.iterdir()) == "experiment.json report.html summary.json".split()
    for folder in (out, own):
        assert len(hf.load(folder)) == len(hf.Comparison.read(folder).records) == 6
        assert holdfast(f"report {folder}").code == holdfast(f"audit {folder}").code == 0


def test_sweeps_of_one_store_share_their_cells(holdfast, here, ran):
    (here / "a.toml").write_text(TOML)
    (here / "b.toml").write_text(TOML.replace("strengths", "more").replace("[1, 10]", "[10, 100]"))
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    assert len(ran) == len(set(ran)) == 6
    done = holdfast("sweep b.toml --jobs 1 --out store --json")
    assert len(ran) == len(set(ran)) == 8
    assert list(json.loads(done.out)["methods"]) == ["ewc[strength=10]", "ewc[strength=100]", "finetune"]
    assert set(hf.load(here / "store")["strength"].dropna()) == {1, 10, 100}
    assert set(hf.load(here / "store" / "sweeps" / "strengths")["strength"].dropna()) == {1, 10}
    assert json.loads((here / "store" / "experiment.json").read_text())["sweeps"] == ["more", "strengths"]
    assert set(json.loads((here / "store" / "summary.json").read_text())["methods"]) == {
        "ewc[strength=1]", "ewc[strength=10]", "ewc[strength=100]", "finetune"
    }  # fmt: skip


def test_a_changed_file_runs_what_is_new(holdfast, here, ran):
    (here / "a.toml").write_text(TOML)
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    (here / "a.toml").write_text(TOML.replace("[1, 10]", "[1, 3]"))
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    assert len(ran) == 8
    assert set(hf.load(here / "store")["strength"].dropna()) == {1, 3}  # the store is what its sweeps are now


def test_fresh_runs_only_this_sweep_anew(holdfast, here, ran):
    (here / "a.toml").write_text(TOML)
    (here / "b.toml").write_text(TOML.replace("strengths", "more").replace("[1, 10]", "[100]"))
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    holdfast("sweep b.toml --jobs 1 --out store --quiet")
    del ran[:]
    assert holdfast("sweep b.toml --jobs 1 --out store --quiet --fresh").code == 0
    assert sorted({name.split("-")[0] for name in ran}) == ["ewc", "finetune"] and len(ran) == 4
    assert len(hf.load(here / "store")) == 8


def test_stores_and_single_experiments_are_kept_apart(holdfast, here):
    (here / "a.toml").write_text(TOML)
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    holdfast("run ewc TINY --out one --quiet")
    (here / "one.toml").write_text(ONE)
    for command, word in (("run ewc TINY --out store", "store of sweeps"), ("sweep one.toml --out one", "not sweeps")):
        before = {path: path.read_bytes() for path in here.rglob("*") if path.is_file()}
        for fresh in ("", " --fresh"):
            done = holdfast(command + fresh)
            assert done.code == 2 and len(done.complaints) == 1 and word in done.complaints[0]
            assert {path: path.read_bytes() for path in here.rglob("*") if path.is_file()} == before


def test_faults_of_file_and_command_are_told_together(holdfast, here):
    (here / "bad.toml").write_text('method = "ewx"\nseeds = 0\n')
    before = sorted(here.rglob("*"))
    done = holdfast("sweep bad.toml --jobs 0 --out bad.toml")
    assert done.code == 2 and len(done.complaints) == 4
    assert done.complaints[0] == "bad.toml: method: unknown method 'ewx'; did you mean 'ewc'?"
    assert sorted(here.rglob("*")) == before
    assert "not a file" in holdfast("sweep nowhere.toml").complaints[0]


def test_python_and_file_make_the_same_cells(holdfast, here, ran):
    (here / "a.toml").write_text(TOML)
    holdfast("sweep a.toml --jobs 1 --out store --quiet")
    assert len(ran) == 6
    found = hf.sweep(
        ["ewc", "finetune"],
        "split",
        seeds=2,
        nets=hf.net("mlp", hidden=(8,)),
        grid={"strength": [1, 10], "stream.tasks": [2], "stream.examples": [20], "stream.test_examples": [20]},
        out=here / "store",
        jobs=1,
    )
    assert len(ran) == 6 and len(found.records) == 6
    again = hf.sweep(here / "a.toml", jobs=1)
    assert len(ran) == 12 and [r.acc for r in again.records] == [r.acc for r in found.records]
