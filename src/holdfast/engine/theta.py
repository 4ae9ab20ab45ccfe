"""All weights of a network are one flat vector θ of shape (P,); so is its gradient."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, groupby
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from holdfast.engine.gradients import (
    chain_gradient,
    chain_in_order,
    cross_entropy,
    grouped_gradients,
    summed_squares,
)
from holdfast.engine.layout import channels_last, convolutions, in_row, in_shape
from holdfast.engine.state import Log, State, Stateful
from holdfast.errors import BadInput
from holdfast.seeds import seeded

CHUNK_ROWS = 1000  # to predict at once
CONVOLVED_ROWS = 128  # the same of a convolutional net, whose maps of more leave the cache: 2.5 times as fast as 1,000
GAP = 8192  # frozen entries between two that move, up to which they are passed over with a mask: faster than two slices


class Span(NamedTuple):
    """A slice of θ whose entries move, as views of θ and of its gradient."""

    theta: Tensor  # (n,)
    grad: Tensor  # (n,)
    frozen: Tensor | None  # (n,) bool: those among them that do not; None where all do

    @property
    def start(self) -> int:
        """Its first entry."""
        return int(self.theta.storage_offset())

    @property
    def stop(self) -> int:
        """Behind its last entry."""
        return self.start + self.theta.numel()


class Growing(nn.Module, ABC):
    """A module that gains named parts: a column, a module, a head per task. Its forward uses the parts there are."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()
        self.still: list[nn.Module] = []  # what is frozen: a fixed function, its batch statistics included

    @abstractmethod
    def build(self, name: str) -> nn.Module:
        """A new part for this name; the same name always gives the same shapes."""

    def train(self, mode: bool = True) -> Growing:
        """What is frozen stays in eval mode."""
        super().train(mode)
        for module in self.still:
            module.eval()
        return self


