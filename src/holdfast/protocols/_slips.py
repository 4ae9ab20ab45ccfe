"""Slips of a method's author that would go unnoticed: the run would not fail, it would be another method's."""

from __future__ import annotations

import torch
from torch import nn

from holdfast.audit import reachable
from holdfast.engine import Net
from holdfast.errors import RunFailed
from holdfast.methods import Learner


def slips_at_start(learner: Learner) -> list[str]:
    """After `start`: is the learner whole?"""
    name, lacking = type(learner).__name__, [word for word in ("net", "optimiser", "rng") if word not in vars(learner)]
    if lacking:
        return [f"{name}.start does not call super().start(net, optimiser, info, rng): it has no {lacking[0]}"]
    return [*_foreign_optimisers(learner), *_shared_memory(learner)]


def refuse_slips(learner: Learner) -> None:
    """After steps and after `finish`."""
    slips = [*_loose_vectors(learner.net), *slips_at_start(learner)]
    if slips:
        raise RunFailed(slips[0])


def _foreign_optimisers(learner: Learner) -> list[str]:
    """torch's optimisers cut θ's gradient off from net.grad by their zero_grad, and their state cannot be saved."""
    return [
        f"{type(learner).__name__}.{name} is an optimiser of torch's; use self.optimiser, which the protocol sets, or "
        "one of holdfast.engine (SGD, Momentum, Adam), and self.descend(loss)"
        for name, value in vars(learner).items()
        if any(isinstance(item, torch.optim.Optimizer) for item in (value if isinstance(value, list) else [value]))
    ]


def _shared_memory(learner: Learner) -> list[str]:
    """What is kept of θ or its gradient without a copy changes with every step: a penalty on it is always 0."""
    vectors = {"theta": learner.net.theta, "grad": learner.net.grad}
    places = {v.untyped_storage().data_ptr(): word for word, v in vectors.items() if v.numel()}
    return [
        f"{type(learner).__name__}.{name} shares its memory with net.{places[item.untyped_storage().data_ptr()]}, so "
        "it changes with every step; keep a copy: net.theta.detach().clone()"
        for name, value in vars(learner).items()
        if name != "net"
        for item in reachable(value)
        if isinstance(item, torch.Tensor)
        and not isinstance(item, nn.Parameter)
        and not item.requires_grad
        and not item.is_meta
        and item.untyped_storage().data_ptr() in places
    ]


def _loose_vectors(net: Net) -> list[str]:
    """Are the module's weights still parts of θ, and their gradients of net.grad?"""
    if not net.holds_weights():
        return ["the network's weights are no longer parts of net.theta: write to them in place, e.g. net.set(theta)"]
    if net.theta.grad is not net.grad or not net.collects():
        return ["the gradients are no longer in net.grad: call net.zero_grad(), not torch's zero_grad()"]
    return []
