"""`holdfast advise` as a newcomer types it: own data, mistakes, and what is said."""

import json
import shlex

import numpy as np
import pandas as pd
import pytest

SHORT = (
    "--methods finetune,er,joint --seeds 1 --jobs 1 --set protocol.steps=20 --set protocol.score_every=10 "
    "--set protocol.lr=0.01 --set protocol.later_lr=0.01"
)


@pytest.fixture
def files(here):
    """rows.csv, test.csv, one.csv, rows.npz, photos/, feats.py and other/."""
    from PIL import Image

    rng = np.random.default_rng(0)
    kind = np.repeat(["p", "q", "r and s", "t<b>"], 20)
    rows = pd.DataFrame({"a": rng.normal(size=80) + np.repeat(range(4), 20), "word": ["x", "y"] * 40, "kind": kind})
    rows.loc[3, "a"] = np.nan
    rows.to_csv(here / "rows.csv", index=False)
    rows[::3].to_csv(here / "test.csv", index=False)
    rows[:20].to_csv(here / "one.csv", index=False)
    np.savez(here / "rows.npz", x=rng.random((80, 5)), y=np.arange(80) % 4)
    for i, name in enumerate("pqrs"):
        (here / "photos" / name).mkdir(parents=True)
        for k in range(15):
            Image.fromarray(np.full((5, 5), 50 * i + k, np.uint8)).save(here / "photos" / name / f"{k}.png")
    (here / "feats.py").write_text(
        "import numpy as np\n\ndef two(rows):\n    return np.ones((len(rows), 2), 'float32')\n"
    )
    (here / "other").mkdir()
    (here / "other" / "precious.txt").touch()
    return here


@pytest.mark.parametrize(
    ("data", "tasks"),
    [
        ("rows.csv --label kind --new 'r and s,p'", ["classes q t<b>", "classes r and s p"]),
        ("rows.csv --columns word=skip --test test.csv --old p,q --new t<b>", ["classes p q", "classes t<b>"]),
        ("rows.npz --old 0,1", ["classes 0 1", "classes 2 3"]),
        ("rows.npz --features feats.py:two --new 3", ["classes 0 1 2", "classes 3"]),
        ("./photos --new r,s", ["classes p q", "classes r s"]),
        ("digits --stream slt --set stream.examples=60", ["D1: classes 0 1 2 3 4", "D2: classes 5 6 7 8 9"]),
        ("--stream permuted --set stream.tasks=2 --set stream.examples=60", ["permutation 0", "permutation 1"]),
    ],
)
def test_own_data_are_rehearsed_and_the_command_that_is_told_trains_the_winner(holdfast, files, data, tasks):
    done = holdfast(f"advise {data} {SHORT} --json")
    assert done.code == 0, done.err
    told = json.loads(done.out)
    assert [name.lower() for name in told["tasks"]] == [name.lower() for name in tasks]
    assert {tried["method"] for tried in told["tried"]} == {"finetune", "er"} and list(told["ruled_out"]) == ["joint"]
    assert not (files / "runs").exists() and holdfast(f"{told['command'].removeprefix('holdfast ')} --quiet").code == 0
    (model,) = files.glob("runs/*/cells/*/model")
    source = shlex.split(data)[0] if not data.startswith("--") else None
    if source in ("rows.csv", "rows.npz") and "features" not in data:
        assert holdfast(f"predict {source} --model {model} --out said.csv --quiet").code == 0


def test_it_says_what_to_do_and_why(holdfast, files):
    done = holdfast(f"advise rows.csv --new 'r and s' {SHORT} --out out")
    assert done.code == 0, done.err
    for words in (
        "Go on with ", "on all classes after retraining (class scenario, task label hidden; 1 seed)", "Ruled out:",
        "Train it as it was rehearsed:\n  holdfast run ", "joint: cannot run here", "What came last is known to ",
        "Rehearsed, one after the other: classes p q t<b>; classes r and s.", "of 20 min allowed",
    ):  # fmt: skip
        assert words in done.out
    assert "missing values" in done.err and "(seed 0)\n" in done.err
    assert f"report: {files / 'out' / 'report.html'}" in done.err
    page = (files / "out" / "report.html").read_text()
    assert '<section id="advice">' in page and "t&lt;b&gt;" in page and "t<b>" not in page.partition("<script>")[0]
    assert holdfast(f"advise rows.csv --new p {SHORT} --quiet").out == ""


def test_settings_reach_the_methods_and_the_network(holdfast, files):
    words = "--set er.memories=7 --set net.hidden=9 --memory 1MB"
    told = json.loads(holdfast(f"advise rows.csv --new p {SHORT} {words} --json").out)
    assert {tried["called"] for tried in told["tried"]} == {"finetune", "er (memories=7)"}
    assert max(tried["bytes"] for tried in told["tried"]) < 5_000  # of 9 units, not of 2 · 200


