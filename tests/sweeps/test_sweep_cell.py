"""A cell's hash: it changes with all that decides the result, and with nothing else."""

import functools
import importlib.util
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.errors import BadInput
from holdfast.sweeps import Cell


class Wide(nn.Module):
    def __init__(self, hidden, outputs=10):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(64, hidden), nn.ReLU(), nn.Linear(hidden, outputs))

    def forward(self, x):
        return self.layers(x)


def wide(info, hidden=4):
    return Wide(hidden, info.classes)


def capturing(hidden):
    return lambda info: Wide(hidden)


def module(seed, hidden=4):
    torch.manual_seed(seed)
    return Wide(hidden)


PROTOCOL = {
    "batch": 5, "lr": 0.2, "optimiser": "adam", "momentum": 0.5, "decay": 0.1, "reset_optimiser": True,
    "score_every": 3, "score_first": 2, "clip": 1.0, "schedule": "cosine", "schedule_every": 5, "schedule_factor": 0.5,
}  # fmt: skip
STREAM = {
    "tasks": 3, "examples": 50, "test_examples": 20, "val": 0.1, "scenario": "task", "order": "random", "sizes": (1, 2),
}  # fmt: skip
NET = {"hidden": (9,), "dropout": 0.1, "input_dropout": 0.1, "init": "xavier"}
GEM = {"memories": 3, "margin": 0.0, "total": 5}


def changed_cells(cell):
    small = {"tasks": 2, "examples": 60, "test_examples": 30}
    yield "the usual", cell("gem")
    yield "another method", cell("agem")
    yield "another seed", cell("gem", seed=1)
    yield "another stream", cell("gem", stream=hf.stream("permuted", **small))
    yield "another protocol", cell("gem", protocol=hf.protocol("epochs", epochs=1))
    yield "epochs", cell("gem", protocol=hf.protocol("epochs", epochs=2))
    yield "another net", cell("gem", net=hf.net("conv"))
    for name, value in GEM.items():
        yield f"gem {name}", cell(hf.method("gem", **{name: value}))
    for name, value in PROTOCOL.items():
        yield f"protocol {name}", cell("gem", protocol=hf.protocol("online", **{name: value}))
    for name, value in STREAM.items():
        yield f"stream {name}", cell("gem", stream=hf.stream("split", **(small | {name: value})))
    for name, value in NET.items():
        yield f"net {name}", cell("gem", net=hf.net("mlp", **({"hidden": (8,)} | {name: value})))
    data = hf.stream("split", **small).tasks[0].train.pixels[:100], torch.arange(100) % 4
    other = data[0].clone()
    other[0, 0, 0, 0] += 1
    yield "own data", cell("gem", stream=hf.stream("split", data, tasks=2))
    yield "one pixel of it", cell("gem", stream=hf.stream("split", (other, data[1]), tasks=2))
    yield "own function", cell("gem", net=wide)
    yield "with an argument", cell("gem", net=functools.partial(wide, hidden=5))
    yield "with another", cell("gem", net=functools.partial(wide, hidden=6))
    yield "own closure", cell("gem", net=capturing(5))
    yield "over another value", cell("gem", net=capturing(6))
    yield "own module", cell("gem", net=module(0))
    yield "with other weights", cell("gem", net=module(1))


def test_the_hash_changes_with_every_setting(cell):
    hashes: dict[str, str] = {}
    for what, made in changed_cells(cell):
        assert made.hash not in hashes, f"{what} has the hash of {hashes[made.hash]}"
        hashes[made.hash] = what
    assert len(hashes) == 7 + len(GEM) + len(PROTOCOL) + len(STREAM) + len(NET) + 9


def test_equal_cells_have_equal_hashes(cell):
    again = dict(changed_cells(cell))
    assert all(made.hash == again[what].hash for what, made in changed_cells(cell))


def test_the_order_of_settings_plays_no_part(cell, stream):
    turned = replace(stream, settings=dict(reversed(stream.settings.items())))
    assert list(turned.settings) != list(stream.settings)
    assert cell(stream=turned).hash == cell().hash


def test_a_stream_taken_as_it_is_counts_with_its_seed(cell, stream):
    other = stream.reseed(5)
    assert cell(stream=other, reseed=False).hash != cell(stream=stream, reseed=False).hash
    assert cell(stream=other).hash == cell(stream=stream).hash  # each cell cuts it anew


METHOD = """
import holdfast as hf

class Base(hf.Learner):
    def helper(self):
        return {helper}

class Mine(Base):
    def observe(self, batch):
        return self.descend({factor} * self.cross_entropy(batch))

class Inner(hf.engine.theta.nn.Module):
    def forward(self, x):
        return {factor} * x
"""


