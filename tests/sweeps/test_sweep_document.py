"""Sweep files and grids: which cells they mean, and what is said when they mean none."""

import itertools
from pathlib import Path

import pytest

import holdfast as hf
from holdfast.settings import settings_of
from holdfast.sweeps import gridded, read_sweep, sweep_of

OWN = """
from dataclasses import dataclass
import holdfast as hf
from torch import nn

@dataclass
class Needy(hf.Learner):
    much: int
    more: float = 1.0
    def observe(self, batch):
        return self.descend(self.cross_entropy(batch))

class Wide(nn.Module):
    def __init__(self, info):
        super().__init__()
        self.inner = nn.Linear(64, info.classes)
    def forward(self, x):
        return self.inner(x.flatten(1))

def narrow(info):
    return nn.Sequential(nn.Flatten(), nn.Linear(64, info.classes))

@dataclass(frozen=True)
class Shows(hf.Passing):
    passes = 1
    much: int = 1

@dataclass(frozen=True)
class Slips(hf.StreamSpec):
    def plan(self, data, seed): raise IndexError("no such row")
"""


@pytest.fixture
def sweep(tmp_path):
    """The plan of a TOML text."""

    def read(text: str):
        (tmp_path / "some.toml").write_text(text)
        (tmp_path / "mine.py").write_text(OWN)
        return read_sweep(tmp_path / "some.toml")

    return read


def faults(sweep, text):
    with pytest.raises(hf.BadInput) as caught:
        sweep(text)
    return [fault.split("some.toml: ")[1] for fault in caught.value.faults]


def described(cell):
    return (
        cell.name.split("-")[0],
        getattr(cell.method, "strength", None),
        cell.stream.scenario,
        cell.net.hidden,
        cell.protocol.lr,
        cell.seed,
    )


def test_all_combinations_in_order(sweep):
    found = sweep("""
        seeds = [3, 1]
        [stream]
        scenario = ["class", "task"]
        [net]
        hidden = [[8], [4, 4]]
        [protocol]
        lr = [0.1, 0.2]
        [[method]]
        name = "ewc"
        strength = [1, 10]
        [[method]]
        name = "finetune"
    """)
    methods = [("ewc", 1.0), ("ewc", 10.0), ("finetune", None)]
    wanted = itertools.product(methods, ["class", "task"], [(8,), (4, 4)], [0.1, 0.2], [3, 1])
    assert [described(cell) for cell in found.cells] == [(*m, s, h, lr, seed) for m, s, h, lr, seed in wanted]
    assert found.name == "some"


def test_things_may_be_names_tables_or_lists_of_both(sweep):
    short = sweep('name = "x"\nmethod = "ewc"\nstream = "rotated"\n')
    long = sweep('[[method]]\nname = "ewc"\n[[stream]]\nname = ["rotated"]\n[net]\nname = "mlp"\n')
    assert short.name == "x"
    assert [c.name for c in short.cells] == [c.name for c in long.cells]
    mixed = sweep('method = ["finetune", {name = ["si", "ewc"], strength = [1, 2]}]')
    assert [described(c)[:2] for c in mixed.cells] == [
        ("finetune", None), ("si", 1.0), ("si", 2.0), ("ewc", 1.0), ("ewc", 2.0)
    ]  # fmt: skip


def test_the_same_cell_is_the_same_as_in_compare(sweep):
    (cell,) = sweep('method = {name = "ewc", strength = 5}\nstream = {name = "rotated", tasks = 3}').cells
    stream = hf.stream("rotated", tasks=3, seed=7)
    assert cell.name == hf.Cell(hf.method("ewc", strength=5.0), stream, hf.net("mlp"), hf.protocol("online"), 0).name


def test_lists_are_values_where_the_setting_takes_lists(sweep):
    one = sweep(
        'method = "finetune"\nstream = {name = "rotated", tasks = 3, angles = [0, 90]}\nnet = {hidden = [9, 5]}'
    )
    assert [(c.stream.settings["angles"], c.net.hidden) for c in one.cells] == [((0, 90), (9, 5))]
    two = sweep('method = "finetune"\nstream = {order = ["natural", "random", [1, 0, 2, 3, 4]]}')
    assert [c.stream.settings["order"] for c in two.cells] == ["natural", "random", (1, 0, 2, 3, 4)]


