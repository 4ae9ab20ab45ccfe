"""A user's own files on the command line: a path is data, what was done is told, and a fault is a line."""

import json

import numpy as np
import pandas as pd
import pytest

ROWS = pd.DataFrame({"a": np.arange(60) % 7, "text": ["x", "yy", "zzz"] * 20, "kind": np.repeat(list("pqrs"), 15)})
FEATURES = """
import numpy as np

def lengths(rows):
    return np.array([[len(text), 1.0] for text in rows["text"]], np.float32)
"""


@pytest.fixture
def files(here):
    """rows.csv, test.csv, rows.npz, photos/ and feats.py."""
    from PIL import Image

    ROWS.to_csv(here / "rows.csv", index=False)
    ROWS[::3].to_csv(here / "test.csv", index=False)
    np.savez(here / "rows.npz", x=np.random.default_rng(0).random((60, 5)), y=np.arange(60) % 4)
    for i, kind in enumerate("pqrs"):
        (here / "photos" / kind).mkdir(parents=True)
        for k in range(15):
            Image.fromarray(np.full((5, 5), 50 * i + k, np.uint8)).save(here / "photos" / kind / f"{k}.png")
    (here / "feats.py").write_text(FEATURES)
    return here


@pytest.mark.parametrize(
    ("data", "settings"),
    [
        ("rows.csv", {"data": "rows.csv", "label": "kind"}),
        ("rows.npz", {"data": "rows.npz"}),
        ("./photos", {"data": "photos"}),
        ("rows.csv --label text --columns kind=skip", {"label": "text", "columns": "kind=skip"}),
        ("rows.csv --test test.csv", {"label": "kind", "test": "test.csv"}),
    ],
)
def test_a_path_is_data(holdfast, files, data, settings):
    done = holdfast(f"compare finetune,er --data {data} --tasks 2 --jobs 1 --out out")
    assert done.code == 0, done.err
    written = json.loads((files / "out" / "experiment.json").read_text())["runs"][0]
    assert settings.items() <= written["stream"].items() and len(written["data"]) == 64
    assert ("labels in column" in done.err) == ("csv" in data)
    assert "labels in column" not in holdfast(f"compare finetune,er --data {data} --tasks 2 --quiet --out out").err


def test_features_are_named_as_own_code_is(holdfast, files):
    done = holdfast("run er --data rows.csv --features feats.py:lengths TINY --out out")
    assert done.code == 0 and "features of lengths: 2 numbers for each row" in done.err
    (files / "s.toml").write_text(
        'method = "er"\nname = "s"\nstream = {name = "split", tasks = 2, examples = 20, '
        'data = ["rows.npz", {name = "rows.csv", features = "feats.py:lengths", columns = {a = "skip"}}]}\n'
    )
    assert holdfast("sweep s.toml --jobs 1 --out store").code == 0
    runs = json.loads((files / "store" / "sweeps" / "s" / "experiment.json").read_text())["runs"]
    assert [run["stream"]["data"] for run in runs] == ["rows.npz", "rows.csv"]
    assert runs[1]["stream"]["features"].startswith("lengths ")


def test_a_sweep_elsewhere_finds_its_files(holdfast, files, monkeypatch):
    (files / "s.toml").write_text(
        'method = "er"\nstream = {name = "split", tasks = 2, examples = 20, data = "rows.csv"}\n'
    )
    (files / "elsewhere").mkdir()
    monkeypatch.chdir(files / "elsewhere")
    assert holdfast("sweep ../s.toml --jobs 1 --out store").code == 0


@pytest.mark.parametrize(
    ("data", "line"),
    [
        ("--data rows.cvs", "for the one in this folder write ./rows.csv"),
        ("--data ./rosw.csv", "there is no file or folder 'rosw.csv'; did you mean 'rows.csv'?"),
        ("--data rows.csv --label knd", "unknown column 'knd', which was to be the label; did you mean 'kind'?"),
        ("--data rows.csv --columns b=skip", "unknown column 'b'; choose from a, kind, text"),
        ("--data rows.csv --test rows.npz", "expected a table, .csv, .tsv or .parquet, or a DataFrame, not 'rows.npz'"),
        ("--label kind", "--label says how data are read; say which with --data"),
        ("--data digits --label kind", "and 'digits' is none; leave it out"),
        ("--data rows.csv --features lengths", "features must be named as path/to/file.py:name, not 'lengths'"),
        (
            "--data rows.csv --features feats.py:length",
            "unknown function of feats.py 'length'; did you mean 'lengths'?",
        ),
        ("--data photos/p", "cannot read"),
    ],
)
def test_bad_input_is_a_line_and_nothing_is_written(holdfast, files, data, line):
    before = sorted(files.rglob("*"))
    for verb in ("run er", "compare er,finetune"):
        done = holdfast(f"{verb} {data} --out out")
        assert done.code == 2 and len(done.complaints) == 1 and line in done.complaints[0], done.err
    assert [p for p in sorted(files.rglob("*")) if "__pycache__" not in p.parts] == before


def test_a_sweep_with_faulty_data_says_where(holdfast, files):
    (files / "s.toml").write_text('method = "er"\nstream = {name = "split", data = {nme = "rows.csv", label = 3}}\n')
    assert holdfast("sweep s.toml").complaints == [
        "s.toml: stream.data: unknown setting 'nme' of data; did you mean 'name'?",
        "s.toml: stream.data: label of data must be a word, not 3",
        's.toml: stream.data: data must have a name or a path, e.g. {name = "flowers.csv", label = "species"}',
    ]


def test_all_faults_of_data_and_command_are_told_at_once(holdfast, files):
    (files / "bad.csv").write_text("a,b,kind\n1,inf,p\nx,1,p\n3,2,q\n4,3,q\n5,4,q\n")
    done = holdfast("run gme --data bad.csv --lr -1 --out out")
    assert len(done.complaints) == 4 and not (files / "out").exists()


# doctor and completion


def test_doctor_says_what_is_there_and_tests_it(holdfast, here):
    done = holdfast("doctor")
    assert done.code == 0, done.out
    for words in (
        "torch",
        "device",
        "threads",
        "embedded: digits",
        str(here.parent / "data"),
        "fine: er",
        "bit for bit",
    ):
        assert words in done.out


def test_doctor_exits_1_where_something_is_wrong(holdfast, here, monkeypatch):
    from holdfast.commands import doctor

    monkeypatch.setattr(doctor, "_self_test", lambda: doctor.Finding("self-test", "no", wrong=True))
    done = holdfast("doctor --json")
    assert done.code == 1 and json.loads(done.out)[-1] == {"what": "self-test", "found": "no", "wrong": True}


@pytest.mark.parametrize(
    ("typed", "at", "said"),
    [("holdfast do", 1, ["doctor"]), ("holdfast run er --lab", 3, ["--label"]), ("holdfast xx -", 2, [])],
)
def test_a_shell_may_ask_how_a_command_goes_on(holdfast, monkeypatch, capsys, typed, at, said):
    for name, value in {"COMP_WORDS": typed, "COMP_CWORD": str(at), "_HOLDFAST_COMPLETE": "complete_bash"}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit):
        holdfast("")
    assert capsys.readouterr().out.split() == said or not said
