"""Convolutions lie in θ with their channels last; whatever else a module has, it computes what it did before."""

import copy
import pickle

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.engine import Growing, Net, fisher, optimiser
from holdfast.types import Batch

LAST = torch.channels_last


def lies_last(t: Tensor) -> bool:
    return t.is_contiguous(memory_format=LAST)


def test_weights_and_gradients_of_convolutions_are_channels_last_views_and_stay_so():
    net = Net(nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 5, (2, 1)), nn.Flatten(), nn.Linear(125, 5)))
    x, y = torch.randn(7, 3, 8, 7), torch.randint(5, (7,))
    descent = optimiser("momentum", 0.1)
    for _ in range(3):
        net.collect(x, y)
        descent.step(net)
    for conv in (net.module[0], net.module[2]):
        for t, whole in ((conv.weight, net.theta), (conv.weight.grad, net.grad)):
            assert lies_last(t)
            assert t.untyped_storage().data_ptr() == whole.untyped_storage().data_ptr()
    assert net.collects()
    assert net.holds_weights()


def test_maps_are_channels_last_from_the_first_layer_to_the_last():
    """Also where images have one channel, whose two layouts are the same in memory."""
    for channels in (1, 3):
        net = Net(nn.Sequential(nn.Conv2d(channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)))
        maps = net(torch.randn(2, channels, 8, 8))
        assert lies_last(maps)
        assert not maps.is_contiguous()


def test_entries_of_a_vector_mean_the_same_everywhere(flat):
    """One number per weight, by its place (o, i, h, w), goes into θ and comes back through views, steps and states."""
    net = Net(nn.Conv2d(2, 3, 4))
    places = torch.arange(3 * 2 * 4 * 4.0).view(3, 2, 4, 4)
    vector = torch.zeros(net.size)
    net.unflatten(vector)["weight"].copy_(places)
    net.set(vector)
    assert torch.equal(net.module.weight, places)
    assert torch.equal(net.theta, flat([places, torch.zeros(3)]))
    (net.module.weight * places).sum().backward()
    assert torch.equal(net.grad, vector)
    twin = Net(nn.Conv2d(2, 3, 4))
    twin.load(net.state())
    assert torch.equal(twin.module.weight, places)


@pytest.mark.parametrize("copied", [Net.copy, copy.deepcopy, lambda net: pickle.loads(pickle.dumps(net))])
def test_copies_lie_as_the_original(copied):
    net = Net(nn.Sequential(nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 1)))
    twin = copied(net)
    assert torch.equal(twin.theta, net.theta)
    assert lies_last(twin.module[0].weight)
    assert torch.equal(twin.module[0].weight, net.module[0].weight)


class Viewing(nn.Module):
    """The maps of a convolution as rows, in the way of many tutorials."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.mix, self.out = nn.Conv2d(2, 3, 3), nn.Conv2d(3, 3, 1), nn.Linear(3 * 36, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.mix(self.conv(x)).view(len(x), -1))


class TiedTransposed(nn.Module):
    """A convolution and its transpose with one weight, and a linear layer that uses it, too."""

    def __init__(self) -> None:
        super().__init__()
        self.there, self.back = nn.Conv2d(2, 4, 3), nn.ConvTranspose2d(4, 2, 3)
        self.back.weight = self.there.weight

    def forward(self, x: Tensor) -> Tensor:
        maps = self.back(self.there(x).tanh()).flatten(1)
        return F.linear(maps[:, :18], self.there.weight.flatten(1))


class Mixed(nn.Module):
    """Convolutions in one, two and three dimensions, a parameter of four dimensions, and one without any."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two, self.three = nn.Conv1d(2, 3, 3), nn.Conv2d(2, 3, 3), nn.Conv3d(1, 3, (2, 3, 3))
        self.four, self.none = nn.Parameter(torch.randn(1, 3, 2, 6)), nn.Parameter(torch.tensor(0.5))

    def forward(self, x: Tensor) -> Tensor:
        a = self.one(x.flatten(2)).mean(-1)
        b = (self.two(x).mean(-2, keepdim=True) * self.four).mean((-1, -2))
        return a + self.none * b + self.three(x[:, None]).mean((-1, -2, -3))


def weight_normed() -> nn.Module:
    return nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Conv2d(2, 4, 3)), nn.Flatten(), nn.Linear(144, 5))