def test_overrides_change_what_they_match_in_order(sweep):
    text = """
        seeds = 2
        protocol = {lr = [0.1, 0.2]}
        method = ["finetune", {name = "ewc", strength = [1, 10]}]
        [[cell]]
        where.method = {name = "ewc", strength = 10}
        where.protocol.lr = 0.2
        set.protocol.lr = 0.05
        set.net.hidden = [7, 7]
        [[cell]]
        where.protocol.lr = [0.05]
        where.seed = 1
        skip = true
        [[cell]]
        where.method = "finetune"
        set.method = {name = "si", strength = 3}
        [[cell]]
        method = "joint"
        seeds = [5]
    """
    hundred = (100, 100)
    assert [described(cell) for cell in sweep(text).cells] == [
        *(("si", 3.0, "class", hundred, lr, seed) for lr in (0.1, 0.2) for seed in (0, 1)),
        *(("ewc", 1.0, "class", hundred, lr, seed) for lr in (0.1, 0.2) for seed in (0, 1)),
        *(("ewc", 10.0, "class", hundred, 0.1, seed) for seed in (0, 1)),
        ("ewc", 10.0, "class", (7, 7), 0.05, 0),
        *(("joint", None, "class", hundred, lr, 5) for lr in (0.1, 0.2)),
    ]


def test_defaults_count_in_where(sweep):
    text = 'method = "ewc"\n[[cell]]\nwhere.method.samples = 200\nwhere.stream.data = "digits"\nset.method.samples = 9'
    assert [c.method.samples for c in sweep(text).cells] == [9]


def test_cells_that_become_equal_are_one(sweep):
    found = sweep('method = {name = "ewc", strength = [1, 2]}\n[[cell]]\nwhere.method = "ewc"\nset.method.strength = 1')
    assert len(found.cells) == 1


def test_what_was_given_is_remembered_as_given(sweep):
    cell, changed = sweep(
        'method = {name = "ewc", strength = [1, 10]}\n[[cell]]\nwhere.method.strength = 10\nset.method.samples = 9'
    ).cells
    assert cell.method._chosen_by == {"strength": "given"}
    assert changed.method._chosen_by == {"strength": "given", "samples": "given"}


def test_own_networks(sweep):
    found = sweep('method = "finetune"\nnet = ["mine.py:Wide", "mine.py:narrow", "mlp"]').cells
    assert [type(c.net).__name__ for c in found] == ["type", "function", "MLP"]
    again = sweep_of({"method": "finetune", "net": [found[0].net, found[1].net, hf.net("mlp")]}).cells
    assert [c.name for c in again] == [c.name for c in found]