def written(folder, name, **words):
    path = folder / f"{name}.py"
    path.write_text(METHOD.format(**({"helper": 1, "factor": 1} | words)))
    spec = importlib.util.spec_from_file_location(name, path)
    made = importlib.util.module_from_spec(spec)
    sys.modules[name] = made
    spec.loader.exec_module(made)
    return made


def test_the_hash_changes_with_a_users_source(cell, tmp_path):
    """Of the method, of the class it derives from, and of a module inside the network."""
    plain, other, base = (
        written(tmp_path, name, **words)
        for name, words in {"plain": {}, "other": {"factor": 2}, "base": {"helper": 2}}.items()
    )
    assert len({cell(m.Mine()).hash for m in (plain, other, base)}) == 3
    torch.manual_seed(0)
    layer = nn.Linear(64, 10)
    nets = [nn.Sequential(nn.Flatten(), m.Inner(), layer) for m in (plain, other, base)]
    hashes = [cell(net=net).hash for net in nets]
    assert len(set(hashes)) == 3  # the whole file counts: a helper beside the class decides results, too
    (tmp_path / "plain.py").touch()
    assert cell(plain.Mine()).hash == cell(plain.Mine()).hash


HASHES = """
import functools, sys
sys.path.insert(0, {folder!r})
import holdfast as hf, own_nets
from holdfast.sweeps import Cell
stream = hf.stream("split", tasks=2, examples=60, test_examples=30)
for net in (hf.net("mlp"), own_nets.build, functools.partial(own_nets.build, hidden=3), own_nets.capture(4)):
    print(Cell(hf.method("gem"), stream, net, hf.protocol("online"), 0).hash)
"""


def test_the_hash_is_the_same_in_another_process(tmp_path, monkeypatch, capsys):
    (tmp_path / "own_nets.py").write_text(
        "from torch import nn\n"
        "def build(info, hidden=2):\n    return nn.Sequential(nn.Flatten(), nn.Linear(64, info.classes))\n"
        "def capture(hidden):\n    return lambda info: build(info, hidden)\n"
    )
    code = HASHES.format(folder=str(tmp_path))
    there = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    monkeypatch.syspath_prepend(tmp_path)
    exec(code, {})
    assert capsys.readouterr().out == there
    assert len(set(there.split())) == 4


def test_names_tell_method_and_seed(cell):
    made = cell("gem", seed=7)
    assert made.name == f"gem-s7-{made.hash[:8]}"


@pytest.mark.parametrize(
    ("net", "fault"),
    [
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), r"gives outputs of shape \(3,\), the stream needs \(10,\)"),
        (nn.Linear(5, 10), r"does not take examples of shape \(1, 8, 8\): "),
        (nn.Flatten(), "the network Flatten has no parameters to train"),
        (lambda info: 3, "net must make an nn.Module, but <lambda> made a int"),
        (nn.Sequential(nn.Flatten(), nn.Linear(64, 10)).double(), r"must all be float32, not torch\.float64"),
    ],
)
def test_networks_that_do_not_fit_are_refused_before_the_first_step(net, fault, cell):
    with pytest.raises(BadInput, match=fault):
        cell(net=net).check()


def test_methods_that_need_the_task_are_refused_where_it_is_hidden(cell):
    with pytest.raises(BadInput, match="method 'independent' needs the task label, which the 'class' scenario hides"):
        cell("independent").check()


def test_unknown_devices_are_refused(cell):
    with pytest.raises(BadInput, match="device 'tpu9' is not available here; choose from auto, cpu, cuda, mps"):
        cell(device="tpu9").run()


def test_a_run_leaves_the_global_generator_and_its_inputs_alone(cell, stream):
    net = module(0)
    weights = {k: v.clone() for k, v in net.state_dict().items()}
    made = cell("er", net=net)
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first, again = made.run(), made.run()
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    assert all(torch.equal(v, net.state_dict()[k]) for k, v in weights.items())
    assert (first.R == again.R).all()
    assert "net" not in vars(made.method)
    assert isinstance(made, Cell)


def test_a_shape_that_is_open_to_choice_is_another_cell_only_where_it_is_chosen(cell):
    """`mlp` and `mlp hidden=(100, 100)` are one network, but `realistic` chooses the shape of the first."""
    nets = hf.net("mlp"), hf.net("mlp", hidden=(100, 100))
    for protocol, same in (("online", True), ("realistic", False), ("application", False)):
        pair = [cell("finetune", net=net, protocol=hf.protocol(protocol)).hash for net in nets]
        assert (pair[0] == pair[1]) is same


