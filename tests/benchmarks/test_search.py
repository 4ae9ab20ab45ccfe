"""What is said of MNTDP's searches, read from tiny runs."""

from __future__ import annotations

import json
import sys

import pytest

import holdfast as hf

METHODS = [hf.method("mntdp"), hf.method("mntdp", search="halving"), hf.method("independent"), hf.method("finetune")]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two streams in two folders, with the last task alone beside them; in one a cheap search that ties otherwise."""
    made = []
    for kind, more in (("minus", [hf.method("mntdp", search="halving", ties="new")]), ("out", [])):
        stream = hf.stream("ctrl", kind=kind, data="synth", rows=0.01, test=4, tasks=3)
        protocol = hf.protocol("crossval", lr=(0.01, 0.001), decay=(0.0,), epochs=4, batch=10, score="ends")
        out = tmp_path_factory.mktemp(kind)
        net = hf.net("mlp", hidden=(8, 8))
        hf.compare([*METHODS, *more], stream, seeds=1, net=net, protocol=protocol, jobs=1, out=out, alone=True)
        made.append(out)
    return made


@pytest.fixture
def search(benchmarks):
    return benchmarks("search")


def read(*folders):
    return [record for folder in folders for record in hf.Comparison.read(folder).records]


def test_flops_of_the_searched_tasks_and_of_the_first_are_all_of_a_runs(search, folders):
    for record in read(*folders):
        first = record.resources["flops"][0]
        first += sum(row["flops"] for row in record.study["trials"] if row["task"] == 0 and not row["chosen"])
        assert search.searched_flops(record) + first == pytest.approx(record.metrics["flops"])


def test_each_search_stands_beside_the_runs_of_its_stream(search, folders):
    made = search.searches(read(*folders, folders[0]))  # one is given twice
    assert [(one.stream, one.search) for one in made] == [
        ("minus", "all"), ("minus", "halving"), ("minus", "halving, ties=new"), ("out", "all"), ("out", "halving"),
    ]  # fmt: skip
    records = {(r.stream["kind"], r.method): r for r in read(*folders) if len(r.tasks) == 3}
    for one in made:
        assert one.ratio == one.flops / search.searched_flops(records[one.stream, "independent"])
        assert len(one.tasks) == 2 and [pair.task for pair in one.beside] == ([1, 2] if one.search == "halving" else [])
    made_cheap = [r for r in read(folders[1]) if r.settings.get("search", {}).get("chosen_by") == "given"]
    (cheap,) = (record for record in made_cheap if len(record.tasks) == 3)
    for t, taken in enumerate(made[-1].tasks, 1):
        assert " ".join(map(str, taken.path)) == cheap.settings["option"]["value"][t]
        assert taken.test == (cheap.predictions[t][-1] == cheap.labels[t]).mean()
        assert taken.val == max(row["quality"] for row in cheap.study["trials"] if row["task"] == t)


def test_searches_agree_on_one_path_or_on_accuracies_that_are_close(search):
    found = lambda path, val, test: search.Found(path, val, test)  # noqa: E731
    whole = found([0, 0, 1], 0.60, 0.5)
    pairs = [
        search.beside(1, cheap, whole)
        for cheap in (found([0, 0, 1], 0.4, 0.5), found([0, 1, 1], 0.58, 0.4), found([0, 1, 1], 0.57, 0.6))
    ]
    assert [(pair.same, pair.agrees) for pair in pairs] == [(True, True), (False, True), (False, False)]
    told = search.agreement(pairs)
    assert told == {"compared": 3, "same path": 1, "agree": 2, "loss": pytest.approx((0.0 + 0.1 - 0.1) / 3)}
    assert search.agreement([])["loss"] is None


def test_all_together_are_sums_of_flops(search):
    one = lambda flops, independent: search.Search("minus", 0, "mlp", "all", flops, independent, [], [])  # noqa: E731
    (row,) = search.overall([one(6.0, 2.0), one(4.0, 3.0), one(5.0, None)])
    assert (row["runs"], row["ratio"], row["worst ratio"]) == (3, 2.0, 3.0)


def test_it_prints_markdown_or_json_and_nothing_else(search, folders, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["search.py", *map(str, folders)])
    search.main()
    text = capsys.readouterr().out
    lines = [line for line in text.splitlines() if line]
    assert all(line.startswith("| ") and line.endswith(" |") for line in lines)
    assert len(lines) == (2 + 3) + (2 + 5) + (2 + 4)  # three kinds of search, five runs, two tasks of two cheap ones
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--json"])
    search.main()
    told = json.loads(capsys.readouterr().out)
    assert [row["search"] for row in told["overall"]] == ["all", "halving", "halving, ties=new"]
    assert told["runs"][1]["beside"][0]["whole"]["path"] == told["runs"][0]["tasks"][0]["path"]