def test_own_methods_lie_beside_the_file(sweep):
    cells = sweep(
        'method = {name = "mine.py:Needy", much = [1, 2]}\n[[cell]]\nwhere.method = "Needy"\nset.method.more = 4'
    )
    assert [settings_of(c.method) for c in cells.cells] == [{"much": 1, "more": 4.0}, {"much": 2, "more": 4.0}]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["method:", "at least one"]),
        ('methods = "ewc"\nmethod = "ewc"', ["'methods'", "'method'"]),
        ("method = []", ["method:", "empty"]),
        ("method = 3", ["method:", "3", "holdfast list methods"]),
        ("method = {strength = 1}", ["method.name", "must be named"]),
        ('method = "ewx"', ["method:", "'ewx'", "'ewc'"]),
        ('method = ["si", {name = "ewx"}]', ["method[1].name:", "'ewx'", "'ewc'"]),
        ('method = {name = []}', ["method.name", "empty"]),
        ('method = {name = "ewc", strengh = 1}', ["method.strengh:", "'strength'"]),
        ('method = {name = "ewc", strength = [1, "x"]}', ["method.strength:", "number >= 0", "'x'"]),
        ('method = {name = "ewc", strength = []}', ["method.strength:", "empty"]),
        ('method = {name = "ewc", strength = nan}', ["method.strength:", "nan"]),
        ('method = {name = "ewc", strength = 1979-05-27}', ["method.strength:", "number >= 0"]),
        ('method = {name = "finetune", strength = 1}', ["method.strength:", "no settings"]),
        ('method = "mine.py:Nedy"', ["method:", "'Nedy'", "'Needy'"]),
        ('method = "mine.py:Needy"', ["method.much", "needs a value"]),
        ('method = "ewc"\nnet = {name = "mine.py:Wide", hidden = 3}', ["net.hidden:", "no settings"]),
        ('method = "ewc"\nnet = "mine.py:Wid"', ["net:", "'Wid'", "Wide"]),
        ('method = "ewc"\nprotocol = "mine.py:Show"', ["protocol:", "'Show'", "'Shows'"]),
        ('method = "ewc"\nprotocol = {name = "mine.py:Shows", muhc = 1}', ["protocol.muhc:", "'much'"]),
        ('method = "ewc"\nprotocol = {name = "mine.py:Shows", much = "x"}', ["protocol.much:", "'Shows'", "'x'"]),
        ('method = "ewc"\nprotocol = "mine.py:Slips"', ["protocol:", "not a Protocol"]),
        ('method = "ewc"\nstream = "mine.py:Slip"', ["stream:", "'Slip'", "'Slips'"]),
        ('method = "ewc"\nstream = "mine.py:Slips"', ["stream:", "stream 'Slips' cannot be made", "no such row"]),
        ('method = "independent"', ["'independent'", "scenario 'task'"]),
        ('method = "ewc"\nstream = "rotatd"', ["stream:", "'rotated'"]),
        ('method = "ewc"\nstream = {data = "mnits"}', ["stream:", "'mnits'", "'mnist'"]),
        ('method = "ewc"\nstream = {data = 3}', ["stream.data:", "name", "3"]),
        ('method = "ewc"\nstream = {tasks = 11}', ["stream:", "11 tasks", "10 classes"]),
        ('method = "ewc"\nnet = {hidden = [[8], [0]]}', ["net.hidden:", ">= 1", "[0]"]),
        ('method = "ewc"\nnet = {name = "conv", filters = [1, 1, 1, 1, 1]}', ["'conv' needs images"]),
        ('method = "ewc"\nprotocol = {epochs = 3}', ["protocol.epochs:", "'epochs'"]),
        ('method = "ewc"\nseeds = 0', ["seeds:", ">= 1"]),
        ('method = "ewc"\nseeds = "3"', ["seeds:"]),
        ('method = "ewc"\nseeds = [0, -1]', ["seeds:", ">= 0"]),
        ('method = "ewc"\nseeds = 99999', ["seeds:"]),
        ('method = "ewc"\ndevice = "gpu"', ["device:", "'gpu'"]),
        ('method = "ewc"\ndevice = 3', ["device:"]),
        ('method = "ewc"\nname = "../up"', ["name:", "'../up'"]),
        ('method = "ewc"\nname = ""', ["name:"]),
        ('method = "ewc"\ncell = 3', ["cell:", "[[cell]]"]),
        ('method = "ewc"\n[[cell]]\nwher.seed = 1', ["cell[0]:", "'wher'"]),
        ('method = "ewc"\n[[cell]]\nwhere.seed = 1\nset.method.samples = 1', ["cell[0].where:", "no cell"]),
        ('method = "ewc"\n[[cell]]\nwhere.seed = 0', ["cell[0]:", "`set`", "skip"]),
        ('method = "ewc"\n[[cell]]\nset.method.samples = 1', ["cell[0].where:", "which cells"]),
        ('method = "ewc"\n[[cell]]\nwhere.method = "ewx"\nskip = true', ["cell[0].where.method:", "'ewc'"]),
        ('method = "ewc"\n[[cell]]\nwhere.method.smples = 3\nskip = true', ["cell[0].where.method:", "'samples'"]),
        ('method = "ewc"\n[[cell]]\nwhere.method.samples = "x"\nskip = true', ["cell[0].where.method.samples:", "'x'"]),
        ('method = "ewc"\n[[cell]]\nwhere.sed = 0\nskip = true', ["cell[0].where:", "'sed'", "'seed'"]),
        ('method = "ewc"\n[[cell]]\nwhere.seed = 0\nset.method.smples = 1', ["cell[0].set.method.smples:", "samples"]),
        ('method = "ewc"\n[[cell]]\nwhere.seed = 0\nset.method.samples = [1, 2]', ["cell[0].set.method.samples:"]),
        ('method = "ewc"\n[[cell]]\nwhere.seed = 0\nskip = true', ["every cell"]),
        ('method = "ewc"\n[[cell]]\nmethod = "gme"', ["cell[0].method:", "'gem'"]),
        (f'method = {{name = "ewc", strength = {list(range(101))}}}\nseeds = 100', ["10100", "10000"]),
        ("method = 'ewc'\nseeds = 0x" + "f" * 5000, ["seeds:", "64 bits"]),
        ("method = 'ewc'\nseeds = " + "9" * 5000, ["not valid TOML"]),
        ("method = ", ["not valid TOML"]),
        ("method = " + "[" * 5000 + "]" * 5000, ["nested"]),
    ],
)  # fmt: skip
def test_one_fault_is_one_sentence(sweep, text, parts):
    found = faults(sweep, text)
    assert len(found) == 1, found
    assert all(part in found[0] for part in parts), found


