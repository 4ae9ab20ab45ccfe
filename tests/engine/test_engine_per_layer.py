"""Squared gradients of a plain sequence of convolutions, taken layer by layer, against a plain loop."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from holdfast.engine import Net, per_layer, restrict
from holdfast.engine.per_layer import sequence


def by_loop(net: Net, x: torch.Tensor, y: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    total = torch.zeros_like(net.grad)
    for i in range(len(y)):
        net.zero_grad()
        F.cross_entropy(restrict(net(x[i : i + 1]), None if allowed is None else allowed[i]), y[i : i + 1]).backward()
        total += net.grad.square()
    return total


def examples(n: int, channels: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    rng = torch.Generator().manual_seed(0)
    return torch.randn(n, channels, 9, 8, generator=rng), torch.randint(3, (n,), generator=rng)


def head(*convolutions: nn.Module) -> nn.Sequential:
    """Ends in five classes."""
    trunk = nn.Sequential(*convolutions, nn.Flatten())
    width = trunk(torch.zeros(1, 2, 9, 8)).shape[1]
    return nn.Sequential(*trunk, nn.Linear(width, 6), nn.ReLU(), nn.Dropout(0.5).eval(), nn.Linear(6, 5))


SEQUENCES = {
    "plain": lambda: head(nn.Conv2d(2, 3, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(3, 4, 2), nn.ReLU()),
    "same size": lambda: head(nn.Conv2d(2, 3, 5, padding="same"), nn.ReLU(), nn.AvgPool2d(2)),
    "an even kernel of the same size": lambda: head(nn.Conv2d(2, 3, (4, 2), padding="same"), nn.ReLU()),
    "strides, padding, holes": lambda: head(nn.Conv2d(2, 3, (3, 2), (2, 3), (1, 2), (2, 1)), nn.ReLU()),
    "no biases": lambda: head(nn.Conv2d(2, 3, 1, bias=False), nn.Identity(), nn.Conv2d(3, 2, 3, bias=False)),
    "sequences in it": lambda: nn.Sequential(
        nn.Sequential(nn.Conv2d(2, 3, 3), nn.Sequential(nn.ReLU(), nn.Sequential())),
        nn.Sequential(nn.MaxPool2d(2), nn.Flatten()),
        nn.Linear(27, 5),
    ),
    "one map": lambda: head(nn.Conv2d(2, 1, 3), nn.ReLU(), nn.Conv2d(1, 3, 3)),
}


@pytest.mark.filterwarnings("ignore:Using padding='same' with even kernel:UserWarning")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("build", SEQUENCES.values(), ids=SEQUENCES)
def test_squares_equal_a_loop(build, masked, monkeypatch):
    torch.manual_seed(0)
    net, (x, y) = Net(build()), examples(70)
    allowed = (torch.arange(5) < 3 + torch.arange(70)[:, None] % 3) if masked else None
    assert sequence(net.module, net._laid) is not None
    expected = by_loop(net, x, y, allowed)
    net.zero_grad()
    torch.testing.assert_close(net.summed_squares(x, y, allowed), expected, rtol=1e-4, atol=1e-7)
    monkeypatch.setattr(per_layer, "CHUNK_BYTES", 5000)  # a few rows at a time
    torch.testing.assert_close(net.summed_squares(x, y, allowed), expected, rtol=1e-4, atol=1e-7)
    assert not net.grad.any() and all(p.grad is not None for p in net.module.parameters())


def hooked() -> nn.Sequential:
    module = head(nn.Conv2d(2, 3, 3))
    module[0].register_forward_hook(lambda m, given, gave: 2 * gave)
    return module


class Doubled(nn.Sequential):
    def forward(self, x):
        return super().forward(2 * x)


def shared() -> nn.Sequential:
    once = nn.Conv2d(2, 2, 3, padding=1)
    return head(once, nn.ReLU(), once)


OTHERS = {
    "hooked": hooked,
    "in place": lambda: head(nn.Conv2d(2, 3, 3), nn.ReLU(inplace=True)),
    "in groups": lambda: head(nn.Conv2d(2, 4, 3, groups=2), nn.ReLU()),
    "reflecting": lambda: head(nn.Conv2d(2, 4, 3, padding=1, padding_mode="reflect")),
    "of another kind": lambda: head(nn.Conv2d(2, 4, 3), nn.Tanh()),
    "normed": lambda: head(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4).eval()),
    "more than its layers": lambda: Doubled(*head(nn.Conv2d(2, 3, 3))),
    "a layer twice": shared,
}


@pytest.mark.parametrize("build", OTHERS.values(), ids=OTHERS)
def test_what_is_no_plain_sequence_goes_another_way_to_the_same(build):
    torch.manual_seed(0)
    net, (x, y) = Net(build()), examples(5)
    assert sequence(net.module, net._laid) is None
    expected = by_loop(net, x, y, None)
    torch.testing.assert_close(net.summed_squares(x, y), expected, rtol=1e-4, atol=1e-7)


def test_dropout_that_is_on_is_drawn_for_each_example():
    net = Net(nn.Sequential(nn.Conv2d(2, 3, 3), nn.Dropout(0.5), nn.Flatten(), nn.Linear(126, 3)))
    assert sequence(net.module, net._laid) is None
    net.module.eval()
    assert sequence(net.module, net._laid) is not None