def test_limits_are_those_that_were_typed(holdfast, files):
    told = json.loads(holdfast(f"advise rows.npz --new 3 {SHORT} --keep-data no --memory 0.5MB --time 1.5m --json").out)
    assert told["limits"] == {"memory": 500_000, "keep_data": False, "seconds": 90.0}
    assert told["ruled_out"].keys() == {"er", "joint"} and told["recommended"] == "finetune"
    done = holdfast(f"advise rows.npz --new 3 {SHORT} --memory 1kB")
    assert done.code == 1 and "no method could be rehearsed within these limits: finetune: leaves" in done.err


BAD = [
    ("rows.csv --old p,q --new q", "class q is in --old and in --new; it is either known already or it comes"),
    ("rows.csv --new z", "unknown class 'z' in --new; choose from p, q, r and s, t<b>"),
    ("rows.csv --old qq --new p", "unknown class 'qq' in --old; did you mean 'q'?"),
    ("rows.csv", "say which classes are new, e.g. --new 3,4; or give a stream, e.g. --stream split"),
    ("--new 3", "say which data: a file, a folder or a data set's name"),
    ("rows.csv --new ,", "--new names no class"),
    ("rows.csv --new 'p,q,r and s,t<b>'", "--new names all classes; leave at least one for the other"),
    ("rows.csv --old 'p,q,r and s,t<b>'", "--old names all classes; leave at least one for the other"),
    ("rows.csv --label kid --new p", "unknown column 'kid', which was to be the label; did you mean 'kind'?"),
    ("one.csv --new p", "the label 'kind' has one class, p; at least two are needed"),
    ("rows.cvs --new p", "for the one in this folder write ./rows.csv"),
    ("rows.npz --label y --new 1", "leave it out"),
    ("digits --stream slt --old 1", "--stream says which classes are old and which are new; leave out --old and --new"),
    ("digits --stream slit", "unknown stream 'slit'; did you mean 'split'?"),
    ("digits --stream blurred", "stream 'blurred' hides where they end"),
    ("digits --new 9 --set stream.tasks=3", "--set stream.tasks: --old and --new say that"),
    ("digits --new 9 --scenario class,task", "--scenario must be one of class, domain, task, not 'class,task'"),
    ("digits --new 9 --scenario domain", "the domain scenario needs tasks of equal size"),
    ("digits --new 9 --memory 5", "--memory must be a number above 0 with B, kB, MB, GB, e.g. 5MB, not '5'"),
    ("digits --new 9 --memory 0MB", "--memory must be a number above 0"),
    (f"digits --new 9 --memory {'9' * 400}MB", "--memory must be a number above 0"),
    ("digits --new 9 --time soon", "--time must be a number above 0 with s, m, h, e.g. 20m, not 'soon'"),
    ("digits --new 9 --keep-data maybe", "--keep-data must be yes or no, not 'maybe'"),
    ("digits --new 9 --seeds 0", "--seeds must be a whole number >= 1, not '0'"),
    ("digits --new 9 --methods gme", "unknown method 'gme'; did you mean 'gem'?"),
    ("digits --new 9 --methods ,", "--methods names no method: ','"),
    ("digits --new 9 --methods er,er", "method 'er' is named twice; name it once"),
    ("digits --new 9 --methods independent", "independent: cannot run here: it needs the task label"),
    ("digits --new 9 --net mpl", "unknown net 'mpl'; did you mean 'mlp'?"),
    ("digits --new 9 --set protocol.stps=5", "did you mean 'steps'?"),
    ("digits --new 9 --out other", "other exists and is not an output folder of Holdfast; choose another --out"),
    ("digits --new 9 --out rows.csv", "is a file, not a folder; choose another --out"),
]


@pytest.mark.parametrize(("words", "line"), BAD)
def test_bad_input_is_a_line_and_nothing_is_written(holdfast, files, words, line):
    before = sorted(files.rglob("*"))
    done = holdfast(f"advise {words}" if "--out" in words else f"advise {words} --out out")
    assert done.code == 2 and len(done.complaints) == 1 and line in done.complaints[0], done.err
    assert done.out == "" and [p for p in sorted(files.rglob("*")) if "__pycache__" not in p.parts] == before


def test_all_faults_are_told_at_once(holdfast, files):
    done = holdfast(
        "advise rows.csv --old p,z --new q,zz --memory 5 --time x --keep-data 1 --seeds a --net mpl --jobs 0"
    )
    assert done.code == 2 and len(done.complaints) == 8, done.err


def test_ctrl_c_is_a_line(holdfast, files, monkeypatch):
    from holdfast.commands import advise

    def interrupted(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr(advise, "advise", interrupted)
    done = holdfast("advise rows.csv --new p --out out")
    assert done.code == 130 and "holdfast: stopped; what is finished is kept in out" in done.err
