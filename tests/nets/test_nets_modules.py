"""Paper 000's networks, and how stacks are cut into modules."""

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.engine import Net, fisher
from holdfast.errors import BadInput
from holdfast.nets import nets
from holdfast.nets._modules import modules_of
from holdfast.nets.ctrl_resnet import CUTS, FirstTaskNorm
from holdfast.seeds import seeded
from holdfast.types import Batch, StreamInfo

STEM, STRIDED, BLOCK = 1856, 78208, 73984  # of width 64


def build(name, shape, classes=10, **settings):
    info = StreamInfo("hand-made", "class", shape, classes, (tuple(range(classes)),))
    return nets.make(name, settings).build(info)


def sizes(modules):
    return [sum(p.numel() for p in m.parameters()) for m in modules]


@pytest.mark.parametrize(
    ("name", "shape", "classes", "settings", "parameters"),
    [
        ("mlp", (1, 28, 28), 10, {"hidden": (1000, 1000)}, [785000, 1001000, 10010]),  # Table 7
        ("ctrl_resnet", (3, 32, 32), 10, {}, [1856, 147968, 152192, 152192, 78208, 73984, 650]),  # Table 8
        ("alexnet", (3, 32, 32), 5, {}, [3136, 73856, 131328, 2099200, 4196352, 10245]),  # Table 9
        ("alexnet", (3, 32, 32), 10, {"width": 24, "hidden": 512}, [1176, 10416, 18528, 197120, 262656, 5130]),
        ("conv", (1, 8, 8), 2, {"filters": (3,), "kernel": 3, "hidden": 4}, [30, 196, 10]),
    ],
)
def test_modules_have_the_parameters_that_paper_000_prints(name, shape, classes, settings, parameters):
    module = build(name, shape, classes, **settings)
    assert sizes(modules_of(module)) == parameters
    if name in ("ctrl_resnet", "alexnet"):
        assert sizes(module) == parameters  # its children are the modules


@pytest.mark.parametrize(
    ("modules", "parameters"),
    [
        (10, [STEM, BLOCK, BLOCK, STRIDED, BLOCK, STRIDED, BLOCK, STRIDED, BLOCK, 650]),
        (6, [STEM, 147968, 152192, 152192, 152192, 650]),
        (5, [STEM + 147968, 152192, 152192, 152192, 650]),
        (3, [STEM + 147968 + 152192, 2 * 152192, 650]),
    ],
)
def test_the_resnet_is_cut_elsewhere_with_the_same_parameters(modules, parameters):
    assert sizes(modules_of(build("ctrl_resnet", (3, 32, 32), modules=modules))) == parameters
    assert sum(parameters) == 607_050


def test_a_cut_changes_nothing_that_the_resnet_computes():
    x, answers = torch.rand(2, 3, 16, 16), []
    for modules in CUTS:
        with seeded(0):
            module = build("ctrl_resnet", (3, 16, 16), width=4, modules=modules)
        answers.append(module(x))
    assert all(torch.equal(answers[0], other) for other in answers)


def test_the_resnet_has_twenty_norms_and_three_strides():
    modules = list(build("ctrl_resnet", (3, 32, 32)).modules())
    norms = [m for m in modules if isinstance(m, nn.BatchNorm2d)]
    assert len(norms) == 20 and {m.num_features for m in norms} == {64}
    assert [m.stride for m in modules if isinstance(m, nn.Conv2d)].count((2, 2)) == 6
    assert not any(m.bias is not None for m in modules if isinstance(m, nn.Conv2d))


def test_alexnet_drops_as_the_paper_and_its_baselines_do():
    def dropped(**settings):
        return [m.p for m in build("alexnet", (3, 32, 32), width=2, **settings).modules() if isinstance(m, nn.Dropout)]

    assert dropped() == [0.2, 0.2, 0.5, 0.5, 0.5]
    assert dropped(dropout=(0.2, 0.2, 0.2, 0.5, 0.5)) == [0.2, 0.2, 0.2, 0.5, 0.5]
    with pytest.raises(BadInput, match=r"dropout of net 'alexnet' must have 5 values"):
        dropped(dropout=(0.2,))


def test_layers_without_a_weight_matrix_join_the_one_before():
    layers = [nn.Flatten(), nn.Dropout(0.1), nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2), nn.Tanh()]
    cut = modules_of(nn.Sequential(*layers))
    assert [list(module) for module in cut] == [layers[:5], layers[5:]]
    alone = nn.Linear(2, 2)
    assert modules_of(nn.Sequential(alone, nn.Linear(2, 1)))[0] is alone
    with pytest.raises(BadInput, match="a Linear is not a stack of modules"):
        modules_of(alone)


@pytest.mark.parametrize(
    ("name", "shape", "settings"),
    [("ctrl_resnet", (3, 12, 12), {"width": 3}), ("alexnet", (3, 20, 20), {"width": 3, "hidden": 7})],
)
def test_gradients_and_the_fisher_equal_a_loop_with_channels_last(name, shape, settings):
    torch.manual_seed(0)
    module = build(name, shape, 4, **settings)
    net, x, y = Net(module), torch.rand(6, *shape), torch.tensor([0, 1, 2, 3, 0, 1])
    assert all(p.stride(1) == 1 for m in module.modules() if isinstance(m, nn.Conv2d) for p in [m.weight])
    net(x).square().sum().backward()  # batch statistics have moved, as in training
    expected = torch.zeros(net.size)
    module.eval()
    for i in range(6):
        net.zero_grad()
        nn.functional.cross_entropy(net(x[i : i + 1]), y[i : i + 1]).backward()
        expected += net.grad**2 / 6
    module.train()
    found = fisher(net, Batch(x, y), None, "true")
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-8)
    assert all(m.training for m in module.modules())


def test_statistics_of_the_first_task_stay_while_scale_and_shift_learn():
    stream = hf.stream("split", tasks=2, examples=40, test_examples=20, seed=0)
    means = {}
    for statistics in ("each task", "first task"):
        ends = []

        class Noting(type(hf.method("finetune"))):
            def finish(self, train, ends=ends):
                norms = [m for m in self.net.module.modules() if isinstance(m, nn.BatchNorm2d)]
                ends.append([(m.running_mean.clone(), m.weight.detach().clone()) for m in norms])

        net = hf.net("ctrl_resnet", width=2, statistics=statistics)
        hf.run(Noting(), stream, net=net, protocol=hf.protocol("epochs", epochs=2, batch=10), seed=0)
        (first, second) = ends
        assert len(first) == 20
        assert all(not torch.equal(a[1], b[1]) for a, b in zip(first, second, strict=True))
        means[statistics] = [torch.equal(a[0], b[0]) for a, b in zip(first, second, strict=True)]
    assert means == {"each task": [False] * 20, "first task": [True] * 20}


def test_a_settled_norm_normalises_as_in_eval_mode():
    torch.manual_seed(0)
    norm, x = FirstTaskNorm(3), torch.rand(5, 3, 4, 4)
    assert torch.equal(norm(x), nn.BatchNorm2d(3)(x))
    norm.settle()
    before = norm.running_mean.clone()
    found = norm(x)
    assert norm.training and torch.equal(norm.running_mean, before) and torch.equal(found, norm.eval()(x))
