"""One file = one method. `method("ewc")` finds `methods/ewc.py` by its name."""

from holdfast.methods._base import Learner, Merging, Option, Rung, Terms, Weighing
from holdfast.settings import Shelf

methods: Shelf[Learner] = Shelf("holdfast.methods", Learner, "method")

__all__ = ["Learner", "Merging", "Option", "Rung", "Terms", "Weighing", "methods"]
