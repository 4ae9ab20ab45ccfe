"""Whatever a user has at hand becomes one canonical data set, or is refused with all its faults at once."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from holdfast.data import Source, as_dataset, load
from holdfast.errors import BadInput

X = np.arange(20 * 3).reshape(20, 3).astype(np.float32)
Y = np.arange(20) % 2


def faults_of(data):
    with pytest.raises(BadInput) as caught:
        as_dataset(data, seed=0)
    return caught.value.faults


def test_a_data_set_and_a_name_are_taken_as_they_are():
    digits = load("digits")
    assert as_dataset(digits, seed=3) is digits and as_dataset("digits", seed=3) is digits


def test_arrays_are_split_80_20_per_class_with_the_seed():
    y = np.array([7] * 50 + [3] * 30)
    x = np.arange(80.0)[:, None]
    made = as_dataset((x, y), seed=0)
    assert made.classes == ("3", "7") and made.x.dtype == torch.float32
    assert made.y_test.bincount().tolist() == [6, 10] and made.y.bincount().tolist() == [24, 40]
    rows = torch.cat([made.x, made.x_test]).flatten()
    assert rows.sort().values.tolist() == list(range(80))
    assert (torch.from_numpy(y)[made.x_test.flatten().long()] == torch.tensor([3, 7])[made.y_test]).all()
    again, other = as_dataset((x, y), seed=0), as_dataset((x, y), seed=1)
    assert again.x_test.equal(made.x_test) and not other.x_test.equal(made.x_test)


def test_the_fingerprint_is_of_what_was_given_however_the_seed_splits_it():
    x, y = torch.from_numpy(X), torch.from_numpy(Y)
    for data in ((X, Y), TensorDataset(x, y), [TensorDataset(x, y), TensorDataset(x, y)], (X, Y, X[:4], Y[:4])):
        assert as_dataset(data, seed=0).fingerprint == as_dataset(data, seed=1).fingerprint
    moved, swapped = X.copy(), Y.copy()
    moved[3] += 1
    swapped[:2] = Y[1::-1]
    named = Y.astype(str)
    split = as_dataset((X, Y), seed=0)  # as a user may split it, too
    parts = (split.x.numpy(), split.y.numpy(), split.x_test.numpy(), split.y_test.numpy())
    others = [(X, Y), (moved, Y), (X, swapped), (X[:-2], Y[:-2]), (X[::-1], Y[::-1]), parts, (X, Y, X[:4], Y[:4])]
    assert len({as_dataset(data, seed=0).fingerprint for data in others}) == len(others)
    assert as_dataset((X, named), seed=0).fingerprint == split.fingerprint  # '0' and 0 are the same class


def test_four_arrays_are_taken_as_they_are():
    made = as_dataset((X, Y, X[:4], Y[:4]), seed=0)
    assert (made.x.numpy() == X).all() and made.y_test.tolist() == [0, 1, 0, 1]
    X2 = X.copy()
    made = as_dataset((X2, Y, X2, Y), seed=0)
    X2[:] = -1
    assert made.x.min() == 0, "the data set has its own memory"


@pytest.mark.parametrize(
    ("shape", "canonical"),
    [
        ((20, 5), (5,)),
        ((20, 6, 7), (1, 6, 7)),
        ((20, 3, 8, 9), (3, 8, 9)),
        ((20, 8, 9, 3), (3, 8, 9)),
        ((20, 8, 9, 1), (1, 8, 9)),
        ((20, 3, 9, 3), (3, 9, 3)),
    ],
)
def test_images_get_their_channels_first_and_bytes_stay_bytes(shape, canonical):
    x = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    made = as_dataset((x, Y, x, Y), seed=0)
    assert made.shape == canonical and made.x.dtype == torch.uint8 and made.x.is_contiguous()
    if shape[-1] == 3 and shape[1] == 8:
        assert (made.x[5, 2].numpy() == x[5, :, :, 2]).all()


def test_other_numbers_become_float32():
    for kind in (np.int64, np.float64, np.float16, bool):
        assert as_dataset((X.astype(kind), Y), seed=0).x.dtype == torch.float32
    assert as_dataset((torch.zeros(20, 3, dtype=torch.bfloat16), torch.from_numpy(Y)), 0).x.dtype == torch.float32


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["b", "a"] * 10, ("a", "b")),
        (np.array(["b", "a"] * 10, object), ("a", "b")),
        (np.array([5, -1] * 10), ("-1", "5")),
        (np.array([5, 4] * 10, object), ("4", "5")),
        (torch.tensor([5, 10] * 10), ("5", "10")),
        (np.array([3] * 20, np.uint8), ("3",)),
    ],
)
def test_labels_are_numbered_in_order_and_keep_their_names(labels, classes):
    made = as_dataset((X, labels), seed=0)
    assert made.classes == classes and made.y.dtype == torch.int64
    assert set(made.y.tolist()) == set(range(len(classes)))


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((X * np.nan, Y), ["x has NaN or infinite values in 20 of its 20"]),
        ((X.astype(np.float64) + 1e300, Y), ["NaN or infinite"]),
        ((X, Y[:-1]), ["x has 20 examples but y has 19 labels"]),
        ((X[:0], Y[:0]), ["x is empty", "y is empty"]),
        ((X[:, 0], Y), ["x has 1 dimensions (20,)"]),
        ((X.reshape(20, 1, 1, 1, 3), Y), ["x has 5 dimensions"]),
        ((np.zeros((20, 5, 5, 5)), Y), ["1, 3 or 4 channels must come first or last"]),
        ((X, Y[:, None]), ["y must be one-dimensional", "(20, 1)"]),
        ((X, Y.astype(float)), ["y must hold integers or strings, not float64"]),
        ((X, np.where(Y == 1, np.nan, 0)), ["y is NaN in 10 of its 20 labels"]),
        ((X, -Y.astype(float)), ["y must hold integers or strings"]),
        ((X, [None] * 20), ["y must hold integers or strings, all of one kind, not NoneType"]),
        ((X, np.array([1, "a"] * 10, object)), ["not int, str"]),
        ((X, [2**70, 1] * 10), ["y must hold integers"]),
        ((X, [[1], [1, 2]]), ["y cannot be made one array"]),
        ((X.astype(complex), Y), ["x must hold numbers, not complex128"]),
        ((["a"] * 20, Y), ["x must hold numbers"]),
        (([np.zeros(3), np.zeros(4)] * 10, Y), ["x cannot be made one array"]),
        ((X, [0] * 19 + [1]), ["one example only", "1;"]),
        ((X, Y, X, Y + 1), ["y_test has labels that y does not have: 2"]),
        ((X, Y, X[:, :2], Y), ["(3,)", "(2,)"]),
        ((X, Y, X.astype(np.uint8), Y), ["x is float32 but x_test is uint8"]),
        ((X, Y, X, Y.astype(str)), ["both must be integers or both strings"]),
        ((X, Y, X + np.inf, Y[1:]), ["x_test has NaN", "x_test has 20 examples but y_test has 19"]),
        ((X * np.nan, Y[1:], X[:, 1:], Y + 7), ["x has NaN", "20 examples but y has 19", "(2,)", "7, 8"]),
        (X, ["data must be", "not a ndarray"]),
        ((X, Y, X), ["not a tuple of 3 items"]),
        (None, ["data must be"]),
    ],
)
def test_bad_data_is_refused_with_all_its_faults(data, words):
    text = "\n".join(faults_of(data))
    for word in words:
        assert word in text


class Pairs(Dataset):
    def __init__(self, items):
        self.items = items

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


class Endless(IterableDataset):
    def __iter__(self):
        yield X[0], 0


def test_torch_data_sets_are_read_item_by_item():
    wanted = as_dataset((X, Y), seed=0)
    for data in (
        TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
        Pairs([(torch.from_numpy(x), int(y)) for x, y in zip(X, Y, strict=True)]),
        Pairs([(x, torch.tensor(y)) for x, y in zip(X, Y, strict=True)]),
    ):
        made = as_dataset(data, seed=0)
        assert made.fingerprint == wanted.fingerprint
    both = as_dataset((TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), Pairs([(X[0], 0)])), seed=0)
    assert len(both.x) == 20 and len(both.x_test) == 1
    assert "IterableDataset" in faults_of(Endless())[0]
    assert "item 0" in faults_of(Pairs([X[0]]))[0]
    assert faults_of(Pairs([]))


class Hub:
    """Looks like a Hugging Face Dataset."""

    def __init__(self, names=None, **columns):
        self.columns = columns
        self.column_names = list(columns)
        self.features = {name: SimpleNamespace(names=names if "label" in name else None) for name in columns}

    def __getitem__(self, name):
        return self.columns[name]


def test_hugging_face_data_sets_are_known_by_their_looks():
    image = pytest.importorskip("PIL.Image")
    pictures = [image.new("RGB", (6, 5), (i, 2, 3)) for i in range(20)]
    made = as_dataset(Hub(img=pictures, fine_label=Y.tolist(), names=["zebra", "ant"]), seed=0)
    assert made.classes == ("zebra", "ant") and made.shape == (3, 5, 6) and made.x.dtype == torch.uint8
    assert made.x[0, :, 0, 0].tolist() in [[i, 2, 3] for i in range(20)]
    both = as_dataset({"train": Hub(x=X.tolist(), y=Y.tolist()), "test": Hub(x=X[:2].tolist(), y=[0, 1])}, seed=0)
    assert len(both.x) == 20 and len(both.x_test) == 2
    alone = as_dataset({"train": Hub(x=X.tolist(), y=Y.tolist())}, seed=0)
    assert len(alone.x) == 16 and len(alone.x_test) == 4


def test_a_hugging_face_data_set_without_images_is_a_table(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_DATA", str(tmp_path))
    part = Hub(names=["ant", "zebra"], size=[float(i) for i in range(20)], hue=["a", "b"] * 10, label=Y.tolist())
    made = as_dataset(part, seed=0)
    assert made.classes == ("ant", "zebra") and made.shape == (4,) and len(made.x_test) == 4
    both = as_dataset({"train": part, "test": part}, seed=0)
    assert (both.x == both.x_test).all() and len(both.x) == 20
    texts = Source(Hub(title=["a", "bb"] * 10, topic=Y.tolist()), label="topic", features=lengths)
    assert as_dataset(texts, seed=0).x[:2].tolist() == [[1.0], [2.0]]


def lengths(rows):
    return rows["title"].str.len().to_numpy()[:, None]


def test_wrong_hugging_face_data_sets_are_refused():
    assert len(faults_of(Hub(text=["a"], target=[1]))) == 2
    assert "this one has ['validation']" in faults_of({"validation": Hub(x=X, y=Y)})[0]
    assert "from 0 to 1" in faults_of(Hub(image=X, label=Y - 1, names=["a", "b"]))[0]
    differing = {"train": Hub(x=X, label=Y, names=["a", "b"]), "test": Hub(x=X, label=Y, names=["b", "a"])}
    assert "differently" in faults_of(differing)[0]


@settings(max_examples=150, deadline=None)
@given(
    x=hnp.arrays(
        st.sampled_from([np.uint8, np.float32, np.float64, np.int16]),
        hnp.array_shapes(min_dims=0, max_dims=5, max_side=4),
    ),
    y=st.one_of(
        hnp.arrays(st.sampled_from([np.int64, np.float64, np.uint8]), hnp.array_shapes(max_dims=2, max_side=4)),
        st.lists(st.one_of(st.integers(), st.text(max_size=2), st.none(), st.floats()), max_size=4),
    ),
)
def test_any_arrays_become_a_data_set_or_are_refused(x, y):
    try:
        made = as_dataset((x, y), seed=0)
    except BadInput as error:
        refused = error.faults
    else:
        refused = ()
        assert made.x.dtype in (torch.uint8, torch.float32) and made.x.ndim in (2, 4)
        assert len(made.x) + len(made.x_test) == len(y) and torch.isfinite(made.x.float()).all()
    assert len(set(refused)) == len(refused)
