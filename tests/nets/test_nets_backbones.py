"""The backbones: sizes, shapes, where dropout sits, how weights begin."""

import pytest
import torch
from torch import nn

from holdfast.errors import BadInput
from holdfast.nets import nets
from holdfast.nets._base import Dropout
from holdfast.seeds import seeded
from holdfast.types import StreamInfo


def info(shape, classes=10):
    return StreamInfo("hand-made", "class", shape, classes, (tuple(range(classes)),))


def build(name, shape, classes=10, **settings):
    return nets.make(name, settings).build(info(shape, classes))


def size(module):
    return sum(p.numel() for p in module.parameters())


def kinds(module):
    return [type(m).__name__ for m in module]


@pytest.mark.parametrize(
    ("name", "shape", "classes", "settings", "parameters"),
    [
        ("mlp", (1, 28, 28), 10, {}, 89_610),  # paper 002
        ("mlp", (784,), 10, {"hidden": (400, 400)}, 784 * 400 + 400 + 400 * 400 + 400 + 400 * 10 + 10),
        ("mlp", (5,), 3, {"hidden": ()}, 5 * 3 + 3),
        ("resnet", (3, 32, 32), 100, {}, 1_109_240),  # paper 002
        ("conv", (1, 28, 28), 10, {}, (25 * 32 + 32) + (32 * 25 * 64 + 64) + (64 * 49 * 1024 + 1024) + 10_250),
    ],
)
def test_parameter_counts(name, shape, classes, settings, parameters):
    assert size(build(name, shape, classes, **settings)) == parameters


@pytest.mark.parametrize("shape", [(1, 8, 8), (1, 28, 28), (3, 32, 32), (3, 9, 13), (1, 8, 33), (3, 64, 64)])
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("mlp", {}),
        ("conv", {"hidden": 16, "kernel": 3}),
        ("conv", {"hidden": 16, "filters": (4, 4, 4), "kernel": 4}),
        ("resnet", {"maps": 2}),
        ("ctrl_resnet", {"width": 2}),
    ],
)
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_every_net_takes_odd_images(name, settings, shape):
    module = build(name, shape, 7, **settings)
    assert module(torch.rand(2, *shape)).shape == (2, 7)


def test_the_resnet_pools_four_by_four_at_its_end():
    """At 32×32 the last stage is 4×4, so one feature per map reaches the output layer: 8·20 of them."""
    module = build("resnet", (3, 32, 32), 100)
    features = module[:-1](torch.rand(2, 3, 32, 32))
    assert features.shape == (2, 160)
    assert module[-1].in_features == 160
    assert [m.stride for m in module.modules() if isinstance(m, nn.Conv2d) and m.stride != (1, 1)] == [(2, 2)] * 6


@pytest.mark.parametrize("name", ["conv", "resnet", "ctrl_resnet", "alexnet"])
def test_vectors_are_refused_by_convolutions(name):
    with pytest.raises(BadInput, match=rf"net '{name}' needs images .*, not vectors of \(64,\); try 'mlp'"):
        build(name, (64,))


@pytest.mark.parametrize(
    ("name", "settings", "smallest"),
    [
        ("conv", {"filters": (2, 2, 2)}, 8),
        ("resnet", {}, 8),
        ("ctrl_resnet", {"width": 2}, 8),
        ("alexnet", {"width": 2}, 19),
    ],
)
def test_images_too_small_are_refused(name, settings, smallest):
    module = build(name, (1, smallest, smallest), **settings).eval()
    assert module(torch.rand(1, 1, smallest, smallest)).shape == (1, 10)
    with pytest.raises(BadInput, match=f"at least {smallest}×{smallest}, not {smallest + 1}×{smallest - 1}"):
        build(name, (1, smallest + 1, smallest - 1), **settings)


