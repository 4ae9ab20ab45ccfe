"""What a comparison says of its seeds: which belong together, which are missing, and who is ranked."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import holdfast as hf

NET = hf.net("mlp", hidden=(8,))
SMALL = {"tasks": 2, "examples": 60, "test_examples": 30}


@dataclass
class Shaky(hf.Learner):
    """Diverges where its luck is below its share; that of seeds 0, 1 and 2 is 0.02, 0.62 and 0.69."""

    share: float = 0.65

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.luck = torch.rand(1, generator=rng).item()

    def observe(self, batch):
        loss = self.fit(batch)
        return loss * torch.nan if self.luck < self.share else loss


def compared(*methods, seeds=3, **settings):
    return hf.compare(methods, hf.stream("split", **SMALL), seeds=seeds, net=NET, jobs=1, **settings)


def table_row(text, label):
    (found,) = [line for line in text.splitlines() if line.startswith(f"{label} ")]
    return re.split(r"\s{2,}", found)


def everywhere(found, folder):
    """The comparison as it was made, and as it is read back from its folder."""
    return [found, hf.Comparison.read(folder)]


@pytest.fixture
def arrays():
    """120 rows of six classes that can be told apart, but not always."""
    y = np.arange(120) % 6
    return np.random.default_rng(0).normal(y[:, None], 1.0, (120, 4)), y


def as_pair(x, y):
    return x, y


def as_torch(x, y):
    return TensorDataset(torch.from_numpy(x), torch.from_numpy(y))


class Hub(dict):
    """Looks like a Hugging Face Dataset."""

    features = {}  # noqa: RUF012

    def __init__(self, x, y):
        super().__init__(x=x.tolist(), y=y.tolist())
        self.column_names = ["x", "y"]


def as_hub(x, y):
    return {"train": Hub(x, y)}


@pytest.mark.parametrize("of", [as_pair, as_torch, as_hub])
def test_the_seeds_of_a_users_own_data_are_one_row_with_an_interval(of, arrays):
    stream = hf.stream("split", data=of(*arrays), tasks=3)
    found = hf.compare(["finetune", "er"], stream, seeds=3, net=NET, jobs=1)
    methods = found.summary()["methods"]
    assert list(methods) == ["finetune", "er"]
    for entry in methods.values():
        assert entry["seeds"] == [0, 1, 2] and entry["acc"]["low"] < entry["acc"]["high"]
    tests = {record.seed: np.concatenate(record.labels).size for record in found.records}
    assert tests == {0: 24, 1: 24, 2: 24}


def test_other_data_make_other_cells(arrays, tmp_path):
    x, y = arrays
    names = []
    for i, data in enumerate([(x, y), (x + 1, y), (x, y[::-1])]):
        stream = hf.stream("split", data=data, tasks=3)
        out = tmp_path / str(i)
        hf.compare("finetune", stream, seeds=2, net=NET, jobs=1, out=out)
        names += [path.name for path in (out / "cells").iterdir()]
    assert len(set(names)) == 6


def test_a_method_that_lost_seeds_is_told_and_not_ranked(tmp_path):
    for found in everywhere(compared("finetune", "er", Shaky(), out=tmp_path), tmp_path):
        text = str(found)
        assert table_row(text, "Shaky")[3] == "1/3" and table_row(text, "er")[3] == "3/3"
        assert "tie" not in " ".join(table_row(text, "Shaky")) and "best" not in " ".join(table_row(text, "Shaky"))
        assert "Shaky: 1 of 3 seeds finished, not ranked." in text
        tex = found.latex()
        assert "Shaky & class & hidden & 1/3 & " in tex and "Shaky: 1 of 3 seeds finished, not ranked." in tex
        entry = found.summary()["methods"]["Shaky"]
        assert (entry["seeds"], entry["asked"], entry["failed"]) == ([2], 3, [0, 1])
        assert found.summary()["methods"]["er"]["failed"] == []


def test_those_that_finished_are_ranked_as_if_the_other_had_not_been_there():
    alone, beside = compared("finetune", "er"), compared("finetune", Shaky(), "er")
    for label in ("finetune", "er"):
        assert table_row(str(alone), label)[3:7] == table_row(str(beside), label)[3:7]
    assert any(mark in str(beside) for mark in (" best", " tie "))


def test_one_method_that_finished_has_no_rival(tmp_path):
    text = str(compared("er", Shaky(), out=tmp_path))
    assert not re.search(r"\d (best|tie) ", text)
    page = (tmp_path / "report.html").read_text()
    assert "the highest ACC" not in page and 'class="mark tie"' not in page and 'class="mark best"' not in page
    assert "Shaky: 1 of 3 seeds finished, not ranked." in page


def test_a_method_of_which_no_seed_finished_is_told(tmp_path):
    for found in everywhere(compared("er", Shaky(share=1.0), out=tmp_path), tmp_path):
        assert "Shaky: 0 of 3 seeds finished, not ranked." in str(found)
        assert "Shaky: 0 of 3 seeds finished, not ranked." in found.latex()
        summary = found.summary()
        assert list(summary["methods"]) == ["er"]
        assert summary["unfinished"] == [{"label": "Shaky", "asked": 3, "failed": [0, 1, 2]}]
    assert "Shaky: 0 of 3 seeds finished, not ranked." in (tmp_path / "report.html").read_text()


def test_settings_that_lost_all_seeds_are_told_from_those_that_did_not(tmp_path):
    both = [Shaky(share=0.0), Shaky(share=1.0)]
    for found in everywhere(compared(*both, seeds=2, out=tmp_path), tmp_path):
        assert "Shaky[share=1]: 0 of 2 seeds finished, not ranked." in str(found)
        (entry,) = found.summary()["methods"].values()
        assert (entry["seeds"], entry["asked"], entry["failed"]) == ([0, 1], 2, [])


def test_a_seed_that_has_not_been_run_yet_is_missing_too(tmp_path):
    compared("finetune", "er", out=tmp_path)
    shutil.rmtree(next(tmp_path.glob("cells/er-s1-*")))
    found = hf.Comparison.read(tmp_path)
    assert table_row(str(found), "er")[3] == "2/3" and "er: 2 of 3 seeds finished, not ranked." in str(found)
    entry = found.summary()["methods"]["er"]
    assert (entry["seeds"], entry["asked"], entry["failed"]) == ([0, 2], 3, [])


def test_a_sweep_of_a_store_knows_its_own_seeds_and_failures(tmp_path):
    settings = {"streams": hf.stream("split", **SMALL), "nets": NET, "jobs": 1, "out": tmp_path}
    first = hf.sweep(["er", Shaky()], seeds=3, name="first", **settings)
    hf.sweep(["er", Shaky(share=1.0)], seeds=2, name="second", **settings)
    for found in everywhere(first, tmp_path / "sweeps" / "first"):
        assert "Shaky: 1 of 3 seeds finished, not ranked." in str(found)
        assert [failure.cell[:8] for failure in found.failures] == ["Shaky-s0", "Shaky-s1"]
    second = hf.Comparison.read(tmp_path / "sweeps" / "second")
    assert "Shaky: 0 of 2 seeds finished, not ranked." in str(second) and table_row(str(second), "er")[3] == "2/2"
    store = hf.Comparison.read(tmp_path)
    assert len(store.failures) == 4 and table_row(str(store), "er")[3] == "3/3"
    kept = json.loads((tmp_path / "summary.json").read_text())
    assert [entry["asked"] for entry in kept["methods"].values()] == [3, 3] and len(kept["unfinished"]) == 1


def test_the_same_method_twice_is_two_runs_of_the_same_seeds():
    found = compared("er", "er", seeds=2).summary()["methods"]
    assert [(label, entry["seeds"], entry["asked"]) for label, entry in found.items()] == [
        ("er", [0, 1], 2), ("er[run=2]", [0, 1], 2)
    ]  # fmt: skip


def test_a_users_own_data_are_named_never_by_their_fingerprint(arrays, tmp_path):
    stream = hf.stream("split", data=arrays, tasks=3)
    found = hf.compare(["finetune", "er"], stream, seeds=2, net=NET, jobs=1, out=tmp_path)
    page, _, origin = (tmp_path / "report.html").read_text().partition('<section id="origin">')
    assert f"arrays <code>{stream.fingerprint}" in origin  # where fingerprints are told, and nowhere else
    for text in (str(found), found.latex(), page):
        assert "split: data arrays, tasks 3" in text and stream.fingerprint[:8] not in text


def test_data_of_one_name_are_numbered_in_the_order_they_were_given(arrays, tmp_path):
    x, y = arrays
    streams = [hf.stream("split", data=data, tasks=3) for data in ((x, y), (x + 1, y), "digits")]
    found = hf.compare(["finetune", Shaky(share=1.0)], streams, seeds=2, net=NET, jobs=1, out=tmp_path)
    assert list(found.summary()["methods"]) == [
        f"finetune[stream.data={d}]" for d in ("arrays 1", "arrays 2", "digits")
    ]
    lost = [f"Shaky[stream.data={d}]: 0 of 2 seeds finished" for d in ("arrays 1", "arrays 2", "digits")]
    assert all(line in str(found) and line in str(hf.Comparison.read(tmp_path)) for line in lost)
    page, _, origin = (tmp_path / "report.html").read_text().partition('<section id="origin">')
    assert all(stream.fingerprint[:8] not in page and stream.fingerprint in origin for stream in streams)


def test_a_comparison_in_several_scenarios():
    streams = [hf.stream("split", **SMALL, scenario=scenario) for scenario in ("class", "task")]
    found = compared("finetune", seeds=2, scenario=["class", "task"])
    apart = hf.compare("finetune", streams, seeds=2, net=NET, jobs=1)
    assert list(found.summary()["methods"]) == ["finetune/class", "finetune/task"]
    assert [r.R.tolist() for r in found.records] == [r.R.tolist() for r in apart.records]
    (gap,) = found.summary()["gaps"]
    assert gap["acc"]["mean"] > 0 and "finetune: ACC is" in str(found)
    given = [{r.settings["stream.scenario"]["chosen_by"] for r in side.records} for side in (found, apart)]
    assert given == [{"given"}] * 2
    fixed = compared("finetune", seeds=2, scenario="task", stream_seed=3)
    assert {(r.scenario, r.stream["seed"]) for r in fixed.records} == {("task", 3)}


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        (["class", "clas"], "must be one of class, domain, task"),
        (["class", "class"], "scenario 'class' is given twice; give it once"),
        ([], "not an empty list"),
        (3, "must be one of class, domain, task"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused(scenario, said):
    with pytest.raises(hf.BadInput, match=said):
        compared("finetune", scenario=scenario)


def test_a_stream_that_cannot_be_cut_anew_is_refused():
    held_out = hf.stream("split", **SMALL, val=0.2).held_out()
    with pytest.raises(hf.BadInput, match="give one stream for each scenario"):
        hf.compare("finetune", held_out, scenario=["class", "task"])
