"""What a frozen network makes of data: computed once, in batches, and kept below the data folder."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load as unpacked
from safetensors.numpy import save as packed
from torch import Tensor, nn

from holdfast.data.canonical import canonical, examples
from holdfast.data.files import data_folder
from holdfast.data.given import Given, Table
from holdfast.data.source import Features, Source, is_frame
from holdfast.disk import write_bytes
from holdfast.errors import BadInput, NotKept, guarded
from holdfast.identity import Unknown, digest
from holdfast.types import DataSet, as_float

BATCH = 256  # rows that are shown at once
FOLDER = ".features"  # below the data folder; no data set has such a name

Vectors = tuple[Given, str, str]  # them, whose they are, and what is told
_made: WeakKeyDictionary[Source, Vectors] = WeakKeyDictionary()


def featured(source: Source, seed: int, name: str, given: Given, said: dict[str, str]) -> DataSet:
    """The data set of the vectors; without test rows, 20 % of each class become them."""
    made, whose, told = vectors(source, given)
    data = canonical(name, made.train, made.test, seed)
    if len(data.classes) < 2:
        raise BadInput(f"{name} has the class {data.classes[0]} only; at least two are needed")
    return replace(data, read={**said, "features": whose}, told=(f"{name}: {told}",))


def vectors(source: Source, given: Given, keep: bool = True) -> Vectors:
    """The features of these rows, with their labels; computed once for a source, and once on this machine, unless
    nothing of them is to be kept on its disk."""
    if source not in _made:
        _made[source] = _computed(source, given) if keep else _unkept(source, given)
    return _made[source]


def _unkept(source: Source, given: Given) -> Vectors:
    assert source.features is not None
    made = computed(source.features, rows_of(given.train.x))
    told = f"features of {name_of(source.features)}: {made.shape[1]} numbers for each row"
    table = Table(made, given.train.y, given.train.names)
    return Given(table, None, given.fingerprint), signature(source.features), told


def _computed(source: Source, given: Given) -> Vectors:
    assert source.features is not None
    called = name_of(source.features)
    parts = [given.train, *([] if given.test is None else [given.test])]
    rows = [rows_of(part.x) for part in parts]
    try:
        made_of = digest(source.features)
        key = f"{BATCH} {torch.__version__} {made_of} {given.fingerprint or digest(_plain(rows))}"
        path = data_folder() / FOLDER / f"{hashlib.sha256(key.encode()).hexdigest()}.safetensors"
    except Unknown as unknown:
        found, made_of = [computed(source.features, each) for each in rows], ""
        where = f"not kept, for they depend on {unknown}, which cannot be compared"
    else:
        found = _kept(path, list(map(len, rows)))
        where = f"as kept in {path}"
        if not found:
            found, where = [computed(source.features, each) for each in rows], f"kept in {path}"
            try:
                write_bytes(path, packed({str(i): each for i, each in enumerate(found)}))
            except NotKept as error:
                where = f"not kept, for {path} cannot be written ({error.strerror})"
    tables = [Table(each, part.y, part.names) for each, part in zip(found, parts, strict=True)]
    told = f"features of {called}: {found[0].shape[1]} numbers for each row, {where}"
    made = Given(tables[0], tables[1] if len(tables) > 1 else None, given.fingerprint)
    return made, f"{called} {made_of[:16]}".strip(), told


def signature(features: Features) -> str:
    """What makes them: its name and, where it can be told, a digest of its code and weights."""
    try:
        return f"{name_of(features)} {digest(features)[:16]}"
    except Unknown:
        return name_of(features)


def computed(features: Features, rows: Any) -> np.ndarray:
    """(N, D) float32: what a frozen network, or any function, makes of these rows, batch by batch."""
    called, found = name_of(features), []
    with frozen(features) as device:
        for start in range(0, len(rows), BATCH):
            what = f"features of {called} for rows {start + 1} to {min(start + BATCH, len(rows))}"
            batch = rows.iloc[start : start + BATCH] if is_frame(rows) else rows[start : start + BATCH]
            with guarded(what, "be computed"):
                made = features(batch.to(device) if isinstance(batch, Tensor) and device else batch)
                made = made.detach().float().cpu().numpy() if isinstance(made, Tensor) else np.asarray(made, np.float32)
            if made.ndim < 2 or len(made) != len(batch):
                raise BadInput(f"{what} have the shape {made.shape}; expected a vector for each of {len(batch)} rows")
            found.append(made.reshape(len(made), -1).astype(np.float32))
            if found[-1].shape[1] != found[0].shape[1] or not np.isfinite(found[-1]).all():
                raise BadInput(f"{what} must be finite and {found[0].shape[1]} for each row, as for the rows before")
    return np.concatenate(found)


def rows_of(x: Any) -> Any:
    """What features are computed from: a DataFrame, images or vectors as a network sees them, or a list."""
    if is_frame(x):
        return x
    faults: list[str] = []
    made = examples(x, "x", faults)
    if made is not None:
        return as_float(torch.from_numpy(np.ascontiguousarray(made)))
    if isinstance(x, Tensor) or (isinstance(x, np.ndarray) and x.dtype.kind in "buif"):
        raise BadInput(*faults)
    return x.tolist() if isinstance(x, np.ndarray) else list(x)


def name_of(features: Features) -> str:
    return str(getattr(features, "__name__", type(features).__name__))


@contextmanager
def frozen(features: Features) -> Iterator[torch.device | None]:
    """A module does not train meanwhile, and no gradient is kept; gives where it lies."""
    whole = features if isinstance(features, nn.Module) else getattr(features, "__self__", None)  # of a method
    modules = list(whole.modules()) if isinstance(whole, nn.Module) else []
    training = [module for module in modules if module.training]
    tensors = [tensor for module in modules for tensor in (*module.parameters(False), *module.buffers(False))]
    try:
        for module in training:
            module.training = False
        with torch.no_grad():
            yield tensors[0].device if tensors else None
    finally:
        for module in training:
            module.training = True


def _plain(rows: list[Any]) -> list[Any]:
    """Rows as `digest` takes them."""
    return [{name: part.to_numpy() for name, part in each.items()} if is_frame(each) else each for each in rows]


def _kept(path: Path, lengths: list[int]) -> list[np.ndarray]:
    """Vectors that were computed before; nothing where there are none, or none for these rows."""
    with suppress(OSError, SafetensorError, KeyError, ValueError):
        held = unpacked(path.read_bytes())
        found = [held[str(i)] for i in range(len(lengths))]
        fine = all(each.dtype == np.float32 and each.ndim == 2 and np.isfinite(each).all() for each in found)
        if fine and list(map(len, found)) == lengths and len({each.shape[1] for each in found}) == 1:
            return found
    return []
