"""A generator is found by what it puts out; teachers, critics and the learner's own network are none."""

import pytest
import torch
from torch import nn

import holdfast as hf
from holdfast.audit import generators
from holdfast.engine import Net
from holdfast.methods._base import Learner

SHAPE = (1, 8, 8)
OWN = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def decoder():
    return nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 64), nn.Sigmoid())


def upsampler():
    return nn.Sequential(nn.Linear(4, 16), nn.Unflatten(1, (1, 4, 4)), nn.ConvTranspose2d(1, 1, 2, stride=2))


def critic():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.LeakyReLU(), nn.Linear(32, 1))


class Pair(nn.Module):
    """A generator and its critic."""

    def __init__(self):
        super().__init__()
        self.generator, self.critic = decoder(), critic()


class Auto(nn.Module):
    """An encoder and a decoder: one network that puts out examples."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Sequential(nn.Linear(64, 8), nn.ReLU(), nn.Linear(8, 4)), decoder()


BYTES = 4 * (4 * 32 + 32 + 32 * 64 + 64)  # of a decoder

KEPT = [
    ({}, 0, 0),
    ({"net": OWN}, 0, 0),
    ({"teacher": nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))}, 0, 0),
    ({"critic": critic()}, 0, 0),
    ({"bigger": nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 20))}, 0, 0),  # 64 units in the middle
    ({"decoder": decoder()}, 1, BYTES),
    ({"upsampler": upsampler()}, 1, None),
    ({"by_class": [decoder(), decoder()]}, 2, 2 * BYTES),
    ({"by_class": nn.ModuleDict({"0": decoder(), "1": decoder()})}, 2, 2 * BYTES),
    ({"gan": Pair()}, 1, BYTES),
    ({"auto": Auto()}, 1, None),
    ({"as_net": Net(decoder())}, 1, BYTES),
    ({"hidden": {"in": (lambda made: lambda z: made(z))(decoder())}}, 1, BYTES),  # in a closure
]


@pytest.mark.parametrize(("kept", "number", "size"), KEPT)
def test_generators_are_found(keeper, kept, number, size):
    found, its_bytes = generators(keeper(kept), OWN, SHAPE)
    assert found == number and (size is None or its_bytes == size)


class Rehearses(Learner):
    """Keeps a decoder; that it is never trained does not matter here."""

    def start(self, net, optimiser, info, rng):
        super().start(net, optimiser, info, rng)
        self.generator = Net(decoder())

    def observe(self, batch):
        loss = self.cross_entropy(batch)
        return self.descend(loss + 0 * self.generator(torch.zeros(2, 4)).sum())


def test_the_card_tells_generative_rehearsal():
    stream = hf.stream("split", tasks=3, examples=30)
    card = hf.run(Rehearses(), stream).card
    assert card["no_generator"]["met"] is False and card["no_generator"]["value"] == 1
    assert card["no_old_data"]["met"] is True and "generative rehearsal" in card["no_old_data"]["note"]
    for method in ("finetune", "lwf", "er"):
        other = hf.run(method, stream).card
        assert other["no_generator"]["met"] is True and "generative" not in other["no_old_data"]["note"]
