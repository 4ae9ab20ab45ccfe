"""State: what can be saved, and that it comes back whole."""

import errno
import sys
from collections import defaultdict, deque, namedtuple
from pathlib import Path

import pytest
import torch
from torch import nn

from holdfast.engine import Net, Plain, Reservoir
from holdfast.engine.state import pack, read, save, unpack
from holdfast.errors import NotKept

NESTED = {
    "numbers": [1, -2.5, True, None, 2**70, float("inf")],
    "text": "λ = 0.1\n",
    "pair": (1, (2, "three"), []),
    "by task": {0: torch.tensor([1, 2]), 7: {"deep": (torch.zeros(2, 0),)}},
    "mask": torch.tensor([True, False]),
    "byte": torch.arange(4, dtype=torch.uint8).view(2, 2),
    "half": torch.ones(3, dtype=torch.float16),
    "scalar": torch.tensor(3),
    "turned": torch.arange(6.0).view(2, 3).t(),
    "empty": {},
    "none": (),
}


def same(a, b):
    if isinstance(a, torch.Tensor):
        return isinstance(b, torch.Tensor) and a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and a == b


class Thing(Plain):
    def __init__(self, **values):
        vars(self).update(values)


def test_nested_structures_come_back_as_they_were(tmp_path):
    save(pack(NESTED, "x"), tmp_path / "deep" / "checkpoint")
    assert same(read(tmp_path / "deep" / "checkpoint"), NESTED)
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["checkpoint"]


@pytest.mark.parametrize("at", [1, 2, 3, "folder", "rename"])
def test_a_state_is_whole_or_not_there(at, tmp_path, monkeypatch):
    """Whatever goes wrong: writing one of its files, flushing, renaming; and the next save works."""
    state, written = sys.modules["holdfast.engine.state"], []
    fill = state.fill

    def full(path, *args):
        raise OSError(errno.ENOSPC, "No space left on device")

    def counted(path, content):
        written.append(path)
        fill(path, content[:3]) if len(written) == at else fill(path, content)
        if len(written) == at:
            full(path)

    with monkeypatch.context() as patch:
        patch.setattr(state, "fill", counted)
        if at == "folder":
            patch.setattr(state, "flush_folder", full)
        elif at == "rename":
            patch.setattr(Path, "rename", full)
        with pytest.raises(NotKept, match="No space left on device"):
            save({"i": 2, "t": torch.zeros(2)}, tmp_path / "c")
    assert list(tmp_path.iterdir()) == []
    save({"i": 3}, tmp_path / "c")
    assert read(tmp_path / "c") == {"i": 3}
    assert [p.name for p in tmp_path.iterdir()] == ["c"]


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors", "SHA256SUMS"])
@pytest.mark.parametrize("harm", ["cut", "flip", "empty", "gone"])
def test_damage_is_found(name, harm, tmp_path):
    save({"i": 12345, "t": torch.arange(50.0)}, tmp_path / "c")
    path = tmp_path / "c" / name
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes({"cut": content[:-1], "flip": content, "empty": b""}[harm])
    with pytest.raises((OSError, ValueError)):
        read(tmp_path / "c")


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    ("value", "where", "kind"),
    [
        ({"a": [0, object()]}, r"Thing\.kept\['a'\]\[1\]", "object"),
        (lambda: 0, r"Thing\.kept", "function"),
        (deque([1]), r"Thing\.kept", "deque"),
        (defaultdict(list), r"Thing\.kept", "defaultdict"),
        ([Point(1, 2)], r"Thing\.kept\[0\]", "Point"),
        ({(0, 1): 2}, r"Thing\.kept", "dict with other keys"),
        (nn.Linear(2, 2), r"Thing\.kept", "Linear"),
        ({1, 2}, r"Thing\.kept", "set"),
    ],
)
def test_what_cannot_be_saved_is_named(value, where, kind):
    with pytest.raises(TypeError, match=f"^{where} is a {kind}.*, which cannot be saved"):
        Thing(fine=1, kept=value).state()


def test_state_is_a_copy_both_ways():
    thing = Thing(t=torch.zeros(3), nested={"l": [torch.zeros(2)]})
    state = thing.state()
    thing.t += 1
    thing.nested["l"][0] += 1
    assert not state["t"].any()
    assert not state["nested"]["l"][0].any()
    thing.load(state)
    thing.t += 1
    thing.nested["l"].append(1)
    assert not state["t"].any()
    assert len(state["nested"]["l"]) == 1


def test_load_removes_what_came_later_and_brings_back_what_went():
    thing = Thing(a=1, b=2)
    state = thing.state()
    del thing.a
    thing.c = 3
    thing.load(state)
    assert vars(thing) == {"a": 1, "b": 2}


def test_things_with_state_take_it_back_in_place(tmp_path):
    """Networks may be called anything, also `generator`."""
    torch.manual_seed(0)
    thing = Thing(nets={"generator": Net(nn.Linear(2, 2)), "stateful": [Net(nn.Linear(1, 1))]}, rng=torch.Generator())
    generator, rng = thing.nets["generator"], thing.rng
    weights = generator.theta.detach().clone()
    save(thing.state(), tmp_path / "c")
    drawn = torch.rand(3, generator=rng)
    generator.set(torch.zeros(6))
    thing.load(read(tmp_path / "c"))
    assert thing.nets["generator"] is generator
    assert torch.equal(generator.theta, weights)
    assert thing.rng is rng
    assert torch.equal(torch.rand(3, generator=rng), drawn)


def test_a_memory_that_is_not_there_yet_cannot_take_its_state():
    state = Thing(memory=Reservoir(3)).state()
    with pytest.raises(TypeError, match=r"Thing\.memory cannot take back a Reservoir: make it in `start`"):
        Thing().load(state)


def test_a_trained_tensor_still_wants_gradients_after_load():
    thing = Thing(embedding=torch.ones(3, requires_grad=True), fixed=torch.ones(3))
    thing.load(thing.state())
    assert thing.embedding.requires_grad and thing.embedding.is_leaf
    assert not thing.fixed.requires_grad


def test_tensors_return_to_the_device_of_those_they_replace():
    assert unpack(torch.zeros(2, device="meta"), torch.zeros(2), "x").device.type == "meta"


def test_attributes_that_are_not_state_are_left_alone():
    class Partly(Thing):
        not_state = ("info",)

    thing = Partly(info=object(), a=1)
    assert thing.state() == {"a": 1}
    info = thing.info
    thing.load({"a": 2})
    assert thing.info is info


def test_files_hold_no_pickle(tmp_path):
    save(pack(NESTED, "x"), tmp_path / "c")
    names = ["SHA256SUMS", "state.json", "tensors.safetensors"]
    assert sorted(p.name for p in (tmp_path / "c").iterdir()) == names
    assert all(b"pickle" not in p.read_bytes() and p.read_bytes()[:2] != b"PK" for p in (tmp_path / "c").iterdir())