def test_given_and_tuned_values_are_different_cells(cell):
    from holdfast.sweeps.choice import Choice, Trial

    given = cell(hf.method("ewc", strength=3.0))
    choice = Choice({"strength": 3.0}, (Trial({"strength": 3.0}, 0.5, seconds=7.0, flops=70.0),))
    tuned, dearer = (replace(choice.applied(cell("ewc")), choice_cost=cost) for cost in (choice.cost, {"runs": 2}))
    assert len({given.hash, tuned.hash, dearer.hash}) == 3
    assert cell(hf.method("ewc", strength=10.0)).hash == cell("ewc").hash  # the default, given or not


def test_a_tuned_run_does_not_find_the_record_of_a_given_one(tmp_path):
    stream = hf.stream("rotated", tasks=2, examples=40, val=0.2)
    given = Cell(hf.method("ewc", strength=3.0), stream, hf.net("mlp"), hf.protocol("online"), 0)
    hf.run_cells([given], tmp_path / "a")
    tuned = hf.tune("ewc", stream, {"strength": [3.0]}, jobs=1)
    later = replace(tuned.choice.applied(tuned.cell), reseed=True)
    hf.run_cells([later], tmp_path / "b", sources=[tmp_path / "a"])
    (record,) = hf.Comparison.read(tmp_path / "b").records
    assert record.settings["strength"]["chosen_by"] == "val:stream" and record.resources["trials"]["runs"] == 1


def test_a_given_module_counts_once():
    """The user's module is theirs; what a learner has is a copy of it."""
    stream = hf.stream("split", tasks=2, examples=30)
    given, made = (
        hf.run("finetune", stream, net=net).resources["bytes"]
        for net in (module(0, hidden=200), functools.partial(wide, hidden=200))
    )
    weights = 4 * sum(p.numel() for p in module(0, hidden=200).parameters())
    assert given == made and given[0] < 1.5 * weights


def test_parameters_are_those_of_the_network_as_it_has_grown():
    stream = hf.stream("split", tasks=3, examples=30, scenario="task")
    one = hf.run("finetune", stream).net["parameters"]
    assert hf.run("independent", stream).net["parameters"] == 3 * one


def _scaled_by(k, in_class=None):
    class Same(hf.Learner):
        scale = in_class

        def observe(self, batch, times=k):
            return self.descend(self.cross_entropy(batch) * k)

    return Same()


def test_what_a_method_captures_or_its_class_holds_tells_cells_apart(cell):
    cells = [cell(_scaled_by(k, held)) for k, held in ((1.0, None), (0.0, None), (1.0, 2), (1.0, torch.ones(2)))]
    assert len({each.hash for each in cells}) == 4
    assert cell(_scaled_by(1.0)).hash == cells[0].hash


HELPED = """
import mine, holdfast as hf
print(hf.Cell(mine.Mine(), hf.stream("split"), hf.net("mlp"), hf.protocol("online"), 0).hash)
"""


def test_a_helper_beside_a_users_file_tells_cells_apart(tmp_path, monkeypatch, capsys):
    (tmp_path / "mine.py").write_text(
        "import beside_it\nimport holdfast as hf\n\n\nclass Mine(hf.Learner):\n    def observe(self, batch):\n"
        "        return self.descend(self.cross_entropy(batch) * beside_it.K)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # files of one size and second would be taken for one another
    found = []
    for k in (1.0, 0.5):
        (tmp_path / "beside_it.py").write_text(f"K = {k}\n")
        exec(HELPED, {})
        found.append(capsys.readouterr().out)
        del sys.modules["mine"], sys.modules["beside_it"]
    there = subprocess.run([sys.executable, "-c", HELPED], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert found[0] != found[1] == there.stdout


def test_a_long_name_is_cut(cell):
    assert len(cell(type("L" * 300, (hf.Learner,), {"observe": lambda self, batch: None})()).name) < 120


@pytest.mark.parametrize(
    ("method", "passed", "idle"),
    [
        ("finetune", 1, 0), ("independent", 1, 2), ("mntdp", 1, 2), ("mntdp_s", 1, 2),
        ("new_head", 1, 2 * (4 * 3 + 3) / (64 * 4 + 4 + 4 * 3 + 3)),
    ],
)  # fmt: skip
def test_it_tells_what_a_row_of_the_last_task_passes_through(method, passed, idle):
    """In networks, of three tasks; of `mntdp`, which is told no path, all modules are new, and beside its library."""
    x, y = torch.zeros(12, 1, 8, 8), torch.arange(12) % 3
    stream = hf.stream("permuted", tasks=3, scenario="task", data=(x, y, x, y))
    cell = Cell(hf.method(method), stream, hf.net("mlp", hidden=(4,)), hf.protocol("epochs"), seed=0)
    whole = 64 * 4 + 4 + 4 * 3 + 3
    assert cell.passed() == (passed * whole, round(idle * whole))
