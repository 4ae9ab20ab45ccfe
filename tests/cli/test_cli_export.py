"""`holdfast export` and hf.load: the same numbers as in the records, in every form."""

import csv
import io
import shutil
import sys

import numpy as np
import pytest

import holdfast as hf


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """A store with one sweep of 16 cells."""
    folder = tmp_path_factory.mktemp("export")
    (folder / "a.toml").write_text("""
        seeds = 2
        stream = {tasks = 2, examples = 20, test_examples = 20}
        protocol = {score_every = 1}
        net = {hidden = [[8], [4, 4]]}
        method = ["joint", {name = "ewc", strength = [1, 10]}, {name = "gem", memories = 5}]
    """)
    hf.sweep(folder / "a.toml", out=folder / "store", jobs=1)
    return folder / "store"


@pytest.fixture
def store_here(store, here):
    """The same store in the current folder."""
    shutil.copytree(store, here / "store")


def by_cell(records):
    return {(r.method, r.seed, r.settings.get("strength", {}).get("value"), tuple(r.net["hidden"])): r for r in records}


def test_a_frame_has_a_row_per_run(store):
    records, table = hf.Comparison.read(store).records, hf.load(store)
    assert len(table) == len(records) == 16
    found = by_cell(records)
    for row in table.itertuples():
        hidden = tuple(int(n) for n in table.loc[row.Index, "net.hidden"].split(","))
        strength = None if np.isnan(row.strength) else row.strength
        record = found.pop((row.method, row.seed, strength, hidden))
        assert row.acc == record.acc and row.flops == sum(record.resources["flops"])
        assert np.isnan(row.bwt) if record.bwt is None else row.bwt == record.bwt
        assert (row.stream, row.scenario, row.task_label_given, row.data, row.tasks) == (
            "split", "class", False, "digits", 2
        )  # fmt: skip
    assert not found
    assert table["label"].nunique() == 8
    assert table.columns[:3].tolist() == ["label", "method", "seed"] and table.columns.is_unique


def test_scores_have_a_row_per_scoring_and_task(store):
    table = hf.load(store, "scores")
    found = by_cell(hf.Comparison.read(store).records)
    record = found["ewc", 1, 10.0, (8,)]
    mine = table[(table.label == "ewc[net.hidden=8,strength=10]") & (table.seed == 1)]
    assert mine.accuracy.tolist() == record.R.flatten().tolist()
    assert len(table) == sum(r.R.size for r in found.values())
    with pytest.raises(hf.BadInput, match="'scores'"):
        hf.load(store, "score")


def test_csv_says_what_the_frame_says(holdfast, here, store):
    done = holdfast(f"export {store} --csv")
    lines = list(csv.DictReader(io.StringIO(done.out)))
    table = hf.load(store)
    assert done.code == 0 and list(lines[0]) == table.columns.tolist() and len(lines) == len(table)
    assert [float(line["acc"]) for line in lines] == table.acc.tolist()
    assert [line["label"] for line in lines] == table.label.tolist()
    assert {line["bwt"] for line in lines if line["method"] == "joint"} == {""}
    assert len(holdfast(f"export {store} --csv --scores").out.splitlines()) == len(hf.load(store, "scores")) + 1
    assert holdfast(f"export {store} --csv --out some/table.csv").out == ""
    assert (here / "some" / "table.csv").read_text() == done.out


def test_latex(holdfast, store):
    done = holdfast(f"export {store} --latex")
    assert done.code == 0 and done.out == hf.Comparison.read(store).latex()


def test_parquet(holdfast, store):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="the parquet extra is not installed")
    assert holdfast(f"export {store} --parquet --out t.parquet").code == 0
    table, read = hf.load(store), pandas.read_parquet("t.parquet")
    assert read.columns.tolist() == table.columns.tolist()
    assert read.acc.tolist() == table.acc.tolist() and read["net.hidden"].tolist() == table["net.hidden"].tolist()


def test_settings_of_mixed_types_go_into_a_parquet_file(holdfast, here):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow", reason="the parquet extra is not installed")
    tiny = "tasks = 2, examples = 20"
    (here / "a.toml").write_text(f'method = "finetune"\nstream = {{order = ["random", [1, 0]], {tiny}}}\n')
    (here / "own.py").write_text(
        "from dataclasses import dataclass\nfrom typing import Any\nimport holdfast as hf\n"
        "@dataclass\nclass Own(hf.Learner):\n    odd: Any = 3\n"
        "    def observe(self, batch): return self.descend(self.cross_entropy(batch))\n"
    )
    (here / "b.toml").write_text(
        f'method = [{{name = "own.py:Own", odd = "x"}}, "own.py:Own", "finetune"]\nstream = {{{tiny}}}\n'
    )
    for name in "ab":
        assert holdfast(f"sweep {name}.toml --out store --jobs 1 --quiet").code == 0
    assert holdfast("export store --parquet --out t.parquet").code == 0
    assert sorted(pandas.read_parquet("t.parquet").odd.dropna()) == ["3", "x"]


