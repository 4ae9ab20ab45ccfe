"""All weights of a network are one flat vector θ of shape (P,); so is its gradient."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

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
from holdfast.engine.state import State, Stateful
from holdfast.errors import BadInput
from holdfast.seeds import seeded


class Growing(nn.Module, ABC):
    """A module that gains named parts: a column, a module, a head per task. Its forward uses the parts there are."""

    def __init__(self) -> None:
        super().__init__()
        self.parts = nn.ModuleDict()

    @abstractmethod
    def build(self, name: str) -> nn.Module:
        """A new part for this name; the same name always gives the same shapes."""


class Net(Stateful):
    """Any `nn.Module` whose parameters are views of one flat vector `theta`, their gradients of one vector `grad`.

    A loss may mix `net(x)` and `net.theta`; one `backward()` collects both in `net.grad`. Weights of 2-d convolutions
    lie in θ with their channels last, and images are given to them so (`layout.py`).

    >>> net = Net(nn.Linear(2, 1))
    >>> (net(torch.ones(1, 2)).sum() + net.theta.sum()).backward()
    >>> net.grad.tolist()  # d/dw of the output is 1, of Σθ is 1; so for the bias
    [2.0, 2.0, 2.0]
    """

    theta: Tensor  # (P,) a leaf that requires grad
    grad: Tensor  # (P,) the gradient of θ and, viewed, of every parameter

    def __init__(
        self, module: nn.Module, build: Callable[[], nn.Module] | None = None, device: torch.device | None = None
    ) -> None:
        """`device` matters only to a growing module that has no parameters yet."""
        self.module = module
        self.build = build or partial(copy.deepcopy, module)  # makes another module of this kind
        self._laid: list[nn.Parameter] = []
        self.frozen: Tensor | None = None  # (P,) bool: entries that never change
        self.theta = torch.zeros(0, device=device)
        self._lay()

    def __getstate__(self) -> dict[str, Any]:
        """For deepcopy and pickle: the buffers are laid out anew around the copied parameters."""
        return {k: v for k, v in vars(self).items() if k not in ("theta", "grad", "_laying")} | {"device": self.device}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.theta = torch.zeros(0, device=state.pop("device"))
        vars(self).update(state)
        self._lay()

    def __setattr__(self, name: str, value: Any) -> None:
        """θ and its gradient are written to, never replaced: the module's parameters would stay with the old ones."""
        if name in ("theta", "grad") and value is not vars(self).get(name) and not vars(self).get("_laying", True):
            raise AttributeError(f"net.{name} cannot be replaced; write into it: net.set(theta), net.grad.copy_(g)")
        super().__setattr__(name, value)

    def __call__(self, *args: Any) -> Tensor:
        if self._convolves:
            args = tuple(channels_last(a) if isinstance(a, Tensor) and a.dim() == 4 else a for a in args)
        return self.module(*args)  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """P."""
        return self.theta.numel()

    @property
    def device(self) -> torch.device:
        return self.theta.device

    def zero_grad(self) -> None:
        self.grad.zero_()

    def collects(self) -> bool:
        """Whether a backward pass still ends in `grad`; `module.zero_grad()` cuts the parameters off from it."""
        first = self._laid[0].grad if self._laid else self.grad
        return first is not None and first.data_ptr() == self.grad.data_ptr()

    def holds_weights(self) -> bool:
        """Whether the module's parameters are still those that were laid out, and views of θ."""
        place = self.theta.untyped_storage().data_ptr()
        inside = all(p.untyped_storage().data_ptr() == place for p in self._laid)
        return inside and {id(p) for p in self.module.parameters()} == {id(p) for p in self._laid}

    def set(self, theta: Tensor) -> None:
        """θ ← theta, in place."""
        with torch.no_grad():
            self.theta.copy_(theta)

    def unflatten(self, vector: Tensor) -> dict[str, Tensor]:
        """Views of a (P,) vector, one per parameter, in its shape; writing to them writes to the vector."""
        names = {id(p): name for name, p in self.module.named_parameters()}
        views, start = {}, 0
        for p in self._laid:
            views[names[id(p)]] = in_shape(vector[start : start + p.numel()], p)
            start += p.numel()
        return views

    def collect(self, x: Tensor, y: Tensor, allowed: Tensor | None = None) -> Tensor:
        """Put ∂CE/∂θ into `grad`; returns the mean cross-entropy CE. For a perceptron autograd is not needed."""
        chain = chain_in_order(self.module, self._laid) if self._all_move else None
        if chain is not None:
            return chain_gradient(chain, x, y, allowed, [p.grad for p in self._laid])  # type: ignore[misc]
        self.zero_grad()
        loss = cross_entropy(self(x), y, allowed)
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
        modes = [(m, m.training) for m in self.module.modules()]
        self.module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            for m, mode in modes:
                m.training = mode

    def freeze(self, part: str | None = None) -> None:
        """Entries of θ that exist now (or those of one part) never change again."""
        if self.frozen is None:
            self.frozen = torch.zeros(self.size, dtype=torch.bool, device=self.device)
        if part is None:
            self.frozen.fill_(True)
        else:
            inside = {id(p) for p in self._growing().parts[part].parameters()}
            for p, view in zip(self._laid, self.unflatten(self.frozen).values(), strict=True):
                if id(p) in inside:
                    view.fill_(True)

    def grow(self, part: str, seed: int) -> None:
        """Add a named part; its weights go to the end of θ, and what was there keeps its place and its bits."""
        module = self._growing()
        with seeded(seed):
            module.parts[part] = module.build(part).to(self.device)
        self._lay()

    def copy(self) -> Net:
        """A network of its own with the same weights."""
        twin = Net(copy.deepcopy(self.module), self.build)
        twin.frozen = None if self.frozen is None else self.frozen.clone()
        return twin

    def fresh(self, seed: int) -> Net:
        """A network of the same kind with new initial weights (a copy as it now is where only a module was given)."""
        with seeded(seed):
            module = self.build()
        return Net(module.to(self.device), self.build)

    def state(self) -> dict[str, State]:
        parts = list(self.module.parts) if isinstance(self.module, Growing) else []
        buffers = {name: b.detach().clone() for name, b in self.module.named_buffers()}
        frozen = None if self.frozen is None else self.frozen.clone()
        return {"parts": parts, "theta": self.theta.detach().clone(), "buffers": buffers, "frozen": frozen}

    def load(self, state: dict[str, State]) -> None:
        if isinstance(self.module, Growing):
            self._regrow(state["parts"])
        self.set(state["theta"])
        buffers = dict(self.module.named_buffers())
        for name, saved in state["buffers"].items():
            buffers[name].copy_(saved)
        self.frozen = None if state["frozen"] is None else state["frozen"].to(self.device).clone()

    def _regrow(self, parts: list[str]) -> None:
        module = self._growing()
        same = 0
        while same < min(len(parts), len(module.parts)) and list(module.parts)[same] == parts[same]:
            same += 1
        for name in list(module.parts)[same:]:
            del module.parts[name]
        alive = {id(p) for p in module.parameters()}
        self._laid = [p for p in self._laid if id(p) in alive]
        self._lay()
        for name in parts[same:]:
            self.grow(name, seed=0)

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
        self._laying = True
        known = {id(p) for p in self._laid}
        self._laid += [p for p in self._in_order() if id(p) not in known]
        kinds = {p.dtype for p in self._laid}
        if kinds - {torch.float32}:
            raise BadInput(f"the network's parameters must all be float32, not {', '.join(sorted(map(str, kinds)))}")
        last = {id(p) for p in convolutions(self.module)}
        self._convolves = bool(last)
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
        self.theta, self.grad = theta.requires_grad_(), grad
        self.theta.grad = grad
        self._all_move = all(p.requires_grad for p in self._laid)
        self._laying = False
        self._lay_frozen()

    def _lay_frozen(self) -> None:
        """Parameters that came with `requires_grad=False` are frozen; the mask follows θ's length."""
        held = [not p.requires_grad for p in self._laid]
        if self.frozen is None and not any(held):
            return
        old = self.frozen if self.frozen is not None else torch.zeros(0, dtype=torch.bool, device=self.device)
        frozen = torch.zeros(self.size, dtype=torch.bool, device=self.device)
        frozen[: min(len(old), self.size)] = old[: self.size]
        for view, hold in zip(self.unflatten(frozen).values(), held, strict=True):
            if hold:
                view.fill_(True)
        self.frozen = frozen