def test_dropout_follows_each_hidden_layer_and_the_input():
    plain = build("mlp", (4,), hidden=(5, 6))
    assert kinds(plain) == "Flatten Linear ReLU Linear ReLU Linear".split()
    both = build("mlp", (4,), hidden=(5, 6), dropout=0.5, input_dropout=0.2)
    assert kinds(both) == "Flatten Dropout Linear ReLU Dropout Linear ReLU Dropout Linear".split()
    assert [m.p for m in both if isinstance(m, nn.Dropout)] == [0.2, 0.5, 0.5]
    conv = build("conv", (1, 8, 8), filters=(2,), hidden=3, dropout=0.5)
    assert kinds(conv) == "Conv2d ReLU MaxPool2d Flatten Linear ReLU Dropout Linear".split()
    noisy = build("conv", (1, 8, 8), filters=(2,), hidden=3, input_dropout=0.5)
    assert kinds(noisy) == "Dropout Conv2d ReLU MaxPool2d Flatten Linear ReLU Linear".split()
    holed = build("conv", (1, 8, 8), filters=(2, 2), hidden=3, map_dropout=0.5)
    pooled = "Conv2d ReLU MaxPool2d Dropout".split()
    assert kinds(holed) == [*pooled, *pooled, *"Flatten Linear ReLU Linear".split()]


def test_convolutions_can_begin_as_in_papers_003_and_004():
    torch.manual_seed(0)
    begun = [m for m in build("conv", (1, 28, 28), init="tenth0") if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(begun) == 4
    for m in begun:
        assert m.weight.abs().max() <= 0.2 and not m.bias.any()
        assert abs(m.weight.std().item() / 0.1 - 0.8796) < 0.03  # of a normal cut at two deviations


def test_xavier_starts_within_its_bounds_with_zero_bias():
    torch.manual_seed(0)
    layers = [m for m in build("mlp", (784,), init="xavier") if isinstance(m, nn.Linear)]
    assert not any(m.bias.any() for m in layers)
    for m in layers:
        bound = (6 / (m.in_features + m.out_features)) ** 0.5
        assert 0.98 * bound < m.weight.abs().max() <= bound
    assert any(m.bias.any() for m in build("mlp", (784,)) if isinstance(m, nn.Linear))


@pytest.mark.parametrize("name", ["mlp", "conv", "resnet"])
def test_weights_come_from_the_seed(name):
    def weights(seed):
        with seeded(seed):
            return torch.cat([p.detach().flatten() for p in build(name, (1, 8, 8)).parameters()])

    assert torch.equal(weights(0), weights(0))
    assert not torch.equal(weights(0), weights(1))


def test_the_shelf_lists_and_corrects():
    assert {"mlp", "conv", "resnet"} <= set(nets.names())
    assert "base" not in nets.names()
    with pytest.raises(BadInput, match="unknown net 'mpl'; did you mean 'mlp'"):
        nets.find("mpl")
    with pytest.raises(BadInput, match=r"hidden of net 'mlp' must be a whole number >= 1, or several .* not 0"):
        nets.make("mlp", {"hidden": 0})


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
def test_dropout_drops_a_share_p_of_any_shape_and_scales_the_rest(p):
    torch.manual_seed(0)
    layer, z = Dropout(p), torch.rand(401, 7, 97) + 1  # 272,279 entries, not a multiple of four
    out = layer(z)
    kept = out != 0
    assert abs(1 - kept.float().mean().item() - p) < 5 * (p * (1 - p) / z.numel()) ** 0.5
    torch.testing.assert_close(out[kept], z[kept] / (1 - p))
    neighbours = kept.flatten()[: 4 * (z.numel() // 4)].view(-1, 4).float()  # they share one draw
    off = torch.corrcoef(neighbours.T) - torch.eye(4)
    assert off.abs().max() < 5 / len(neighbours) ** 0.5
    assert not torch.equal(out, layer(z))
    assert torch.equal(layer.eval()(z), z)


def test_dropout_of_nearly_everything_keeps_nearly_nothing():
    torch.manual_seed(0)
    assert (Dropout(0.999999)(torch.ones(10_000)) != 0).float().mean() < 0.001


def test_dropout_is_drawn_per_example_under_vmap():
    rows = torch.ones(2, 64)
    first, second = torch.func.vmap(Dropout(0.5), randomness="different")(rows)
    assert not torch.equal(first, second)