class Net(Stateful):
    """Any `nn.Module` whose parameters are views of one flat vector `theta`, their gradients of one vector `grad`.

    A loss may mix `net(x)` and `net.theta`; one `backward()` collects both in `net.grad`. Weights of 2-d convolutions
    lie in θ with their channels last, and images are given to them so (`layout.py`). Parameters that are frozen have no
    gradient, and a step passes over the rest alone (`moving`), however many they are.

    >>> net = Net(nn.Linear(2, 1))
    >>> (net(torch.ones(1, 2)).sum() + net.theta.sum()).backward()
    >>> net.grad.tolist()  # d/dw of the output is 1, of Σθ is 1; so for the bias
    [2.0, 2.0, 2.0]
    """

    def __init__(
        self, module: nn.Module, build: Callable[[], nn.Module] | None = None, device: torch.device | None = None
    ) -> None:
        """`device` matters only to a growing module that has no parameters yet."""
        self.module = module
        self._laid: list[nn.Parameter] = []
        self._frozen: Tensor | None = None
        self._still: list[nn.Parameter] = []  # wholly frozen, and without a gradient since
        self.build = build or partial(_thawed, module, self._still)  # makes another module of this kind
        self._stopped = False  # whether a module that does not grow was put into eval mode, as all of it is frozen
        self._theta = torch.zeros(0, device=device)
        self._lay()

    def __getstate__(self) -> dict[str, Any]:
        """For deepcopy and pickle: the buffers are laid out anew around the copied parameters."""
        buffers = ("_theta", "_grad", "_moving")
        return {k: v for k, v in vars(self).items() if k not in buffers} | {"device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._theta = torch.zeros(0, device=state.pop("device"))
        vars(self).update(state)
        self._lay()

    @property
    def theta(self) -> Tensor:
        """(P,) all weights: a leaf that requires grad."""
        _LENT[self] = 2
        return self._theta

    @theta.setter
    def theta(self, value: Tensor) -> None:
        self._refuse_other(value, self._theta, "theta")

    @property
    def grad(self) -> Tensor:
        """(P,) the gradient of θ and, viewed, of every parameter."""
        _LENT[self] = 2
        return self._grad

    @grad.setter
    def grad(self, value: Tensor) -> None:
        self._refuse_other(value, self._grad, "grad")

    def _refuse_other(self, value: Tensor, mine: Tensor, name: str) -> None:
        """θ and its gradient are written to, never replaced: the module's parameters would stay with the old ones."""
        if value is not mine:
            raise AttributeError(f"net.{name} cannot be replaced; write into it: net.set(theta), net.grad.copy_(g)")

    @property
    def chunk(self) -> int:
        """Rows to predict at once."""
        return CONVOLVED_ROWS if self._maps else CHUNK_ROWS

    @property
    def frozen(self) -> Tensor | None:
        """(P,) bool: entries that never change; None where all do."""
        return self._frozen

    @frozen.setter
    def frozen(self, mask: Tensor | None) -> None:
        self._frozen = mask
        self._settle()

    @property
    def moving(self) -> tuple[Span, ...]:
        """All entries that move, as few slices of θ."""
        if self._frozen is not None and self._frozen._version != self._minded:  # somebody wrote to the mask
            self._settle()
        return self._moving

    def __call__(self, *args: Any) -> Tensor:
        if self._convolves:
            args = tuple(channels_last(a) if isinstance(a, Tensor) and a.dim() == 4 else a for a in args)
        return self.module(*args)  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """P."""
        return self._theta.numel()

    @property
    def device(self) -> torch.device:
        return self._theta.device

    def zero_grad(self) -> None:
        """What is frozen has no gradient, unless somebody had the whole vector and wrote one there."""
        if left := _LENT.get(self, 0):
            _LENT[self] = left - 1
            self._grad.zero_()
        else:
            for span in self.moving:
                span.grad.zero_()

    def collects(self) -> bool:
        """Whether a backward pass still ends in `grad`; `module.zero_grad()` cuts the parameters off from it."""
        first = self._laid[0].grad if self._laid else self._grad
        return first is not None and first.data_ptr() == self._grad.data_ptr()

    def holds_weights(self) -> bool:
        """Whether the module's parameters are still those that were laid out, and views of θ."""
        place = self._theta.untyped_storage().data_ptr()
        inside = all(p.untyped_storage().data_ptr() == place for p in self._laid)
        return inside and {id(p) for p in self.module.parameters()} == {id(p) for p in self._laid}

    def set(self, theta: Tensor) -> None:
        """θ ← theta, in place."""
        with torch.no_grad():
            self._theta.copy_(theta)

    def unflatten(self, vector: Tensor) -> dict[str, Tensor]:
        """Views of a (P,) vector, one per parameter, in its shape; writing to them writes to the vector."""
        names = {id(p): name for name, p in self.module.named_parameters()}
        views, start = {}, 0
        for p in self._laid:
            views[names[id(p)]] = in_shape(vector[start : start + p.numel()], p)
            start += p.numel()
        return views

    def rows_of_outputs(self) -> list[tuple[int, int, int]]:
        """Where the last layer's weights and biases are in θ, and how many rows, one per output, each of them has."""
        places = self.unflatten(torch.arange(self.size))
        last = next(reversed(places)).rpartition(".")[0]
        mine = [place for name, place in places.items() if name.rpartition(".")[0] == last]
        return [(int(place.min()), int(place.max()) + 1, len(place)) for place in mine]

    def collect(self, x: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Put ∂CE/∂θ into `grad`; returns the mean cross-entropy CE. For a perceptron autograd is not needed."""
        chain = chain_in_order(self.module, self._laid) if self._all_move else None
        if chain is not None:
            return chain_gradient(chain, x, y, allowed, [p.grad for p in self._laid])  # type: ignore[misc]
        self.zero_grad()
        loss = cross_entropy(self(x), y, allowed)
        if loss.requires_grad:  # or all is frozen
            loss.backward()  # type: ignore[no-untyped-call]
        return loss.detach()

    def gradients(self, x: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
        """(N, P): the gradient of the mean cross-entropy of each of N groups of examples.

        x: (N, B, *shape), y: (N, B), allowed: (N, C) the outputs each group may use. With B = 1: per example.
        """
        return grouped_gradients(self.module, self._laid, x, y, allowed)

    def summed_squares(self, x: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
        """(P,): Σ over the examples of their squared gradients. x: (n, *shape), y: (n,), allowed: (n, C)."""
        return summed_squares(self.module, self._laid, x, y, allowed)

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """No gradients, dropout off, batch statistics fixed; as before afterwards."""
        training = [m for m in self.module.modules() if m.training]
        for m in training:  # a module sets attributes slowly, and a scoring does this at every chunk
            object.__setattr__(m, "training", False)
        try:
            with torch.no_grad():
                yield
        finally:
            for m in training:
                object.__setattr__(m, "training", True)

    def freeze(self, part: str | None = None) -> None:
        """Entries of θ that exist now (or those of one part) never change again, nor do their modules' buffers."""
        frozen = self._frozen
        if frozen is None:
            frozen = torch.zeros(self.size, dtype=torch.bool, device=self.device)
        if part is None:
            frozen.fill_(True)
        else:
            inside = {id(p) for p in self._growing().parts[part].parameters()}
            for p, view in zip(self._laid, self.unflatten(frozen).values(), strict=True):
                if id(p) in inside:
                    view.fill_(True)
        if isinstance(self.module, Growing):
            self._hold_still(self.module, list(self.module.parts) if part is None else [part], trunk=part is None)
        self.frozen = frozen

    def grow(self, part: str, seed: int) -> None:
        """Add a named part; its weights go to the end of θ, and what was there keeps its place and its bits."""
        self._add(part, seed)
        self._lay()

    def copy(self) -> Net:
        """A network of its own with the same weights."""
        twin = Net(_copied(self.module, self._still), self.build)
        twin.frozen = None if self._frozen is None else self._frozen.clone()
        return twin

    def fresh(self, seed: int) -> Net:
        """A network of the same kind with new initial weights (a copy as it now is where only a module was given)."""
        with seeded(seed):
            module = self.build()
        return Net(module.to(self.device), self.build)

    def state(self) -> dict[str, State]:
        """What is frozen is the same tensors in all states, so that one more holds only what moves."""
        growing = self.module if isinstance(self.module, Growing) else None
        names = {id(m): name for name, m in self.module.named_modules()}
        still = {names[id(m)]: m for m in (growing.still if growing is not None else ())}
        fixed = {name: {f"{name}.{b}": x for b, x in m.named_buffers()} for name, m in still.items()}
        inside = {name for found in fixed.values() for name in found}
        theta, share = self._theta.detach(), _Shared(self)
        moving = [(s.start, s.stop, None if s.frozen is None else s.frozen.clone()) for s in self.moving]
        return {
            "parts": Log(() if growing is None else growing.parts),
            "theta": torch.cat([s.theta for s in self.moving] or [theta[:0]]),
            "moving": None if self._frozen is None else moving,
            "kept": Log((start, share(str(start), theta[start:stop])) for start, stop in self._kept()),
            "buffers": {name: b.detach().clone() for name, b in self.module.named_buffers() if name not in inside},
            "still": Log((name, {b: share(b, x.detach()) for b, x in found.items()}) for name, found in fixed.items()),
        }

    def load(self, state: dict[str, State]) -> None:
        if isinstance(self.module, Growing):
            self._regrow(state["parts"])
            for m in self.module.still:
                m.train(self.module.training)
            self.module.still = [self.module.get_submodule(name) for name, _ in state["still"]]
        theta, frozen = self._theta.detach(), None
        if state["moving"] is None:
            theta.copy_(state["theta"])
        else:
            frozen = torch.ones(self.size, dtype=torch.bool, device=self.device)
            pieces = state["theta"].split([stop - start for start, stop, _ in state["moving"]])
            for (start, stop, mask), piece in zip(state["moving"], pieces, strict=True):
                theta[start:stop].copy_(piece)
                frozen[start:stop] = False if mask is None else mask.to(self.device)
            for start, entries in state["kept"]:
                theta[start : start + len(entries)].copy_(entries)
        buffers = dict(self.module.named_buffers())
        fixed = {name: saved for _, found in state["still"] for name, saved in found.items()}
        for name, saved in [*state["buffers"].items(), *fixed.items()]:
            buffers[name].copy_(saved)
        _SHARED[self] = {str(start): entries for start, entries in state["kept"]} | fixed
        self.frozen = frozen

    def _kept(self) -> list[tuple[int, int]]:
        """Slices of θ that are frozen, cut where parts end: a part that is frozen stays one, whatever comes next."""
        spans = [(s.start, s.stop) for s in self.moving]
        parts = [*self.module.parts.items()] if isinstance(self.module, Growing) else []
        owner = {id(p): name for name, part in reversed(parts) for p in part.parameters()}  # the first that has it
        starts = [0, *accumulate(p.numel() for p in self._laid)]
        inside = [any(a <= start < b for a, b in spans) for start in starts[:-1]]
        found = []
        for (moves, _), run in groupby(range(len(self._laid)), lambda i: (inside[i], owner.get(id(self._laid[i])))):
            mine = list(run)
            if not moves and starts[mine[-1] + 1] > starts[mine[0]]:
                found.append((starts[mine[0]], starts[mine[-1] + 1]))
        return found

    def _hold_still(self, module: Growing, parts: list[str], trunk: bool) -> None:
        """Parts, and what stands beside them, become fixed functions."""
        beside = [m for name, m in module.named_children() if name != "parts" and trunk]
        for m in [*(m for m in beside if any(True for _ in m.state_dict())), *(module.parts[name] for name in parts)]:
            if all(m is not known for known in module.still):
                module.still.append(m)

    def _regrow(self, parts: list[str]) -> None:
        module = self._growing()
        same = 0
        while same < min(len(parts), len(module.parts)) and list(module.parts)[same] == parts[same]:
            same += 1
        if same == len(parts) == len(module.parts):
            return
        for name in list(module.parts)[same:]:
            del module.parts[name]
        alive = {id(p) for p in module.parameters()}
        self._laid = [p for p in self._laid if id(p) in alive]
        for name in parts[same:]:
            self._add(name, seed=0)
        self._lay()

    def _add(self, part: str, seed: int) -> None:
        module = self._growing()
        with seeded(seed):
            module.parts[part] = module.build(part).to(self.device)

    def _growing(self) -> Growing:
        if not isinstance(self.module, Growing):
            raise TypeError(f"a {type(self.module).__name__} cannot grow: derive it from holdfast.engine.Growing")
        return self.module

    def _in_order(self) -> list[nn.Parameter]:
        """The module's parameters, those of parts behind all others, in the order of growth."""
        if not isinstance(self.module, Growing):
            return list(self.module.parameters())
        named = list(self.module.named_parameters(remove_duplicate=False))
        own, grown = ([p for name, p in named if name.startswith("parts.") is part] for part in (False, True))
        return list({id(p): p for p in own + grown}.values())

    def _lay(self) -> None:
        """Lay the parameters out in one buffer: old ones first and unmoved, new ones behind them."""
        known = {id(p) for p in self._laid}
        self._laid += [p for p in self._in_order() if id(p) not in known]
        kinds = {p.dtype for p in self._laid}
        if kinds - {torch.float32}:
            raise BadInput(f"the network's parameters must all be float32, not {', '.join(sorted(map(str, kinds)))}")
        last = {id(p) for p in convolutions(self.module)}
        self._convolves = bool(last)
        self._maps = any(isinstance(m, nn.Conv2d) for m in self.module.modules())
        for p in self._laid:
            if id(p) not in known:
                p.data = channels_last(p.data) if id(p) in last else p.data.contiguous()
        theta = torch.cat([in_row(p.detach(), p) for p in self._laid] or [torch.zeros(0, device=self.device)])
        grad = torch.zeros_like(theta)
        start = 0
        for p in self._laid:
            stop = start + p.numel()
            p.data, p.grad = in_shape(theta[start:stop], p), in_shape(grad[start:stop], p)
            start = stop
        self._theta, self._grad = theta.requires_grad_(), grad
        self._theta.grad = grad
        self._lay_frozen()

    def _lay_frozen(self) -> None:
        """Parameters that came with `requires_grad=False` are frozen; the mask follows θ's length."""
        held = [not p.requires_grad for p in self._laid]
        if self._frozen is not None or any(held):
            old = self._frozen if self._frozen is not None else torch.zeros(0, dtype=torch.bool, device=self.device)
            frozen = torch.zeros(self.size, dtype=torch.bool, device=self.device)
            frozen[: min(len(old), self.size)] = old[: self.size]
            for view, hold in zip(self.unflatten(frozen).values(), held, strict=True):
                if hold:
                    view.fill_(True)
            self._frozen = frozen
        self._settle()

    def _settle(self) -> None:
        """Find the slices that move, and tell torch which parameters and modules do not."""
        theta, frozen, still = self._theta.detach(), self._frozen, {id(p) for p in self._still}
        self._all_move = all(p.requires_grad or id(p) in still for p in self._laid)
        runs: list[tuple[int, int]] = []
        self._still.clear()
        start = 0
        for p in self._laid:
            stop = start + p.numel()
            if frozen is not None and bool(frozen[start:stop].all()):
                if p.requires_grad or id(p) in still:
                    self._still.append(p)
                    p.requires_grad_(False)
            else:
                if id(p) in still:
                    p.requires_grad_(True)
                near = bool(runs) and start - runs[-1][1] < GAP
                runs.append((runs.pop()[0] if near else start, stop))
            start = stop
        masks = [None if frozen is None or not frozen[a:b].any() else frozen[a:b] for a, b in runs]
        self._moving = tuple(Span(theta[a:b], self._grad[a:b], m) for (a, b), m in zip(runs, masks, strict=True))
        self._minded = 0 if frozen is None else frozen._version
        if isinstance(self.module, Growing):
            for m in self.module.still:
                m.eval()
        elif self._stopped != (stops := bool(self._still) and not runs):
            self.module.train(not stops)
            self._stopped = stops


# How often all of the gradient is still to be cleared: somebody asked for θ or the gradient, and may write to it once
# more after it is cleared, as a loss over θ does. Here and not in the network, where predicting would change it.
_LENT: WeakKeyDictionary[Net, int] = WeakKeyDictionary()
_SHARED: WeakKeyDictionary[Net, dict[str, Tensor]] = WeakKeyDictionary()  # by network: what its states have in common


class _Shared:
    """Gives a frozen tensor of a network as the one that its last state had, unless somebody wrote to it since."""

    def __init__(self, net: Net) -> None:
        self.last = _SHARED.get(net, {})
        self.now = _SHARED[net] = {}

    def __call__(self, name: str, tensor: Tensor) -> Tensor:
        last = self.last.get(name)
        self.now[name] = last if last is not None and _same_bits(last, tensor) else tensor.clone()
        return self.now[name]


def _same_bits(a: Tensor, b: Tensor) -> bool:
    if (a.shape, a.dtype, a.device) != (b.shape, b.dtype, b.device):
        return False
    if a.dtype == torch.float32:  # 0.0 is not -0.0
        a, b = a.view(torch.int32), b.view(torch.int32)
    return torch.equal(a, b)


def _copied(module: nn.Module, still: list[nn.Parameter]) -> nn.Module:
    """The module as it is, with the gradients with which it came; of those in `still` they were taken away."""
    module, still = copy.deepcopy((module, still))
    for p in still:
        p.requires_grad_(True)
    return module


def _thawed(module: nn.Module, still: list[nn.Parameter]) -> nn.Module:
    """The module as it is, but nothing of it frozen."""
    module, stopped = _copied(module, still), len(still) == len(list(module.parameters()))
    if isinstance(module, Growing):
        stopped, module.still = bool(module.still), []
    return module.train() if stopped else module
