"""Small networks on 8×8 images with five classes, and gradients computed the plain way."""

import copy
from collections.abc import Callable, Iterable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from holdfast.engine import Growing, Net
from holdfast.nets import nets
from holdfast.types import StreamInfo

CLASSES = 5
INFO = StreamInfo("hand-made", "class", (1, 8, 8), CLASSES, ((0, 1, 2), (3, 4)))


class Tied(nn.Module):
    """One matrix used by two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.into = nn.Linear(64, 12)
        self.first, self.second = nn.Linear(12, 12), nn.Linear(12, 12)
        self.second.weight = self.first.weight
        self.out = nn.Linear(12, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        h = self.into(x.flatten(1)).tanh()
        return self.out(self.second(self.first(h).tanh()).tanh())


class Heads(Growing):
    """A trunk and a sum of heads, one per part; the trunk is registered after `parts`."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Flatten(), nn.Linear(64, 6), nn.BatchNorm1d(6), nn.ReLU())
        self.base = nn.Linear(6, CLASSES)

    def build(self, name: str) -> nn.Module:
        return nn.Sequential(nn.Linear(6, len(name)), nn.BatchNorm1d(len(name)), nn.Linear(len(name), CLASSES))

    def forward(self, x: Tensor) -> Tensor:
        h = self.trunk(x)
        return self.base(h) + sum((part(h) for part in self.parts.values()), torch.zeros(()))


BUILD: dict[str, Callable[[], nn.Module]] = {
    "mlp": lambda: nets.make("mlp", {"hidden": (11, 7)}).build(INFO),
    "dropout": lambda: nets.make("mlp", {"hidden": (11,), "dropout": 0.5, "input_dropout": 0.2}).build(INFO),
    "conv": lambda: nets.make("conv", {"filters": (3, 4), "kernel": 3, "hidden": 9}).build(INFO),
    "resnet": lambda: nets.make("resnet", {"maps": 2}).build(INFO),
    "tied": Tied,
    "growing": Heads,
}


@pytest.fixture
def module(request: pytest.FixtureRequest) -> nn.Module:
    """A freshly initialised module, by name: `parametrize("module", ["mlp"], indirect=True)`."""
    torch.manual_seed(3)
    return BUILD[request.param]()


@pytest.fixture
def growing() -> Net:
    torch.manual_seed(3)
    return Net(Heads(), Heads)


@pytest.fixture
def examples() -> Callable[..., tuple[Tensor, Tensor]]:
    """examples(*lead) -> x (*lead, 1, 8, 8), y (*lead)."""

    def make(*lead: int, seed: int = 0) -> tuple[Tensor, Tensor]:
        rng = torch.Generator().manual_seed(seed)
        return torch.randn(*lead, 1, 8, 8, generator=rng), torch.randint(CLASSES, lead, generator=rng)

    return make


@pytest.fixture
def flat() -> Callable[[Iterable[Tensor]], Tensor]:
    """Tensors like a module's parameters as one vector: those of convolutions (O, I, kH, kW) with I last."""

    def compute(tensors: Iterable[Tensor]) -> Tensor:
        return torch.cat([(t.permute(0, 2, 3, 1) if t.dim() == 4 else t).flatten() for t in tensors])

    return compute


@pytest.fixture
def plain_gradient(flat: Callable[[Iterable[Tensor]], Tensor]) -> Callable[..., Tensor]:
    """∂ mean CE / ∂θ by one ordinary backward on an untouched copy; outputs not allowed are cut out by hand."""

    def compute(module: nn.Module, x: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
        twin = copy.deepcopy(module)
        logits = twin(x)
        if allowed is not None:
            columns = allowed.nonzero().flatten()
            logits, y = logits[:, columns], torch.searchsorted(columns, y)
        F.cross_entropy(logits, y).backward()
        return flat(p.grad for p in twin.parameters())

    return compute