def old_weight_normed() -> nn.Module:
    return nn.Sequential(nn.utils.weight_norm(nn.Conv2d(2, 4, 3)), nn.Flatten(), nn.Linear(144, 5))


def grouped() -> nn.Module:
    separable = [nn.Conv2d(2, 6, 3, groups=2), nn.GroupNorm(2, 6), nn.Conv2d(6, 6, 3, groups=6), nn.Conv2d(6, 4, 1)]
    return nn.Sequential(*separable, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 5))


def dilated() -> nn.Module:
    layers = [nn.Conv2d(2, 3, 3, padding=2, dilation=2, padding_mode="circular"), nn.Tanh(), nn.PixelUnshuffle(2)]
    return nn.Sequential(*layers, nn.Conv2d(12, 4, 2, stride=2, bias=False), nn.Flatten(1), nn.Linear(16, 5))


def transposed() -> nn.Module:
    layers = [nn.ConvTranspose2d(2, 6, 3, groups=2, stride=2), nn.InstanceNorm2d(6, affine=True), nn.Tanh()]
    return nn.Sequential(*layers, nn.AvgPool2d(4), nn.Flatten(), nn.Linear(96, 5))


ODD = [Viewing, TiedTransposed, Mixed, weight_normed, old_weight_normed, grouped, dilated, transposed]


@pytest.mark.filterwarnings("ignore:.*weight_norm.*:FutureWarning")
@pytest.mark.parametrize("build", ODD)
def test_odd_modules_compute_what_they_did(build):
    """Outputs, gradients, gradients per group, Fisher and a step, against the module that no Net ever laid out."""
    torch.manual_seed(0)
    net = Net(build())
    torch.manual_seed(0)
    twin = build()
    x, y = torch.randn(6, 2, 8, 8), torch.randint(3, (6,))
    torch.testing.assert_close(net(x), twin(x), rtol=1e-4, atol=1e-5)
    F.cross_entropy(twin(x), y).backward()
    net.collect(x, y)
    expected = {name: p.grad for name, p in twin.named_parameters()}
    torch.testing.assert_close(net.unflatten(net.grad), expected, rtol=1e-3, atol=1e-5)
    per_group = net.unflatten(net.gradients(x[None], y[None])[0])
    torch.testing.assert_close(per_group, expected, rtol=1e-3, atol=1e-5)
    squares = {name: torch.zeros_like(p) for name, p in twin.named_parameters()}
    for i in range(len(y)):
        found = torch.autograd.grad(F.cross_entropy(twin(x[i : i + 1]), y[i : i + 1]), list(twin.parameters()))
        for total, g in zip(squares.values(), found, strict=True):
            total += g**2 / len(y)
    torch.testing.assert_close(net.unflatten(fisher(net, Batch(x, y), None)), squares, rtol=1e-3, atol=1e-6)
    optimiser("sgd", 0.1).step(net)
    torch.optim.SGD(twin.parameters(), lr=0.1).step()
    torch.testing.assert_close(net(x), twin(x), rtol=1e-4, atol=1e-5)


def test_a_module_that_views_its_maps_keeps_the_default_layout_unless_it_asks_for_the_other():
    assert not lies_last(Net(Viewing()).module.conv.weight)
    asked = Net(Viewing().to(memory_format=LAST))
    assert lies_last(asked.module.conv.weight)
    with pytest.raises(RuntimeError, match="reshape"):
        asked(torch.randn(2, 2, 8, 8))


class Columns(Growing):
    def build(self, name: str) -> nn.Module:
        return Viewing() if name == "viewing" else nn.Sequential(nn.Conv2d(2, 3, 3), nn.Flatten(), nn.Linear(108, 5))

    def forward(self, x: Tensor, part: str) -> Tensor:
        return self.parts[part](x)


def test_growth_and_its_loss_leave_the_order_of_old_weights_alone():
    net = Net(Columns())
    net.grow("plain", seed=0)
    before, held = net.theta.detach().clone(), net.state()
    net.grow("viewing", seed=1)
    assert torch.equal(net.theta[: len(before)], before)
    assert lies_last(net.module.parts["plain"][0].weight)
    net.load(held)
    assert torch.equal(net.theta, before)
    assert lies_last(net.module.parts["plain"][0].weight)
