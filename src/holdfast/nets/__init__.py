"""The papers' backbones. `net("mlp")` finds `nets/mlp.py` by its name."""

from holdfast.nets._base import NetSpec
from holdfast.nets._warm import Warm
from holdfast.settings import Shelf

nets: Shelf[NetSpec] = Shelf("holdfast.nets", NetSpec, "net")

__all__ = ["NetSpec", "Warm", "nets"]
