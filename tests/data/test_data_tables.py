"""Tables: a column is what its cells are, a fault is told in a line, and a network sees what the first task knew."""

import csv
import hashlib
import io
import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import holdfast as hf
from holdfast.data import Encoding, Reading, as_dataset, csv_file, new_rows
from holdfast.data import columns as columns_of
from holdfast.data.encoding import Category, Number
from holdfast.data.tables import read
from holdfast.errors import BadInput


def flowers(n: int = 40) -> pd.DataFrame:
    """Four kinds, one after the other; a later one has a colour and a size that the first ones have not."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(["iris", "lily", "rose", "tulip"], n // 4)
    table = pd.DataFrame({"width": rng.normal(5, 2, n).round(3), "count": rng.integers(0, 9, n)})
    table["colour"] = np.where(kinds == "tulip", "black", rng.choice(["red", "blue"], n))
    table["wild"] = rng.random(n) > 0.5
    table["kind"] = kinds
    table.loc[kinds == "tulip", "width"] += 1000
    table.loc[[1, 12, 33], "width"] = np.nan
    return table


@pytest.fixture
def table(tmp_path):
    """Writes text, or the flowers, as a CSV; gives its path."""

    def write(text=None, name="flowers.csv", **changes):
        path = tmp_path / name
        if text is None:
            text = flowers().assign(**changes).to_csv(index=False)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return write


def faults(data, **said):
    with pytest.raises(BadInput) as caught:
        as_dataset(hf.Source(data, **said), seed=0)
    assert all("\n" not in line for line in caught.value.faults)
    return list(caught.value.faults)


# What a table is


def test_csv_parquet_and_frame_are_the_same_data(table, tmp_path):
    flowers().to_parquet(tmp_path / "flowers.parquet")
    given = [table(), tmp_path / "flowers.parquet", flowers(), str(tmp_path / "flowers.csv")]
    made = [as_dataset(data, seed=3) for data in given]
    for one in made[1:]:
        assert (one.x == made[0].x).all() and (one.y_test == made[0].y_test).all()
    assert made[0].classes == ("iris", "lily", "rose", "tulip") and len(made[0].x_test) == 8
    assert [one.name for one in made] == ["flowers.csv", "flowers.parquet", "DataFrame", "flowers.csv"]


def test_the_fingerprint_is_that_of_the_file(table):
    path = table()
    assert as_dataset(path, 0).fingerprint == hashlib.sha256(path.read_bytes()).hexdigest()
    before = as_dataset(flowers(), 0).fingerprint
    assert as_dataset(flowers(), 1).fingerprint == before != as_dataset(flowers().assign(wild=True), 0).fingerprint


@pytest.mark.parametrize("separator", [";", "\t"])
def test_cells_may_be_separated_otherwise_and_rows_counted(table, separator):
    data = as_dataset(table(flowers().to_csv(sep=separator)), 0)
    assert (data.x == as_dataset(flowers(), 0).x).all()
    assert any("separated by" in line for line in data.told) and any("has no name" in line for line in data.told)


def test_a_file_is_read_anew_when_it_changes(table):
    path = table()
    assert as_dataset(path, 0).shape == as_dataset(path, 1).shape
    table(flowers().drop(columns="count").to_csv(index=False))
    assert as_dataset(path, 0).shape[0] == as_dataset(flowers(), 0).shape[0] - 1


@pytest.mark.parametrize(
    ("names", "label"),
    [(("a", "Label", "y"), "Label"), (("class", "a", "target"), "target"), (("a", "b", "kind"), "kind")],
)
def test_the_label_is_found_by_name_or_is_last(names, label):
    frame = pd.DataFrame({name: [0, 1] * 5 for name in names})
    assert as_dataset(frame, 0).read["label"] == label


def test_a_column_is_what_is_said_of_it(table):
    said = as_dataset(hf.Source(table(), columns="count=category,wild=skip"), 0)
    assert {c.name: type(c) for c in said.encoding.columns} == {"width": Number, "count": Category, "colour": Category}
    assert said.read == {"label": "kind", "columns": "count=category,wild=skip"}
    codes = as_dataset(hf.Source(flowers().assign(code=[10, 9] * 20), "code", columns={"code": "category"}), 0)
    assert codes.classes == ("10", "9")


def test_test_rows_may_be_a_file_of_their_own(table):
    whole = flowers()
    test = table(whole[::4][whole.columns[::-1]].to_csv(index=False), "test.csv")
    data = as_dataset(hf.Source(table(whole.to_csv(index=False)), label="kind", test=test), 0)
    assert (data.x_test == data.x[::4]).all() and (data.y_test == data.y[::4]).all() and data.read["test"] == "test.csv"


def test_numbers_that_turn_out_to_be_words_later_are_read_as_words(table, monkeypatch):
    monkeypatch.setattr(csv_file, "CELLS", 10)
    rows = ["07,a"] * 9 + ["x1,b", "x2,b"] * 9
    column = as_dataset(table("\n".join(["code,kind", *rows])), 0).encoding.columns[0]
    assert column.words == ("07", "x1", "x2")


CELL = st.one_of(
    st.floats(-1e6, 1e6).map(repr),
    st.integers(-999, 999).map(str),
    st.sampled_from(["", "NA", "?", " red", 'a"b', "1,5"]),
)


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.tuples(CELL, CELL, st.sampled_from("pq")), min_size=4, max_size=12))
def test_whatever_is_in_a_csv_it_is_data_or_a_list_of_faults(rows, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "any.csv"
    text = io.StringIO()
    csv.writer(text).writerows([("a", "b", "kind"), *rows])
    path.write_text(text.getvalue())
    data, said = None, ()
    try:
        data = as_dataset(path, 0)
    except BadInput as error:
        said = error.faults
    assert all(line.startswith(str(path)) for line in said) and bool(said) == (data is None)
    assert data is None or (np.isfinite(data.x.numpy()).all() and len(data.x) + len(data.x_test) == len(rows))


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=4)


@settings(max_examples=40, deadline=None)
@given(
    numbers=st.lists(st.floats(-1e30, 1e30) | st.none(), min_size=3, max_size=9),
    words=st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), max_size=4), min_size=3, max_size=9
    ),
)
def test_what_is_written_is_what_is_read(numbers, words, tmp_path_factory):
    rows = list(zip(numbers, words, strict=False))
    path = tmp_path_factory.getbasetemp() / "round.csv"
    text = io.StringIO()
    csv.writer(text).writerows([("number", "word"), *(("" if n is None else repr(n), f"x{w}") for n, w in rows)])
    path.write_text(text.getvalue(), newline="")
    columns = read(path, {"number": "number", "word": "category"}, "known").columns
    assert [None if np.isnan(v) else v for v in columns.each["number"].values] == [n for n, _ in rows]
    word = columns.each["word"]
    assert [word.words[int(v)] for v in word.values] == [f"x{w}".strip() for _, w in rows]


# Faults


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ("an empty file",)),
        ("a,kind\n", ("no rows",)),
        ("a,kind\n1,x\n2\n3,y,z\n", ("1 cells in row 2 (and 1 more rows like it)", "2, one for each column")),
        ("a,kind\n1,x\n2,caf\u00e9\n".encode("latin-1"), ("the byte 0xe9 in line 3", "UTF-8")),
        ("a,a,kind\n1,2,x\n", ("2 columns are called 'a'",)),
        ("a,,kind\n1,2,x\n", ("column 2 has no name",)),
        ("5.1,3.5,0\n4.9,3.0,1\n", ("numbers in its first line", "write a line of names above it")),
        ('a,kind\n1,"x\n', ("a broken file",)),
        ("a,kind\n1,x\ninf,y\n3,x\n4,y\n", ("column 'a' has inf in row 2", "finite")),
        ("a,kind\n1,x\n2,y\nabc,x\n4,y\n", ("column 'a' has 'abc' in row 3 among numbers", "columns a=category")),
        ("a,kind\n2024-01-31,x\n2024-02-01,x\n2024-02-02,y\n?,y\n", ("column 'a' holds dates", "columns a=skip")),
        ('a,kind\n"1,5",x\n"2,5",x\n"3,5",y\n"4,5",y\n', ("decimal comma, e.g. 1,5",)),
        ("a,kind\n1,x\n2,x\n3,x\n", ("one class, x", "at least two")),
        ("a,kind\n1,x\n2,x\n3,y\n", ("one example only", "y")),
        ("a,kind\n1,x\n2,\n3,y\n", ("the label 'kind' is missing in row 2",)),
        ("a,kind\n1,0.5\n2,1.5\n3,1.5\n", ("the label 'kind' is 0.5 in row 1 (and in 2 more)", "no class")),
        ("kind\nx\nx\ny\ny\n", ("no column besides the label 'kind'",)),
        ("a,kind\n" + "".join(f"text {i},{'xy'[i % 2]}\n" for i in range(150)), ("150 different texts", "features")),
    ],
)
def test_a_faulty_csv_is_refused_in_a_line(table, text, words):
    (line,) = faults(table(text))
    assert str(table(text)) in line
    for word in words:
        assert word in line


def test_all_faults_are_told_at_once(table):
    text = "a,b,day,kind\n1,inf,2024-01-01,x\n2,1,2024-01-02,x\noops,2,2024-01-03,y\n4,3,2024-01-04,\n"
    found = faults(table(text), columns={"c": "skip"})
    told = ("unknown column 'c'", "'a' has 'oops'", "'b' has inf", "is missing in row 4", "dates")
    assert len(found) == 5 and all(word in line for word, line in zip(told, found, strict=True))


@pytest.mark.parametrize(
    ("said", "line"),
    [
        ({"label": "knd"}, "unknown column 'knd', which was to be the label; did you mean 'kind'?"),
        ({"columns": "colour=skp"}, "unknown kind 'skp' of column 'colour'; did you mean 'skip'?"),
        ({"columns": "colour"}, "columns must be NAME=KIND,..., e.g. doors=category,id=skip, not 'colour'"),
        (
            {"columns": {"colour": "number"}},
            "column 'colour' has 'red' in row 1 (and in 39 more) among numbers; mend it",
        ),
    ],
)
def test_what_is_said_of_a_table_may_be_wrong(table, said, line):
    found = faults(table(colour="red"), **said)
    assert len(found) == 1 and found[0].endswith(line)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"day": pd.Timestamp("2024-01-31")}, ("'day' holds dates",)),
        ({"odd": [[1, 2]] * 40}, ("'odd' has a list in row 1",)),
        ({"odd": [1, "a", 2.5, 3] * 10}, ("'odd' has 'a' in row 2 (and in 9 more) among numbers",)),
        ({"odd": 1j}, ("'odd' holds complex numbers",)),
    ],
)
def test_a_faulty_frame_is_refused_in_a_line(changes, words):
    (line,) = faults(flowers().assign(**changes)[[*changes, *flowers().columns]])
    assert line.startswith("DataFrame: ") and all(word in line for word in words)


def test_faulty_test_rows_are_refused(table):
    test = table("Width,count,colour,wild,kind\n1,red,red,True,iris\n", "test.csv")
    found = faults(table(), label="kind", test=test)
    assert [line.removeprefix(f"{test}: ") for line in found] == [
        "column 'count' has 'red' in row 1 among numbers; mend it",
        "there is no column 'width'; is it 'Width'?",
    ]
    test = table("width,count,colour,wild,kind\n1,2,red,True,daisy\n", "test.csv")
    assert faults(table(), test=test)[0].endswith("y_test has labels that y does not have: daisy")


def test_paths_that_cannot_be_read_are_refused(tmp_path, table):
    table()
    assert faults(tmp_path / "flwers.csv")[0].endswith(f"did you mean '{tmp_path / 'flowers.csv'}'?")
    (tmp_path / "a.xlsx").write_text("x")
    assert "found a file, expected one of .csv" in faults(str(tmp_path / "a.xlsx"))[0]
    assert "a broken file" in faults(table("no Parquet", "a.parquet"))[0]
    assert faults("digits", label="y", test="a.csv") == [
        "label is for tables (.csv, .tsv, .parquet, DataFrame), and 'digits' is none; leave it out",
        "test is for files and folders, and 'digits' is neither; or (x, y, x_test, y_test)",
    ]


def test_without_pyarrow_a_parquet_file_says_what_to_install(table, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (line,) = faults(table("x", "a.parquet"))
    assert "pip install 'holdfast[parquet]'" in line


# The encoding


def test_a_stream_scales_by_its_first_task_and_looks_at_nothing_later():
    plain, other = flowers(), flowers()
    later = other["kind"] > "lily"
    other.loc[later, "width"] *= 1e6
    other.loc[later, "colour"] = "green"
    one, two = (hf.stream("split", data=data, tasks=2, val=0.25, seed=4) for data in (plain, other))
    assert one.sources[0].encoding == two.sources[0].encoding
    assert (one.tasks[0].train.x() == two.tasks[0].train.x()).all()
    assert not (one.tasks[1].train.x() == two.tasks[1].train.x()).all()
    first = one.tasks[0].train.x()
    width = one.sources[0].encoding.columns[0]
    assert width.gaps and abs(float(first[:, 0].mean())) < 1e-6
    shown = first[first[:, 1] == 0, 0]
    assert abs(float(shown.std(correction=0)) - 1) < 1e-6 and len(first) < len(one.tasks[0].test.pixels) * 4
    assert hf.stream("split", data=plain, tasks=2, seed=5).sources[0].encoding != one.sources[0].encoding


def test_tables_run_and_what_was_done_is_told():
    stream = hf.stream("split", data=flowers(), tasks=2)
    assert hf.run("er", stream).R.shape == (2, 2)
    permuted = hf.stream("permuted", data=flowers(), tasks=2)
    assert permuted.tasks[1].train.x().shape[1] == permuted.sources[0].encoding.width != stream.info.shape[0]
    told = "\n".join(stream.told)
    for words in ("40 rows, labels in column 'kind' (the last column)", "3 in 'width'", "10 in 'colour'", "colour (2)"):
        assert words in told
    assert stream.settings["label"] == "kind"


def fitted(**columns):
    """An encoding of these columns and a label."""
    n = len(next(iter(columns.values())))
    return as_dataset(pd.DataFrame({**columns, "label": ["a", "b"] * (n // 2)}), 0).encoding


def test_an_encoding_goes_through_json():
    encoding = as_dataset(flowers(), 0).encoding
    assert Encoding.from_json(json.loads(json.dumps(encoding.to_json()))) == encoding
    said = encoding.to_json()
    for spoiled in ({**said, "schema": 2}, {**said, "columns": [{}]}, {**said, "label": 3}, [], None, {"schema": 1}):
        with pytest.raises(BadInput, match="encoding"):
            Encoding.from_json(spoiled)


def test_a_column_that_is_the_same_in_the_first_task_is_not_blown_up():
    (column,) = fitted(a=[0.1] * 12).columns
    assert column.deviation == 1.0
    (column,) = fitted(a=[np.nan] * 12).columns
    assert (column.mean, column.deviation, column.gaps) == (0.0, 1.0, True)


def test_only_the_most_frequent_words_have_places():
    words = [f"w{i}" for i in range(columns_of.MOST + 20)] * 4 + ["w119"] * 40
    (column,) = fitted(a=words).columns
    assert len(column.words) == columns_of.MOST and "w119" in column.words


# Rows that come later


def test_new_rows_are_encoded_as_before_whatever_the_order_of_columns(table):
    data = as_dataset(flowers(), 0)
    reading = Reading(data.encoding)
    rows = new_rows(table(flowers()[flowers().columns[::-1]].assign(more=1).to_csv(index=False)), reading, True)
    again = new_rows(flowers(), reading, labelled=False)
    assert (rows.x == again.x).all() and again.classes is None and rows.classes == tuple(flowers()["kind"])
    assert "columns that are not looked at: more" in rows.told[-1]


def test_new_rows_may_have_new_words_gaps_and_one_class(table):
    encoding = fitted(a=["x", "y"] * 6, b=[1.0, 2.0] * 6)
    rows = new_rows(table("b,a,label\n,z,c\n1.5,x,c\n"), Reading(encoding), labelled=True)
    assert rows.x.tolist() == [[0, 0, 1, 0], [1, 0, 0, 0]] and rows.classes == ("c", "c")
    assert "1 in 'b'" in rows.told[-2] and "1 in 'a'" in rows.told[-1]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a,label\nx,c\n", ["there is no column 'b'; it must be there"]),
        ("a,b,label\n7,1,c\n", ["column 'a' holds numbers, e.g. '7' in row 1, but held words before"]),
        ("a,b\nx,1\n", ["unknown column 'label', which has the labels; choose from a, b"]),
        ("a,b,label\nx,1,\n", ["the label 'label' is missing in row 1; fill it in"]),
        ("a,b,label\nx,1,c\ny,odd,c\n", ["column 'b' has 'odd' in row 2 among numbers; mend it"]),
    ],
)
def test_new_rows_that_do_not_fit_are_refused_in_a_line(table, text, lines):
    path = table(text)
    with pytest.raises(BadInput) as caught:
        new_rows(path, Reading(fitted(a=["x", "y"] * 6, b=[1.0, 2.0] * 6)), labelled=True)
    assert list(caught.value.faults) == [f"{path}: {line}" for line in lines]


def test_a_first_table_is_not_divided_and_may_have_one_class_that_is_meant(table):
    rows = new_rows(table("a,kind\n1,x\n2,x\n3,y\n"), Reading(), labelled=True, first=True)
    assert rows.classes == ("x", "x", "y") and rows.reading.encoding is not None
    alone = table("a,kind\n1,x\n2,x\n3,x\n", "alone.csv")
    with pytest.raises(BadInput, match="'kind' has one class, x; at least two"):
        new_rows(alone, Reading(), labelled=True, first=True)
    assert new_rows(hf.Source(alone, label="kind"), Reading(), True, first=True).classes == ("x",) * 3


def test_new_images_may_be_of_one_class(tmp_path, make):
    tree = make.tree(tmp_path, classes=("cat",))
    assert new_rows(tree, Reading(), labelled=True).classes == ("cat",) * 5


def test_new_rows_of_images_and_arrays(tmp_path, make):
    tree = make.tree(tmp_path)
    rows = new_rows(tree, Reading(), labelled=True)
    assert rows.x.shape == (10, 1, 5, 6) and rows.classes == ("cat",) * 5 + ("dog",) * 5
    loose = tmp_path / "loose"
    loose.mkdir()
    for image in (tree / "dog").iterdir():
        image.rename(loose / image.name)
    assert (new_rows(loose, Reading(), labelled=False).x == rows.x[5:]).all()
    np.savez(tmp_path / "x.npz", x=rows.x.numpy())
    assert (new_rows(tmp_path / "x.npz", Reading(), labelled=False).x == rows.x).all()
    with pytest.raises(BadInput, match="the arrays x"):
        new_rows(tmp_path / "x.npz", Reading(), labelled=True)
    assert new_rows((np.eye(3), [4, 4, 4]), Reading(), labelled=True).classes == ("4", "4", "4")
    with pytest.raises(BadInput, match="learned from a table"):
        new_rows(tree, Reading(fitted(a=[1, 2] * 6)), labelled=True)
    with pytest.raises(BadInput, match="a table is not what"):
        new_rows(flowers(), Reading(), labelled=True)
