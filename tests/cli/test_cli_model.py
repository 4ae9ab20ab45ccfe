"""`learn`, `predict` and `score`: a model that stays, and every mistake with it is a line and leaves it as it was."""

import csv
import json
import shutil
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from PIL import Image

import holdfast as hf

PLACES = {"p": (0, 0), "q": (6, 0), "r": (0, 6), "s": (6, 6)}
FEATURES = """
import numpy as np

def plane(rows):
    return np.stack([rows["a"], rows["b"]], 1).astype(np.float32)

def other(rows):
    return plane(rows) + 1
"""
SMALL = "--set net.hidden=16 --epochs 20"


def table(kinds, n=30, seed=0):
    """Points around a place for each kind, and a colour that says nothing."""
    dice = np.random.default_rng(seed)
    kind = dice.permutation(np.repeat(list(kinds), n))
    points = np.array([PLACES[k] for k in kind]) + dice.normal(size=(len(kind), 2))
    colours = dice.choice(["red", "blue"], len(kind))
    return pd.DataFrame({"a": points[:, 0].round(3), "b": points[:, 1].round(3), "colour": colours, "kind": kind})


def photos(folder, kinds, shape=(5, 5, 3), n=8):
    for i, kind in enumerate(kinds):
        (folder / kind).mkdir(parents=True)
        for k in range(n):
            level = np.full(shape, 200 * (i % 2) + k, np.uint8)
            Image.fromarray(level).save(folder / kind / f"{k}.png")


@pytest.fixture
def files(here):
    """one.csv has p and q, two.csv r and s; the same as Parquet, npz and images; new.csv has no labels."""
    for name, kinds in (("one", "pq"), ("two", "rs")):
        rows = table(kinds)
        rows.to_csv(here / f"{name}.csv", index=False)
        rows.to_parquet(here / f"{name}.parquet", index=False)
        np.savez(here / f"{name}.npz", x=rows[["a", "b"]].to_numpy(np.float32), y=rows["kind"].to_numpy(str))
        photos(here / name, kinds)
    both = pd.concat([table("pq", 10, 1), table("rs", 10, 2)])
    both.to_csv(here / "both.csv", index=False)
    both.drop(columns="kind").to_csv(here / "new.csv", index=False)
    np.savez(here / "new.npz", x=both[["a", "b"]].to_numpy(np.float32))
    (here / "feats.py").write_text(FEATURES)
    return here


@pytest.fixture
def model(holdfast, files):
    """The folder of a model that has learned one.csv."""
    assert holdfast(f"learn one.csv --model m {SMALL} --quiet").code == 0
    return files / "m"


