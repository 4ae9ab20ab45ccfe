"""A network that begins with what a trained module knows."""

from __future__ import annotations

import copy

import torch
from torch import nn

from holdfast.errors import BadInput
from holdfast.types import StreamInfo


class Warm:
    """A copy of a trained module whose output layer has all outputs of the stream: the first are the module's, the
    others begin as torch's layers do.

    >>> trained = nn.Sequential(nn.Flatten(), nn.Linear(64, 3))
    >>> info = StreamInfo("model", "class", (1, 8, 8), 10, ())
    >>> wide = Warm(trained)(info)
    >>> wide[1].weight.shape, torch.equal(wide[1].weight[:3], trained[1].weight)
    (torch.Size([10, 64]), True)
    """

    def __init__(self, module: nn.Module) -> None:
        if not isinstance(module, nn.Module):
            raise BadInput(f"a warm network is a trained torch.nn.Module, not a {type(module).__name__}")
        self.module = module

    def __call__(self, info: StreamInfo) -> nn.Module:
        wide = copy.deepcopy(self.module).train()
        named = [(name, m) for name, m in wide.named_modules() if [*m.parameters(recurse=False)]]
        name, last = named[-1] if named else ("", wide)
        if not isinstance(last, nn.Linear) or not name:
            raise BadInput(f"the last layer of a warm network must be an nn.Linear in it, not a {type(last).__name__}")
        old, outputs = last.out_features, info.classes
        if old > outputs:
            raise BadInput(f"the warm network has {old} outputs, and the model only {outputs}; start it with more")
        if old < outputs:
            head = nn.Linear(last.in_features, outputs, bias=last.bias is not None)
            with torch.no_grad():
                for new, known in zip(head.parameters(), last.parameters(), strict=True):
                    new[:old] = known
            parent, _, leaf = name.rpartition(".")
            setattr(wide.get_submodule(parent), leaf, head)
        return wide
