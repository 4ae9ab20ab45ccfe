"""A seed for the stream and another for the rest: every run sees the same tasks, and only the learner differs."""

import json
import pickle

import pytest
import torch

import holdfast as hf
from holdfast import metrics
from holdfast.sweeps import Cell, read_sweep
from holdfast.sweeps.on_node import Recipe, recipe

SMALL = {"tasks": 2, "examples": 40, "test_examples": 20}
GIVEN = {"value": 3, "chosen_by": "given"}


@pytest.fixture(scope="module")
def stream():
    return hf.stream("permuted", **SMALL)


def rows(stream):
    return [task.train.rows.tolist() for task in stream.tasks]


def test_a_fixed_stream_stays_as_it_is_whatever_the_seed(stream):
    fixed = stream.fixed(3)
    assert rows(fixed) == rows(stream.reseed(3)) == rows(fixed.reseed(0)) == rows(fixed.reseed(9).reseed(1))
    assert torch.equal(fixed.tasks[1].train.x(), stream.reseed(3).tasks[1].train.x())
    assert (fixed.seed, fixed.reseed(9).seed) == (3, 3)
    assert repr(fixed).count("seed=") == 1
    with pytest.raises(ValueError, match="fixed to seed 3"):
        fixed.fixed(4)


def test_compare_cuts_one_stream_for_all_seeds(stream):
    found = hf.compare(["finetune", "er"], stream, seeds=[0, 1], stream_seed=3, jobs=1)
    assert [record.seed for record in found.records] == [0, 1, 0, 1]
    assert {record.stream["seed"] for record in found.records} == {3}
    assert [record.settings["stream.seed"] for record in found.records] == [GIVEN] * 4
    first, second, *_ = found.records
    assert first.tasks == second.tasks and all((a == b).all() for a, b in zip(first.labels, second.labels, strict=True))
    assert not (first.baseline == second.baseline).all()  # other weights
    assert list(found.summary()["methods"]) == ["finetune", "er"]


def test_without_a_seed_of_its_own_the_stream_follows_the_runs(stream):
    found = hf.compare("finetune", stream, seeds=2, jobs=1)
    assert [record.stream["seed"] for record in found.records] == [0, 1]
    assert all("stream.seed" not in record.settings for record in found.records)


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", True])
def test_a_seed_must_be_a_whole_number(stream, wrong):
    with pytest.raises(hf.BadInput, match="stream_seed must be a whole number >= 0, not"):
        hf.compare("finetune", stream, stream_seed=wrong)


def cell(stream, seed=0):
    return Cell(hf.method("finetune"), stream, hf.net("mlp"), hf.protocol("online"), seed)


def test_the_hash_tells_fixed_streams_apart(stream):
    cells = [cell(stream), cell(stream.fixed(0)), cell(stream.fixed(3)), cell(stream.fixed(3), 1)]
    assert len({c.hash for c in cells}) == 4
    assert cells[2].settings()["stream"]["seed"] == 3 and "seed" not in cells[0].settings()["stream"]
    assert cell(stream.reseed(5).fixed(3)).hash == cells[2].hash


def test_groups_of_different_fixed_streams_are_not_mixed(stream):
    one, other = (hf.compare("finetune", stream, seeds=2, stream_seed=seed, jobs=1).records for seed in (0, 1))
    follows = hf.compare("finetune", stream, seeds=2, jobs=1).records
    groups = metrics.group([*one, *other])
    assert [(g.label, g.seeds) for g in groups] == [
        ("finetune[stream.seed=0]", [0, 1]),
        ("finetune[stream.seed=1]", [0, 1]),
    ]
    assert len(metrics.arenas(groups)) == 2  # ranked apart: they learned other tasks
    assert len(metrics.group([*one, *other, *follows])) == 3
    assert [g.seeds for g in metrics.group(follows)] == [[0, 1]]
    frame = metrics.frame([*one, *other, *follows])
    assert frame["stream.seed"].tolist()[:4] == [0, 0, 1, 1]


def test_sweeps_take_it_as_a_setting_of_the_stream(tmp_path):
    (tmp_path / "some.toml").write_text(
        'method = "finetune"\nseeds = 2\nstream = {name = "permuted", tasks = 2, examples = 40, seed = [3, 4]}\n'
        "[[cell]]\nwhere.stream.seed = 4\nwhere.seed = 1\nset.stream.seed = 5\n"
    )
    cells = read_sweep(tmp_path / "some.toml").cells
    assert [(c.stream.settings["seed"], c.seed) for c in cells] == [(3, 0), (3, 1), (4, 0), (5, 1)]
    assert [rows(c.stream) == rows(c.stream.reseed(9)) for c in cells] == [True] * 4
    again = hf.stream("permuted", tasks=2, examples=40).fixed(3)
    assert cells[0].name == cell(again).name


@pytest.mark.parametrize("given", ["permuted", hf.stream("permuted", **SMALL)], ids=["name", "stream"])
def test_grids_take_it_too(given):
    found = hf.sweep("finetune", given, seeds=2, grid={"stream.seed": [0, 3]}, jobs=1)
    assert [(record.stream["seed"], record.seed) for record in found.records] == [(0, 0), (0, 1), (3, 0), (3, 1)]
    assert [record.settings["stream.seed"] for record in found.records[2:]] == [GIVEN] * 2
    assert list(found.summary()["methods"]) == ["finetune[stream.seed=0]", "finetune[stream.seed=3]"]


@pytest.mark.parametrize(
    ("table", "parts"),
    [
        ("{seed = -1}", ["stream.seed:", "whole number >= 0", "-1"]),
        ('{seed = "x"}', ["stream.seed:", "whole number >= 0", "'x'"]),
        ("{seed = []}", ["stream.seed:", "empty"]),
        ("{sed = 1}", ["stream.sed:", "'seed'"]),
        ("{dat = 1}", ["stream.dat:", "'data'"]),
    ],
)
def test_mistakes_are_one_sentence(tmp_path, table, parts):
    (tmp_path / "some.toml").write_text(f'method = "finetune"\nstream = {table}\n')
    with pytest.raises(hf.BadInput) as caught:
        read_sweep(tmp_path / "some.toml")
    (fault,) = caught.value.faults
    assert all(part in fault for part in parts), fault


def test_a_fixed_stream_travels_to_a_node_without_its_pixels(stream):
    fixed = stream.fixed(3)
    sent = recipe(fixed)
    assert isinstance(sent, Recipe)
    there = pickle.loads(pickle.dumps(sent)).cut()
    assert rows(there) == rows(fixed) and cell(there).hash == cell(fixed).hash
    assert there.chosen_by["seed"] == "given" and there.reseed(8).seed == 3


def test_a_held_out_stream_can_be_fixed(stream):
    with_val = hf.stream("permuted", val=0.2, **SMALL).held_out().fixed(3)
    assert with_val.reseed(7).settings["scored_on"] == "val" and with_val.reseed(7).seed == 3
    assert json.dumps(dict(with_val.settings))


def test_the_table_names_a_seed_that_was_given_and_no_other(stream):
    for seed, named in ((3, True), (None, False)):
        found = hf.compare(["finetune", "er"], stream, seeds=2, stream_seed=seed, jobs=1)
        assert (", seed 3" in str(found)) == named
        assert ("seed" in str(found).splitlines()[2]) == named