def test_all_faults_are_told_at_once(sweep):
    found = faults(
        sweep,
        """
        name = "a/b"
        seeds = -1
        stream = {tasks = 11}
        net = {hiden = 3}
        protocol = {lr = [0.1, -1]}
        method = ["gme", {name = "ewc", strength = "x"}]
        cell = [{method = "sii"}]
        """,
    )
    for thing in ("a/b", "seeds", "11 tasks", "hiden", "-1", "gme", "'x'", "sii"):
        assert any(thing in fault for fault in found), thing
    assert len(found) == 8


def test_files_that_are_none(tmp_path):
    for path in (tmp_path, tmp_path / "nowhere.toml", Path("/dev/null")):
        with pytest.raises(hf.BadInput, match="is not a file"):
            read_sweep(path)
    (tmp_path / "latin.toml").write_bytes(b'method = "\xe9"')
    with pytest.raises(hf.BadInput, match=r"latin\.toml: is not valid TOML"):
        read_sweep(tmp_path / "latin.toml")


def test_grids_from_python():
    given = {"method": ["ewc", "finetune", hf.method("si", strength=7.0)], "stream": ["split"], "net": ["mlp"]}
    entries = gridded(
        {**given, "protocol": [hf.protocol("online", batch=5)]},
        {"strength": [1, 2], "ewc.samples": range(3, 5), "net.hidden": [(8,), (4, 4)], "protocol.lr": [0.3]},
    )
    cells = sweep_of({**entries, "seeds": [4]}).cells
    assert [(type(c.method).__name__, settings_of(c.method).get("samples"), *described(c)[1:]) for c in cells] == [
        *(("EWC", n, k, "class", h, 0.3, 4) for k in (1.0, 2.0) for n in (3, 4) for h in [(8,), (4, 4)]),
        *(("Finetune", None, None, "class", h, 0.3, 4) for h in [(8,), (4, 4)]),
        *(("SI", None, k, "class", h, 0.3, 4) for k in (1.0, 2.0) for h in [(8,), (4, 4)]),
    ]
    assert {c.protocol.batch for c in cells} == {5}
    assert cells[0].protocol._chosen_by == {"batch": "given", "lr": "given"}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"grid": {"strengh": [1]}}, "'strength'"),
        ({"grid": {"gem.memories": [1]}}, "owner of a grid 'gem'"),
        ({"grid": {"strength": 3}}, "list of values"),
        ({"grid": {"strength": []}}, "empty"),
        ({"grid": {"stream.tasks": [1]}, "streams": hf.stream("split")}, "no settings here"),
        ({"streams": 3}, "name of a stream"),
        ({"protocols": "onlin"}, "'online'"),
        ({"seeds": ["a"]}, "seeds"),
    ],
)
def test_faults_from_python(arguments, match):
    with pytest.raises(hf.BadInput, match=match):
        hf.sweep("ewc", **arguments)


def test_a_file_takes_no_other_words(tmp_path):
    with pytest.raises(hf.BadInput, match="says its own seeds"):
        hf.sweep(tmp_path / "x.toml", seeds=3)
