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


def tail_of(module: nn.Module) -> tuple[nn.Module, nn.Module]:
    """A module cut in two: all up to its last layer with parameters, and the layers behind it, perhaps none.

    >>> [len(part) for part in tail_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 3), nn.ReLU()))]
    [2, 1]
    """
    layers = list(module) if isinstance(module, nn.Sequential) else [module]
    end = max((i + 1 for i, layer in enumerate(layers) if [*layer.parameters()]), default=0)
    return nn.Sequential(*layers[:end]), nn.Sequential(*layers[end:])


def _weighs(layer: nn.Module) -> bool:
    return any(p.dim() > 1 for p in layer.parameters())
