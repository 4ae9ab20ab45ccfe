"""Slips of a method's author that would go unnoticed: the run would not fail, it would be another method's."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from holdfast.audit import reachable
from holdfast.engine import Net
from holdfast.errors import RunFailed
from holdfast.methods import Learner


def slips_at_start(learner: Learner) -> list[str]:
    """After `start`: is the learner whole?"""
    lacking = [word for word in ("net", "optimiser", "info", "rng", "_allowed") if word not in vars(learner)]
    if lacking or not isinstance(learner.net, Net):
        what = f"it has no {lacking[0].strip('_')}" if lacking else f"its net is a {type(learner.net).__name__}"
        return [f"{type(learner).__name__}.start does not call super().start(net, optimiser, info, rng): {what}"]
    return _foreign_optimisers(learner) or _shared_memory(learner)


def refuse_slips(learner: Learner) -> None:
    """After steps and after `finish`."""
    slips = slips_at_start(learner)  # first: is there a network at all?
    slips = slips or _loose_vectors(learner.net)
    if slips:
        raise RunFailed(slips[0])


def _foreign_optimisers(learner: Learner) -> list[str]:
    """torch's optimisers cut θ's gradient off from net.grad by their zero_grad, and their state cannot be saved."""
    laid = {id(p) for p in (learner.net.theta, *learner.net.module.parameters())}
    return [
        f"{type(learner).__name__}.{name} is an optimiser of torch's on the network; use self.optimiser, which the "
        "protocol sets, and self.descend(loss)"
        for name, value in vars(learner).items()
        for item in _flat(value)
        if isinstance(item, torch.optim.Optimizer)
        and any(id(p) in laid for group in item.param_groups for p in group["params"])
    ][:1]


def _shared_memory(learner: Learner) -> list[str]:
    """What is kept of θ or its gradient without a copy changes with every step: a penalty on it is always 0.

    A tensor that still has its graph keeps the batch behind it alive.
    """
    live = {id(p.grad) for p in learner.net.module.parameters()}  # come with the parameters, which may be kept
    places = {v.untyped_storage().data_ptr(): v for v in (learner.net.theta, learner.net.grad) if v.numel()}
    owner = type(learner).__name__
    for name, value in vars(learner).items():
        if name == "net" or value is learner.net:
            continue
        for item in reachable(value):
            if isinstance(item, torch.Tensor) and item.grad_fn is not None:
                return [f"{owner}.{name} keeps a tensor with its graph, and so the batch behind it; keep it.detach()"]
            if _place(item) in places and not isinstance(item, nn.Parameter) and id(item) not in live:
                word = "theta" if places[_place(item)] is learner.net.theta else "grad"
                copy = f"net.{word}.detach().clone()"
                return [f"{owner}.{name} shares its memory with net.{word}, so it changes with every step; keep {copy}"]
    return []


def _place(item: object) -> int:
    """Where the memory of a tensor or an array begins; 0 for all else."""
    if isinstance(item, np.ndarray):
        while isinstance(item.base, np.ndarray):
            item = item.base
        return int(item.__array_interface__["data"][0])
    return item.untyped_storage().data_ptr() if isinstance(item, torch.Tensor) and not item.is_meta else 0


def _flat(value: object) -> list[object]:
    """A value, or what a list or dict of values has."""
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else [value]


def _loose_vectors(net: Net) -> list[str]:
    """Are the module's weights still parts of θ, and their gradients of net.grad?"""
    if not net.holds_weights():
        return ["the network's weights are no longer parts of net.theta: write to them in place, e.g. net.set(theta)"]
    if net.theta.grad is not net.grad or not net.collects():
        return ["the gradients are no longer in net.grad: call net.zero_grad(), not torch's zero_grad()"]
    return []
