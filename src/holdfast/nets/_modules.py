"""A network as a list of modules, so that it can be cut between any two of them."""

from __future__ import annotations

from torch import nn

from holdfast.errors import BadInput


def modules_of(module: nn.Module) -> list[nn.Module]:
    """The modules of a stack, one after the other: what each has is one layer with weights, or more.

    A layer without a weight matrix (an activation, pooling, dropout, a norm) belongs to the module before it; one at
    the beginning to the first that has one.

    >>> stack = nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> [len(list(module.children())) for module in modules_of(stack)]
    [3, 0]
    """
    if not isinstance(module, nn.Sequential):
        raise BadInput(f"a {type(module).__name__} is not a stack of modules (nn.Sequential), so it cannot be cut")
    groups: list[list[nn.Module]] = []
    for layer in module:
        if not groups or (_weighs(layer) and any(map(_weighs, groups[-1]))):
            groups.append([])
        groups[-1].append(layer)
    return [group[0] if len(group) == 1 else nn.Sequential(*group) for group in groups]


def _weighs(layer: nn.Module) -> bool:
    return any(p.dim() > 1 for p in layer.parameters())