def held(folder):
    """Every file of a model, byte for byte."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def in_a_process(here, *words):
    ran = [sys.executable, "-m", "holdfast", *map(str, words)]
    done = subprocess.run(ran, cwd=here, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


# What is there to use


def test_two_halves_in_two_processes_are_learned_as_in_one(files):
    """What is on disk between two processes is all there is of the model."""
    in_a_process(files, "learn", "one.csv", "--model", "m", *SMALL.split(), "--set", "memories=40", "--seed", 2)
    said = json.loads(in_a_process(files, "learn", "two.csv", "--model", "m", "--test", 0.2, "--json"))
    stayed = hf.model(
        hf.method("er", memories=40), hf.net("mlp", hidden=(16,)), hf.protocol("epochs", epochs=20), seed=2
    )
    stayed.learn(files / "one.csv")
    rows = stayed.read(files / "two.csv")
    record = stayed.learn(rows, test=0.2)
    found, x = hf.load_model(files / "m"), stayed.read(files / "both.csv").x
    np.testing.assert_array_equal(found.logits(x), stayed.logits(x))
    assert said["accuracy"] == record.R[-1, 1] and said["bytes"] == stayed.bytes
    assert 0 < said["old_rows"] == found.card["no_old_data"]["value"] <= 40  # what er promises
    assert min(found.score(files / "both.csv").classes.values()) > 0.6  # and that both halves are known


def test_one_task_more_is_the_row_of_r_the_card_and_the_bytes_of_a_longer_run(holdfast, files):
    stream = hf.stream("split", tasks=3, examples=60, test_examples=30)
    net, protocol = hf.net("mlp", hidden=(16,)), hf.protocol("epochs", epochs=2)
    whole = hf.run("ewc", stream, net, protocol, seed=3)
    hf.run("ewc", stream.first(2), net, protocol, seed=3, keep_model=files / "m")
    train = stream.tasks[2].train
    np.savez(files / "third.npz", x=train.raw().numpy(), y=train.y.numpy())
    said = json.loads(holdfast("learn third.npz --model m --json").out)
    found = hf.load_model(files / "m")
    row = [found.score(task.test.raw(), task.test.y).accuracy for task in stream.tasks]
    assert row == whole.R[-1].tolist() and said["bytes"] == whole.resources["bytes"][-1]
    alike = [name for name in whole.card if name != "update_seconds"]
    assert [said["card"][name] for name in alike] == [whole.card[name] for name in alike]


@pytest.mark.parametrize(
    ("kind", "method", "new"),
    [
        ("one.parquet two.parquet", "icarl", "new.csv"),
        ("one.npz two.npz", "ewc", "new.npz"),
        ("./one ./two", "lwf", "./one/p"),
    ],
)
def test_every_kind_of_data_is_learned_predicted_and_scored(holdfast, files, kind, method, new):
    one, two = kind.split()
    for data, name in ((one, "'the first'"), (two, "second")):
        said = f"--method {method} {SMALL}" if data == one else ""
        done = holdfast(f"learn {data} --model m {said} --test 0.25 --name {name}")
        assert done.code == 0 and "kept apart, class scenario, task label hidden" in done.out, done.err
    assert "learned second" in done.out and "knows 4 classes now" in done.out
    kept = hf.load_model(files / "m")
    assert [task.name for task in kept.stream.tasks] == ["the first", "second"] and kept.record.method == method
    scored = holdfast(f"score {two} --model m")
    assert [line.split()[0] for line in scored.out.splitlines()] == ["r", "s", "all"]
    assert json.loads(holdfast(f"score {two} --model m --json").out)["accuracy"] > 0.8
    predicted = holdfast(f"predict {new} --model m --out said.csv")
    rows = list(csv.DictReader((files / "said.csv").open()))
    assert predicted.code == 0 and {row["class"] for row in rows} <= set("pqrs")
    assert [row["row"] for row in rows] == [str(i + 1) for i in range(len(rows))]
    assert all(0.25 <= float(row["probability"]) <= 1 for row in rows)
    assert holdfast(f"predict {new} --model m").out == (files / "said.csv").read_text()


def test_quiet_says_nothing_and_json_nothing_else(holdfast, model):
    assert holdfast("learn two.csv --model m --quiet") == holdfast("predict new.csv --model m --out x.csv --quiet")
    done = holdfast("learn two.csv --model m --json --val 0.2")
    assert json.loads(done.out)["accuracy"] is None and done.err == ""
    assert json.loads(done.out)["told"] == ["two.csv: 60 rows"]
    assert hf.load_model(model).record.tasks[2]["n_val"] == 12


def test_labels_and_columns_are_said_once_and_kept(holdfast, files):
    assert holdfast(f"learn one.csv --model m --label kind --columns a=category,b=skip {SMALL}").code == 0
    assert set(hf.load_model(files / "m").reading.encoding.kinds.items()) == {("a", "category"), ("colour", "category")}
    rows = table("rs", seed=5).rename(columns={"kind": "sort"})
    rows[["sort", "a", "colour"]].to_csv(files / "later.csv", index=False)
    assert "unknown column 'kind', which has the labels" in holdfast("learn later.csv --model m").err
    done = holdfast("learn later.csv --model m --label sort")
    assert done.code == 0 and "words that the first task has not, taken as others" in done.err
    assert "not looked at" not in done.err
    assert holdfast("score later.csv --model m --label sort").code == 0


def test_features_are_those_that_it_learned_through(holdfast, files):
    assert holdfast(f"learn one.csv --model m --features feats.py:plane {SMALL}").code == 0
    assert holdfast("learn two.csv --model m --features feats.py:plane").code == 0
    assert json.loads(holdfast("score both.csv --model m --features feats.py:plane --json").out)["accuracy"] > 0.8
    named = holdfast("predict new.csv --model m --features feats.py:plane").out  # whose last column is no label
    with (files / "both.csv").open() as file:
        kinds = [row["kind"] for row in csv.DictReader(file)]
    said = [row["class"] for row in csv.DictReader(named.splitlines())]
    assert np.mean([k == s for k, s in zip(kinds, said, strict=True)]) > 0.8
    before = held(files / "m")
    for words, fault in [
        ("learn two.csv --model m", "learned through features of plane; give them"),
        ("learn two.csv --model m --features feats.py:other", "features of plane, not of other"),
        ("predict new.csv --model m", "learned through features of plane; give them"),
        ("score both.csv --model m --features feats.py:other", "features of plane, not of other"),
    ]:
        done = holdfast(words)
        assert done.code == 2 and len(done.complaints) == 1 and fault in done.complaints[0], done.err
    assert held(files / "m") == before


def test_the_model_of_a_run_reads_tables_as_the_run_did(holdfast, files):
    for features in ("", "--features feats.py:plane"):
        words = f"--data one.csv {features} --tasks 2 --set stream.room=2 {SMALL} --keep-model --quiet --fresh"
        assert holdfast(f"run er {words} --out out").code == 0
        (kept,) = (files / "out" / "cells").glob("*/model")
        assert holdfast(f"learn two.csv --model {kept} {features}").code == 0
        assert holdfast(f"score both.csv --model {kept} {features}").out.count("never learned") == 0


def test_in_the_task_scenario_the_task_is_said(holdfast, files):
    assert holdfast(f"learn one.csv --model m --method independent --scenario task {SMALL} --quiet").code == 0
    assert holdfast("learn two.csv --model m --quiet").code == 0
    assert "all  " in holdfast("score two.csv --model m --task 1").out
    said = csv.DictReader(holdfast("predict new.csv --model m --task 0").out.splitlines())
    assert {row["class"] for row in said} <= {"p", "q"}
    for task, fault in [("", "from 0 to 1: the model"), ("--task 2", "from 0 to 1, not 2: the model")]:
        for verb in ("predict", "score"):
            assert fault in holdfast(f"{verb} both.csv --model m {task}").err


def test_a_method_that_must_know_all_tasks_says_so_and_stays(holdfast, files):
    assert holdfast(f"learn one.csv --model m --method joint {SMALL} --quiet").code == 0
    before = held(files / "m")
    done = holdfast("learn two.csv --model m")
    assert done.code == 2 and done.complaints == [
        "the model of method 'joint' cannot learn another task: it sees all tasks at once"
    ]
    assert held(files / "m") == before


def test_code_of_your_own_is_named_again(holdfast, files):
    (files / "mine.py").write_text(
        "from dataclasses import dataclass\nimport holdfast as hf\n\n@dataclass\nclass Mine(hf.Learner):\n"
        "    weight: float = 1.0\n\n    def observe(self, batch):\n        return self.fit(batch)\n"
    )
    assert holdfast(f"learn one.csv --model m --method mine.py:Mine --set weight=2 {SMALL} --quiet").code == 0
    assert holdfast("learn two.csv --model m --method mine.py:Mine --set weight=2 --quiet").code == 0
    before = held(files / "m")
    for verb in ("learn", "predict", "score"):
        for words, fault in [
            ("", "the method 'Mine' of the model in m is code of your own; give it"),
            ("", "--method FILE.py:Mine of learn, predict and score"),
            ("--method mine.py:Mine", "is 'Mine' with weight=2.0, not 'Mine' with weight=1.0"),
        ]:
            done = holdfast(f"{verb} two.csv --model m {words}")
            assert done.code == 2 and len(done.complaints) == 1 and fault in done.complaints[0], done.err
        if verb != "learn":
            assert holdfast(f"{verb} two.csv --model m --method mine.py:Mine --set weight=2").code == 0
    assert held(files / "m") == before


# Bad input


def spoil(files):
    """What issues of the real world look like."""
    whole = table("rs")
    whole.drop(columns="kind").to_csv(files / "unlabelled.csv", index=False)
    whole.astype({"a": object}).assign(a=["x", *whole["a"][1:]]).to_csv(files / "mixed.csv", index=False)
    whole.assign(kind=[None, *whole["kind"][1:]]).to_csv(files / "gap.csv", index=False)
    whole.drop(columns="b").to_csv(files / "narrow.csv", index=False)
    whole[:0].to_csv(files / "empty.csv", index=False)
    (files / "cut.parquet").write_bytes((files / "two.parquet").read_bytes()[:300])
    (files / "text.npz").write_text("no archive")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("two.csv --label knd", ["unknown column 'knd', which has the labels; did you mean 'kind'?"]),
        ("unlabelled.csv", ["unknown column 'kind', which has the labels; choose from a, b, colour"]),
        ("mixed.csv", ["column 'a' has 'x' in row 1 among numbers; mend it"]),
        ("gap.csv", ["the label 'kind' is missing in row 1; fill it in"]),
        ("narrow.csv", ["there is no column 'b'"]),
        ("empty.csv", ["found no rows"]),
        ("cut.parquet", ["found a broken file"]),
        ("two.npz", ["the model learned from a table, not from 'two.npz'; expected .csv"]),
        ("digits", ["the model learned from a table, not from 'digits'; expected .csv"]),
        ("digist", ["unknown data set 'digist'; did you mean 'digits'?"]),
        ("./two", ["the model learned from a table"]),
        ("tow.csv", ["there is no file or folder 'tow.csv'; did you mean 'two.csv'?"]),
        ("two.csv --columns a=category", ["--columns is for a new model, and m holds one that has its own"]),
        ("two.csv --method ewc", ["--method is for a new model"]),
        ("two.csv --set memories=3", ["--set is for a new model"]),
        ("two.csv --modle m", ["unknown option '--modle'; did you mean '--model'?"]),
        (
            "tow.csv --test 2 --val no --lr 0.1 --seed 1",
            ["--test must be a share", "--val must be a share", "--lr is for", "--seed is for", "no file or folder"],
        ),
    ],
)
def test_what_cannot_be_learned_is_a_line_each_and_leaves_the_model(holdfast, model, files, words, lines):
    spoil(files)
    before, there = held(model), sorted(files.iterdir())
    done = holdfast(f"learn {words} --model m")
    assert done.code == 2 and len(done.complaints) == len(lines) and done.out == "", done.err
    assert all(line in said for line, said in zip(lines, done.complaints, strict=True)), done.err
    assert held(model) == before and sorted(files.iterdir()) == there


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("wide.npz", "examples have shape (3,), but the model learned examples of (2,)"),
        ("bytes.npz", "examples are bytes (uint8), but the model learned floats"),
        ("nan.npz", "x has NaN or infinite values in 1 of its 4 examples"),
        ("label.npz", "y is NaN in 2 of its 4 labels"),
        ("none.npz", "x is empty"),
        ("text.npz", "found a broken file"),
        ("new.npz", "found the arrays x, expected x and y"),
        ("one.csv", "a table is not what the model learned from"),
        ("./two", "examples have shape (3, 5, 5), but the model learned examples of (2,)"),
    ],
)
def test_arrays_and_images_that_do_not_fit_are_refused(holdfast, files, words, line):
    assert holdfast(f"learn one.npz --model m {SMALL} --quiet").code == 0
    spoil(files)
    x, y = np.ones((4, 2), np.float32), np.array([0, 1, 0, 1])
    np.savez(files / "wide.npz", x=np.ones((4, 3), np.float32), y=y)
    np.savez(files / "bytes.npz", x=x.astype(np.uint8), y=y)
    np.savez(files / "nan.npz", x=np.where(np.arange(8).reshape(4, 2) == 3, np.nan, x), y=y)
    np.savez(files / "label.npz", x=x, y=np.where(y == 1, np.nan, 0))
    np.savez(files / "none.npz", x=x[:0], y=y[:0])
    before = held(files / "m")
    done = holdfast(f"learn {words} --model m")
    assert done.code == 2 and line in done.err, done.err
    assert held(files / "m") == before


def test_every_broken_image_is_named_at_once(holdfast, files):
    assert holdfast(f"learn ./one --model m {SMALL} --quiet").code == 0
    before = held(files / "m")
    (files / "two" / "r" / "3.png").write_bytes((files / "two" / "r" / "3.png").read_bytes()[:40])
    (files / "two" / "s" / "5.png").write_text("no image")
    for words in ("learn ./two", "score ./two"):
        done = holdfast(f"{words} --model m")
        assert done.code == 2 and ["3.png" in done.complaints[0], "5.png" in done.complaints[1]] == [True, True]
    photos(files / "larger", "rs", shape=(6, 6, 3))
    assert "examples have shape (3, 6, 6)" in holdfast("learn ./larger --model m").err
    assert held(files / "m") == before
    shutil.rmtree(files / "two" / "s")
    shutil.rmtree(files / "two" / "r")
    photos(files / "two", "t")
    assert holdfast("learn ./two --model m").code == 0  # one new class is enough
    assert "t" in hf.load_model(files / "m").classes


@pytest.mark.parametrize("spoiled", ["cut", "gone", "other version", "half"])
def test_a_spoiled_model_is_told_with_the_faults_of_the_data_and_left(holdfast, model, spoiled):
    (place,) = model.iterdir()
    words, tensors = place / "model.json", place / "tensors.safetensors"
    if spoiled == "cut":
        tensors.write_bytes(tensors.read_bytes()[:200])
    elif spoiled == "gone":
        words.unlink()
    elif spoiled == "half":
        (place / "SHA256SUMS").unlink()
    else:
        words.write_text(words.read_text().replace('"schema": 1', '"schema": 7', 1))
    before = held(model)
    line = "has schema 7, this version reads 1" if spoiled == "other version" else "does not hold a readable model"
    for verb in ("learn", "predict", "score"):
        done = holdfast(f"{verb} tow.csv --model m")
        assert done.code == 2 and len(done.complaints) == 2 and line in done.complaints[0], done.err
        assert "there is no file or folder 'tow.csv'" in done.complaints[1]
    assert held(model) == before


def test_a_model_is_kept_only_where_none_of_yours_is(holdfast, model, files):
    (files / "mine").mkdir()
    (files / "mine" / "thesis.tex").write_text("years of work")
    (files / "file").write_text("mine")
    assert holdfast("run er TINY --quiet --out out").code == 0
    before, there = held(files), sorted(files.rglob("*"))
    for place, fault in [
        ("file", "file is a file, not a folder; choose another --model"),
        ("file/m", "file is a file, not a folder; choose another --model"),
        ("mine", "mine exists and is not a model of Holdfast"),
        ("out", "out exists and is not a model of Holdfast"),
        ("m/1/model.json", "is a file, not a folder"),
        ("m/1", "m/1 exists and is not a model"),
        ("m/again", "m/again is inside of the model in"),
        ("''", "--model must be a folder"),
        ("/proc/none", "/proc/none cannot be written to"),
    ]:
        done = holdfast(f"learn two.csv --model {place}")
        assert done.code == 2 and len(done.complaints) == 1 and fault in done.complaints[0], done.err
    assert held(files) == before and sorted(files.rglob("*")) == there
    several = holdfast("learn tow.csv --model file --method gme --classes 0")
    assert len(several.complaints) == 4
    for verb in ("predict", "score"):
        done = holdfast(f"{verb} one.csv --model nowhere")
        assert done.code == 2 and done.complaints[0].startswith("nowhere holds no model; `holdfast learn`")


def test_later_labels_are_judged_as_the_first_ones_were(holdfast, model, files):
    whole = table("rs")
    whole.assign(kind=np.where(whole["kind"] == "r", 1.5, 2.5)).to_csv(files / "halves.csv", index=False)
    whole.assign(kind=np.where(whole["kind"] == "r", 1, 2)).to_csv(files / "whole.csv", index=False)
    for words in ("learn halves.csv --model m", "score halves.csv --model m", "score both.csv --model m --label a"):
        done = holdfast(words)
        assert done.code == 2 and len(done.complaints) == 1 and "classes are whole numbers" in done.err, done.err
    assert holdfast("learn whole.csv --model m").code == 0
    assert hf.load_model(model).classes == ("p", "q", "1", "2")
    assert holdfast(f"learn halves.csv --model h --columns kind=category {SMALL}").code == 0
    assert holdfast("learn halves.csv --model h").code == 0
    assert hf.load_model(files / "h").classes == ("1.5", "2.5")


def test_all_faults_of_a_folder_of_images_are_told_at_once(holdfast, files):
    (files / "one" / "p" / "notes.txt").write_text("mine")
    (files / "one" / "void").mkdir()
    (files / "one" / "q" / "3.png").write_text("no image")
    done = holdfast("learn ./one --model m")
    assert done.code == 2 and len(done.complaints) == 3, done.err
    assert ["notes.txt" in done.complaints[0], "void" in done.complaints[1], "3.png" in done.complaints[2]] == [
        True
    ] * 3


def test_nothing_of_features_is_kept_beside_the_model(holdfast, files, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(files / "data"))
    assert holdfast(f"learn one.csv --model m --features feats.py:plane {SMALL}").code == 0
    assert holdfast("predict new.csv --model m --features feats.py:plane").code == 0
    assert holdfast("score both.csv --model m --features feats.py:plane").code == 0
    assert not (files / "data").exists()


def test_what_a_protocol_that_chooses_needs_of_a_later_task_is_said(holdfast, files):
    done = holdfast("learn one.csv --model m --protocol crossval")
    need = "chooses on validation rows, and none of the new task's are kept apart: give val=0.1 (--val 0.1)"
    assert done.complaints == [f"protocol 'crossval' {need}"]
    done = holdfast("learn one.csv --model m --protocol realistic")
    assert (
        len(done.complaints) == 2
        and "--val 0.1" in done.err
        and "model.learn(..., test=..., old_tests=...)" in done.err
    )


def test_a_share_that_leaves_a_class_without_rows_is_refused(holdfast, files):
    done = holdfast("learn one.csv --model m --test 0.99")
    assert done.code == 2 and "leave no row of 'p'" in done.complaints[0], done.err
    assert not (files / "m").exists()


def test_a_stray_file_in_a_model_is_named_and_hidden_ones_are_not_minded(holdfast, model):
    (model / ".DS_Store").write_text("a desktop was here")
    assert holdfast("learn two.csv --model m --quiet").code == 0
    (model / "said.csv").write_text("row,class\n")
    before = held(model)
    done = holdfast("learn two.csv --model m")
    assert done.code == 2 and done.complaints == [
        "m holds a model and also 'said.csv', which is none of it; move that elsewhere"
    ]
    assert held(model) == before and holdfast("score two.csv --model m").code == 0


def test_a_folder_that_is_called_as_a_file_is_no_file(holdfast, model, files):
    for name in ("x.csv", "x.parquet", "x.npz"):
        (files / name).mkdir()
        ending = name[1:]
        for words in (f"learn {name} --model n", f"run er --data {name} --out o"):
            done = holdfast(words)
            assert done.code == 2 and f"found a folder, expected a {ending} file" in done.err, done.err
    assert not (files / "o").exists() and not (files / "n").exists()


def test_a_new_model_is_made_whole_or_not_at_all(holdfast, files):
    faults = holdfast(
        "learn one.csv --model m --method gme --net mpl --protocol epoch --scenario clas --classes 0 --lr -1 "
        "--batch 0 --epochs a --seed x --test 1 --label knd"
    )
    assert faults.code == 2 and len(faults.complaints) == 10
    assert holdfast("learn one.csv --model m --method independent").complaints == [
        "method 'independent' needs the task label, which the 'class' scenario hides; use scenario 'task'"
    ]
    failed = holdfast("learn one.csv --model deep/m --method finetune --lr 1e30")
    assert failed.code == 1 and "the loss became" in failed.err and "no model is left in deep/m" in failed.err
    assert not (files / "m").exists() and not (files / "deep" / "m").exists()


def test_a_model_that_diverges_or_is_full_stays(holdfast, files):
    assert holdfast(f"learn one.csv --model m --classes 3 --lr 0.2 {SMALL} --quiet").code == 0
    before = held(files / "m")
    full = holdfast("learn two.csv --model m")
    assert full.code == 2 and "2 classes are new ('r', 's'), and of the 3 outputs 1 are free" in full.err
    table("pq").assign(a=1e30).to_csv(files / "wild.csv", index=False)
    wild = holdfast("learn wild.csv --model m")
    assert wild.code == 1 and "the model in m is as it was" in wild.err
    assert held(files / "m") == before


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("predict new.csv --model m --out m", ["m is a folder; --out must name a file, e.g. predictions.csv"]),
        ("predict new.csv --model m --out m/said.csv", ["--out m/said.csv is inside of the model in m; choose a file"]),
        ("predict new.csv --model m --out ./new.csv", ["--out ./new.csv is DATA itself, which is only read"]),
        ("predict ./one --model m --out one/p/x.csv", ["--out one/p/x.csv is inside of DATA, ./one", "from a table"]),
        ("predict new.csv --model m --out ''", ["--out must name a file, e.g. predictions.csv, not ''"]),
        ("predict new.csv --model m --method ewc", ["--method is for a new model, and m holds one that has its own"]),
        ("predict new.csv --model m --out one.csv/x.csv", ["one.csv is a file, not a folder; choose another --out"]),
        ("predict new.csv --model m --task 0", ["--task is for the task scenario, and the model learned in the class"]),
        ("predict tow.csv --model m --task x", ["--task must be a whole number >= 0, not 'x'", "no file or folder"]),
        ("score new.csv --model m", ["unknown column 'kind', which has the labels"]),
        ("score both.csv --model m --label knd", ["unknown column 'knd'"]),
        ("predict both.csv --model m --json", ["unknown option '--json'"]),
        ("audit m", ["m holds a model, not runs; learn, predict, score and export --onnx take it"]),
    ],
)
def test_what_cannot_be_predicted_or_scored_is_a_line_each(holdfast, model, files, words, lines):
    before = held(files)
    done = holdfast(words)
    assert done.code == 2 and len(done.complaints) == len(lines) and done.out == "", done.err
    assert all(line in said for line, said in zip(lines, done.complaints, strict=True)), done.err
    assert held(files) == before


def test_two_at_once_learn_one_after_the_other(holdfast, model):
    from holdfast.sweeps import locked
    from holdfast.sweeps.model_folder import refuse

    before, begun, over = held(model), threading.Event(), threading.Event()

    def other():
        with locked(model, refuse):
            begun.set()
            over.wait(60)

    holder = threading.Thread(target=other)
    holder.start()
    begun.wait(60)
    done = holdfast("learn two.csv --model m")
    over.set()
    holder.join()
    assert done.code == 2 and "m is in use by process" in done.err
    assert held(model) == before