def test_tensorboard_events(holdfast, store):
    events = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="the tensorboard extra is not installed"
    )
    assert holdfast(f"export {store} --tensorboard logs").code == 0
    record = by_cell(hf.Comparison.read(store).records)["ewc", 0, 1.0, (8,)]
    read = events.EventAccumulator("logs/ewc[net.hidden=8,strength=1]/seed0").Reload()
    scalars = read.Scalars("accuracy/task1")
    assert [s.step for s in scalars] == [1, 2, 3, 4]  # 20 rows in batches of 10, twice, scored at every step
    assert np.allclose([s.value for s in scalars], record.R[:, 1])
    assert np.isclose(read.Scalars("metrics/acc")[0].value, record.acc)
    again = holdfast(f"export {store} --tensorboard logs")
    assert again.code == 2 and "not empty" in again.complaints[0]


def test_paths_through_a_library_become_pictures(holdfast, here):
    protocol = "--protocol crossval --set protocol.lr=0.01 --set protocol.decay=0 --epochs 1"
    shown = "--stream split --tasks 2 --set stream.examples=40 --set stream.val=0.2 --scenario task"
    assert holdfast(f"compare mntdp,finetune {shown} {protocol} --out o").code == 0
    assert holdfast("export o --svg pictures").code == 0
    assert [path.name for path in (here / "pictures").iterdir()] == ["mntdp.svg"]
    text = (here / "pictures" / "mntdp.svg").read_text(encoding="utf-8")
    assert text.startswith('<svg class="strands" xmlns=') and text.count('class="task"') == 2
    assert text.replace("background:#ffffff", "background:none") in (here / "o" / "report.html").read_text("utf-8")


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("export store", ["--csv", "--latex"]),
        ("export store --csv --latex", ["not --csv and --latex"]),
        ("export store --parquet", ["--out"]),
        ("export store --latex --scores", ["--scores"]),
        ("export store --csv --out .", ["folder"]),
        ("export store --csv --out a.toml/x", ["a.toml", "file"]),
        ("export nowhere --csv", ["nowhere", "experiment.json"]),
        ("export store --tensorboard store", ["not empty"]),
        ("export store --svg pictures", ["no run here has paths", "mntdp"]),
        ("export store --svg pictures --out x", ["--out does not go with --svg"]),
        ("export store --svg pictures --tensorboard logs", ["not --tensorboard and --svg"]),
        ("export store --cvs", ["'--cvs'", "'--csv'"]),
    ],
)
@pytest.mark.usefixtures("store_here")
def test_bad_input(holdfast, here, command, parts):
    (here / "a.toml").touch()
    before = sorted(here.rglob("*"))
    done = holdfast(command)
    assert done.code == 2 and done.out == "" and len(done.complaints) == 1
    assert all(part in done.complaints[0] for part in parts)
    assert sorted(here.rglob("*")) == before


@pytest.mark.parametrize(
    ("module", "option"), [("pyarrow", "--parquet --out x"), ("tensorboard", "--tensorboard logs")]
)
@pytest.mark.usefixtures("store_here")
def test_missing_extras_say_how_to_get_them(holdfast, here, monkeypatch, module, option):
    monkeypatch.setitem(sys.modules, module, None)
    monkeypatch.delitem(sys.modules, "torch.utils.tensorboard", raising=False)
    done = holdfast(f"export store {option}")
    extra = "parquet" if module == "pyarrow" else module
    assert done.code == 2 and f"pip install 'holdfast[{extra}]'" in done.complaints[0]
    assert sorted(p.name for p in here.iterdir()) == ["store"]


@pytest.mark.usefixtures("store_here")
def test_a_report_writes_its_figures_beside_it_and_writes_them_anew(holdfast, here):
    pytest.importorskip("matplotlib", reason="needs the figures extra")
    for form in ("svg", "png"):
        done = holdfast(f"report store --figures {form} --out out/report.html")
        assert done.code == 0 and done.out.splitlines()[1] == f"figures: {here / 'out' / 'figures'}"
        files = sorted(path.name for path in (here / "out" / "figures").iterdir())
        assert files[-2:] == ["figures.tex", "tables.tex"] and {name[-3:] for name in files[:-2]} == {form}
    assert r"\toprule" in (here / "out" / "figures" / "tables.tex").read_text()


@pytest.mark.usefixtures("store_here")
def test_without_matplotlib_one_line_says_how_to_get_it(holdfast, here, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = holdfast("report store --figures pfd --out out/report.html")
    assert done.code == 2 and done.complaints == [
        "unknown format of figures 'pfd'; did you mean 'pdf'?",
        "figures need matplotlib; install it with: pip install 'holdfast[figures]'",
    ]
    assert sorted(p.name for p in here.iterdir()) == ["store"]
