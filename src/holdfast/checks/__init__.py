"""Contracts that every method and stream must pass. `check_learner(MyLearner)` runs them on your own."""

from holdfast.checks.learner import CHECKS, check_learner
from holdfast.checks.stream import check_stream

__all__ = ["CHECKS", "check_learner", "check_stream"]
