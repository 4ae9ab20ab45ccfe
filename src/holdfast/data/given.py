"""What a torch Dataset or a Hugging Face one holds, as a table of examples and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset

from holdfast.errors import BadInput

if TYPE_CHECKING:
    import pandas

IMAGE_COLUMNS = ("image", "img", "pixel_values", "x")
LABEL_COLUMNS = ("label", "labels", "y", "fine_label")


@dataclass(frozen=True)
class Table:
    """Rows as the user has them; `names` are the classes' names where labels are indices into them."""

    x: Any
    y: Any
    names: tuple[str, ...] | None = None


class Given(NamedTuple):
    """What a folder holds, read whole."""

    train: Table
    test: Table | None  # None: a share of each class of `train` becomes the test rows
    fingerprint: str  # sha256 over what was read


def from_torch(data: Dataset[Any]) -> Table:
    if isinstance(data, IterableDataset):
        raise BadInput("a torch IterableDataset cannot be cut into tasks; pass a map-style Dataset of (x, y) items")
    if isinstance(data, TensorDataset) and len(data.tensors) == 2:
        return Table(*data.tensors)
    items = [data[i] for i in range(len(data))]  # type: ignore[arg-type]
    wrong = next((i for i, item in enumerate(items) if not isinstance(item, tuple | list) or len(item) != 2), None)
    if wrong is not None:
        raise BadInput(f"every item of a torch Dataset must be (x, y), but item {wrong} is a {type(items[wrong])}")
    return Table([x for x, _ in items], [_plain(y) for _, y in items])


def from_splits(splits: Mapping[str, Any]) -> tuple[Table, Table | None]:
    if "train" not in splits or not all(is_hub(splits[part]) for part in ("train", "test") if part in splits):
        raise BadInput(f"a DatasetDict needs a split 'train' (and may have 'test'); this one has {sorted(splits)}")
    return from_hub(splits["train"]), from_hub(splits["test"]) if "test" in splits else None


def is_hub(data: Any) -> bool:
    """Hugging Face's Dataset, known by its looks: the package need not be installed."""
    return getattr(data, "column_names", None) is not None and isinstance(getattr(data, "features", None), Mapping)


def from_hub(data: Any) -> Table:
    columns = list(data.column_names)
    image = next((name for name in IMAGE_COLUMNS if name in columns), None)
    label = next((name for name in LABEL_COLUMNS if name in columns), None)
    faults = [
        f"the Hugging Face data set has no column for its {word} ({', '.join(names)}); it has {', '.join(columns)}"
        for word, names, found in (("images", IMAGE_COLUMNS, image), ("labels", LABEL_COLUMNS, label))
        if found is None
    ]
    if faults:
        raise BadInput(*faults)
    names = getattr(data.features.get(label), "names", None)  # of a ClassLabel
    return Table(list(data[image]), [_plain(y) for y in data[label]], tuple(names) if names else None)


def hub_frame(data: Any, label: str | None) -> tuple[pandas.DataFrame, str] | None:
    """One without images as a DataFrame, with the names of its classes, and its column of labels; None with images."""
    columns = list(data.column_names)
    label = label or next((name for name in LABEL_COLUMNS if name in columns), None)
    if label is None or label not in columns or any(name in columns for name in IMAGE_COLUMNS):
        return None
    import pandas

    frame = pandas.DataFrame({name: list(data[name]) for name in columns})
    names = getattr(data.features.get(label), "names", None)
    return (frame.assign(**{label: [names[y] for y in frame[label]]}) if names else frame), label


def _plain(label: Any) -> Any:
    """A label out of a 0-dimensional tensor or array."""
    return label.item() if isinstance(label, torch.Tensor | np.ndarray) and label.ndim == 0 else label
