"""Features of a frozen network are computed once, kept by content, and never unpickled."""

import functools

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.data import Reading, as_dataset, new_rows
from holdfast.data.features import FOLDER
from holdfast.errors import BadInput

TEXTS = pd.DataFrame({"text": ["aa", "b", "aab", "bb", "a", "bbb"] * 10, "kind": ["x", "y"] * 30})
CALLS = []


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path / "data"))
    CALLS.clear()
    return tmp_path / "data" / FOLDER


def counted(rows, letters="ab", calls=None):
    texts = rows["text"] if isinstance(rows, pd.DataFrame) else rows
    return np.array([[text.count(letter) for letter in letters] for text in texts], np.float32)


class Watched:
    """Counts the rows that it is shown."""

    def __init__(self, letters):
        self.letters = letters

    def __call__(self, rows):
        CALLS.append(len(rows))
        return counted(rows, self.letters)


def test_texts_of_any_source_become_vectors(tmp_path):
    TEXTS.to_csv(tmp_path / "texts.csv", index=False)
    given = [tmp_path / "texts.csv", TEXTS, (list(TEXTS["text"]), list(TEXTS["kind"]))]
    made = [as_dataset(hf.Source(data, features=counted), 0) for data in given]
    for data in made:
        assert data.shape == (2,) and data.classes == ("x", "y") and (data.x == made[0].x).all()
    assert made[0].read["features"].startswith("counted ") and made[0].read["label"] == "kind"
    assert hf.run("er", hf.stream("split", data=hf.Source(TEXTS, features=counted), tasks=2)).R.shape == (2, 2)


def test_they_are_computed_once_in_batches_and_for_all_seeds(home, monkeypatch):
    monkeypatch.setattr("holdfast.data.features.BATCH", 25)
    source = hf.Source(TEXTS, features=functools.partial(counted_and_noted, letters="ab"))
    one, two = as_dataset(source, 0), as_dataset(source, 1)
    assert CALLS == [25, 25, 10] and not (one.x == two.x).all() and len(list(home.iterdir())) == 1
    again = as_dataset(hf.Source(TEXTS, features=functools.partial(counted_and_noted, letters="ab")), 0)
    assert (again.x == one.x).all() and again.fingerprint == one.fingerprint


def counted_and_noted(rows, letters):
    NOTED(len(rows))
    return counted(rows, letters)


NOTED = CALLS.append  # a list that grows is another each time, but the method of a list is not looked into


def test_what_is_kept_is_found_by_the_content_of_data_and_of_features(home):
    def made(data=TEXTS, letters="ab"):
        CALLS.clear()
        as_dataset(hf.Source(data, features=Scaled(letters)), 0)
        return len(list(home.iterdir()))

    assert [made(), made(), made(letters="ba"), made(TEXTS[:50]), made()] == [1, 1, 2, 3, 3]


class Scaled:
    """A callable with a state of its own, and no side effects."""

    def __init__(self, letters):
        self.letters, self.weights = letters, torch.ones(len(letters))

    def __call__(self, rows):
        return torch.from_numpy(counted(rows, self.letters)) * self.weights


def test_a_module_sees_images_as_a_network_does_and_does_not_train():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Flatten(), nn.Linear(64, 3), nn.Dropout(0.5)).train()
    data = as_dataset(hf.Source("digits", features=module), 0)
    digits = as_dataset("digits", 0)
    with torch.no_grad():
        wanted = module[1](digits.x.float().div(255).flatten(1))
    assert torch.allclose(data.x, wanted) and len(data.x_test) == len(digits.x_test)
    assert module.training and module[2].training and all(p.grad is None for p in module.parameters())
    rows = new_rows(hf.Source(((digits.x[:4]), digits.y[:4]), features=module), Reading(), True, first=True)
    assert torch.allclose(rows.x, wanted[:4], atol=1e-6) and rows.reading.features == data.read["features"]


def test_what_cannot_be_compared_is_not_kept(home):
    stream = open(__file__)  # noqa: SIM115
    data = as_dataset(hf.Source(TEXTS, features=lambda rows: counted(rows) + stream.closed), 0)
    stream.close()
    assert not home.exists() and "not kept, for they depend on a _io.TextIOWrapper" in data.told[0]


def test_a_spoiled_file_is_computed_anew(home):
    first = as_dataset(hf.Source(TEXTS, features=counted), 0)
    (path,) = home.iterdir()
    for content in (b"", path.read_bytes()[:-4], path.read_bytes().replace(b"F32", b"I32"), b"\x80\x04."):
        path.write_bytes(content)
        assert (as_dataset(hf.Source(TEXTS, features=counted), 0).x == first.x).all()


def test_a_folder_that_cannot_be_written_costs_only_time(home):
    home.parent.mkdir()
    home.write_text("in the way")
    data = as_dataset(hf.Source(TEXTS, features=counted), 0)
    assert data.shape == (2,) and "cannot be written" in data.told[0]


def broken(rows):
    raise KeyError("text")


@pytest.mark.parametrize(
    ("features", "words"),
    [
        (broken, "features of broken for rows 1 to 60 cannot be computed: KeyError: 'text'"),
        (lambda rows: np.zeros(len(rows)), "have the shape (60,); expected a vector for each of 60 rows"),
        (lambda rows: np.zeros((3, 2)), "have the shape (3, 2); expected a vector for each of 60 rows"),
        (lambda rows: np.full((len(rows), 2), np.nan), "must be finite"),
    ],
)
def test_features_that_are_none_are_refused_in_a_line(features, words):
    with pytest.raises(BadInput) as caught:
        as_dataset(hf.Source(TEXTS, features=features), 0)
    assert len(caught.value.faults) == 1 and words in caught.value.faults[0]


# Of rows that come later


def test_a_model_of_features_is_shown_the_same_features_of_new_rows():
    first = new_rows(hf.Source(TEXTS, features=counted), Reading(), labelled=True, first=True)
    later = hf.Source(TEXTS[["text"]], features=counted)  # whose last column is no label
    rows = new_rows(later, first.reading, labelled=False)
    assert first.reading.label == "kind" and torch.equal(rows.x, first.x) and rows.classes is None
    alone = new_rows(hf.Source(TEXTS[TEXTS["kind"] == "y"], features=counted), first.reading, labelled=True)
    assert set(alone.classes) == {"y"} and alone.reading == first.reading


def test_other_features_than_the_model_learned_through_are_refused_or_told():
    reading = new_rows(hf.Source(TEXTS, features=Scaled("ab")), Reading(), labelled=True, first=True).reading
    for data, fault in [
        (TEXTS, "learned through features of Scaled; give them: features=..., --features"),
        (hf.Source(TEXTS, features=counted), "learned through features of Scaled, not of counted"),
    ]:
        with pytest.raises(BadInput, match=fault):
            new_rows(data, reading, labelled=True)
    changed = new_rows(hf.Source(TEXTS, features=Scaled("ba")), reading, labelled=True)
    assert "Scaled has changed since the model learned through it" in changed.told
    table = new_rows(TEXTS, Reading(), labelled=True, first=True).reading
    with pytest.raises(BadInput, match="learned from the columns of a table, not from features of counted"):
        new_rows(hf.Source(TEXTS, features=counted), table, labelled=True)
