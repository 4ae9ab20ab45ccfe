"""Units that compete, and initial weights."""

import numpy as np
import pytest
import torch

import holdfast as hf
from holdfast.nets._base import begun
from holdfast.nets.lwta import Winners


def test_the_largest_of_a_block_passes_and_the_others_are_zero():
    z = torch.randn(50, 12, requires_grad=True)
    out = Winners(3)(z)
    blocks = z.detach().numpy().reshape(50, 4, 3)
    expected = np.where(blocks == blocks.max(-1, keepdims=True), blocks, 0).reshape(50, 12)
    np.testing.assert_array_equal(out.detach().numpy(), expected)
    out.sum().backward()
    np.testing.assert_array_equal(z.grad.numpy(), (expected != 0).astype(np.float32))


@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_of_equal_ones_the_first_wins(block):
    z = torch.randint(-2, 3, (200, 12)).float()
    blocks = z.numpy().reshape(200, -1, block)
    first = blocks.argmax(-1)[..., None]
    expected = np.where(np.arange(block) == first, blocks, 0).reshape(200, 12)
    np.testing.assert_array_equal(Winners(block)(z).numpy(), expected)


def test_a_layer_of_s_blocks_has_2s_units_and_no_relu():
    info = hf.stream("split").info
    net = hf.net("lwta", hidden=(20, 30)).build(info)
    shapes = [tuple(p.shape) for p in net.parameters() if p.dim() == 2]
    assert shapes == [(40, 64), (60, 40), (10, 60)]
    assert not any(isinstance(m, torch.nn.ReLU) for m in net)
    assert bool((net[:3](torch.randn(30, 1, 8, 8)) < 0).any())  # a negative winner passes


def test_truncated_weights_have_their_deviation_and_their_bound():
    torch.manual_seed(0)
    layer = begun(torch.nn.Linear(400, 300), "truncated")
    deviation = 1 / 20
    assert layer.weight.abs().max() <= 2 * deviation
    assert abs(layer.weight.std().item() / deviation - 0.8796) < 0.01  # of a normal cut at two deviations
    assert not layer.bias.any()


def test_it_learns():
    stream = hf.stream("split", tasks=1)
    protocol = hf.protocol("epochs", epochs=10, batch=20, lr=0.1)
    assert hf.run("finetune", stream, net=hf.net("lwta", hidden=(30, 30)), protocol=protocol).acc > 0.85
